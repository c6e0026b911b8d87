//! The pages, and the blocks of code in them.

use std::fs;
use std::path::{Path, PathBuf};

/// A fenced block.
#[derive(Debug)]
pub(crate) struct Block {
    /// File and line.
    pub(crate) place: String,
    pub(crate) language: String,
    pub(crate) text: String,
}

/// A command of a page.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) place: String,
    pub(crate) command: String,
    pub(crate) exit_code: i32,
    /// What the page shows below it; empty where nothing is shown.
    pub(crate) shown: Vec<String>,
}

pub(crate) fn root() -> PathBuf {
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

pub(crate) fn blocks(language: &[&str]) -> Vec<Block> {
    let all = pages().into_iter().flat_map(|page| blocks_of(&page));
    all.filter(|block| language.contains(&block.language.as_str())).collect()
}

pub(crate) fn blocks_of(page: &Path) -> Vec<Block> {
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

pub(crate) fn steps(block: &Block) -> Vec<Step> {
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

/// Says that a step is left out. On a machine that must have everything it is a failure.
#[expect(clippy::print_stdout, reason = "whoever reads the test's output should know")]
pub(crate) fn skip(missing: &str, step: &Step) {
    let all = std::env::var_os("KILLPOINT_REQUIRE_ALL").is_some_and(|value| value == "1");
    assert!(!all, "{}: the program `{missing}` is missing; install it", step.place);
    println!("skipped: {}: the program `{missing}` is missing", step.place);
}

pub(crate) fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}
