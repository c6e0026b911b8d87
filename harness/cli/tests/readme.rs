//! Commands and configurations in `README.md` and below `docs` do what the pages say.
//!
//! A TOML block is read without a diagnostic; one that is only a part of a file is completed. Commands in `sh` and
//! `console` blocks are run in a folder with a worker. A comment `# exit code N` says how a command ends, and
//! output below a `$ command` is compared, where `…` stands for lines that are left out and times may differ.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_killpoint");

/// A fenced block.
#[derive(Debug)]
struct Block {
    /// File and line.
    place: String,
    language: String,
    text: String,
}

/// A command of a page.
#[derive(Debug)]
struct Step {
    place: String,
    command: String,
    exit_code: i32,
    /// What the page shows below it; empty where nothing is shown.
    shown: Vec<String>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn pages() -> Vec<PathBuf> {
    let mut pages = vec![root().join("README.md")];
    let mut folders = vec![root().join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "md") {
                pages.push(path);
            }
        }
    }
    pages.sort();
    pages
}

fn blocks(language: &[&str]) -> Vec<Block> {
    let all = pages().into_iter().flat_map(|page| blocks_of(&page));
    all.filter(|block| language.contains(&block.language.as_str())).collect()
}

fn blocks_of(page: &Path) -> Vec<Block> {
    let text = fs::read_to_string(page).unwrap();
    let name = page.strip_prefix(root()).unwrap().display().to_string();
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for (index, line) in text.lines().enumerate() {
        match (line.strip_prefix("```"), open.as_mut()) {
            (Some(""), Some(_)) => blocks.extend(open.take()),
            (Some(language), None) => {
                let place = format!("{name}:{}", index + 1);
                open = Some(Block { place, language: language.to_owned(), text: String::new() });
            }
            (_, Some(block)) => block.text.extend([line, "\n"]),
            (_, None) => {}
        }
    }
    assert!(open.is_none(), "{name}: a block is not closed");
    blocks
}

#[test]
fn every_toml_block_is_read_without_a_diagnostic() {
    let blocks = blocks(&["toml"]);
    assert!(!blocks.is_empty());
    let catalog = killpoint::catalog();
    for Block { place, text, .. } in blocks {
        let has = |start: &str| text.lines().any(|line| line.starts_with(start));
        let is_named = text.starts_with("name = ");
        let diagnostics = if is_named || has("[[fault]]") {
            let head = if is_named { "" } else { "name = \"part\"\nsummary = \"a part\"\n\n" };
            killpoint::scenarios::load_scenario(&format!("{head}{text}"), &place, &catalog).diagnostics
        } else {
            let mut whole = text.clone();
            if !has("[worker]") {
                whole += "\n[worker]\ncommand = [\"worker\"]\n";
            }
            if has("by = \"query\"") && !has("[ledger") {
                whole += "\n[ledger]\npath = \"{state}/l.db\"\nquery = \"select id as action, s as state from l\"\n";
            }
            killpoint::scenarios::load_config(&whole, &place, Path::new("/project"), &catalog).diagnostics
        };
        assert_eq!(diagnostics, [], "{place}\n{text}");
    }
}

#[test]
fn commands_end_as_the_pages_say_and_print_what_they_show() {
    let mut by_page: BTreeMap<String, Vec<Step>> = BTreeMap::new();
    for block in blocks(&["sh", "console"]) {
        let page = block.place.split(':').next().unwrap_or_default();
        by_page.entry(page.to_owned()).or_default().extend(steps(&block));
    }
    assert!(by_page.len() > 3, "{by_page:?}");
    // Pages side by side: trials mostly wait.
    std::thread::scope(|scope| {
        for steps in by_page.values() {
            scope.spawn(|| run_page(steps));
        }
    });
}

