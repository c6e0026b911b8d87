// plainjob as its documentation shows it, with one HTTP POST in the job.

import Database from "better-sqlite3";
import { better, defineQueue, defineWorker } from "plainjob";

// plainjob gives jobs back that were taken longer ago than its timeout: 30 minutes unless told otherwise.
const leaseMs = process.env.WORKER_LEASE_S && Number(process.env.WORKER_LEASE_S) * 1000;
const connection = better(new Database(process.env.WORKER_DB));
const queue = defineQueue({
  connection,
  ...(leaseMs ? { timeout: leaseMs, maintenanceInterval: 1000 } : {}),
});

function enqueue(count) {
  for (let number = 0; number < count; number++) {
    queue.add("send", { to: `user${number}@example.com`, body: `hello ${number}`, ref: `order-${number}` });
  }
  console.log("ENQUEUED");
  queue.close();
}

async function send(job) {
  const response = await fetch(`${process.env.PROVIDER_URL}/v1/messages`, {
    method: "POST",
    headers: { "Content-Type": "application/json", "Idempotency-Key": `job-${job.id}` },
    body: job.data,
  });
  if (!response.ok) throw new Error(`provider ${response.status}`);
}

async function run() {
  const onFailed = (job, error) => console.error(`job ${job.id} failed: ${error}`);
  const worker = defineWorker("send", send, { queue, onFailed });
  process.on("SIGTERM", async () => {
    await worker.stop();
    queue.close();
    process.exit(0);
  });
  await worker.start();
}

if (process.argv[2] === "enqueue") {
  enqueue(Number(process.argv[3]));
  process.exit(0);
} else {
  await run();
}
