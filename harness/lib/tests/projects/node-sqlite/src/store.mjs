import Database from "better-sqlite3";

export function open() {
  const db = new Database(process.env.NOTIFIER_DB ?? "data/notifier.sqlite3");
  db.pragma("journal_mode = WAL");
  db.exec(`
    CREATE TABLE IF NOT EXISTS notifications (
      reference TEXT PRIMARY KEY,
      channel TEXT NOT NULL,
      text TEXT NOT NULL,
      status TEXT NOT NULL DEFAULT 'queued' CHECK (status IN ('queued', 'sent', 'dead'))
    )`);
  return db;
}
