//! Variables of the environment that sources read, and what their names and defaults say that they hold.
//!
//! A value is never read: neither the environment's nor a `.env` file's. A default in a source is no secret.

use super::super::finding::{Findings, Holds, Literal, Sure, Variable};
use super::super::pattern::{Match, Pattern};
use super::super::project::{Language, Place, Project, SourceFile, is_env_file};
use super::super::vocabulary::{NameKind, name_kind};
use super::Detector;

pub(super) const DETECTOR: Detector = Detector {
    name: "variables",
    summary: "variables of the environment that hold addresses, databases and credentials",
    look,
};

/// Patterns with the groups name and default, and whether the program fails without the variable.
const READS: &[(&[Language], bool, &str)] = &[
    (&[Language::Python], true, r#"environ\s*\[\s*["'](\w+)["']\s*\]()"#),
    (
        &[Language::Python],
        false,
        r#"(?:environ\.get|environ\.setdefault|getenv)\(\s*["'](\w+)["'](?:\s*,\s*f?["']([^"'\n]*)["'])?"#,
    ),
    (&[Language::Node], false, r#"\benv\.([A-Z][A-Z0-9_]*)(?:\s*(?:\|\||\?\?)\s*["'`]([^"'`\n]*)["'`])?"#),
    (
        &[Language::Node],
        false,
        r#"\benv\[\s*["'](\w+)["']\s*\](?:\s*(?:\|\||\?\?)\s*["'`]([^"'`\n]*)["'`])?"#,
    ),
    (
        &[Language::Rust],
        false,
        r#"env::var(?:_os)?\(\s*"(\w+)"\s*\)(?:\s*\.unwrap_or_else\(\s*\|_\|\s*"([^"\n]*)"|\s*\.unwrap_or\(\s*"([^"\n]*)")?"#,
    ),
    (&[Language::Go], false, r#"(?:Getenv|LookupEnv)\(\s*"(\w+)"()"#),
    (&[Language::Ruby], false, r#"ENV\[\s*["'](\w+)["']\s*\](?:\s*\|\|\s*["']([^"'\n]*)["'])?"#),
    (&[Language::Ruby], false, r#"ENV\.fetch\(\s*["'](\w+)["'](?:\s*,\s*["']([^"'\n]*)["'])?"#),
    (&[Language::C], false, r#"getenv\(\s*"(\w+)"()"#),
    (&[Language::Shell], false, r"\$\{([A-Z][A-Z0-9_]*)(?::?-([^}\n]*))?\}"),
    (&[Language::Shell], true, r"\$\{([A-Z][A-Z0-9_]*):?\?()"),
    (&[Language::Shell], false, r"\$([A-Z][A-Z0-9_]*)()"),
];
/// `const { A, B = "x" } = process.env`.
const TAKEN_APART: &str = r"\{([^{}]*)\}\s*=\s*process\.env\b";
const TAKEN: &str = r#"([A-Z][A-Z0-9_]*)(?:\s*:\s*\w+)?(?:\s*=\s*["'`]([^"'`\n]*)["'`])?"#;
const ASSIGNED: &str = r"(?m)^\s*(?:export\s+)?([A-Z][A-Z0-9_]*)=";

/// Variables that any program may read and nobody sets for it.
const OF_THE_SYSTEM: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "SHELL",
    "PWD",
    "TMPDIR",
    "LANG",
    "TZ",
    "HOSTNAME",
    "IFS",
    "NODE_ENV",
    "RUST_LOG",
    "KILLPOINT_SOCKET",
    "KILLPOINT_CLOCK_OFFSET_MS",
    "OPTARG",
    "OPTIND",
    "PYTHONPATH",
    "CARGO_MANIFEST_DIR",
];

#[cfg(test)]
pub(super) fn patterns() -> Vec<&'static str> {
    READS.iter().map(|(_, _, text)| *text).chain([TAKEN_APART, TAKEN, ASSIGNED]).collect()
}

/// One reading of a variable.
struct Reading<'t> {
    name: &'t str,
    default: &'t str,
    required: bool,
    place: Place,
}

fn look(project: &Project, findings: &mut Findings) {
    let reads: Vec<_> =
        READS.iter().map(|(languages, required, text)| (languages, *required, Pattern::new(text))).collect();
    for (file, language) in project.sources() {
        let of_language = reads.iter().filter(|(languages, ..)| languages.contains(&language));
        let mut found: Vec<Reading<'_>> = of_language
            .flat_map(|(_, required, pattern)| {
                let required = *required;
                pattern.matches(&file.text).into_iter().map(move |one| reading(file, &one, required))
            })
            .collect();
        if language == Language::Node {
            found.extend(taken_apart(file));
        }
        let assigned: Vec<&str> = match language {
            Language::Shell => Pattern::new(ASSIGNED)
                .matches(&file.text)
                .into_iter()
                .filter_map(|one| one.groups.first().copied())
                .collect(),
            _ => Vec::new(),
        };
        for one in found {
            // A shell's own variables look the same; one that has a default is the caller's all the same.
            if !OF_THE_SYSTEM.contains(&one.name)
                && (!assigned.contains(&one.name) || !one.default.is_empty())
            {
                note(project, file, one, findings);
            }
        }
    }
    findings.variables.sort_by(|a, b| a.place.cmp(&b.place));
    for file in project.files.iter().filter(|file| is_env_file(&file.path)) {
        findings.env_files.extend(names_in(file));
    }
}

fn reading<'t>(file: &SourceFile, one: &Match<'t>, required: bool) -> Reading<'t> {
    let default = one.groups.iter().skip(1).copied().find(|group| !group.is_empty()).unwrap_or_default();
    Reading {
        name: one.groups.first().copied().unwrap_or_default(),
        default,
        required,
        place: one.place(file),
    }
}

fn taken_apart(file: &SourceFile) -> Vec<Reading<'_>> {
    let taken = Pattern::new(TAKEN);
    let groups = Pattern::new(TAKEN_APART).matches(&file.text);
    let found = groups.iter().flat_map(|group| {
        let place = group.place(file);
        let names = taken.matches(group.groups.first().copied().unwrap_or_default());
        names.into_iter().map(move |one| Reading { place: place.clone(), ..reading(file, &one, false) })
    });
    found.collect()
}

