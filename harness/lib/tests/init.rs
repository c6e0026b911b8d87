//! `init` on made-up projects: the proposed file, and what is said about it.

use std::path::{Path, PathBuf};

use killpoint::init::{Project, Proposal, SourceFile, find, propose, read_project, show};
use killpoint::model::{Settings, Severity};
use proptest::prelude::{any, proptest};
use proptest::sample::select;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/projects").join(name)
}

fn proposal(name: &str) -> Proposal {
    let project = read_project(&folder(name)).unwrap();
    propose(&project, &find(&project))
}

/// Reads the proposed file as any other, without a warning.
fn loaded(proposal: &Proposal) -> Settings {
    let text = proposal.to_toml();
    let loaded =
        killpoint::scenarios::load_config(&text, "killpoint.toml", Path::new("/p"), &killpoint::catalog());
    let bad: Vec<_> = loaded.diagnostics.iter().filter(|one| one.severity >= Severity::Warning).collect();
    assert!(bad.is_empty(), "{bad:?}\n{text}");
    loaded.value.unwrap()
}

#[test]
fn every_project_gives_a_file_that_loads() {
    for name in ["node-sqlite", "python-sqlite", "rust-relay", "go-mailer", "no-ledger"] {
        let proposal = proposal(name);
        loaded(&proposal);
        insta::assert_snapshot!(name, proposal.to_toml());
    }
}

#[test]
fn what_is_said_fits_a_terminal_of_forty_columns() {
    let project = read_project(&folder("go-mailer")).unwrap();
    let proposal = propose(&project, &find(&project));
    insta::assert_snapshot!("go-mailer-said-40", show(&project, &proposal, 40));
    insta::assert_snapshot!("go-mailer-said-100", show(&project, &proposal, 100));
}

#[test]
fn values_of_env_files_are_nowhere() {
    let project = read_project(&folder("go-mailer")).unwrap();
    let findings = find(&project);
    let proposal = propose(&project, &findings);
    for text in [format!("{project:?}"), format!("{findings:?}"), proposal.to_toml()] {
        assert!(!text.contains("live-key") && !text.contains("/var/lib"), "{text}");
    }
    assert!(proposal.gaps.iter().any(|gap| gap.why.contains("MAIL_API_KEY")));
}

#[test]
fn an_empty_folder_gives_nothing_but_what_to_write() {
    let empty = tempfile::tempdir().unwrap();
    let project = read_project(empty.path()).unwrap();
    let proposal = propose(&project, &find(&project));
    assert!(!proposal.has_worker() && proposal.gaps.len() == 1);
    insta::assert_snapshot!("nothing-said", show(&project, &proposal, 80));
}

#[test]
fn hostile_names_and_texts_stay_in_their_comments() {
    let project = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(project.path().join(name), text).unwrap();
    let name = "worker\n[ledger]\npath = 1 \"'.py";
    write(
        name,
        "import os, requests\nrequests.post(os.environ['A_URL'])\nx = os.environ.get('B_DB', 'a\\'\"\"\".db')\n",
    );
    write("worker.sql", "create table messages (\"id\"\"x\" int, status text default '\"]\u{7}')");
    let read = read_project(project.path()).unwrap();
    let proposal = propose(&read, &find(&read));
    let settings = loaded(&proposal);
    assert_eq!(settings.worker.command.argv, ["python3", name]);
}

const PATHS: &[&str] =
    &["worker.py", "worker.mjs", "main.go", "w.sh", "w.c", "a.sql", "package.json", "Cargo.toml", ".env"];
const PIECES: &[&str] = &[
    "status = 'sent'",
    "create table jobs (",
    "state text default 'new'",
    ")",
    "'",
    "\"",
    "\u{e9}",
    "\u{1f642}",
    "\n",
    "os.environ['A_URL']",
    "os.environ.get('B_DB', '",
    "http://x/{y}",
    "where ",
    "insert into jobs (state) values (",
    "case \"$1\" in\nenqueue) ",
    "while True:\n",
    "if row is None: break\n",
    "json={",
    "\"to\": ",
    "x.add_argument('--db'",
    "x = y.add_parser('run')",
    "sys.argv[1] == 'enqueue'",
    "int(sys.argv[2])",
    "@a.command()\ndef run(",
    "{state}",
    "}",
    "process.env.C_URL ?? '",
    "sleep(0.5)",
    "in ('a', 'failed')",
    "import requests",
    "#!/bin/sh\n",
    "\\",
    "--",
    "${D_PATH:-x}",
];

proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(32))]
    #[test]
    fn whatever_the_sources_hold_the_proposal_loads(
        texts in proptest::collection::vec(proptest::collection::vec((select(PIECES), any::<bool>()), 0..24), 1..4),
    ) {
        let text = |pieces: &[(&'static str, bool)]| {
            let words: Vec<&str> = pieces.iter().flat_map(|(piece, blank)| [*piece, if *blank { " " } else { "" }]).collect();
            words.concat()
        };
        // Each text is that of several files.
        let text_of = |place: usize| text(&texts[place % texts.len()]);
        let files = PATHS.iter().enumerate().map(|(at, path)| SourceFile::new(*path, &text_of(at), at % 2 == 0));
        let project = Project { files: files.collect(), ..Project::default() };
        let proposal = propose(&project, &find(&project));
        let text = proposal.to_toml();
        show(&project, &proposal, 40);
        if proposal.has_worker() {
            let loaded = killpoint::scenarios::load_config(&text, "k.toml", Path::new("/p"), &killpoint::catalog());
            let bad: Vec<_> = loaded.diagnostics.iter().filter(|one| one.severity == Severity::Error).collect();
            assert!(bad.is_empty(), "{bad:?}\n{text}");
        }
    }
}
