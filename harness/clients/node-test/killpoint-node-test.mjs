// killpoint's trials as subtests of node:test. Starts the program `killpoint`, reads its JSON report, and leaves
// nothing running, however it ends.

import { AssertionError } from 'node:assert';
import { spawn } from 'node:child_process';
import { test } from 'node:test';

const FORMAT = 'killpoint-report';
// A higher minor version only adds fields; another major version is refused.
const VERSION_MAJOR = 1;
const EXIT = { holds: 0, violated: 1, unproven: 2, setupFailed: 4 };
const MEANINGS = {
  3: 'invalid configuration, scenario or command line',
  4: 'set-up failed',
  70: 'a bug in killpoint',
  130: 'interrupted',
};

const TIMEOUT_S_DEFAULT = 600;
// How long the program may take to end its workers once it is asked to.
const GRACE_MS = 15_000;

const FINDINGS_MAX = 5;
const NAMED_MAX = 10;
const EVENTS_MAX = 20;
const LINES_MAX = 40;
const WRONG = ['duplicate', 'lost', 'false-success', 'false-failure', 'stuck', 'undetermined'];

/** The program gave no verdict: nothing is known about the worker. */
export class KillpointError extends Error {
  name = 'KillpointError';

  constructor(message, exitCode = null, cause = undefined) {
    super(message, { cause });
    this.exitCode = exitCode;
  }
}

/** Runs killpoint and registers one subtest per trial; resolves once all are done. */
export function gate(options = {}) {
  const worker = options.command?.join(' ') ?? options.config ?? 'killpoint.toml';
  return test(`killpoint: ${worker}`, async (context) => {
    const result = await run({ signal: context.signal, ...options });
    for (const trial of result.trials) {
      await context.test(trial.name, () => assertWithoutPlace(trial));
    }
    if (result.trials.every((trial) => trial.holds)) assertWithoutPlace(result);
  });
}

// The place would be in this file, and below it the test runner's own.
function assertWithoutPlace(outcome) {
  try {
    outcome.assertHolds();
  } catch (error) {
    error.stack = `${error.name} [${error.code}]: ${error.message}`;
    throw error;
  }
}

/** Runs killpoint and gives what came out. Rejects with KillpointError where there is no verdict. */
export async function run(options = {}) {
  const { program = 'killpoint', cwd, timeoutS = TIMEOUT_S_DEFAULT, signal } = options;
  const ended = await carryOut(program, words(options), { cwd, timeoutS, signal });
  return parse(ended.exitCode, ended.stdout, ended.stderr);
}

function words({ config, scenario, boundary, strategy, profile, jobs, repeat, command }) {
  const all = ['run', '--format', 'json'];
  if (config !== undefined || !command) all.push('--config', config ?? 'killpoint.toml');
  for (const name of [scenario ?? []].flat()) all.push('--scenario', name);
  for (const name of [boundary ?? []].flat()) all.push('--boundary', name);
  for (const [name, value] of Object.entries({ strategy, profile, jobs, repeat })) {
    if (value !== undefined) all.push(`--${name}`, String(value));
  }
  return command ? [...all, '--', ...command] : all;
}

function carryOut(program, args, { cwd, timeoutS, signal }) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { cwd, stdio: ['ignore', 'pipe', 'pipe'] });
    const chunks = { stdout: [], stderr: [] };
    for (const name of ['stdout', 'stderr']) child[name].on('data', (chunk) => chunks[name].push(chunk));
    let stopped = null;
    let grace;
    const stop = (why) => {
      stopped ??= why;
      child.kill('SIGINT');
      // Its death ends its workers too.
      grace ??= setTimeout(() => child.kill('SIGKILL'), GRACE_MS);
    };
    const timer = setTimeout(() => stop(`did not end within ${timeoutS} s and was stopped`), timeoutS * 1000);
    const abort = () => stop('was stopped because its test was');
    const restore = passOnSignals(stop);
    const kill = () => child.kill('SIGKILL');
    process.on('exit', kill);
    signal?.addEventListener('abort', abort);
    if (signal?.aborted) abort();
    const settle = () => {
      clearTimeout(timer);
      clearTimeout(grace);
      signal?.removeEventListener('abort', abort);
      process.off('exit', kill);
      restore();
    };
    child.on('error', (error) => {
      settle();
      reject(new KillpointError(`${program} can't be started: ${error.code}; install killpoint, or name it with \`program\``));
    });
    child.on('close', (exitCode, killedBy) => {
      settle();
      const [stdout, stderr] = ['stdout', 'stderr'].map((name) => Buffer.concat(chunks[name]).toString());
      if (stopped) reject(new KillpointError(joined(`killpoint ${stopped}`, cleanLines(stderr)), exitCode));
      else if (killedBy) reject(new KillpointError(joined(`killpoint was killed by ${killedBy}`, cleanLines(stderr))));
      else resolve({ exitCode, stdout, stderr });
    });
  });
}

