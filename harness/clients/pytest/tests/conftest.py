"""What the tests share: recorded outputs, and a program that plays one of them."""

import copy
import json
import sys
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

_CASES = json.loads((Path(__file__).parents[2] / "recorded-runs.json").read_text(encoding="utf-8"))["cases"]
CASES = {case["name"]: case for case in _CASES}


def recorded(name):
    """A case with what it takes from another."""
    case = CASES[name]
    made = recorded(case["like"]) if "like" in case else {}
    made.update((key, copy.deepcopy(value)) for key, value in case.items() if key not in ("like", "set"))
    for path, value in case.get("set", {}).items():
        *folders, last = path.split(".")
        at = made["stdout"]
        for folder in folders:
            at = at[int(folder) if isinstance(at, list) else folder]
        at[int(last) if isinstance(at, list) else last] = value
    return made


def stdout_of(case):
    stdout = case["stdout"]
    if isinstance(stdout, str):
        return stdout
    return "" if stdout is None else json.dumps(stdout)


def pytest_generate_tests(metafunc):
    if "recorded_name" in metafunc.fixturenames:
        metafunc.parametrize("recorded_name", CASES)


@pytest.fixture
def program(pytester):
    """Makes a program that plays a recorded output, and notes its words in `words.json`, a line per start."""

    def make(name, before=""):
        case = recorded(name)
        source = f"""#!{sys.executable}
import json, os, signal, sys, time
with open({str(pytester.path / "words.json")!r}, "a") as words:
    words.write(json.dumps(sys.argv[1:]) + "\\n")
{before}
sys.stdout.write({stdout_of(case)!r})
sys.stderr.write({case["stderr"]!r})
sys.exit({case["exit_code"]})
"""
        path = pytester.path / "played"
        path.write_text(source, encoding="utf-8")
        path.chmod(0o755)
        pytester.makeini(f"[pytest]\nkillpoint_program = {path}\n")
        return path

    return make


@pytest.fixture
def started(pytester):
    """The words with which the program was started, once per start."""

    def read():
        path = pytester.path / "words.json"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    return read
