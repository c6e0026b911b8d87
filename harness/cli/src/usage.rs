//! A command line that can't be understood, in words that need no knowledge of how it is read.

use std::error::Error;
use std::process::ExitCode as ProcessExitCode;

use killpoint::model::{DiagnosticCode, ExitCode};

use crate::code::Code;
use crate::show;

/// What parsers of numbers say, and what is meant.
const NUMBERS: &[(&str, &str)] = &[
    ("invalid digit found in string", "a whole number is needed"),
    ("cannot parse integer from empty string", "a whole number is needed"),
    ("number would be zero for non-zero type", "a number from 1 on is needed"),
    ("number too large to fit in target type", "the number is too large"),
    ("number too small to fit in target type", "the number is too small"),
];

/// Prints what is wrong, or the help and the version where these were asked for, which is no error.
pub(crate) fn complain(error: &clap::Error) -> ProcessExitCode {
    if !error.use_stderr() {
        // A closed pipe is nobody's problem.
        let _ = error.print();
        return ProcessExitCode::SUCCESS;
    }
    show::lines_to_stderr(text(error).trim_end());
    ProcessExitCode::from(ExitCode::InvalidConfig.code())
}

fn text(error: &clap::Error) -> String {
    let mut text = error.render().to_string();
    if let Some(why) = error.source().map(ToString::to_string) {
        text = text.replacen(&why, &words(&why), 1);
    }
    match text.strip_prefix("error: ") {
        Some(rest) => format!("error[{}]: {rest}", Code::Usage.entry().name),
        // No subcommand: the help is what is said.
        None => text,
    }
}

/// Why a value is impossible.
fn words(why: &str) -> String {
    if let Some((_, words)) = NUMBERS.iter().find(|(text, _)| *text == why) {
        return (*words).to_owned();
    }
    let limits = why.split_once(" is not in ").and_then(|(_, limits)| limits.split_once("..="));
    limits
        .map_or_else(|| why.to_owned(), |(least, most)| format!("a number from {least} to {most} is needed"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    /// What is said about words after `killpoint`.
    fn said(words: &[&str]) -> String {
        text(&crate::Arguments::try_parse_from([&["killpoint"], words].concat()).unwrap_err())
    }

    #[test]
    fn numbers_are_asked_for_in_words() {
        for (text, needed) in [
            ("x", "'--jobs <N>': a whole number is needed"),
            ("", "'--jobs <N>': a whole number is needed"),
            ("0", "'--jobs <N>': a number from 1 on is needed"),
            ("99999999", "'--jobs <N>': the number is too large"),
        ] {
            let said = said(&["run", "--jobs", text]);
            assert!(said.starts_with("error[usage]: ") && said.contains(needed), "{said}");
        }
        let depth = said(&["run", "--depth", "3"]);
        assert!(depth.contains("'--depth <N>': a number from 1 to 2 is needed"), "{depth}");
        assert!(said(&["run", "--depth", "x"]).contains("a whole number is needed"));
        assert!(said(&["provider", "--port", "70000"]).contains("a number from 0 to 65535 is needed"));
    }

    #[test]
    fn what_is_replaced_is_what_parsers_say() {
        let parsed = [
            "x".parse::<u8>().unwrap_err(),
            "".parse::<u8>().unwrap_err(),
            "0".parse::<std::num::NonZeroU8>().unwrap_err(),
            "256".parse::<u8>().unwrap_err(),
            "-129".parse::<i8>().unwrap_err(),
        ];
        for (error, (text, _)) in parsed.iter().zip(NUMBERS) {
            assert_eq!(error.to_string(), *text);
        }
    }

    #[test]
    fn misspelt_commands_and_flags_come_with_the_nearest() {
        assert!(said(&["demmo"]).contains("'demo'"));
        assert!(said(&["run", "--scenaro", "x"]).contains("'--scenario'"));
        assert!(said(&["run", "--strategy", "swep"]).contains("'sweep'"));
        assert!(!said(&[]).starts_with("error"), "the help is shown");
    }
}
