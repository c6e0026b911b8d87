//! Every diagnostic, as a user meets it: code, place, message, what to do.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use killpoint_model::{Diagnostic, DiagnosticCode, Severity};
use killpoint_scenarios::{Code, load_config, load_scenario};

use crate::catalog;

/// Keys to put below a sound `worker.command`, one problem or one group of problems each.
const CONFIGS: &[(&str, &str)] = &[
    ("syntax", "promise = \nactions = = 2\n"),
    ("syntax: a key twice", "actions = 1\nactions = 2\n"),
    ("unknown keys", "promis = \"exactly-once\"\nzzz = 1\n[sweep]\nhits_per_series = 3\n"),
    ("unknown promise", "promise = \"exactly_once\"\n"),
    ("actions is a list", "actions = [1]\n"),
    ("actions negative", "actions = -1\n"),
    ("actions twice", "actions = 1\n[[action]]\nid = \"a\"\nto = \"b\"\nbody = \"c\"\n"),
    (
        "action tables",
        "[[action]]\nid = \"a\"\nto = [\"x\", \"x\"]\nbody = \"c\"\n[[action]]\nid = \"a\"\nto = []\n[[action]]\nid = \" \"\nto = 5\nbody = true\nboddy = 1\n",
    ),
    ("action is a table", "action = { id = \"a\" }\n"),
    ("provider is no table", "provider = \"rest\"\n"),
    (
        "provider",
        "[provider]\ndialect = \"rst\"\nhang = \"2 s\"\nrecipient = \"to\"\ntext = []\naction = \"meta.ref\"\n",
    ),
    (
        "idempotency",
        "[provider.idempotency]\ndedupe = \"yes\"\nwindow = \"1 day\"\nscope = \"accounts\"\nmissing-key = \"refuse\"\nreplay-marker = 3\n",
    ),
    ("window too long", "[provider.idempotency]\nwindow = \"9000h\"\n"),
    (
        "rules",
        "[[provider.rule]]\nid = \"a\"\nplan = \"drop-after-acept\"\ntimes = 0\n[[provider.rule]]\nid = \"a\"\nplan = { commit = \"later\", reply = \"status(200)\", visible = \"nwo\", aftermth = \"none\" }\n[[provider.rule]]\nplan = 5\nmatch = { nth = 0, operaton = \"create\", pointer = { to = \"x\" }, header = { X = 1 } }\n[[provider.rule]]\nmatch = { dialect = \"imap\" }\n",
    ),
    ("rule is no list", "[provider]\nrule = \"drop-after-accept\"\n"),
    (
        "templates",
        "[worker.env]\nA = \"{provider.smtp}\"\nB = \"{stat}\"\nC = \"{\\\"json\\\":{state}} { fine }\"\n[state]\nprepare = [[\"x\", \"{copy}\"]]\n[ledger]\npath = \"{state}/{worker}.db\"\npreset = \"jobs\"\n",
    ),
    (
        "environment",
        "[worker.env]\n1A = \"x\"\n\"a b\" = \"x\"\nKILLPOINT_X = \"x\"\nN = 5\nZ = \"a\\u0000b\"\n",
    ),
    (
        "state",
        "[state]\nfrom = 3\nprepare = [\"python3\", \"setup.py\"]\nenqueue = []\nenqueue-kill-after = \"\"\n",
    ),
    ("kill after without enqueue", "[state]\nenqueue-kill-after = \"ENQUEUED\"\n"),
    ("no actions to hand over", "[state]\nenqueue = [\"enqueue\", \"{actions}\"]\n"),
    ("durations", "[settle]\ndeadline = \"1.5s\"\nquiet = 1500\n"),
    ("durations 2", "[settle]\nby = \"quiet\"\nquiet = \"soon\"\ndeadline = \"0s\"\n"),
    ("settle by what", "[settle]\nby = \"quit\"\n"),
    ("settle by query without a ledger", "[settle]\nby = \"query\"\n"),
    (
        "settle by query without rows",
        "[settle]\nby = \"query\"\n[ledger]\npath = \"{state}/l.db\"\n[[ledger.boundary]]\nname = \"n\"\nquery = \"select 1\"\n",
    ),
    (
        "settle by SQL of a command",
        "[settle]\nby = \"query\"\nquery = \"select 0\"\n[ledger]\nkind = \"command\"\ncommand = [\"status\"]\n",
    ),
    ("settle keys without meaning", "[settle]\nquiet = \"1s\"\nquery = \"select 0\"\n"),
    (
        "ledger of an unknown kind",
        "[ledger]\nkind = \"sqlight\"\npath = \"{state}/l.db\"\npreset = \"outbound\"\n",
    ),
    ("ledger without anything", "[ledger]\n"),
    (
        "ledger with too much",
        "[ledger]\npath = \"ledger.db\"\npreset = \"jobs\"\nquery = \"select 1\"\ncommand = [\"status\"]\n",
    ),
    ("command ledger", "[ledger]\nkind = \"command\"\npath = \"{state}/l.db\"\npreset = \"jobs\"\n"),
    ("command on live state", "[ledger]\nkind = \"command\"\ncommand = [\"status\", \"{state}\"]\n"),
    (
        "ledger words",
        "[ledger]\npath = \"{state}/l.db\"\nquery = \"select 1\"\nabsent = \"gone\"\nsample = \"20\"\nstates = { done = \"confirmd\" }\nexecutions = { ok = 1 }\n",
    ),
    (
        "ledger boundaries",
        "[ledger]\npath = \"{state}/l.db\"\n[[ledger.boundary]]\nname = \"confirmed\"\nquery = \"select 1\"\n[[ledger.boundary]]\nname = \"a b\"\nquery = \"\"\n[[ledger.boundary]]\nnaem = \"x\"\n",
    ),
    (
        "boundaries",
        "[boundaries]\nitem-claimd = \"mark:claimed\"\nack-committed = \"item-claimed\"\ncleanup-done = \"provider:comitted#1\"\nitem-enqueued = \"ledger:created\"\nresult-committed = \"mark:a#0\"\n",
    ),
    (
        "ledger points",
        "[ledger]\npath = \"{state}/l.db\"\npreset = \"jobs\"\n[sweep]\nboundaries = [\"ledger:confirmd#2\"]\n",
    ),
    (
        "sweep",
        "[sweep]\nboundaries = \"provider:committed#1\"\nplans = [\"ok\", \"drop-after-acept\"]\nhits-per-series = 0\n",
    ),
    ("sweep 2", "[sweep]\nplans = \"rejected\"\n[checks]\nattempts-max = \"10\"\n"),
    ("checks", "[checks]\noverdue = 5\ndecided-within = \"30\"\nattempts-mx = 3\n"),
    ("cleanup and producer", "[cleanup]\ncommand = \"clean up\"\n[producer]\ncomand = [\"p\", \"{copy}\"]\n"),
    ("metrics from nowhere", "[metrics]\nnames = { tries = \"attempt\", sent = 1 }\n"),
    (
        "metrics from everywhere",
        "[metrics]\nurl = \"https://metrics.example.com\"\nfile = \"/tmp/{worker}.prom\"\nquery = \"select 1\"\n",
    ),
    ("alarm", "[alarm]\noutput = \"\"\nexit-codes = [0, 74]\nmetric = \"awaiting-reviews\"\nlog = \"x\"\n"),
    (
        "secrets",
        "[secrets]\nenv = [\"API TOKEN\", \"KILLPOINT_X\", \"A\", \"A\"]\nurl = \"no\"\ndeclared = [\"\"]\n",
    ),
    ("secrets that are not planted", "[secrets]\ndeclared = [\"requests:*\"]\n"),
    (
        "state outside",
        "[state]\nprepare = [[\"setup\", \"--db=/var/app.db\", \"{state}/a.db\", \"geo.sqlite\"]]\noutside = [\"geo.sqlite\"]\n",
    ),
    ("inbound", "[inbound]\npage = 0\nredeliver = 2\nlose-answer = [0, \"1\"]\n"),
];