/// Adds a reading; of several the first with a meaning counts.
fn note(project: &Project, file: &SourceFile, one: Reading<'_>, findings: &mut Findings) {
    if let Some(known) = findings.variables.iter_mut().find(|known| known.name == one.name) {
        known.required &= one.required;
        if known.holds == Holds::Other && !one.default.is_empty() {
            (known.holds, known.sure) = meaning(project, file, &one);
        }
        return;
    }
    let (holds, sure) = meaning(project, file, &one);
    findings.variables.push(Variable {
        name: one.name.to_owned(),
        holds,
        required: one.required,
        place: one.place,
        sure,
    });
}

fn meaning(project: &Project, file: &SourceFile, one: &Reading<'_>) -> (Holds, Sure) {
    let http = one.default.strip_prefix("http://").or_else(|| one.default.strip_prefix("https://"));
    // A default can't be a credential's meaning, but a name alone may look like one.
    match name_kind(one.name) {
        NameKind::Secret => (Holds::Secret, Sure::Likely),
        NameKind::Store => store(project, file, one),
        NameKind::OtherAddress => (Holds::Server, Sure::Guess),
        NameKind::Address if one.default.contains("://") && http.is_none() => (Holds::Server, Sure::Guess),
        NameKind::Host if http.is_none() => (Holds::Other, Sure::Guess),
        NameKind::Address | NameKind::Host => {
            let path = http.and_then(|rest| rest.find('/').map(|at| &rest[at..])).unwrap_or_default();
            // What is filled in by the program is not known.
            let path = path.split(['{', '$', '}']).next().unwrap_or_default();
            let sure = if http.is_some() { Sure::Certain } else { Sure::Likely };
            (Holds::Provider(path.trim_end_matches('/').to_owned()), sure)
        }
        NameKind::Other => (Holds::Other, Sure::Guess),
    }
}

/// Where a store lies: by its default, else by its name and by what is put before it.
fn store(project: &Project, file: &SourceFile, one: &Reading<'_>) -> (Holds, Sure) {
    let lower = one.name.to_ascii_lowercase();
    if let Some((scheme, rest)) = one.default.split_once("://") {
        if scheme.starts_with("http") {
            return (Holds::Server, Sure::Guess);
        }
        if !scheme.starts_with("sqlite") && scheme != "file" {
            return (Holds::Server, Sure::Certain);
        }
        let is_plain = |base: &&str| !base.is_empty() && !base.contains(['{', '}', '$']);
        let base = rest.rsplit('/').next().filter(is_plain).unwrap_or("ledger.db");
        return (Holds::Store(format!("{scheme}:///{{state}}/{base}")), Sure::Certain);
    }
    let base = one.default.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    if !base.is_empty() && base != ":memory:" && base != "." && !base.contains(['$', '{', '}']) {
        return (Holds::Store(format!("{{state}}/{base}")), Sure::Certain);
    }
    if one.default == ":memory:" {
        return (Holds::Store(format!("{{state}}/{lower}.db")), Sure::Likely);
    }
    // `"sqlite:///" + …` in the source makes the variable a path.
    let line = file.text.lines().nth(one.place.line.unwrap_or(1) as usize - 1).unwrap_or_default();
    let is_url = lower.ends_with("_url") || lower.ends_with("_uri");
    if is_url && !line.contains("sqlite:") {
        let any_sqlite = project.sources().any(|(file, _)| file.text.contains("sqlite"));
        let holds =
            if any_sqlite { Holds::Store("sqlite:///{state}/ledger.db".into()) } else { Holds::Server };
        return (holds, Sure::Guess);
    }
    let is_file = ["db", "database", "sqlite"].iter().any(|part| lower.split('_').any(|word| word == *part));
    let stem = ["_path", "_file", "_dir", "_url", "_db", "_database"]
        .iter()
        .fold(lower.as_str(), |name, end| name.strip_suffix(end).unwrap_or(name));
    let name = if is_file { format!("{stem}.db") } else { stem.replace('_', "-") };
    (Holds::Store(format!("{{state}}/{name}")), Sure::Likely)
}

