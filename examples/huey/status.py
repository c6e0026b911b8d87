"""Prints what huey's own store says of each task, as JSON lines. WORKER_DB is a copy."""

import json
import os

from huey import SqliteHuey
from huey.utils import Error


def rows(huey):
    for state, items in (
        ("queued", huey.storage.enqueued_items()),
        ("scheduled", huey.storage.scheduled_items()),
    ):
        for item in items:
            task = huey.serializer.deserialize(item)
            yield {"action": task.id, "state": state, "key": task.id}
    for key, value in huey.all_results().items():
        result = huey.serializer.deserialize(value)
        if not isinstance(result, Error):
            yield {"action": key, "state": "result", "key": key, "provider_id": result}
        elif result.metadata["retries"] == 0:
            yield {"action": key, "state": "error", "key": key}
        # An error with retries left is no end: the task is scheduled, queued, or with a worker.


if __name__ == "__main__":
    if os.path.exists(os.environ["WORKER_DB"]):
        for row in rows(SqliteHuey("outbox", filename=os.environ["WORKER_DB"])):
            print(json.dumps(row))
