//! Completions, manual pages, and pipes that nobody reads any more.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use killpoint::model::ExitCode::Holds;

use crate::bench::{Bench, end_of};

/// A tool of this machine with something on its standard input; `None` where it is not installed, which is said.
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn tool(words: &[&str], input: &str) -> Option<Output> {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let Ok(mut child) = command.spawn() else {
        eprintln!("skipped: {} is not installed", words[0]);
        return None;
    };
    // A tool that has seen enough closes its end.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    Some(child.wait_with_output().unwrap())
}

/// What bash offers for words of a command line, the last one unfinished.
fn offered(script: &str, words: &[&str]) -> Vec<String> {
    let last = words.len() - 1;
    let before = if last > 0 { words[last - 1] } else { "" };
    let line = words.join("' '");
    let asked = format!(
        "{script}\nCOMP_WORDS=('{line}'); COMP_CWORD={last}\n_killpoint killpoint '{}' '{before}'\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"",
        words[last]
    );
    let output =
        tool(&["bash", "--norc", "-s"], &asked).expect("bash is part of every machine that runs this");
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_flags_and_names() {
    let script = Bench::new().killpoint(&["completions", "bash"]).exits(Holds).out;
    assert_eq!(offered(&script, &["killpoint", "sel"]), ["selftest"]);
    assert_eq!(offered(&script, &["killpoint", "run", "--sce"]), ["--scenario"]);
    assert!(
        offered(&script, &["killpoint", "run", "--scenario", "late-acc"]).contains(&"late-accept".to_owned())
    );
    assert_eq!(offered(&script, &["killpoint", "demo", "--bug", "blind-res"]), ["blind-resend"]);
    assert_eq!(offered(&script, &["killpoint", "explain", "not-utf"]), ["not-utf-8"]);
    assert_eq!(offered(&script, &["killpoint", "list", "diag"]), ["diagnostics"]);
    assert_eq!(offered(&script, &["killpoint", "completions", "elv"]), ["elvish"]);
}

#[test]
fn every_shell_reads_its_completions() {
    let bench = Bench::new();
    for (shell, check) in [
        ("bash", Some(&["bash", "-n"][..])),
        ("zsh", Some(&["zsh", "-n"])),
        ("fish", Some(&["fish", "--no-execute"])),
        ("elvish", None),
        ("powershell", None),
    ] {
        let script = bench.killpoint(&["completions", shell]).exits(Holds).out;
        assert!(script.contains("selftest") && script.contains("run-dir"), "{shell}");
        let output = check.and_then(|words| tool(words, &script));
        assert!(output.is_none_or(|output| output.status.success()), "{shell}");
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let bench = Bench::new();
    let shown = bench.killpoint(&["man"]).exits(Holds).out;
    bench.killpoint(&["man", "--out", "share/man1"]).exits(Holds);
    let mut pages: Vec<String> = std::fs::read_dir(bench.path("share/man1"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    pages.sort();
    let listed = bench.killpoint(&["list", "commands", "--format", "json"]).exits(Holds).out;
    let listed: Vec<serde_json::Value> = serde_json::from_str(&listed).unwrap();
    let mut expected: Vec<String> =
        listed.iter().map(|row| format!("killpoint-{}.1", row["name"].as_str().unwrap())).collect();
    expected.push("killpoint.1".into());
    expected.sort();
    assert_eq!(pages, expected);
    for page in &pages {
        let text = std::fs::read_to_string(bench.path("share/man1").join(page)).unwrap();
        for section in ["NAME", "SYNOPSIS", "OPTIONS", "\"EXIT STATUS\""] {
            assert!(text.contains(&format!("\n.SH {section}\n")), "{page}: {section}");
        }
        let drawn = tool(&["man", "-l", "-"], &text);
        let warned = drawn.is_none_or(|output| output.status.success() && output.stderr.is_empty());
        assert!(warned, "{page}");
        let checked = tool(&["mandoc", "-T", "lint", "-W", "error"], &text);
        assert!(checked.is_none_or(|output| output.status.success()), "{page}");
    }
    assert_eq!(
        shown.trim_end(),
        std::fs::read_to_string(bench.path("share/man1/killpoint.1")).unwrap().trim_end()
    );
    assert!(shown.contains(".SH ENVIRONMENT") && shown.contains("NO_COLOR") && shown.contains("\\fB130\\fR"));
}

#[test]
fn a_pipe_that_nobody_reads_is_no_error() {
    let bench = Bench::new();
    for words in [
        &["list"][..],
        &["list", "--format", "json"],
        &["explain", "syntax"],
        &["completions", "bash"],
        &["completions", "zsh"],
        &["man"],
        &["--help"],
        &["run", "--help"],
        &["--version"],
    ] {
        let mut command = bench.command(words);
        // Its only reader is gone before the program starts.
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        command.stdin(Stdio::null()).stdout(writer).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        drop(command);
        let said = end_of(child).exits(Holds);
        assert_eq!(said.err, "", "{words:?}");
    }
}

#[test]
fn errors_into_a_pipe_that_nobody_reads_keep_their_exit_code() {
    let bench = Bench::new();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = bench.command(&["explain", "nothing-of-that-name"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(writer);
    let status = command.status().unwrap();
    assert_eq!(status.code(), Some(3));
}
