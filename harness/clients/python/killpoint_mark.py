"""One call by which a worker names a boundary for killpoint: ``mark("result-committed")``.

Outside a trial the variable ``KILLPOINT_SOCKET`` is unset and the call returns at once, so it can stay in
production code. Inside a trial it blocks until the harness answers, without a limit of its own: being held at
this very moment is what it is for.
"""

import os
import socket
import unicodedata

__all__ = ["MarkError", "mark"]

SOCKET_VARIABLE = "KILLPOINT_SOCKET"
NAME_BYTES_MAX = 200
_ANSWER_BYTES_MAX = 4096


class MarkError(Exception):
    """The mark was not made. The worker should stop: its trial proves nothing."""


def mark(name):
    """Names this moment, such as ``result-committed`` or ``result-committed[job-7]``.

    Returns at once outside a trial. Safe to call from several threads. Raises MarkError for an invalid name
    (outside a trial too, so that a typo can't hide until then) and whenever the harness does not say "go".
    """
    encoded = _checked(name)
    path = os.environ.get(SOCKET_VARIABLE)
    if not path:
        return
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with connection:
        # A process-wide default timeout must not end the harness's hold.
        connection.settimeout(None)
        try:
            connection.connect(path)
        except OSError as cause:
            raise MarkError(f"can't reach killpoint at {path}: {cause}") from cause
        answer = _exchange(connection, b"killpoint-mark 1 " + encoded + b"\n")
    if answer == b"go\n":
        return
    if answer.startswith(b"error ") and answer.endswith(b"\n"):
        raise MarkError("killpoint refused the mark: " + answer[6:-1].decode("utf-8", "replace"))
    raise MarkError(f"killpoint closed the connection without a valid answer to the mark `{name}`")


def _exchange(connection, line):
    """Sends the line; returns what came up to the end of the first line, or less where it ended early."""
    answer = b""
    try:
        connection.sendall(line)
        while not answer.endswith(b"\n") and len(answer) < _ANSWER_BYTES_MAX:
            piece = connection.recv(_ANSWER_BYTES_MAX)
            if not piece:
                break
            answer = (answer + piece).partition(b"\n")[0] + (b"\n" if b"\n" in piece else b"")
    except OSError:
        return b""
    return answer


def _checked(name):
    try:
        encoded = name.encode("utf-8")
    except (AttributeError, UnicodeEncodeError):
        raise MarkError(f"invalid mark name `{name!r}`: it must be text") from None
    point, bracket, rest = name.partition("[")
    if not 1 <= len(encoded) <= NAME_BYTES_MAX:
        why = "it must have 1 to 200 bytes"
    elif any(c.isspace() or unicodedata.category(c) == "Cc" for c in name):
        why = "it must have no white space and no control characters"
    elif bracket and not (point and len(rest) > 1 and rest.endswith("]")):
        why = "a selector is `[text]` at the end"
    else:
        return encoded
    raise MarkError(f"invalid mark name `{name}`: {why}")
