"""The plugin: options, the fixture ``killpoint``, and configurations whose trials are tests."""

from fnmatch import fnmatch

import pytest

from .program import Killpoint
from .result import KillpointError

TIMEOUT_S_DEFAULT = "600"
#: The name of the one test of a configuration whose trials are not known before it runs.
WHOLE = "every trial"


def pytest_addoption(parser):
    group = parser.getgroup("killpoint")
    group.addoption("--killpoint-program", metavar="PROGRAM", help="the program killpoint; else that of the ini file")
    parser.addini("killpoint_program", "the program killpoint", default="killpoint")
    parser.addini(
        "killpoint_configs",
        "configurations whose trials are tests, as patterns of paths below the root folder",
        type="args",
        default=[],
    )
    parser.addini("killpoint_timeout_s", "how long a run may take, in seconds", default=TIMEOUT_S_DEFAULT)


@pytest.fixture(scope="session")
def killpoint(request):
    """Runs killpoint: ``killpoint.run(boundary="provider:committed#1").assert_holds()``."""
    return _killpoint(request.config)


def _killpoint(config) -> Killpoint:
    timeout = config.getini("killpoint_timeout_s")
    try:
        timeout_s = float(timeout)
    except ValueError:
        raise pytest.UsageError(f"killpoint_timeout_s: {timeout!r} is no number of seconds") from None
    program = config.getoption("killpoint_program") or config.getini("killpoint_program")
    return Killpoint(program, config.rootpath, config.invocation_params.dir, timeout_s)


def pytest_collect_file(file_path, parent):
    if file_path.suffix != ".toml":
        return None
    try:
        below_root = file_path.relative_to(parent.config.rootpath).as_posix()
    except ValueError:
        below_root = file_path.as_posix()
    is_named = any(fnmatch(below_root, pattern) for pattern in parent.config.getini("killpoint_configs"))
    if is_named or parent.session.isinitpath(file_path):
        return Configuration.from_parent(parent, path=file_path)
    return None


class Configuration(pytest.File):
    """A configuration. Its trials are known once it has run, so that collecting it runs it."""

    def collect(self):
        # Where nothing is to be started, or each of several processes would start it, it is one test.
        if self.config.option.collectonly or hasattr(self.config, "workerinput"):
            yield Whole.from_parent(self, name=WHOLE)
            return
        run = self.run()
        for trial in run.trials:
            yield Tried.from_parent(self, name=trial.name, outcome=trial)
        if run.verdict != "holds" and all(trial.holds for trial in run.trials):
            yield Tried.from_parent(self, name=WHOLE, outcome=run)

    def run(self):
        return _killpoint(self.config).run(config=self.path)

    def repr_failure(self, excinfo):
        if isinstance(excinfo.value, KillpointError):
            return str(excinfo.value)
        return super().repr_failure(excinfo)


class _Item(pytest.Item):
    def repr_failure(self, excinfo, style=None):
        if isinstance(excinfo.value, (AssertionError, KillpointError)):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self):
        return self.path, None, self.name


class Tried(_Item):
    """A trial that was done, or a run that does not hold though its trials do."""

    def __init__(self, *, outcome, **arguments):
        super().__init__(**arguments)
        self.outcome = outcome

    def runtest(self):
        self.outcome.assert_holds()


class Whole(_Item):
    """All trials of a configuration in one."""

    def runtest(self):
        self.parent.run().assert_holds()