/// Whole files, for what is wrong with `[worker]` itself.
const WORKERS: &[(&str, &str)] = &[
    ("empty file", ""),
    ("no command", "[worker]\ncwd = \".\"\n"),
    ("command is a text", "[worker]\ncommand = \"python3 worker.py run\"\n"),
    ("command is empty", "[worker]\ncommand = []\n"),
    ("command holds a number", "[worker]\ncommand = [\"worker\", 5, \"a\\u0000\"]\n"),
    (
        "worker keys",
        "[worker]\ncommand = [\"a\"]\nlifecycle = \"run-forever\"\nagain-codes = 75\nrestarts-max = 1.5\nrestart-delay = 50\nprocesses-max = 0\noutput-max = 99999999999999999999\n",
    ),
    ("inherit", "[worker]\ncommand = [\"a\"]\ninherit = [\"KILLPOINT_X\", \"A B\", 1]\n"),
    ("again codes", "[worker]\ncommand = [\"a\"]\nlifecycle = \"one-shot\"\nagain-codes = [75, 256]\n"),
    ("never exits", "[worker]\ncommand = [\"a\"]\nlifecycle = \"runs-forever\"\n[settle]\nby = \"exit\"\n"),
];

const SCENARIOS: &[(&str, &str)] = &[
    ("syntax", "name = \"a\n"),
    ("empty file", ""),
    ("nothing injected", "name = \"a\"\nsummary = \"s\"\n"),
    (
        "name",
        "name = \"Lost Reply\"\nsummary = \"\"\n[[fault]]\nat = \"provider:committed#1\"\ndo = \"kill\"\n",
    ),
    (
        "faults",
        "name = \"a\"\nsummary = \"s\"\n[[fault]]\nat = \"item-claimd\"\ndo = \"kil\"\n[[fault]]\ndo = \"kill\"\nwhen = 1\n[[fault]]\nat = \"provider:committed\"\ndo = \"kill\"\nwith = { at = 1979-05-27 }\n[[fault]]\nat = \"provider:committed#1\"\ndo = \"kill\"\n",
    ),
    (
        "kind, needs and workers",
        "name = \"a\"\nsummary = \"s\"\nkind = \"K37\"\nneeds = [\"secnd-worker\", 1]\nworkers = 17\n",
    ),
    ("needs is a text", "name = \"a\"\nsummary = \"s\"\nkind = 7\nneeds = \"ledger\"\nworkers = 2\n"),
    (
        "provider",
        "name = \"a\"\nsummary = \"s\"\n[provider]\ndialect = \"rest\"\n[[provider.rule]]\nplan = \"late-acept\"\n",
    ),
];

