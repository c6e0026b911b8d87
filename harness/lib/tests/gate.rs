//! The gate as a test uses it, on the reference worker, which is this test program started again.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use killpoint::model::InvariantStatus;
use killpoint::model::Verdict::{Holds, Vacuous, Violated};
use killpoint::reports::{Options, View};
use killpoint::{Gate, GateError, GateRun, GateTrial};
use tempfile::TempDir;

/// What makes this program the worker: the words of its command line.
const WORDS: &str = "OUTBOX_WORDS";

/// The worker, where this process was started as that; by itself there is nothing to test.
#[test]
#[expect(
    clippy::exit,
    clippy::disallowed_methods,
    reason = "its exit code is the worker's, not that of a test program"
)]
fn the_worker() {
    let Ok(words) = std::env::var(WORDS) else { return };
    let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
    std::process::exit(outbox_worker::main(&words));
}

/// A project of its own with a configuration of the reference worker.
struct Project {
    folder: TempDir,
}

impl Project {
    fn new(bug: Option<&str>) -> Self {
        let bug = bug.map(|name| format!(" --bug {name}")).unwrap_or_default();
        let program = std::env::current_exe().unwrap();
        let call = |words: &str| {
            format!(
                "[\"sh\", \"-c\", \"{WORDS}='{words}{bug}' exec '{}' --exact the_worker --nocapture\"]",
                program.display()
            )
        };
        let states: Vec<String> = outbox_worker::LEDGER_STATES
            .iter()
            .map(|(own, canonical)| format!("{own} = \"{canonical}\""))
            .collect();
        let config = format!(
            "actions = 2\n[worker]\ncommand = {}\n[state]\nenqueue = {}\n\
             [ledger]\npath = \"{{state}}/outbox.db\"\nquery = \"\"\"{}\"\"\"\nstates = {{ {} }}\n",
            call("run --db {state}/outbox.db --provider {provider.rest} --worker-id one --drain"),
            call("enqueue --db {state}/outbox.db --actions {actions.file}"),
            outbox_worker::LEDGER_QUERY,
            states.join(", "),
        );
        let project = Self { folder: tempfile::tempdir().unwrap() };
        project.file("killpoint.toml", &config);
        project
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    fn gate(&self) -> Result<Gate, GateError> {
        Gate::from_config(self.folder.path().join("killpoint.toml"))
    }

    /// As the user of the gate reads it, without what differs from machine to machine.
    fn steady(&self, run: &GateRun, text: &str) -> String {
        let text = text.replace(&run.folder().display().to_string(), "RUN");
        text.replace(&self.folder.path().display().to_string(), "PROJECT")
    }
}

/// The text with which the assertion fails.
fn failure(run: &GateRun) -> String {
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run.assert_holds())).unwrap_err();
    panic.downcast_ref::<String>().unwrap().clone()
}

#[test]
fn a_right_worker_passes_with_a_name_for_each_trial() -> Result<(), GateError> {
    let project = Project::new(None);
    let run = project
        .gate()?
        .scenario("deploy-42-notify-drop-after-accept")
        .boundary("provider:committed#1")
        .run()?;
    run.assert_holds();
    assert_eq!(run.verdict(), Holds, "{run}");
    let names: Vec<&str> = run.trials().map(|trial| trial.name()).collect();
    // The scenario has actions of its own, and so fault-free trials of its own.
    let expected = [
        "baseline",
        "baseline (2)",
        "baseline again",
        "baseline again (2)",
        "kill at provider:committed#1",
        "deploy-42-notify-drop-after-accept",
    ];
    assert_eq!(names, expected);
    let trial = run.trial("kill at provider:committed#1").unwrap();
    assert_eq!((trial.verdict(), trial.findings().count()), (Holds, 0));
    assert_eq!(trial.evidence().unwrap().signal_landed, Some(true));
    assert_eq!(trial.actions().len(), 2);
    assert!(trial.folder().join("history.jsonl").is_file());
    let below_target = run.folder().components().any(|part| part.as_os_str() == "killpoint-runs");
    assert!(below_target, "{}", run.folder().display());
    assert!(run.folder().to_string_lossy().contains("a_right_worker_passes"), "{}", run.folder().display());
    Ok(())
}

