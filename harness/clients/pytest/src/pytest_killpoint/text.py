"""What a test that fails prints: the first trial that does not hold in full, the others by name.

``../../../recorded-runs.json`` holds it to the same text in every language.
"""

import re
from itertools import groupby

FINDINGS_MAX = 5
NAMED_MAX = 10
EVENTS_MAX = 20
#: Of what the program wrote to standard error.
LINES_MAX = 40

WRONG = ("duplicate", "lost", "false-success", "false-failure", "stuck", "undetermined")

# What could move a terminal's cursor, reverse the reading order or hide itself: a worker chooses its texts.
_HAZARD = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def clean(text: str) -> str:
    """The text with every hazard shown as an escape."""
    return _HAZARD.sub(_escape, text)


def clean_lines(text: str) -> str:
    """The last lines of a longer text, made harmless line by line."""
    lines = text.strip("\n").split("\n")
    left_out = [f"… {len(lines) - LINES_MAX} lines left out"] if len(lines) > LINES_MAX else []
    return "\n".join(left_out + [clean(line) for line in lines[-LINES_MAX:]])


def of_run(run) -> str:
    """The text of a whole run."""
    if run.verdict == "holds":
        return f"holds: all {len(run.trials)} trials hold"
    bad = run.not_holding
    head = f"{run.verdict}: {len(bad)} of {len(run.trials)} trials do not hold"
    if bad:
        lines = [head, of_trial(bad[0])]
        for other in bad[1 : NAMED_MAX + 1]:
            names = f" ({', '.join(other.violated)})" if other.violated else ""
            lines.append(f"and {clean(other.name)}: {other.verdict}{names}")
        lines += _rest("and", len(bad) - 1, NAMED_MAX)
    else:
        lines = [f"{head}; no trial shows why: see `killpoint report {run.folder}`"]
    lines += [f"warning: {clean(warning)}" for warning in run.warnings[:FINDINGS_MAX]]
    return "\n".join(lines + _rest("warning:", len(run.warnings), FINDINGS_MAX))


def of_trial(trial) -> str:
    """The text of one trial."""
    lines = [f"{clean(trial.name)}: {trial.verdict}"]
    if trial.holds:
        return lines[0]
    for (invariant, status), group in groupby(trial.findings, lambda one: (one.invariant, one.status)):
        lines += _findings(invariant if status == "violated" else f"{invariant} (inconclusive)", list(group))
    wrong = [action for action in trial.actions if action.verdict in WRONG]
    for one in wrong[:FINDINGS_MAX]:
        lines.append(
            f"  {clean(one.action)} to {clean(one.recipient)}: {one.verdict}, effects {one.effects}, owed {one.expected}"
        )
    lines += _rest("  actions:", len(wrong), FINDINGS_MAX)
    if not trial.judged:
        lines.append("  not judged: the run ended before")
    elif trial.verdict != "violated":
        lines += [f"  missing: {clean(missing)}" for missing in trial.missing]
    lines.append(f"  where: {clean(trial.boundary)}, provider plan {clean(trial.provider_plan)}")
    lines.append(f"  replay: {clean(trial.replay)}")
    lines.append(f"  folder: {clean(trial.folder)}")
    return "\n".join(lines)


def _findings(name, findings):
    lines = []
    for one in findings[:FINDINGS_MAX]:
        more = ", …" if len(one.events) > EVENTS_MAX else ""
        events = ", ".join(map(str, one.events[:EVENTS_MAX]))
        lines.append(f"  {name}: {clean(one.message)}")
        lines.append(f"    about {clean(one.subject)}, events {events}{more}")
    return lines + _rest(f"  {name}:", len(findings), FINDINGS_MAX)


def _rest(start, count, shown):
    return [f"{start} {count - shown} more"] if count > shown else []


def _escape(match):
    char = match.group()
    code = ord(char)
    return _NAMED.get(char) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{{{code:x}}}")
