//! What of the user's own world reaches a worker, and what of it is ever written down.

use std::path::{Path, PathBuf};

use killpoint::model::ExitCode::{Holds, InvalidConfig};

use crate::bench::{Bench, Said, end_of, started};

const AT: [&str; 2] = ["--boundary", "provider:committed#1"];
/// None of them is a real one.
const SECRETS: [(&str, &str); 4] = [
    ("STRIPE_API_KEY", "sk_live_51HkPfakefakefakefake0042"),
    ("CHAT_BOT", "xoxb-000000000000-fakefakefake0042"),
    ("CRM_PASSWORD", "correct-horse-battery-0042"),
    ("DATABASE_URL", "postgres://me:hunter2-0042@db.internal/prod"),
];

fn run(bench: &Bench, words: &[&str]) -> Said {
    let mut command = bench.command(&[&["run", "--run-dir", "run"], words].concat());
    end_of(started(command.envs(SECRETS)))
}

fn files(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        if entry.path().is_dir() { files(&entry.path(), into) } else { into.push(entry.path()) }
    }
}

/// Neither what was said nor any file of the run holds a secret.
fn holds_no_secret(bench: &Bench, said: &Said, secrets: &[&str]) {
    let mut written = Vec::new();
    files(&bench.path("run"), &mut written);
    assert!(written.iter().any(|path| path.ends_with("history.jsonl")), "{written:?}");
    let files =
        written.iter().map(|path| String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned());
    for text in files.chain([said.out.clone(), said.err.clone()]) {
        for secret in secrets {
            assert!(!text.contains(secret), "`{secret}` is in {text}");
        }
    }
}

#[test]
fn live_credentials_that_a_worker_inherits_are_warned_of_by_name_and_kept_nowhere() {
    let bench = Bench::configured("if not lookup():\n    post()", "");
    let reports = ["--report", "json=run.out.json", "--report", "terminal=run.out.txt"];
    let said = run(&bench, &[&AT[..], &reports].concat()).exits(Holds);
    let values: Vec<&str> = SECRETS.iter().map(|(_, value)| *value).chain(["hunter2-0042"]).collect();
    holds_no_secret(&bench, &said, &values);
    for file in ["run.out.json", "run.out.txt"] {
        let text = std::fs::read_to_string(bench.path(file)).unwrap();
        assert!(values.iter().all(|value| !text.contains(value)), "{text}");
        assert!(text.contains("STRIPE_API_KEY"), "{text}");
    }
    let warnings = bench.record().warnings.join("\n");
    for (name, _) in SECRETS {
        assert!(said.err.contains(&format!("`{name}`")), "{}", said.err);
        assert!(warnings.contains(&format!("`{name}`")), "{warnings}");
    }
    said.says(&[
        "worker python3",
        "sets GENERATION={generation} PROVIDER_URL={provider.rest}",
        "its address is in PROVIDER_URL",
        "STATE_DIR leads there",
        "--clean-env",
    ]);
}

#[test]
fn secrets_on_a_command_line_or_in_the_configuration_are_kept_nowhere() {
    let bench = Bench::with_worker("if not lookup():\n    post()");
    let worker = bench.path("worker.py").display().to_string();
    let secrets = ["tok-hunter2-0042", "pw-hunter2-0042", SECRETS[0].1];
    let words = ["--", "python3", &worker, "--token", secrets[0], "--password=pw-hunter2-0042", secrets[2]];
    let said = run(&bench, &[&AT[..], &words].concat()).exits(Holds);
    holds_no_secret(&bench, &said, &secrets);

    let bench = Bench::with_worker("if not lookup():\n    post()");
    let section = bench.worker_section().replace(
        "env = {",
        "env = { ACCOUNT = \"sk_live_51HkPfakefakefakefake0042\", CRM_PASSWORD = \"pw-hunter2-0042\", ",
    );
    bench.config(&section, "");
    let said = run(&bench, &AT).exits(Holds);
    holds_no_secret(&bench, &said, &secrets);
    said.says(&["ACCOUNT=sk_live_***", "CRM_PASSWORD=***", "the configuration sets `ACCOUNT`"]);
}