/// Runs the commands of one page, one after the other in one folder.
fn run_page(steps: &[Step]) {
    let fixture = Fixture::new();
    let mut provider = None;
    for step in steps {
        let words: Vec<&str> = step.command.split_whitespace().collect();
        match words.as_slice() {
            ["cargo", "xtask", task, ..] => {
                let tasks = fs::read_to_string(root().join("xtask/src/main.rs")).unwrap();
                assert!(tasks.contains(&format!("\n  {task} ")), "{}: no task `{task}`", step.place);
            }
            ["cargo", "install", "--path", path] => {
                assert!(root().join(path).join("Cargo.toml").is_file(), "{}: {path}", step.place);
            }
            ["curl", ..] if !is_there("curl") => skip("curl", step),
            ["curl", ..] => {
                let provider = provider.get_or_insert_with(|| Provider::start(&fixture));
                fixture.run(step, &step.command, &provider.addresses);
            }
            ["killpoint", ..] => fixture.run(step, &narrowed(&step.command), &[]),
            ["cargo", "run", "--release", "--", ..] => {
                let command = step.command.replacen("cargo run --release --", "killpoint", 1);
                fixture.run(step, &narrowed(&command), &[]);
            }
            _ => panic!("{}: this test can't run `{}`", step.place, step.command),
        }
    }
}

fn steps(block: &Block) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let is_console = block.language == "console";
    for line in block.text.lines().filter(|line| !line.is_empty()) {
        let command = if is_console { line.strip_prefix("$ ") } else { Some(line) };
        let Some(command) = command else {
            steps
                .last_mut()
                .unwrap_or_else(|| panic!("{}: output of nothing", block.place))
                .shown
                .push(line.to_owned());
            continue;
        };
        let (command, comment) = command.split_once(" # ").unwrap_or((command, "exit code 0"));
        let exit_code = comment.strip_prefix("exit code ").map_or(0, |code| code.parse().unwrap());
        steps.push(Step {
            place: block.place.clone(),
            command: command.to_owned(),
            exit_code,
            shown: Vec::new(),
        });
    }
    steps
}

/// The same command, done sooner: a whole sweep is narrowed to one boundary, and the selftest, or a profile, which
/// chooses its trials itself, to its help.
fn narrowed(command: &str) -> String {
    if command.contains("--profile") {
        return format!("{command} --help");
    }
    let selects = ["--boundary", "--scenario", "--strategy"].iter().any(|flag| command.contains(flag));
    for whole in ["killpoint demo", "killpoint run"] {
        if let Some(rest) = command.strip_prefix(whole).filter(|_| !selects) {
            return format!("{whole} --boundary provider:committed#1{rest}");
        }
    }
    if command == "killpoint selftest" { "killpoint selftest --help".to_owned() } else { command.to_owned() }
}

/// Says that a step is left out. On a machine that must have everything it is a failure.
#[expect(clippy::print_stdout, reason = "whoever reads the test's output should know")]
fn skip(missing: &str, step: &Step) {
    let all = std::env::var_os("KILLPOINT_REQUIRE_ALL").is_some_and(|value| value == "1");
    assert!(!all, "{}: the program `{missing}` is missing; install it", step.place);
    println!("skipped: {}: the program `{missing}` is missing", step.place);
}

fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// A folder in which the pages' commands work: a worker, its configuration, and the program on the PATH.
struct Fixture {
    folder: tempfile::TempDir,
}

