// Every recorded output of the program comes to the summary that every client makes of it.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

import { KillpointError, parse } from '../killpoint-node-test.mjs';

const recorded = JSON.parse(readFileSync(new URL('../../recorded-runs.json', import.meta.url), 'utf8'));

function whole({ like, set = {}, ...own }) {
  const base = like ? whole(recorded.cases.find((other) => other.name === like)) : {};
  const made = structuredClone({ ...base, ...own });
  for (const [path, value] of Object.entries(set)) {
    const folders = path.split('.');
    const last = folders.pop();
    folders.reduce((at, folder) => at[folder], made.stdout)[last] = value;
  }
  return made;
}

function summary({ exit_code: exitCode, stdout, stderr }) {
  const text = typeof stdout === 'string' ? stdout : stdout === null ? '' : JSON.stringify(stdout);
  let result;
  try {
    result = parse(exitCode, text, stderr);
  } catch (error) {
    assert.ok(error instanceof KillpointError, error);
    return { error: error.message.split('\n') };
  }
  if (result.verdict === 'holds') result.assertHolds();
  else assert.throws(() => result.assertHolds(), { code: 'ERR_ASSERTION', message: String(result) });
  return {
    verdict: result.verdict,
    trials: result.trials.map((trial) => [trial.name, trial.verdict, ...trial.violated]),
    text: String(result).split('\n'),
  };
}

for (const one of recorded.cases) {
  test(one.name, () => {
    const made = whole(one);
    assert.deepEqual(summary(made), made.summary);
  });
}
