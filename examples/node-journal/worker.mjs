// An outbox in an append-only journal of JSON lines; nothing but Node's own library.
//
//   node worker.mjs enqueue FILE   writes the actions of a JSON Lines file to the journal
//   node worker.mjs run            sends all that there is to send, and ends
//   node worker.mjs run --wrong    the same, but notes "sent" before the request instead of after it
//
// Needs JOURNAL (the file) and PROVIDER_URL.

import { closeSync, fsyncSync, ftruncateSync, openSync, readFileSync, writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { messagesOf, readJournal } from "./journal.mjs";

const messages = `${process.env.PROVIDER_URL}/v1/messages`;
const TIMEOUT_MS = 10_000;
// A provider may accept a request some time after it took it: absent is what was absent twice.
const SECOND_LOOK_MS = 700;
const TRIES_MAX = 3;

class Journal {
  constructor(path) {
    this.file = openSync(path, "a+");
    const { entries, bytes } = readJournal(readFileSync(path));
    // A line that a death cut short was never acted upon.
    ftruncateSync(this.file, bytes);
    this.entries = entries;
  }

  // On disk before anything that follows from it.
  append(entry) {
    writeSync(this.file, `${JSON.stringify(entry)}\n`);
    fsyncSync(this.file);
    this.entries.push(entry);
  }

  close() {
    closeSync(this.file);
  }
}

function enqueue(journal, path) {
  for (const line of readFileSync(path, "utf8").split("\n").filter(Boolean)) {
    const { id, to, body } = JSON.parse(line);
    for (const recipient of to) {
      journal.append({ event: "created", key: `${id}/${recipient}`, ref: id, to: recipient, body });
    }
  }
  console.log("ENQUEUED");
}

// "accepted" with the provider's id, "refused", or "unclear".
async function post({ key, to, body, ref }) {
  try {
    const response = await fetch(messages, {
      method: "POST",
      headers: { "Content-Type": "application/json", "Idempotency-Key": key },
      body: JSON.stringify({ to, body, ref }),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    if (response.ok) return { outcome: "accepted", id: (await response.json()).id };
    const unclear = response.status >= 500 || [408, 409, 425, 429].includes(response.status);
    return { outcome: unclear ? "unclear" : "refused" };
  } catch {
    return { outcome: "unclear" };
  }
}

// "present" with the provider's id, "absent", or "unclear".
async function lookUp(key) {
  try {
    const address = `${messages}?idempotency_key=${encodeURIComponent(key)}`;
    const response = await fetch(address, { signal: AbortSignal.timeout(TIMEOUT_MS) });
    if (!response.ok) return { outcome: "unclear" };
    const [found] = (await response.json()).data;
    return found ? { outcome: "present", id: found.id } : { outcome: "absent" };
  } catch {
    return { outcome: "unclear" };
  }
}

async function findOut(key) {
  const first = await lookUp(key);
  if (first.outcome !== "absent") return first;
  await sleep(SECOND_LOOK_MS);
  return lookUp(key);
}

// Sends until it is known what became of the message; always under the same key.
async function send(journal, message) {
  const { key } = message;
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const answer = await post(message);
    if (answer.outcome === "accepted") return journal.append({ event: "sent", key, id: answer.id });
    if (answer.outcome === "refused") return journal.append({ event: "failed", key });
    const found = await findOut(key);
    if (found.outcome === "present") return journal.append({ event: "sent", key, id: found.id });
    if (found.outcome === "unclear") break;
  }
  return journal.append({ event: "unknown", key });
}

// An earlier life died between the intent and the outcome.
async function recover(journal, message) {
  const { key } = message;
  const found = await findOut(key);
  if (found.outcome === "present") return journal.append({ event: "sent", key, id: found.id });
  if (found.outcome === "unclear") return journal.append({ event: "unknown", key });
  return send(journal, message);
}

async function run(journal, wrong) {
  for (const message of messagesOf(journal.entries)) {
    if (message.state === "sending") {
      await recover(journal, message);
    } else if (message.state === "created" && wrong) {
      journal.append({ event: "sent", key: message.key });
      await post(message);
    } else if (message.state === "created") {
      journal.append({ event: "sending", key: message.key });
      await send(journal, message);
    }
  }
}

const [, , verb, argument] = process.argv;
const journal = new Journal(process.env.JOURNAL);
if (verb === "enqueue") enqueue(journal, argument);
else await run(journal, argument === "--wrong");
journal.close();