impl Fixture {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("bin")).unwrap();
        fs::create_dir(at("runs")).unwrap();
        symlink(PROGRAM, at("bin/killpoint")).unwrap();
        // The worker of the demo, which makes its own work where nobody enqueues any.
        let worker = format!(
            "#!/bin/sh\n\
             echo '{{\"id\":\"a-1\",\"to\":[\"ann@example.com\"],\"body\":\"hello\"}}' > \"$STATE_DIR/actions.jsonl\"\n\
             '{PROGRAM}' built-in-worker enqueue --db \"$WORKER_DB\" --actions \"$STATE_DIR/actions.jsonl\" || exit 1\n\
             exec '{PROGRAM}' built-in-worker run --db \"$WORKER_DB\" --provider \"$PROVIDER_URL\" --worker-id one --drain\n"
        );
        fs::write(at("worker"), worker).unwrap();
        fs::set_permissions(at("worker"), fs::Permissions::from_mode(0o755)).unwrap();
        let config = "[worker]\ncommand = [\"./worker\"]\n\
                      env = { PROVIDER_URL = \"{provider.rest}\", STATE_DIR = \"{state}\", WORKER_DB = \"{state}/l.db\" }\n";
        fs::write(at("killpoint.toml"), config).unwrap();
        Self { folder }
    }

    fn shell(&self, command: &str) -> Command {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(self.folder.path().join("bin")).chain(std::env::split_paths(&path));
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).current_dir(self.folder.path());
        shell.env("PATH", std::env::join_paths(folders).unwrap()).stdin(Stdio::null());
        shell
    }

    fn run(&self, step: &Step, command: &str, variables: &[(String, String)]) {
        let output = self.shell(command).envs(variables.iter().cloned()).output().unwrap();
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(step.exit_code), "{}: {command}\n{out}\n{err}", step.place);
        if let Some(missing) = first_missing(&step.shown, &out) {
            panic!("{}: {command}\nnot printed: {missing}\nprinted was:\n{out}", step.place);
        }
    }
}

/// The first line of a page that the program did not print, at its place.
fn first_missing<'s>(shown: &'s [String], printed: &str) -> Option<&'s str> {
    let printed: Vec<String> = printed.lines().filter(|line| !line.is_empty()).map(steady).collect();
    let mut rest = printed.iter();
    let mut gap = false;
    for line in shown {
        if line == "…" {
            gap = true;
            continue;
        }
        let wanted = steady(line);
        let found = if gap { rest.any(|next| *next == wanted) } else { rest.next() == Some(&wanted) };
        if !found {
            return Some(line);
        }
        gap = false;
    }
    None
}

/// A line without what differs from run to run: times, and numbers of events.
fn steady(line: &str) -> String {
    let mut words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    let is_timeline = words.iter().any(|word| word.starts_with('+') && is_time(&word[1..]));
    let events_from = words.iter().position(|word| word == "events").unwrap_or(words.len());
    for (index, word) in words.iter_mut().enumerate() {
        let bare = word.trim_start_matches('+').trim_end_matches(['.', ',', ';']).to_owned();
        let is_event = index > events_from || (is_timeline && index < 2);
        if is_time(&bare) || (is_event && bare.chars().all(|c| c.is_ascii_digit())) {
            "N".clone_into(word);
        }
    }
    words.join(" ")
}

fn is_time(word: &str) -> bool {
    let number = word.strip_suffix("ms").or_else(|| word.strip_suffix('s'));
    number.is_some_and(|number| number.parse::<f64>().is_ok())
}

/// The fake provider as a program of its own.
struct Provider {
    process: Child,
    addresses: Vec<(String, String)>,
}

impl Provider {
    fn start(fixture: &Fixture) -> Self {
        let mut command = fixture.shell("exec killpoint provider");
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let ready: serde_json::Value = serde_json::from_str(&line).unwrap();
        let addresses = ["rest", "control", "token"]
            .map(|name| (name.to_uppercase(), ready[name].as_str().unwrap().to_owned()))
            .to_vec();
        Self { process, addresses }
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        // Already gone is fine.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn a_page_that_shows_what_is_not_printed_is_found() {
    let shown = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
    let printed = "verdict  time\nholds  473ms\n\nend, events 3, 4\n";
    assert_eq!(first_missing(&shown(&["verdict time", "…", "end, events 7, 9"]), printed), None);
    assert_eq!(first_missing(&shown(&["verdict time", "holds 2.5s"]), printed), None);
    assert_eq!(
        first_missing(&shown(&["verdict time", "end, events 3, 4"]), printed),
        Some("end, events 3, 4")
    );
    assert_eq!(first_missing(&shown(&["…", "holds 1s", "…", "verdict time"]), printed), Some("verdict time"));
    assert_ne!(steady("2 effects"), steady("3 effects"));
}