#[test]
fn a_wrong_worker_fails_with_everything_that_a_person_needs() -> Result<(), GateError> {
    let project = Project::new(Some("blind-resend"));
    let run = project.gate()?.boundary("provider:committed#1").jobs(1).run()?;
    let trial = run.trial("kill at provider:committed#1").unwrap();
    assert_eq!(trial.verdict(), Violated);
    let violated: Vec<&str> = trial.violated().collect();
    assert!(violated.contains(&"no-duplicate-effect"), "{violated:?}");
    let finding = trial.findings().find(|finding| finding.invariant == "no-duplicate-effect").unwrap();
    let events: Vec<String> = finding.events.iter().map(u64::to_string).collect();
    let history = trial.history().unwrap();
    assert!(finding.events.iter().all(|number| history.events.iter().any(|event| event.seq == *number)));

    let text = project.steady(&run, &trial.to_string());
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "kill at provider:committed#1: violated");
    let at = lines.iter().position(|line| line.starts_with("  no-duplicate-effect: ")).unwrap();
    assert_eq!(lines[at + 1], format!("    about {}, events {}", finding.subject, events.join(", ")));
    for start in [
        "  action-1 to user1@example.com: duplicate, effects ",
        "  where: provider:committed#1, provider plan ok",
        "  replay: killpoint run --config 'PROJECT/killpoint.toml' --boundary 'provider:committed#1'",
        "  folder: RUN/0002-kill-at-provider-committed-1",
    ] {
        assert!(lines.iter().any(|line| line.starts_with(start)), "not there: {start}\n{text}");
    }
    // On a machine that is slower than the worker's patience, it sends twice without any fault as well.
    let bad: Vec<GateTrial<'_>> = run.trials().filter(|trial| trial.verdict() != Holds).collect();
    let whole = format!("violated: {} of 3 trials do not hold\n{}", bad.len(), bad[0]);
    assert!(failure(&run).starts_with(&whole), "{run}");
    Ok(())
}

/// The clients for other test runners read the report of the same run and print the same text.
#[test]
#[expect(clippy::print_stdout, reason = "a test that skips says so")]
fn the_clients_print_the_same_text() -> Result<(), GateError> {
    let clients = Path::new(env!("CARGO_MANIFEST_DIR")).join("../clients").canonicalize().unwrap();
    let python = format!(
        "import sys\nsys.path.insert(0, '{}')\nfrom pytest_killpoint.result import parse\n\
         print(parse(int(sys.argv[1]), sys.stdin.read(), ''))",
        clients.join("pytest/src").display()
    );
    let node = format!(
        "import {{ readFileSync }} from 'node:fs';\nimport {{ parse }} from 'file://{}';\n\
         console.log(String(parse(Number(process.argv[1]), readFileSync(0, 'utf8'), '')));",
        clients.join("node-test/killpoint-node-test.mjs").display()
    );
    let clients = [
        ("python3", vec!["-B", "-c", &python]),
        ("node", vec!["--input-type=module", "--eval", &node, "--"]),
    ];
    for (bug, boundary) in [(Some("blind-resend"), "provider:committed#1"), (None, "mark:no-such-moment#1")] {
        let run = Project::new(bug).gate()?.boundary(boundary).run()?;
        assert_ne!(run.verdict(), Holds);
        for (program, words) in &clients {
            match report_read_by(program, words, &run) {
                Some(text) => assert_eq!(text.trim_end(), run.to_string(), "{program}"),
                None => println!("skipped: `{program}` is not on the PATH"),
            }
        }
    }
    Ok(())
}

