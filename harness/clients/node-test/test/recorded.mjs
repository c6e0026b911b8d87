// The recorded outputs of the program that every client is held to.

import { readFileSync } from 'node:fs';

export const { cases } = JSON.parse(readFileSync(new URL('../../recorded-runs.json', import.meta.url), 'utf8'));

// A case with what it takes from another.
export function whole(name) {
  const { like, set = {}, ...own } = cases.find((one) => one.name === name);
  const made = structuredClone({ ...(like ? whole(like) : {}), ...own });
  for (const [path, value] of Object.entries(set)) {
    const folders = path.split('.');
    const last = folders.pop();
    folders.reduce((at, folder) => at[folder], made.stdout)[last] = value;
  }
  return made;
}

export function stdoutOf({ stdout }) {
  return typeof stdout === 'string' ? stdout : stdout === null ? '' : JSON.stringify(stdout);
}
