"""What the program said, as values: the JSON report of a run, or why there is none."""

import json
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional

from . import text

FORMAT = "killpoint-report"
#: A higher minor version only adds fields; another major version is refused.
VERSION_MAJOR = 1

HOLDS, VIOLATED, UNPROVEN, SETUP_FAILED, INTERRUPTED = 0, 1, 2, 4, 130
MEANINGS = {
    3: "invalid configuration, scenario or command line",
    SETUP_FAILED: "set-up failed",
    70: "a bug in killpoint",
    INTERRUPTED: "interrupted",
}


class KillpointError(Exception):
    """The program gave no verdict: nothing is known about the worker."""

    def __init__(self, message: str, exit_code: Optional[int] = None):
        super().__init__(message)
        #: The program's exit code; None where it gave none.
        self.exit_code = exit_code


@dataclass(frozen=True)
class Finding:
    """A violation or a doubt, with the numbers of the events that show it."""

    invariant: str
    #: ``violated`` or ``inconclusive``.
    status: str
    message: str
    subject: str
    events: List[int]


@dataclass(frozen=True)
class Action:
    """What became of one action at one destination."""

    action: str
    recipient: str
    verdict: str
    #: How often it was received.
    effects: int
    #: How often it was owed.
    expected: int
    events: List[int]


@dataclass(frozen=True)
class Trial:
    """One trial of a run."""

    #: Its name in the run; a name that occurs again has its number behind it.
    name: str
    #: ``holds``, ``vacuous``, ``inconclusive`` or ``violated``; ``inconclusive`` where it was not judged.
    verdict: str
    boundary: str
    provider_plan: str
    #: Violations and doubts.
    findings: List[Finding]
    #: What became of the actions; empty where the trial holds.
    actions: List[Action]
    #: What is missing of its evidence, each with what to do.
    missing: List[str]
    judged: bool
    #: ``attempts``, ``effects`` and ``acknowledged``; empty where the trial was not judged.
    counters: Dict[str, int]
    #: The command that replays it alone.
    replay: str
    #: Its folder, with the history and the worker's output.
    folder: str

    @property
    def holds(self) -> bool:
        return self.verdict == "holds"

    @property
    def violated(self) -> List[str]:
        """The names of the invariants that are violated, each once."""
        return list(dict.fromkeys(one.invariant for one in self.findings if one.status == "violated"))

    def __str__(self) -> str:
        return text.of_trial(self)

    def assert_holds(self) -> None:
        __tracebackhide__ = True
        if not self.holds:
            raise AssertionError(str(self))


@dataclass(frozen=True)
class Run:
    """A finished run."""

    #: ``holds``, ``vacuous``, ``inconclusive`` or ``violated``; the worst wins.
    verdict: str
    trials: List[Trial]
    warnings: List[str]
    #: The folder in which it is recorded.
    folder: str
    exit_code: int
    #: The program's JSON report as it was.
    report: Dict[str, Any] = field(repr=False)

    @property
    def not_holding(self) -> List[Trial]:
        """The trials that do not hold, worst first."""
        order = [detail["folder"] for detail in self.report["details"]]
        bad = [trial for trial in self.trials if not trial.holds]
        return sorted(bad, key=lambda trial: order.index(trial.folder[len(self.folder) + 1 :]))

    def trial(self, name: str) -> Trial:
        """The trial of a name; KeyError names those that there are."""
        for trial in self.trials:
            if trial.name == name:
                return trial
        raise KeyError(f"no trial {name!r}; there are: {', '.join(one.name for one in self.trials)}")

    def __str__(self) -> str:
        return text.of_run(self)

    def assert_holds(self) -> None:
        """Nothing, where every trial holds with all of its evidence; a vacuous one fails as well."""
        __tracebackhide__ = True
        if self.verdict != "holds":
            raise AssertionError(str(self))


def parse(exit_code: int, stdout: str, stderr: str) -> Run:
    """The run that the program reports. Raises KillpointError where there is no verdict."""
    if exit_code not in (HOLDS, VIOLATED, UNPROVEN):
        raise KillpointError(_why(exit_code, stdout, stderr), exit_code)
    run = _run_of(_report_of(stdout, stderr))
    if run.exit_code != exit_code or (exit_code == HOLDS) != (run.verdict == "holds"):
        raise KillpointError(
            f"killpoint ended with exit code {exit_code}, but reports {run.verdict} and {run.exit_code}", exit_code
        )
    return run


def _why(exit_code: int, stdout: str, stderr: str) -> str:
    if exit_code < 0:
        head = f"killpoint was killed by signal {-exit_code}"
    else:
        head = f"killpoint gave no verdict: {MEANINGS.get(exit_code, 'unknown')} (exit code {exit_code})"
    said = text.clean_lines(stderr)
    if exit_code == SETUP_FAILED and stdout:
        # The fault-free trials were judged, and nothing can be compared with them.
        said = "\n".join(part for part in (said, str(_run_of(_report_of(stdout, stderr)))) if part)
    return f"{head}\n{said}" if said else head


def _report_of(stdout: str, stderr: str) -> Dict[str, Any]:
    try:
        report = json.loads(stdout)
    except ValueError as error:
        said = text.clean_lines(stderr)
        raise KillpointError(f"killpoint printed no JSON report\n{said}".rstrip()) from error
    if not isinstance(report, dict) or report.get("format") != FORMAT:
        raise KillpointError(f"killpoint printed JSON that is no {FORMAT}")
    version = report.get("version")
    if not isinstance(version, list) or len(version) != 2 or version[0] != VERSION_MAJOR:
        written = ".".join(map(str, version)) if isinstance(version, list) else "none"
        raise KillpointError(
            f"killpoint wrote version {written} of its report, and this package reads {VERSION_MAJOR}: "
            "use a package and a killpoint of the same release"
        )
    return report


def _run_of(report: Dict[str, Any]) -> Run:
    try:
        folder = report["run_dir"] or ""
        return Run(
            verdict=report["verdict"],
            trials=_trials(report, folder),
            warnings=report["warnings"],
            folder=folder,
            exit_code=report["exit_code"],
            report=report,
        )
    except (KeyError, TypeError) as error:
        raise KillpointError("killpoint's report lacks what it promises") from error


def _trials(report: Dict[str, Any], run_folder: str) -> List[Trial]:
    details = {detail["folder"]: detail for detail in report["details"]}
    counts: Dict[str, int] = {}
    trials = []
    for row in report["rows"]:
        for one in row["repetitions"]:
            plan = row["plan"]
            counts[plan] = counts.get(plan, 0) + 1
            detail = details.get(one["folder"], {})
            trials.append(
                Trial(
                    name=plan if counts[plan] == 1 else f"{plan} ({counts[plan]})",
                    verdict=one["verdict"] or "inconclusive",
                    boundary=row["boundary"],
                    provider_plan=row["provider_plan"],
                    findings=_findings(detail),
                    actions=[_action(action) for action in detail.get("actions", [])],
                    missing=detail.get("missing", []),
                    judged=one["verdict"] is not None,
                    counters=one["counters"] or {},
                    replay=one["replay"],
                    folder=f"{run_folder}/{one['folder']}",
                )
            )
    return trials


def _findings(detail: Dict[str, Any]) -> List[Finding]:
    return [
        Finding(judged["invariant"], judged["status"], one["message"], one["subject"], one["events"])
        for judged in detail.get("judged", [])
        for one in judged["findings"]
    ]


def _action(action: Dict[str, Any]) -> Action:
    return Action(
        action["action"],
        action["recipient"],
        action["verdict"],
        action["effects"],
        action["expected"],
        action["events"],
    )