// A signal that ends this process by default would leave the program behind: the program ends first, then we do.
// Where somebody else handles a signal, they decide what it means.
function passOnSignals(stop) {
  const handlers = ['SIGINT', 'SIGTERM', 'SIGHUP']
    .filter((name) => process.listenerCount(name) === 0)
    .map((name) => [name, () => passOn(name)]);
  let caught = null;
  const passOn = (name) => {
    caught ??= name;
    stop(`was stopped by ${name}`);
  };
  for (const [name, handler] of handlers) process.on(name, handler);
  return () => {
    for (const [name, handler] of handlers) process.off(name, handler);
    if (caught) process.kill(process.pid, caught);
  };
}

/** The result that the program reports, from its exit code and what it wrote. */
export function parse(exitCode, stdout, stderr) {
  if (![EXIT.holds, EXIT.violated, EXIT.unproven].includes(exitCode)) {
    throw new KillpointError(why(exitCode, stdout, stderr), exitCode);
  }
  const result = resultOf(reportOf(stdout, stderr));
  if (result.exitCode !== exitCode || (exitCode === EXIT.holds) !== (result.verdict === 'holds')) {
    const said = `reports ${result.verdict} and ${result.exitCode}`;
    throw new KillpointError(`killpoint ended with exit code ${exitCode}, but ${said}`, exitCode);
  }
  return result;
}

function why(exitCode, stdout, stderr) {
  const head = `killpoint gave no verdict: ${MEANINGS[exitCode] ?? 'unknown'} (exit code ${exitCode})`;
  // The fault-free trials were judged, and nothing can be compared with them.
  const judged = exitCode === EXIT.setupFailed && stdout ? String(resultOf(reportOf(stdout, stderr))) : '';
  return joined(head, cleanLines(stderr), judged);
}

function reportOf(stdout, stderr) {
  let report;
  try {
    report = JSON.parse(stdout);
  } catch (error) {
    throw new KillpointError(joined('killpoint printed no JSON report', cleanLines(stderr)), null, error);
  }
  if (report?.format !== FORMAT) throw new KillpointError(`killpoint printed JSON that is no ${FORMAT}`);
  const { version } = report;
  if (!Array.isArray(version) || version.length !== 2 || version[0] !== VERSION_MAJOR) {
    const written = Array.isArray(version) ? version.join('.') : 'none';
    throw new KillpointError(
      `killpoint wrote version ${written} of its report, and this package reads ${VERSION_MAJOR}: ` +
        'use a package and a killpoint of the same release',
    );
  }
  return report;
}

function resultOf(report) {
  try {
    return new Result(report);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw new KillpointError("killpoint's report lacks what it promises", null, error);
  }
}

class Result {
  constructor(report) {
    this.verdict = report.verdict;
    this.folder = report.run_dir ?? '';
    this.exitCode = report.exit_code;
    this.warnings = [...report.warnings];
    this.report = report;
    this.trials = trialsOf(report, this.folder);
  }

  /** The trials that do not hold, worst first. */
  get notHolding() {
    const order = this.report.details.map((detail) => `${this.folder}/${detail.folder}`);
    const bad = this.trials.filter((trial) => !trial.holds);
    return bad.sort((a, b) => order.indexOf(a.folder) - order.indexOf(b.folder));
  }

  trial(name) {
    return this.trials.find((trial) => trial.name === name);
  }

  assertHolds() {
    if (this.verdict !== 'holds') fail(String(this), this.verdict, this.assertHolds);
  }

  toString() {
    if (this.verdict === 'holds') return `holds: all ${this.trials.length} trials hold`;
    const [first, ...others] = this.notHolding;
    const head = `${this.verdict}: ${this.notHolding.length} of ${this.trials.length} trials do not hold`;
    const lines = first ? [head, String(first)] : [`${head}; no trial shows why: see \`killpoint report ${this.folder}\``];
    for (const other of others.slice(0, NAMED_MAX)) {
      const names = other.violated.length > 0 ? ` (${other.violated.join(', ')})` : '';
      lines.push(`and ${clean(other.name)}: ${other.verdict}${names}`);
    }
    lines.push(...rest('and', others.length, NAMED_MAX));
    lines.push(...this.warnings.slice(0, FINDINGS_MAX).map((warning) => `warning: ${clean(warning)}`));
    return [...lines, ...rest('warning:', this.warnings.length, FINDINGS_MAX)].join('\n');
  }
}