/// The names; nothing else of such a file was kept when it was read.
fn names_in(file: &SourceFile) -> Vec<Literal> {
    let names = file.text.lines().enumerate().filter(|(_, name)| !name.is_empty());
    names
        .map(|(index, name)| Literal {
            text: name.to_owned(),
            place: Place::line(&file.path, index as u32 + 1),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<(String, Holds, bool)> {
        let files = vec![SourceFile::new(path, text, false)];
        let mut findings = Findings::default();
        look(&Project { files, ..Project::default() }, &mut findings);
        findings.variables.into_iter().map(|one| (one.name, one.holds, one.required)).collect()
    }

    fn store(text: &str) -> Holds {
        Holds::Store(text.into())
    }

    #[test]
    fn python_reads() {
        let text = "\
url = os.environ['PROVIDER_URL'] + '/v1'
db = os.getenv('APP_DB', 'data/jobs.sqlite3')
key = os.environ['API_KEY']
mail = os.environ.get('MAIL_HOST', \"https://api.mail.example/v2/\")
pg = os.environ.get('DATABASE_URL', 'postgres://localhost/x')
lease = os.environ.get('WORKER_LEASE_S')
";
        assert_eq!(
            found("w.py", text),
            [
                ("PROVIDER_URL".into(), Holds::Provider(String::new()), true),
                ("APP_DB".into(), store("{state}/jobs.sqlite3"), false),
                ("API_KEY".into(), Holds::Secret, true),
                ("MAIL_HOST".into(), Holds::Provider("/v2".into()), false),
                ("DATABASE_URL".into(), Holds::Server, false),
                ("WORKER_LEASE_S".into(), Holds::Other, false),
            ]
        );
    }

    #[test]
    fn other_languages_read() {
        let text = "const { DB_PATH = \"a.db\", SMTP_HOST } = process.env;\nprocess.env.BASE_URL ?? 'http://localhost:1/x'";
        assert_eq!(
            found("w.mjs", text),
            [
                ("DB_PATH".into(), store("{state}/a.db"), false),
                ("SMTP_HOST".into(), Holds::Other, false),
                ("BASE_URL".into(), Holds::Provider("/x".into()), false),
            ]
        );
        let text = "let d = std::env::var(\"JOBS_DB\").unwrap_or_else(|_| \"jobs.db\".into());";
        assert_eq!(found("src/main.rs", text), [("JOBS_DB".into(), store("{state}/jobs.db"), false)]);
        assert_eq!(found("m.go", "os.Getenv(\"API_URL\")").len(), 1);
        let text = "OUT=${OUTBOX:-./outbox}\necho \"$OUT\" \"${PROVIDER_URL:?}\"\n";
        assert_eq!(
            found("w.sh", text),
            [
                ("OUTBOX".into(), store("{state}/outbox"), false),
                ("PROVIDER_URL".into(), Holds::Provider(String::new()), true),
            ]
        );
        let text = "db = ENV.fetch('DATABASE_URL', 'sqlite3:///var/x/app.db')";
        assert_eq!(found("w.rb", text), [("DATABASE_URL".into(), store("sqlite3:///{state}/app.db"), false)]);
    }

    #[test]
    fn a_url_of_a_store_is_a_path_where_the_scheme_is_put_before_it() {
        let text = "url = 'sqlite:///' + os.environ['WORKER_DB']\n";
        assert_eq!(found("w.py", text), [("WORKER_DB".into(), store("{state}/worker.db"), true)]);
        let text = "import sqlite3\nurl = os.environ['DB_URL']\n";
        assert_eq!(found("w.py", text), [("DB_URL".into(), store("sqlite:///{state}/ledger.db"), true)]);
    }

    #[test]
    fn env_files_give_names_and_nothing_else() {
        let text = "# a comment\nexport API_KEY=live-and-secret\nURL = x\nnot a name\n";
        let files = vec![SourceFile::new(".env", text, false)];
        let mut findings = Findings::default();
        let project = Project { files, ..Project::default() };
        assert!(!format!("{project:?}").contains("live-and-secret"));
        look(&project, &mut findings);
        let names: Vec<&str> = findings.env_files.iter().map(|one| one.text.as_str()).collect();
        assert_eq!(names, ["API_KEY", "URL"]);
        assert!(!format!("{findings:?}").contains("live-and-secret"));
    }
}