#[test]
fn with_a_clean_environment_the_worker_gets_what_is_named_and_nothing_else() {
    let needs = "assert 'PATH' in os.environ\nassert 'CRM_PASSWORD' in os.environ\nassert not any(name in \
                 os.environ for name in ['STRIPE_API_KEY', 'CHAT_BOT', 'DATABASE_URL'])\nif not lookup():\n    post()";
    let bench = Bench::configured(needs, "");
    let words = ["--clean-env", "--keep-env", "CRM_PASSWORD"];
    let said = run(&bench, &[&AT[..], &words].concat()).exits(Holds);
    assert!(!said.err.contains("STRIPE_API_KEY"), "{}", said.err);
    let said = said.says(&["and nothing else", "`CRM_PASSWORD`: by its name it holds a live credential"]);
    holds_no_secret(&bench, &said, &[SECRETS[2].1]);
    let replay = &bench.record().trials[2].replay;
    assert!(replay.contains("--clean-env --keep-env 'CRM_PASSWORD'"), "{replay}");

    // The configuration says the same.
    let bench = Bench::with_worker(needs);
    let section = bench.worker_section().replace("env = {", "inherit = [\"CRM_PASSWORD\"]\nenv = {");
    bench.config(&section, "");
    run(&bench, &AT).exits(Holds);
}

#[test]
fn a_quiet_run_says_its_warnings_and_its_verdict() {
    let bench = Bench::configured("if not lookup():\n    post()", "");
    let said = run(&bench, &[&AT[..], &["--quiet"]].concat()).exits(Holds);
    let said_before = said.err.lines().collect::<Vec<_>>();
    // A warning's advice is indented below it.
    let is_warning = |line: &&str| line.starts_with("warning[real-surroundings]: ") || line.starts_with(' ');
    assert!(!said_before.is_empty() && said_before.iter().all(is_warning), "{}", said.err);
    said.says(&["✓ holds", "exit code 0"]);
    let words = [&["--quiet", "--config", "other.toml"], &AT[..]].concat();
    bench.killpoint(&[&["run"], &words[..]].concat()).exits(InvalidConfig).complains(&["other.toml"]);
}

#[test]
fn a_database_outside_of_the_state_is_refused_unless_it_is_named() {
    let bench = Bench::with_worker("if not lookup():\n    post()");
    let section = bench.worker_section().replace("env = {", "env = { WORKER_DB = \"/var/lib/app.db\", ");
    bench.config(&section, "");
    bench.run(&AT).exits(InvalidConfig).complains(&[
        "state-outside",
        "killpoint.toml:3:",
        "write `{state}/app.db`",
    ]);
    bench.config(&section, "[state]\noutside = [\"/var/lib/app.db\"]\n");
    bench.run(&AT).exits(Holds);
}

#[test]
fn colour_follows_the_flag_then_no_color_then_clicolor_force() {
    let bench = Bench::new();
    bench.killpoint(&[&["demo", "--run-dir", "run"], &AT[..]].concat()).exits(Holds);
    let colored = |words: &[&str], variables: &[(&str, &str)]| {
        let mut command = bench.command(&[&["report", "run"], words].concat());
        command.env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE").env_remove("CLICOLOR");
        let said = end_of(started(command.envs(variables.iter().copied()))).exits(Holds);
        said.out.contains('\x1b')
    };
    let (no, force) = (("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1"));
    assert!(!colored(&[], &[]), "there is no terminal");
    assert!(colored(&[], &[force]));
    assert!(!colored(&[], &[no, force]));
    assert!(colored(&["--color", "always"], &[no]));
    assert!(!colored(&["--color", "never"], &[force]));
    assert!(!colored(&["--color", "auto"], &[no, force]));
}
