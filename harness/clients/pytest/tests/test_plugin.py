"""The plugin below a pytest of its own, with a program that plays recorded outputs."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import recorded

HANGS = "signal.signal(signal.SIGINT, lambda *_: sys.exit(130))\nopen('hangs', 'w').close()\ntime.sleep(60)"
HANGS_ON = "signal.signal(signal.SIGINT, signal.SIG_IGN)\nopen('hangs', 'w').write(str(os.getpid()))\ntime.sleep(60)"


def config(pytester, name="killpoint.toml"):
    path = pytester.path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("")
    return path


def test_a_configuration_is_a_file_of_tests(pytester, program, started):
    program("holds")
    config(pytester)
    outcome = pytester.runpytest("-v", "killpoint.toml")
    outcome.assert_outcomes(passed=3)
    outcome.stdout.fnmatch_lines(["killpoint.toml::kill at provider:committed#1 PASSED*"])
    assert started() == [["run", "--format", "json", "--config", "killpoint.toml"]]


def test_each_trial_fails_with_its_own_text(pytester, program):
    program("violated")
    config(pytester)
    outcome = pytester.runpytest("killpoint.toml")
    outcome.assert_outcomes(passed=2, failed=2)
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED
    text = recorded("violated")["summary"]["text"]
    outcome.stdout.fnmatch_lines([line.replace("[", "[[]") for line in text[1:7]], consecutive=True)
    outcome.stdout.no_fnmatch_line("*Traceback*")


def test_one_trial_can_be_chosen(pytester, program):
    program("violated")
    config(pytester)
    pytester.runpytest("killpoint.toml::kill at provider:committed#1").assert_outcomes(failed=1)
    pytester.runpytest("killpoint.toml::baseline again").assert_outcomes(passed=1)


def test_what_is_vacuous_fails(pytester, program):
    program("vacuous")
    config(pytester)
    outcome = pytester.runpytest("killpoint.toml")
    outcome.assert_outcomes(passed=2, failed=1)
    outcome.stdout.fnmatch_lines(["  missing: boundary `mark:item-claimed#1` was never reached*"])


def test_a_run_that_does_not_hold_fails_though_its_trials_do(pytester, program):
    program("a run that does not hold though its trials do")
    config(pytester)
    outcome = pytester.runpytest("killpoint.toml")
    outcome.assert_outcomes(passed=3, failed=1)
    outcome.stdout.fnmatch_lines(["vacuous: 0 of 3 trials do not hold; no trial shows why*"])


def test_configurations_are_found_by_pattern(pytester, program, started):
    path = program("holds")
    config(pytester, "mail/killpoint.toml")
    config(pytester, "chat/killpoint.toml")
    config(pytester, "chat/other.toml")
    pytester.makeini(f"[pytest]\nkillpoint_program = {path}\nkillpoint_configs = mail/*.toml chat/kill*.toml\n")
    pytester.runpytest().assert_outcomes(passed=6)
    assert sorted(words[-1] for words in started()) == ["chat/killpoint.toml", "mail/killpoint.toml"]


def test_collecting_alone_starts_nothing(pytester, program, started):
    program("holds")
    config(pytester)
    outcome = pytester.runpytest("--collect-only", "-q", "killpoint.toml")
    outcome.stdout.fnmatch_lines(["killpoint.toml::every trial"])
    assert started() == []


def test_several_processes_run_it_once(pytester, program, started):
    program("violated")
    config(pytester)
    pytester.makeconftest("def pytest_configure(config):\n    config.workerinput = {}\n")
    outcome = pytester.runpytest("-p", "no:cacheprovider", "killpoint.toml")
    outcome.assert_outcomes(failed=1)
    outcome.stdout.fnmatch_lines(["violated: 2 of 4 trials do not hold", "and kill at provider:committed#1: violated*"])
    assert len(started()) == 1


@pytest.mark.parametrize(
    "name", ["invalid configuration", "set-up failed", "a bug in killpoint", "a newer major version", "no JSON"]
)
def test_no_verdict_is_an_error_with_what_the_program_said(pytester, program, name):
    program(name)
    config(pytester)
    outcome = pytester.runpytest("killpoint.toml")
    outcome.assert_outcomes(errors=1)
    assert outcome.ret == pytest.ExitCode.INTERRUPTED
    escaped = [line.replace("[", "[[]") for line in recorded(name)["summary"]["error"]]
    outcome.stdout.fnmatch_lines(escaped, consecutive=True)
    outcome.stdout.no_fnmatch_line("*Traceback*")


def test_the_fixture_passes_everything_on(pytester, program, started):
    program("holds")
    pytester.makepyfile(
        """
        def test_all(killpoint):
            run = killpoint.run(
                config="sub/one.toml", scenario=["a", "b.toml"], boundary="provider:committed#1",
                strategy="sweep", profile="restart-safe", jobs=2, repeat=3,
            )
            assert run.verdict == "holds" and run.exit_code == 0 and run.warnings == []
            trial = run.trial("kill at provider:committed#1")
            assert (trial.boundary, trial.provider_plan) == ("provider:committed#1", "ok")
            assert trial.counters["effects"] == 2
            killpoint.run(command=["./worker", "--fast"])
        """
    )
    pytester.runpytest().assert_outcomes(passed=1)
    wanted = "run --format json --config sub/one.toml --scenario a --scenario b.toml --boundary provider:committed#1"
    assert started() == [
        (wanted + " --strategy sweep --profile restart-safe --jobs 2 --repeat 3").split(),
        ["run", "--format", "json", "--", "./worker", "--fast"],
    ]


def test_the_fixture_gives_findings_and_fails_readably(pytester, program):
    program("violated")
    pytester.makepyfile(
        """
        import pytest

        def test_findings(killpoint):
            trial = killpoint.run().trial("kill at provider:committed#1")
            assert trial.violated == ["no-duplicate-effect", "no-blind-resend"]
            assert all(finding.events for finding in trial.findings)
            assert [action.verdict for action in trial.actions] == ["duplicate"]
            with pytest.raises(KeyError, match="there are: baseline, "):
                killpoint.run().trial("kill")

        def test_red(killpoint):
            killpoint.run().assert_holds()
        """
    )
    outcome = pytester.runpytest()
    outcome.assert_outcomes(passed=1, failed=1)
    outcome.stdout.fnmatch_lines(["E  *violated: 2 of 4 trials do not hold", "E  *replay: killpoint run --config *"])


def test_a_config_from_elsewhere_is_named_as_seen_from_here(pytester, program, started):
    program("holds")
    config(pytester)
    pytester.makepyfile("def test_it(killpoint):\n    killpoint.run(config='killpoint.toml')")
    below = pytester.mkdir("below")
    pytester.chdir()
    os.chdir(below)
    pytester.runpytest("--rootdir", str(pytester.path), str(pytester.path)).assert_outcomes(passed=1)
    assert started()[0][-1] == str(pytester.path / "killpoint.toml")


def test_a_program_that_is_not_there_is_named(pytester, program):
    program("holds")
    config(pytester)
    outcome = pytester.runpytest("--killpoint-program=/no/such/killpoint", "killpoint.toml")
    outcome.assert_outcomes(errors=1)
    outcome.stdout.fnmatch_lines(["/no/such/killpoint can't be started: No such file or directory; install killpoint*"])


def test_a_time_limit_that_is_no_number_is_refused(pytester, program):
    path = program("holds")
    config(pytester)
    pytester.makeini(f"[pytest]\nkillpoint_program = {path}\nkillpoint_timeout_s = soon\n")
    outcome = pytester.runpytest("killpoint.toml")
    outcome.stdout.fnmatch_lines(["*killpoint_timeout_s: 'soon' is no number of seconds*"])
    assert outcome.ret != 0


@pytest.mark.parametrize("hangs, limit", [(HANGS, 0.5), (HANGS_ON, 0.5)])
def test_a_run_that_takes_too_long_is_stopped(pytester, program, monkeypatch, hangs, limit):
    monkeypatch.setattr("pytest_killpoint.program.GRACE_S", 0.5)
    path = program("holds", hangs)
    config(pytester)
    pytester.makeini(f"[pytest]\nkillpoint_program = {path}\nkillpoint_timeout_s = {limit}\n")
    outcome = pytester.runpytest_inprocess("killpoint.toml")
    outcome.assert_outcomes(errors=1)
    outcome.stdout.fnmatch_lines(["killpoint did not end within 0.5 s and was stopped*"])
    assert processes_of(path) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_program_too(pytester, program, number):
    path = program("holds", HANGS)
    config(pytester)
    # In the background of a shell SIGINT is ignored, and so it would be by what is started here.
    arguments = ["env", "--default-signal=INT", sys.executable, "-m", "pytest", "killpoint.toml"]
    with subprocess.Popen(arguments, cwd=pytester.path, stdout=subprocess.PIPE, text=True) as running:
        while not (pytester.path / "hangs").exists():
            assert running.poll() is None
        running.send_signal(number)
        said, _ = running.communicate(timeout=30)
    assert running.returncode == pytest.ExitCode.INTERRUPTED
    assert "KeyboardInterrupt" in said
    assert processes_of(path) == []


def processes_of(program):
    """Command lines of what runs the program."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if str(program) in line:
            found.append(line)
    return found
