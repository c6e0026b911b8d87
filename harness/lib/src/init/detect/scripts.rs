//! Scripts that can be started as they are, weighed by name, by what they read, and by what they do.

use super::super::finding::{Findings, Program, Sure};
use super::super::project::{Language, Place, Project, SourceFile};
use super::Detector;
use super::manifests::name_score;

pub(super) const DETECTOR: Detector =
    Detector { name: "scripts", summary: "scripts that can be started as they are", look };

/// Texts of a program that sends.
const SENDS: &[&str] = &[
    "requests.post",
    "httpx.",
    "urlopen",
    "urllib.request",
    "http.client",
    "aiohttp",
    "fetch(",
    "axios",
    "http.request",
    "got.post",
    "curl ",
    "Net::HTTP",
    "Faraday",
    "smtplib",
    "nodemailer",
];
/// Texts of a program that is started and not imported.
const STARTED: &[&str] =
    &["__main__", "sys.argv", "process.argv", "ARGV", "$1", "getopts", "argparse", "click."];

fn look(project: &Project, findings: &mut Findings) {
    findings
        .programs
        .extend(project.sources().filter_map(|(file, language)| program(project, file, language)));
}

fn program(project: &Project, file: &SourceFile, language: Language) -> Option<Program> {
    if language == Language::C {
        return c_program(project, file);
    }
    let argv = start(file)?;
    let aside = file.folder().split('/').any(|part| matches!(part, "docs" | "scripts" | "examples"));
    let stem = file.name().split('.').next().unwrap_or_default();
    let has = |texts: &[&str]| texts.iter().any(|text| file.text.contains(text));
    let by_shebang = is_program(file);
    let score = name_score(stem)
        + 25 * i32::from(has(SENDS))
        + 15 * i32::from(has(STARTED))
        + 10 * i32::from(by_shebang)
        - 100 * i32::from(aside)
        - 5 * file.path.matches('/').count() as i32;
    (score > 0).then(|| Program {
        argv,
        file: Some(file.path.clone()),
        score,
        sure: if name_score(stem) > 25 && has(SENDS) { Sure::Likely } else { Sure::Guess },
        place: Place::whole(&file.path),
        why: if has(SENDS) { "a script that sends requests".into() } else { "a script".into() },
        build: None,
    })
}

/// How a script is started; `None` for what is built first.
pub(in super::super) fn start(file: &SourceFile) -> Option<Vec<String>> {
    if is_program(file) {
        return Some(vec![format!("./{}", file.path)]);
    }
    let interpreter = match file.language? {
        Language::Python => "python3",
        Language::Node if file.path.ends_with("ts") => return None,
        Language::Node => "node",
        Language::Ruby => "ruby",
        Language::Shell if first_line_has(file, "bash") => "bash",
        Language::Shell => "sh",
        // These are built, and their manifests know how.
        Language::C | Language::Rust | Language::Go | Language::Sql => return None,
    };
    Some(vec![interpreter.to_owned(), file.path.clone()])
}

fn is_program(file: &SourceFile) -> bool {
    file.text.starts_with("#!") && file.executable
}

fn first_line_has(file: &SourceFile, word: &str) -> bool {
    file.text.lines().next().is_some_and(|line| line.starts_with("#!") && line.contains(word))
}

/// A C file with a `main`, whose program has its name.
fn c_program(project: &Project, file: &SourceFile) -> Option<Program> {
    if !file.text.contains("main(") {
        return None;
    }
    let name = file.path.strip_suffix(".c")?;
    let libraries = [("sqlite3.h", " -lsqlite3"), ("curl/curl.h", " -lcurl"), ("pthread.h", " -pthread")];
    let needed: String =
        libraries.iter().filter(|(header, _)| file.text.contains(header)).map(|(_, flag)| *flag).collect();
    let is_built = project.built.iter().any(|built| built == name);
    Some(Program {
        argv: vec![format!("./{name}")],
        file: Some(file.path.clone()),
        score: name_score(name).max(1),
        sure: Sure::Guess,
        place: Place::whole(&file.path),
        why: "a C program".into(),
        build: (!is_built).then(|| format!("cc -O1 -o {name} {}{needed}", file.path)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranked(files: &[(&str, &str)]) -> Vec<String> {
        let files = files.iter().map(|(path, text)| SourceFile::new(*path, text, true)).collect();
        let mut findings = Findings::default();
        look(&Project { files, ..Project::default() }, &mut findings);
        findings.programs.sort_by_key(|program| -program.score);
        findings.programs.into_iter().map(|program| program.argv.join(" ")).collect()
    }

    #[test]
    fn the_script_that_sends_and_is_called_a_worker_comes_first() {
        let sends = "import requests, sys\nrequests.post(sys.argv[1])\n";
        let files = [
            ("status.py", "import sys\nsys.argv\n"),
            ("lib.py", sends),
            ("worker.py", sends),
            ("tests/worker.py", sends),
        ];
        assert_eq!(ranked(&files), ["python3 worker.py", "python3 lib.py"]);
    }

    #[test]
    fn a_first_line_is_used_where_the_file_may_be_executed() {
        assert_eq!(ranked(&[("worker", "#!/bin/sh\ncurl $1\n")]), ["./worker"]);
        let file = SourceFile::new("worker.sh", "#!/bin/bash\ncurl $1\n", false);
        let program = program(&Project::default(), &file, Language::Shell).unwrap();
        assert_eq!(program.argv, ["bash", "worker.sh"]);
    }

    #[test]
    fn a_c_program_says_how_it_is_built() {
        let file = SourceFile::new("worker.c", "#include <sqlite3.h>\nint main(void) {}\n", false);
        let program = program(&Project::default(), &file, Language::C).unwrap();
        assert_eq!(program.build.as_deref(), Some("cc -O1 -o worker worker.c -lsqlite3"));
    }
}
