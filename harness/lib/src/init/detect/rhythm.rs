//! How the worker lives: loops without an end, loops that end when nothing is left, and how long it waits.

use super::super::finding::{Findings, Literal};
use super::super::pattern::{Pattern, lines_from};
use super::super::project::{Language, Project, SourceFile};
use super::Detector;

pub(super) const DETECTOR: Detector =
    Detector { name: "rhythm", summary: "whether the worker ends by itself, and how long it waits", look };

/// Loops that end only from within.
const LOOPS: &[&str] = &[
    r"\bwhile\s+(?:True|1)\s*:",
    r"\bwhile\s*\(\s*(?:true|1)\s*\)",
    r"\bfor\s*\(\s*;\s*;\s*\)",
    r"\bloop\s*(?:\{|do\b)",
    r"(?m)^\s*for\s*\{",
    r"\bwhile\s+(?::|true)\s*(?:;|\n)",
];
/// Calls that run for ever.
const CALLS: &[&str] = &[
    r"\bserve_forever\(|\brun_forever\(|\bBlockingScheduler\(|\bstart_consuming\(",
    r"\bEvent\(\)\.wait\(|\bsignal\.pause\(",
    r"\bsetInterval\(",
    r"\bawait\s+\w+\.start\(\)",
    r"\bos\.exec\w*\(",
];
/// An end when there is nothing, in the line after a question for it or in the same one.
const ENDS: &str = r"(?m)(?:\blet\s+(?:Some|Ok)\(|\bis\s+None|\bnot\s+\w+|===?\s*null|===?\s*None|!\w+|\.length\s*===?\s*0|\.is_empty\(\)|len\(\w+\)\s*==\s*0|\.rowcount\s*==\s*0|ErrNoRows|None\s*=>|\[\s*-z)[^\n]*(?:\n[^\n]*)?\b(?:break|return|exit)\b";
/// A flag without which the worker goes on.
const FLAGS: &str = r#"["']--[a-z]|\b(?:once|drain)\b"#;
/// How far a loop reaches.
const LOOP_LINES: usize = 30;

/// Waits: in seconds, then in milliseconds. A request's timeout is none: the fake provider ends what it hangs.
const SECONDS: &[&str] = &[
    r"\bsleep\(\s*([0-9.]+)\s*\)",
    r"(?m)^\s*sleep\s+([0-9.]+)",
    r"(?i)\b\w*(?:delay|lease|backoff|visibility|interval|poll)\w*\s*[=:]\s*([0-9.]+)\s*(?:[,)};\n]|$)",
    r"from_secs\(\s*([0-9.]+)\s*\)",
    r"\b([0-9.]+)\s*\*\s*time\.Second",
];
const MILLISECONDS: &[&str] = &[
    r"\bsetTimeout\([^\n;]*?,\s*([0-9_]+)\s*\)",
    r"\bsetTimeout\(\s*([0-9_]+)\s*\)",
    r"(?i)\b\w*(?:delay|lease|backoff|interval|visibility|poll)_?ms\w*\s*[=:]\s*([0-9_]+)",
    r"from_millis\(\s*([0-9_]+)\s*\)",
    r"\b([0-9]+)\s*\*\s*time\.Millisecond",
];
/// A longer wait is not waited for.
const WAIT_MS_MAX: u64 = 3_600_000;

#[cfg(test)]
pub(super) fn patterns() -> Vec<&'static str> {
    [LOOPS, CALLS, SECONDS, MILLISECONDS, &[ENDS, FLAGS]].concat()
}

fn look(project: &Project, findings: &mut Findings) {
    let compiled = |texts: &[&str]| texts.iter().map(|text| Pattern::new(text)).collect::<Vec<_>>();
    let (loops, calls) = (compiled(LOOPS), compiled(CALLS));
    let (ends, flags) = (Pattern::new(ENDS), Pattern::new(FLAGS));
    let (seconds, milliseconds) = (compiled(SECONDS), compiled(MILLISECONDS));
    for (file, language) in project.sources().filter(|(_, language)| *language != Language::Sql) {
        for found in loops.iter().flat_map(|pattern| pattern.matches(&file.text)) {
            let body = lines_from(&file.text, found.end, LOOP_LINES);
            let drains = ends.matches(body).iter().any(|end| !flags.is_in(&body[end.start..end.end]));
            let literal = Literal { text: file.path.clone(), place: found.place(file) };
            if drains { findings.draining.push(literal) } else { findings.endless.push(literal) }
        }
        for found in calls.iter().flat_map(|pattern| pattern.matches(&file.text)) {
            findings.endless.push(Literal { text: file.path.clone(), place: found.place(file) });
        }
        waits(file, language, &seconds, 1000.0, findings);
        waits(file, language, &milliseconds, 1.0, findings);
    }
}

fn waits(file: &SourceFile, language: Language, patterns: &[Pattern], unit_ms: f64, findings: &mut Findings) {
    for found in patterns.iter().flat_map(|pattern| pattern.matches(&file.text)) {
        let Ok(number) = found.groups.concat().replace('_', "").parse::<f64>() else { continue };
        // JavaScript counts in milliseconds where nothing is said.
        let unit_ms = if language == Language::Node { 1.0 } else { unit_ms };
        let wait_ms = (number * unit_ms) as u64;
        if (1..=WAIT_MS_MAX).contains(&wait_ms) {
            findings.waits.push((wait_ms, found.place(file)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> (usize, usize, Vec<u64>) {
        let files = vec![SourceFile::new(path, text, false)];
        let mut findings = Findings::default();
        look(&Project { files, ..Project::default() }, &mut findings);
        let waits = findings.waits.into_iter().map(|(wait_ms, _)| wait_ms).collect();
        (findings.endless.len(), findings.draining.len(), waits)
    }

    #[test]
    fn loops_that_end_are_told_from_those_that_do_not() {
        let text = "while True:\n    job = take()\n    if job is None:\n        break\n    send(job)\n";
        assert_eq!(found("w.py", text), (0, 1, vec![]));
        let text = "while True:\n    job = take()\n    if job is None:\n        if '--drain' in sys.argv:\n            break\n        time.sleep(0.5)\n";
        assert_eq!(found("w.py", text), (1, 0, vec![500]));
        let text = "for (;;) {\n  const row = next();\n  if (!row) break;\n}\n";
        assert_eq!(found("w.mjs", text), (0, 1, vec![]));
        let text = "loop {\n    let Some(row) = next() else { return };\n    std::thread::sleep(Duration::from_millis(20));\n}\n";
        assert_eq!(found("w.rs", text).2, [20]);
        assert_eq!(found("w.py", "scheduler = BlockingScheduler()\n").0, 1);
    }

    #[test]
    fn waits_carry_their_unit() {
        assert_eq!(found("w.py", "@task(retries=3, retry_delay=2, x=1)\ntime.sleep(1)\n").2, [1000, 2000]);
        assert_eq!(
            found("w.mjs", "setTimeout(resolve, 250);\nconst o = { maintenanceInterval: 1000 };\n").2,
            [1000, 250]
        );
        assert_eq!(found("w.go", "time.Sleep(2 * time.Second)\n").2, [2000]);
    }
}
