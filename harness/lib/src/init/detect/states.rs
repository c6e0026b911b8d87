//! Words that stand beside a status column: in statements, in comparisons, in lists, in rows of a database.

use super::super::finding::{Findings, Literal, StateWord};
use super::super::pattern::{Match, Pattern};
use super::super::project::{Place, Project, SourceFile};
use super::super::sql::{balanced, parts, quoted};
use super::super::vocabulary::{STATE_COLUMNS, state_of};
use super::Detector;

pub(super) const DETECTOR: Detector =
    Detector { name: "state-words", summary: "words that stand beside a status column", look };

/// A column, one word.
const ONE: &str =
    r#"\b(\w*(?:state|status))["'`\]]{0,2}\s*(?:=>|===?|=|!==?|<>|:)\s*["'`]([A-Za-z][\w-]*)["'`]"#;
/// A column, several words.
const SEVERAL: &str = r#"(?i)\b(\w*(?:state|status))["'`\]]?\s+(?:not\s+)?in\s*[\(\[]([^)\]]*)[\)\]]"#;
/// A row that is put in: table, columns, and where its values begin.
const INSERT: &str =
    r#"(?i)\binsert\s+(?:or\s+\w+\s+)?into\s+["`\[]?(\w+)["`\]]?\s*\(([^)]*)\)["'\s+\\]*values\s*\("#;
/// What rows are looked for by: the same statement, and no literal that ended meanwhile.
const SOUGHT: &str = r#"(?is)\bwhere\b[^;"`)]{0,200}$"#;
/// What says that others are looked for.
const NEGATED: &str = r"(?i)\bnot\s+in\b|!==?|<>";

/// Any word in quotes.
const LITERAL: &str = r#"["'`]([A-Za-z][A-Za-z_-]{1,39})["'`]"#;

#[cfg(test)]
pub(super) fn patterns() -> Vec<&'static str> {
    vec![ONE, SEVERAL, INSERT, SOUGHT, NEGATED, LITERAL]
}

fn look(project: &Project, findings: &mut Findings) {
    let (one, several, insert) = (Pattern::new(ONE), Pattern::new(SEVERAL), Pattern::new(INSERT));
    let (sought, negated) = (Pattern::new(SOUGHT), Pattern::new(NEGATED));
    let literal = Pattern::new(LITERAL);
    let is_sought = |text: &str, found: &Match<'_>| {
        sought.is_in(statement_before(text, found.start)) && !negated.is_in(&text[found.start..found.end])
    };
    for (file, _) in project.sources() {
        for found in one.matches(&file.text) {
            let [column, word] = found.groups[..] else { continue };
            add(findings, file, found.start, (column, None, word), is_sought(&file.text, &found));
        }
        for found in several.matches(&file.text) {
            let [column, list] = found.groups[..] else { continue };
            // A CHECK allows words; only a WHERE looks for them.
            for word in quoted(list) {
                add(findings, file, found.start, (column, None, &word), is_sought(&file.text, &found));
            }
        }
        for found in insert.matches(&file.text) {
            let [table, columns] = found.groups[..] else { continue };
            let Some(values) = balanced(file.text.get(found.end..).unwrap_or_default()) else { continue };
            for (column, value) in parts(columns).into_iter().zip(parts(values)) {
                let column = column.trim_matches(['"', '`', '[', ']', '\'']);
                if let [word] = &quoted(value)[..] {
                    add(findings, file, found.start, (column, Some(table), word), false);
                }
            }
        }
        for found in literal.matches(&file.text) {
            let text = found.groups.concat();
            if state_of(&text).is_some()
                && findings.spoken.iter().all(|known| known.text != text || known.place.file != file.path)
            {
                findings.spoken.push(Literal { text, place: found.place(file) });
            }
        }
    }
    for database in &project.databases {
        for (table, column, value) in &database.values {
            if is_state_column(column) {
                findings.states.push(StateWord {
                    column: column.clone(),
                    table: Some(table.clone()),
                    word: value.clone(),
                    sought: false,
                    place: Place::whole(&database.path),
                });
            }
        }
    }
}

/// The text of the same statement, as far as can be told: back to a blank line, a quote's end or a semicolon.
fn statement_before(text: &str, at: usize) -> &str {
    let from = (0..=at).rev().take(200).last().unwrap_or_default();
    let from = (from..=at).find(|from| text.is_char_boundary(*from)).unwrap_or(at);
    let before = text.get(from..at).unwrap_or_default();
    before.rsplit([';', '}']).next().unwrap_or(before).rsplit("\"\"\"").next().unwrap_or_default()
}

fn is_state_column(column: &str) -> bool {
    let lower = column.to_ascii_lowercase();
    STATE_COLUMNS.contains(&lower.as_str()) || lower.ends_with("_state") || lower.ends_with("_status")
}

fn add(
    findings: &mut Findings,
    file: &SourceFile,
    at: usize,
    (column, table, word): (&str, Option<&str>, &str),
    sought: bool,
) {
    if is_state_column(column) && word.len() <= 40 {
        findings.states.push(StateWord {
            column: column.to_ascii_lowercase(),
            table: table.map(str::to_owned),
            word: word.to_owned(),
            sought,
            place: file.place(at),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(path: &str, text: &str) -> Vec<(String, String, bool)> {
        let files = vec![SourceFile::new(path, text, false)];
        let mut findings = Findings::default();
        look(&Project { files, ..Project::default() }, &mut findings);
        findings.states.into_iter().map(|one| (one.column, one.word, one.sought)).collect()
    }

    fn one(column: &str, word: &str, sought: bool) -> (String, String, bool) {
        (column.into(), word.into(), sought)
    }

    #[test]
    fn statements_give_words() {
        let text = "db.execute(\"UPDATE jobs SET status = 'sent' WHERE id = ?\")\n\
            rows = db.execute(\"SELECT id FROM jobs WHERE status IN ('queued', 'failed') LIMIT 1\")\n\
            db.execute(\"INSERT INTO jobs (id, status, body) VALUES (?, 'new', ?)\")\n";
        assert_eq!(
            words("w.py", text),
            [
                one("status", "sent", false),
                one("status", "queued", true),
                one("status", "failed", true),
                one("status", "new", false),
            ]
        );
    }

    #[test]
    fn what_is_excluded_or_stands_in_another_statement_is_not_looked_for() {
        let text = "x.execute('delete from q where id = ?')\nstate = \"failed\"\n\
            y = \"select 1 from q where status not in ('sent', 'dead')\"\n";
        assert!(words("w.py", text).iter().all(|(_, _, sought)| !sought), "{:?}", words("w.py", text));
    }

    #[test]
    fn comparisons_give_words_and_other_columns_do_not() {
        let text = "if (row.state === \"in-doubt\") { color = 'red'; kind = 'x' }\nresponse.status == 200\n";
        assert_eq!(words("w.mjs", text), [one("state", "in-doubt", false)]);
        assert_eq!(words("w.py", "insert into t (status) values ('cut"), []);
    }
}
