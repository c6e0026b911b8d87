// Reading the journal, for the worker and for its status.

// The entries of the whole lines, and how many bytes those are.
export function readJournal(buffer) {
  const bytes = buffer.lastIndexOf("\n") + 1;
  const lines = buffer.subarray(0, bytes).toString("utf8").split("\n").filter(Boolean);
  return { entries: lines.map((line) => JSON.parse(line)), bytes };
}

// The messages with the state that their last entry gives them, in the order of their creation.
export function messagesOf(entries) {
  const messages = new Map();
  for (const { event, key, id, ...created } of entries) {
    if (event === "created") messages.set(key, { ...created, key });
    Object.assign(messages.get(key), { state: event, id });
  }
  return [...messages.values()];
}
