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
        failed = isinstance(result, Error)
        yield {
            "action": key if isinstance(key, str) else key.decode(),
            "state": "error" if failed else "result",
            "provider_id": None if failed else result,
        }


if __name__ == "__main__":
    if os.path.exists(os.environ["WORKER_DB"]):
        for row in rows(SqliteHuey("outbox", filename=os.environ["WORKER_DB"])):
            print(json.dumps(row))
