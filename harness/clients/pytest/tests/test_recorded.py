"""Every recorded output of the program comes to the summary that every client makes of it."""

import pytest
from conftest import recorded, stdout_of

from pytest_killpoint import KillpointError
from pytest_killpoint.result import parse


def test_summary(recorded_name):
    case = recorded(recorded_name)
    expected = case["summary"]
    try:
        run = parse(case["exit_code"], stdout_of(case), case["stderr"])
    except KillpointError as error:
        assert {"error": str(error).split("\n")} == expected
        return
    trials = [[trial.name, trial.verdict, *trial.violated] for trial in run.trials]
    assert {"verdict": run.verdict, "trials": trials, "text": str(run).split("\n")} == expected
    if run.verdict == "holds":
        run.assert_holds()
    else:
        with pytest.raises(AssertionError) as failed:
            run.assert_holds()
        assert str(failed.value) == str(run)
