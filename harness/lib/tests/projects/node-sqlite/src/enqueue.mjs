// Commits notifications: node src/enqueue.mjs N
import { open } from "./store.mjs";

const db = open();
const insert = db.prepare("INSERT INTO notifications (reference, channel, text) VALUES (?, ?, ?)");
const all = db.transaction((count) => {
  for (let i = 1; i <= count; i++) insert.run(`note-${i}`, `room-${i}`, `hello ${i}`);
});
all(Number(process.argv[2]));
db.close();
