"""huey as its documentation shows it, with one HTTP POST in the task."""

import os
import sys

import requests
from huey import SqliteHuey

huey = SqliteHuey("outbox", filename=os.environ["WORKER_DB"])


@huey.task(retries=3, retry_delay=1, context=True)
def send(to, body, ref, task=None):
    response = requests.post(
        os.environ["PROVIDER_URL"] + "/v1/messages",
        json={"to": to, "body": body, "ref": ref},
        headers={"Idempotency-Key": task.id},
    )
    response.raise_for_status()
    return response.json()["id"]


def main():
    if sys.argv[1] == "enqueue":
        # Tasks are stored with their module's name, which must not be `__main__`.
        import worker

        for number in range(int(sys.argv[2])):
            ref = f"order-{number}"
            worker.send(f"user{number}@example.com", f"hello {number}", ref, id=ref)
        print("ENQUEUED", flush=True)
    else:
        consumer = os.path.join(os.path.dirname(sys.executable), "huey_consumer")
        if not os.path.exists(consumer):
            consumer += ".py"
        os.execv(sys.executable, [sys.executable, consumer, "worker.huey", "-w", "2"])


if __name__ == "__main__":
    main()
