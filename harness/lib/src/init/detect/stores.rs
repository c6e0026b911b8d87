//! What sources name outright: databases that they open by name, and hosts that they talk to.

use super::super::finding::{Findings, Literal};
use super::super::pattern::Pattern;
use super::super::project::{Language, Project};
use super::Detector;

pub(super) const DETECTOR: Detector =
    Detector { name: "fixed-places", summary: "databases and hosts that are written into the sources", look };

const STORES: &[&str] = &[
    r#"(?:connect|open|Open|Database|LiteQueue|SqliteHuey|DatabaseSync|sqlite3_open(?:_v2)?)\(\s*(?:"sqlite3?",\s*)?["'`]([^"'`\n]+\.(?:db|sqlite3?|db3))["'`]"#,
    r#"["'`](sqlite:///[^"'`\n{]+)["'`]"#,
];
const ADDRESSES: &str = r#"["'`](https?://[A-Za-z0-9.-]+\.[A-Za-z]{2,}[^"'`\s]*)"#;

/// Hosts that are named and not called.
const NOT_CALLED: &[&str] =
    &["www.w3.org", "json-schema.org", "schema.org", "example.com", "example.org", "github.com"];

#[cfg(test)]
pub(super) fn patterns() -> Vec<&'static str> {
    STORES.iter().copied().chain([ADDRESSES]).collect()
}

fn look(project: &Project, findings: &mut Findings) {
    let stores: Vec<Pattern> = STORES.iter().map(|text| Pattern::new(text)).collect();
    let addresses = Pattern::new(ADDRESSES);
    for (file, _) in project.sources().filter(|(_, language)| *language != Language::Sql) {
        for found in stores.iter().flat_map(|pattern| pattern.matches(&file.text)) {
            findings.fixed_stores.push(Literal { text: found.groups.concat(), place: found.place(file) });
        }
        for found in addresses.matches(&file.text) {
            let text = found.groups.concat();
            if NOT_CALLED.iter().all(|host| !text.contains(host)) {
                findings.fixed_addresses.push(Literal { text, place: found.place(file) });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::project::SourceFile;
    use super::*;

    #[test]
    fn what_is_written_down_is_found() {
        let text = "db = sqlite3.connect('jobs.db')\nopen('notes.txt')\npost('https://api.chat.example/v1')\n\
            s = 'http://www.w3.org/2000/svg'\n";
        let files = vec![SourceFile::new("w.py", text, false), SourceFile::new("tests/w.py", text, false)];
        let mut findings = Findings::default();
        look(&Project { files, ..Project::default() }, &mut findings);
        let texts = |found: &[Literal]| {
            found.iter().map(|one| format!("{} {}", one.text, one.place)).collect::<Vec<_>>()
        };
        assert_eq!(texts(&findings.fixed_stores), ["jobs.db w.py:1"]);
        assert_eq!(texts(&findings.fixed_addresses), ["https://api.chat.example/v1 w.py:3"]);
    }
}
