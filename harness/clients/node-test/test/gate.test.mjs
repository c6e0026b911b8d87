// The module with a program that plays recorded outputs, below a node:test of its own.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';

import { KillpointError, run } from '../killpoint-node-test.mjs';
import { stdoutOf, whole } from './recorded.mjs';

const MODULE = new URL('../killpoint-node-test.mjs', import.meta.url).href;
const HANGS = "process.on('SIGINT', () => process.exit(130)); fs.writeFileSync('hangs', ''); setTimeout(() => {}, 60_000);";

// A folder with a program that plays a recorded output and notes its words.
function played(t, name, before = 'play();') {
  const folder = mkdtempSync(join(tmpdir(), 'killpoint-node-test-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const one = whole(name);
  const program = join(folder, 'played.cjs');
  const source = `#!${process.execPath}
const fs = require('node:fs');
fs.writeFileSync(${JSON.stringify(join(folder, 'words.json'))}, JSON.stringify(process.argv.slice(2)));
function play() {
  fs.writeSync(1, ${JSON.stringify(stdoutOf(one))});
  fs.writeSync(2, ${JSON.stringify(one.stderr)});
  process.exit(${one.exit_code});
}
${before}
`;
  writeFileSync(program, source);
  chmodSync(program, 0o755);
  return { folder, program, words: () => JSON.parse(readFileSync(join(folder, 'words.json'), 'utf8')) };
}

// `node --test` on a file that calls the gate.
function gated({ folder, program }, options = {}) {
  const file = join(folder, 'gate.test.mjs');
  const call = JSON.stringify({ program, cwd: folder, ...options });
  writeFileSync(file, `import { gate } from '${MODULE}';\nawait gate(${call});\n`);
  // A test runner below a test runner would otherwise report to the one above.
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const child = spawn(process.execPath, ['--test', '--test-reporter=tap', file], { env, cwd: folder });
  let text = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (text += chunk));
  const ended = new Promise((resolve) => child.on('close', (code, signal) => resolve({ code, signal, text })));
  return { child, ended };
}

function processesOf(program) {
  const lines = readdirSync('/proc').filter((name) => /^\d+$/.test(name)).flatMap((pid) => {
    try {
      return [readFileSync(`/proc/${pid}/cmdline`, 'utf8')];
    } catch {
      return [];
    }
  });
  return lines.filter((line) => line.includes(program));
}

async function until(condition) {
  for (let left = 1000; !condition(); left -= 1) {
    assert.ok(left > 0, `not within the limit: ${condition}`);
    await pause(20);
  }
}

test('each trial is a subtest', async (t) => {
  const made = played(t, 'holds');
  const { code, text } = await gated(made, { config: 'one.toml' }).ended;
  assert.equal(code, 0, text);
  assert.match(text, /# Subtest: killpoint: one.toml/);
  assert.match(text, / ok 3 - kill at provider:committed/);
  assert.deepEqual(made.words(), ['run', '--format', 'json', '--config', 'one.toml']);
});

test('a trial that does not hold fails with its own text', async (t) => {
  const { code, text } = await gated(played(t, 'violated')).ended;
  assert.equal(code, 1, text);
  assert.match(text, / ok 2 - baseline again/);
  assert.match(text, /not ok 3 - kill at provider:received/);
  for (const line of whole('violated').summary.text.slice(1, 7)) assert.ok(text.includes(line), `${line}\n${text}`);
});

test('what is vacuous fails, and so does a run whose trials hold', async (t) => {
  for (const name of ['vacuous', 'a run that does not hold though its trials do']) {
    const { code, text } = await gated(played(t, name)).ended;
    assert.equal(code, 1, text);
    assert.match(text, /boundary `mark:item-claimed#1` was never reached|no trial shows why/);
  }
});

test('no verdict is an error with what the program said', async (t) => {
  for (const name of ['invalid configuration', 'set-up failed', 'a bug in killpoint', 'a newer major version', 'no JSON']) {
    const { program, folder } = played(t, name);
    const message = whole(name).summary.error.join('\n');
    await assert.rejects(run({ program, cwd: folder }), { name: 'KillpointError', message });
    const { code, text } = await gated({ program, folder }).ended;
    assert.equal(code, 1, text);
    assert.ok(text.includes(message.split('\n')[0]), text);
  }
});

test('every option is passed on', async (t) => {
  const { program, words } = played(t, 'holds');
  const selection = { scenario: ['a', 'b.toml'], boundary: 'provider:committed#1', strategy: 'sweep' };
  await run({ program, config: 'c.toml', ...selection, profile: 'restart-safe', jobs: 2, repeat: 3 });
  const expected =
    'run --format json --config c.toml --scenario a --scenario b.toml --boundary provider:committed#1 ' +
    '--strategy sweep --profile restart-safe --jobs 2 --repeat 3';
  assert.deepEqual(words(), expected.split(' '));
  await run({ program, command: ['./worker', '--fast'] });
  assert.deepEqual(words(), ['run', '--format', 'json', '--', './worker', '--fast']);
});

test('a program that is not there is named', async () => {
  const message = /^\/no\/such\/killpoint can't be started: ENOENT; install killpoint/;
  await assert.rejects(run({ program: '/no/such/killpoint' }), { name: 'KillpointError', message });
});

test('a run that takes too long is stopped', async (t) => {
  const { program, folder } = played(t, 'holds', HANGS);
  const error = await run({ program, cwd: folder, timeoutS: 0.5 }).catch((caught) => caught);
  assert.ok(error instanceof KillpointError, error);
  assert.match(error.message, /^killpoint did not end within 0.5 s and was stopped/);
  assert.deepEqual(processesOf(program), []);
});

test('a signal that aborts ends the program', async (t) => {
  const { program, folder } = played(t, 'holds', HANGS);
  const controller = new AbortController();
  const running = run({ program, cwd: folder, signal: controller.signal }).catch((caught) => caught);
  await until(() => existsSync(join(folder, 'hangs')));
  controller.abort();
  assert.match((await running).message, /^killpoint was stopped because its test was/);
  assert.deepEqual(processesOf(program), []);
});

for (const signal of ['SIGINT', 'SIGTERM']) {
  test(`${signal} to the test runner ends the program too`, async (t) => {
    const made = played(t, 'holds', HANGS);
    const { child, ended } = gated(made);
    await until(() => existsSync(join(made.folder, 'hangs')));
    child.kill(signal);
    const { code } = await ended;
    assert.notEqual(code, 0);
    await until(() => processesOf(made.program).length === 0);
  });
}
