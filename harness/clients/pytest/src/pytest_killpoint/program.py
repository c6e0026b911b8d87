"""Starts the program ``killpoint`` and reads what it says. Nothing is left running, however it ends."""

import os
import signal
import subprocess
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import List, Optional, Sequence, Union

from .result import KillpointError, Run, parse
from . import text

#: How long the program may take to end its workers once it is asked to.
GRACE_S = 15.0

Words = Union[str, "os.PathLike[str]", Sequence[Union[str, "os.PathLike[str]"]]]


class Killpoint:
    """What the fixture ``killpoint`` is: the program, with what the project says of it."""

    def __init__(self, program: str, root: Path, here: Path, timeout_s: float):
        self._program = program
        self._root = root
        self._here = here
        self._timeout_s = timeout_s

    def run(
        self,
        config: "Optional[Union[str, os.PathLike[str]]]" = None,
        scenario: Words = (),
        boundary: Words = (),
        strategy: Optional[str] = None,
        profile: Optional[str] = None,
        jobs: Optional[int] = None,
        repeat: Optional[int] = None,
        command: Sequence[str] = (),
        timeout_s: Optional[float] = None,
    ) -> Run:
        """Runs the trials and gives what came out.

        ``config`` starts at pytest's root folder; without it, ``killpoint.toml`` there, unless ``command`` is a
        worker without a configuration. Raises KillpointError where there is no verdict.
        """
        words = [self._program, "run", "--format", "json"]
        if config is not None or not command:
            words += ["--config", self._as_seen_from_here(config or "killpoint.toml")]
        for option, values in (("--scenario", scenario), ("--boundary", boundary)):
            for value in [values] if isinstance(values, (str, os.PathLike)) else values:
                words += [option, os.fspath(value)]
        for option, value in (
            ("--strategy", strategy),
            ("--profile", profile),
            ("--jobs", jobs),
            ("--repeat", repeat),
        ):
            if value is not None:
                words += [option, str(value)]
        if command:
            words += ["--", *command]
        return self._carry_out(words, self._timeout_s if timeout_s is None else timeout_s)

    def _as_seen_from_here(self, config: "Union[str, os.PathLike[str]]") -> str:
        # The line that replays a trial names it, and has to work where pytest was started.
        path = self._root / config
        try:
            return str(path.relative_to(self._here))
        except ValueError:
            return str(path)

    def _carry_out(self, words: List[str], timeout_s: float) -> Run:
        try:
            process = subprocess.Popen(
                words,
                cwd=self._here,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                encoding="utf-8",
                errors="replace",
            )
        except OSError as error:
            raise KillpointError(
                f"{self._program} can't be started: {error.strerror}; install killpoint, or name it with "
                "--killpoint-program or the ini option killpoint_program"
            ) from None
        try:
            with _terminated_like_interrupted():
                stdout, stderr = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            _, stderr = _end(process)
            said = text.clean_lines(stderr)
            raise KillpointError(f"killpoint did not end within {timeout_s:g} s and was stopped\n{said}".rstrip()) from None
        except BaseException:
            _end(process)
            raise
        return parse(process.returncode, stdout, stderr)


def _end(process):
    """Asks the program to end its workers and itself; kills it where it does not, which ends its workers too."""
    try:
        process.send_signal(signal.SIGINT)
        return process.communicate(timeout=GRACE_S)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        process.kill()
        return process.communicate()


@contextmanager
def _terminated_like_interrupted():
    """SIGTERM ends pytest without a word unless somebody handles it, and would leave the program behind."""
    unhandled = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    if not unhandled:
        yield
        return

    def interrupt(_number, _frame):
        raise KeyboardInterrupt("SIGTERM")

    signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
