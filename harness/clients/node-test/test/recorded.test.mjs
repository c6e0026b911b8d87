// Every recorded output of the program comes to the summary that every client makes of it.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { KillpointError, parse } from '../killpoint-node-test.mjs';
import { cases, stdoutOf, whole } from './recorded.mjs';

function summary(made) {
  let result;
  try {
    result = parse(made.exit_code, stdoutOf(made), made.stderr);
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

for (const { name } of cases) {
  test(name, () => {
    const made = whole(name);
    assert.deepEqual(summary(made), made.summary);
  });
}
