// node status.mjs FILE: prints one JSON line per message of a journal.

import { existsSync, readFileSync } from "node:fs";
import { messagesOf, readJournal } from "./journal.mjs";

const [, , path] = process.argv;
if (existsSync(path)) {
  for (const { ref, to, body, key, state, id } of messagesOf(readJournal(readFileSync(path)).entries)) {
    const row = { action: ref, destination: to, text: body, key, state, provider_id: id };
    console.log(JSON.stringify(row));
  }
}