/// What a client makes of the run's JSON report; `None` where its interpreter is missing, unless all are required.
fn report_read_by(program: &str, words: &[&str], run: &GateRun) -> Option<String> {
    let finished = run.finished();
    let view = View::new(&finished.record, &finished.histories);
    let options = Options { run_dir: Some(run.folder().display().to_string()), ..Options::default() };
    let code = view.exit_code().code().to_string();
    let mut command = Command::new(program);
    command.args(words).arg(code).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            let all = std::env::var_os("KILLPOINT_REQUIRE_ALL").is_some_and(|value| value == "1");
            assert!(!all, "{program}: {error}");
            return None;
        }
    };
    let report = killpoint::reports::find("json").unwrap();
    report.write(&view, &options, &mut child.stdin.take().unwrap()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{program}");
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn what_was_not_reached_fails_as_well() -> Result<(), GateError> {
    let project = Project::new(None);
    let folder = project.folder.path().join("run");
    let run = project.gate()?.boundary("mark:no-such-moment#1").folder(&folder).run()?;
    assert_eq!(run.folder(), folder.canonicalize().unwrap());
    assert_eq!(run.verdict(), Vacuous);
    let trial = run.trial("kill at mark:no-such-moment#1").unwrap();
    assert_eq!(trial.evidence().unwrap().boundary_reached, Some(false));
    let text = failure(&run);
    assert!(
        text.starts_with("vacuous: 1 of 3 trials do not hold\nkill at mark:no-such-moment#1: vacuous\n"),
        "{text}"
    );
    assert!(text.contains("\n  missing: "), "{text}");
    assert!(text.contains("\nwarning: "), "{text}");
    Ok(())
}

#[test]
fn a_bad_configuration_is_named_with_its_line() {
    let project = Project::new(None);
    project.file("killpoint.toml", "actions = 2\n\n[worker]\ncomand = [\"x\"]\n");
    let error = project.gate().unwrap_err();
    assert!(matches!(error, GateError::Invalid(_)));
    let text = format!("{error:?}");
    assert!(text.contains("killpoint.toml:4:1: "), "{text}");
    assert!(text.contains("did you mean `command`?"), "{text}");
    let error = Gate::from_config(project.folder.path().join("none.toml")).unwrap_err();
    assert!(error.to_string().contains("none.toml: No such file"), "{error}");
}

#[test]
fn a_worker_that_cannot_start_is_an_error() -> Result<(), GateError> {
    let project = Project::new(None);
    let error = Gate::from_command(["/no/such/worker"])?.folder(project.folder.path().join("run")).run();
    let text = error.unwrap_err().to_string();
    assert!(text.contains("/no/such/worker"), "{text}");
    Ok(())
}

#[tokio::test]
async fn a_command_is_enough_and_an_asynchronous_test_can_wait_for_it() -> Result<(), GateError> {
    let words = "run --db $STATE_DIR/outbox.db --provider $PROVIDER_URL --worker-id one --drain";
    let enqueue = "enqueue --db $STATE_DIR/outbox.db --actions $STATE_DIR/actions";
    let program = std::env::current_exe().map_err(GateError::Threads)?;
    let this = format!("'{}' --exact the_worker --nocapture", program.display());
    let script = format!(
        "echo '{{\"id\":\"a-1\",\"to\":[\"ann@example.com\"],\"body\":\"hello\"}}' > \"$STATE_DIR/actions\"\n\
         {WORDS}=\"{enqueue}\" {this} || exit 1\n{WORDS}=\"{words}\" exec {this}"
    );
    let run = Gate::from_command(["sh", "-c", &script])?.boundary("provider:committed#1").run()?;
    run.assert_holds();
    let trial = run.trial("kill at provider:committed#1").unwrap();
    assert!(
        trial.replay().starts_with("killpoint run --boundary 'provider:committed#1' -- sh -c '"),
        "{}",
        trial.replay()
    );
    let outcomes = trial.record().verdict.iter().flat_map(|judged| &judged.outcomes);
    assert!(outcomes.filter(|outcome| outcome.status == InvariantStatus::Holds).count() > 3);
    assert!(Path::new(&trial.folder()).is_dir());
    Ok(())
}