class Trial {
  constructor(values) {
    Object.assign(this, values);
  }

  get holds() {
    return this.verdict === 'holds';
  }

  /** The names of the invariants that are violated, each once. */
  get violated() {
    const violated = this.findings.filter((finding) => finding.status === 'violated');
    return [...new Set(violated.map((finding) => finding.invariant))];
  }

  assertHolds() {
    if (!this.holds) fail(String(this), this.verdict, this.assertHolds);
  }

  toString() {
    const lines = [`${clean(this.name)}: ${this.verdict}`];
    if (this.holds) return lines[0];
    for (const group of byInvariant(this.findings)) lines.push(...findingLines(group));
    const wrong = this.actions.filter((action) => WRONG.includes(action.verdict));
    for (const { action, recipient, verdict, effects, expected } of wrong.slice(0, FINDINGS_MAX)) {
      lines.push(`  ${clean(action)} to ${clean(recipient)}: ${verdict}, effects ${effects}, owed ${expected}`);
    }
    lines.push(...rest('  actions:', wrong.length, FINDINGS_MAX));
    if (!this.judged) lines.push('  not judged: the run ended before');
    else if (this.verdict !== 'violated') lines.push(...this.missing.map((missing) => `  missing: ${clean(missing)}`));
    lines.push(`  where: ${clean(this.boundary)}, provider plan ${clean(this.providerPlan)}`);
    return [...lines, `  replay: ${clean(this.replay)}`, `  folder: ${clean(this.folder)}`].join('\n');
  }
}

function trialsOf(report, runFolder) {
  const details = new Map(report.details.map((detail) => [detail.folder, detail]));
  const counts = new Map();
  return report.rows.flatMap((row) =>
    row.repetitions.map((one) => {
      const count = (counts.get(row.plan) ?? 0) + 1;
      counts.set(row.plan, count);
      const detail = details.get(one.folder) ?? { judged: [], actions: [], missing: [] };
      return new Trial({
        name: count === 1 ? row.plan : `${row.plan} (${count})`,
        verdict: one.verdict ?? 'inconclusive',
        boundary: row.boundary,
        providerPlan: row.provider_plan,
        findings: detail.judged.flatMap(({ invariant, status, findings }) =>
          findings.map(({ message, subject, events }) => ({ invariant, status, message, subject, events })),
        ),
        actions: detail.actions,
        missing: detail.missing,
        judged: one.verdict !== null,
        counters: one.counters ?? {},
        replay: one.replay,
        folder: `${runFolder}/${one.folder}`,
      });
    }),
  );
}

function byInvariant(findings) {
  const groups = [];
  for (const finding of findings) {
    const last = groups.at(-1)?.[0];
    if (last?.invariant === finding.invariant && last?.status === finding.status) groups.at(-1).push(finding);
    else groups.push([finding]);
  }
  return groups;
}

function findingLines(group) {
  const name = group[0].status === 'violated' ? group[0].invariant : `${group[0].invariant} (inconclusive)`;
  const lines = group.slice(0, FINDINGS_MAX).flatMap(({ message, subject, events }) => {
    const more = events.length > EVENTS_MAX ? ', …' : '';
    const shown = events.slice(0, EVENTS_MAX).join(', ');
    return [`  ${name}: ${clean(message)}`, `    about ${clean(subject)}, events ${shown}${more}`];
  });
  return [...lines, ...rest(`  ${name}:`, group.length, FINDINGS_MAX)];
}

function rest(start, count, shown) {
  return count > shown ? [`${start} ${count - shown} more`] : [];
}

function fail(message, verdict, from) {
  throw new AssertionError({ message, actual: verdict, expected: 'holds', operator: 'killpoint', stackStartFn: from });
}

// What could move a terminal's cursor, reverse the reading order or hide itself: a worker chooses its texts.
const HAZARD =
  /[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;
const NAMED = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };

function clean(text) {
  return text.replace(HAZARD, (char) => {
    const code = char.codePointAt(0);
    const hex = code.toString(16);
    return NAMED[char] ?? (code < 0x100 ? `\\x${hex.padStart(2, '0')}` : `\\u{${hex}}`);
  });
}

// The last lines of a longer text, made harmless line by line.
function cleanLines(text) {
  const lines = text.replace(/^\n+|\n+$/g, '').split('\n');
  const leftOut = lines.length > LINES_MAX ? [`… ${lines.length - LINES_MAX} lines left out`] : [];
  return [...leftOut, ...lines.slice(-LINES_MAX).map(clean)].join('\n');
}

function joined(...parts) {
  return parts.filter((part) => part !== '').join('\n');
}