/// One line per problem, with the text that it points at.
fn render(text: &str, diagnostics: &[Diagnostic]) -> String {
    let mut out = String::new();
    for diagnostic in diagnostics {
        let span = diagnostic.span.unwrap();
        let line = text[..span.start].matches('\n').count() + 1;
        let severity = if diagnostic.severity == Severity::Error { "error" } else { "warning" };
        let (code, file) = (&diagnostic.code, diagnostic.file.as_deref().unwrap());
        writeln!(out, "{severity}[{code}] {file}:{line}: {}", diagnostic.message).unwrap();
        writeln!(out, "    at {:?}", &text[span.start..span.end]).unwrap();
        if let Some(help) = &diagnostic.help {
            writeln!(out, "    help: {help}").unwrap();
        }
    }
    out
}

fn config_diagnostics(text: &str) -> Vec<Diagnostic> {
    load_config(text, "killpoint.toml", Path::new("/project"), &catalog()).diagnostics
}

/// The texts of all cases with what is said about them.
fn all() -> Vec<(String, String, Vec<Diagnostic>)> {
    let config = |(name, keys): &(&str, &str)| {
        let text = format!("worker.command = [\"worker\"]\n{keys}");
        let diagnostics = config_diagnostics(&text);
        (format!("config: {name}"), text, diagnostics)
    };
    let worker = |(name, text): &(&str, &str)| {
        (format!("worker: {name}"), (*text).to_owned(), config_diagnostics(text))
    };
    let scenario = |(name, text): &(&str, &str)| {
        let loaded = load_scenario(text, "scenario.toml", &catalog());
        (format!("scenario: {name}"), (*text).to_owned(), loaded.diagnostics)
    };
    let configs = CONFIGS.iter().map(config);
    configs.chain(WORKERS.iter().map(worker)).chain(SCENARIOS.iter().map(scenario)).collect()
}

#[test]
fn every_problem_is_said_with_its_place_and_what_to_do() {
    let mut out = String::new();
    for (name, text, diagnostics) in all() {
        assert!(!diagnostics.is_empty(), "{name}: nothing is said");
        write!(out, "## {name}\n{}\n", render(&text, &diagnostics)).unwrap();
    }
    insta::assert_snapshot!("diagnostics", out);
}

#[test]
fn no_message_shows_a_rust_type() {
    for (name, _, diagnostics) in all() {
        for diagnostic in diagnostics {
            for word in ["Option<", "String", "Vec<", "struct", "enum", "u32", "i64", "::"] {
                assert!(!diagnostic.message.contains(word), "{name}: {}", diagnostic.message);
            }
            let first = diagnostic.message.chars().next().unwrap();
            assert!(
                !first.is_uppercase() && !diagnostic.message.ends_with('.'),
                "{name}: {}",
                diagnostic.message
            );
        }
    }
}

#[test]
fn every_code_of_a_file_is_met_by_a_case() {
    let met: BTreeSet<String> = all().into_iter().flat_map(|(_, _, list)| list).map(|d| d.code).collect();
    // These are about a baseline or a configuration, and have tests next to what says them.
    let of_baselines =
        [Code::BoundaryNotReached, Code::BoundaryAfterExit, Code::HitsLeftOut, Code::NotConfigured]
            .map(|code| code.entry().name);
    let of_files = Code::ENTRIES.iter().filter(|code| !of_baselines.contains(&code.name));
    let expected: BTreeSet<String> = of_files.map(|code| code.name.to_owned()).collect();
    assert_eq!(met, expected);
}
