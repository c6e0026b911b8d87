// Sends what is queued, for ever. Nothing is written before a send, so that a crash after it sends again.
import { open } from "./store.mjs";

const { API_BASE_URL = "https://api.chat.example/v2", API_TOKEN } = process.env;
const db = open();
const next = db.prepare("SELECT * FROM notifications WHERE status = 'queued' ORDER BY reference LIMIT 1");
const decide = db.prepare("UPDATE notifications SET status = ? WHERE reference = ?");

for (;;) {
  const row = next.get();
  if (!row) {
    await new Promise((resolve) => setTimeout(resolve, 200));
    continue;
  }
  try {
    const answer = await fetch(`${API_BASE_URL}/messages`, {
      method: "POST",
      headers: { "Content-Type": "application/json", Authorization: `Bearer ${API_TOKEN}` },
      body: JSON.stringify({ channel: row.channel, text: row.text, reference: row.reference }),
    });
    decide.run(answer.ok ? "sent" : "dead", row.reference);
  } catch (error) {
    console.error(`sending ${row.reference}: ${error}`);
  }
}
