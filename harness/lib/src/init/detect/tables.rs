//! Tables: of `.sql` files, of statements in sources, and of databases that lie in the project.

use super::super::finding::{Findings, SeenTable};
use super::super::pattern::Pattern;
use super::super::project::{Language, Place, Project};
use super::super::sql::{Table, tables};
use super::Detector;

pub(super) const DETECTOR: Detector =
    Detector { name: "tables", summary: "tables in SQL files, in sources and in databases", look };

/// Where one literal ends and the next one, which continues it, begins.
const SEAM: &str = r#"["'](?:\\n)?["']?\s*\+?[ \t]*\\?(\n)[ \t]*["']"#;

#[cfg(test)]
pub(super) fn patterns() -> Vec<&'static str> {
    vec![SEAM]
}

fn look(project: &Project, findings: &mut Findings) {
    for (file, language) in project.sources() {
        let text = if language == Language::Sql { file.text.clone() } else { joined(&file.text) };
        for (at, table) in tables(&text) {
            let line = text.get(..at).unwrap_or_default().matches('\n').count() as u32 + 1;
            add(project, findings, table, Place::line(&file.path, line));
        }
    }
    for database in &project.databases {
        for (_, table) in database.schema.iter().flat_map(|statement| tables(statement)) {
            add(project, findings, table, Place::whole(&database.path));
        }
    }
}

/// The first statement for a name counts.
fn add(project: &Project, findings: &mut Findings, table: Table, place: Place) {
    if findings.tables.iter().any(|known| known.table.name.eq_ignore_ascii_case(&table.name)) {
        return;
    }
    let is_name = |word: &str| word.eq_ignore_ascii_case(&table.name);
    let names = |text: &str| text.split(|c: char| !c.is_alphanumeric() && c != '_').any(is_name);
    let named_in = project.sources().filter(|(file, _)| names(&file.text)).map(|(file, _)| file.path.clone());
    findings.tables.push(SeenTable { named_in: named_in.collect(), table, place });
}

/// The text with literals that continue each other made one; lines keep their numbers.
fn joined(text: &str) -> String {
    let mut made = String::with_capacity(text.len());
    let mut from = 0;
    for seam in Pattern::new(SEAM).matches(text) {
        made.push_str(text.get(from..seam.start).unwrap_or_default());
        made.push_str(&"\n".repeat(text.get(seam.start..seam.end).unwrap_or_default().matches('\n').count()));
        from = seam.end;
    }
    made.push_str(text.get(from..).unwrap_or_default());
    made
}

#[cfg(test)]
mod tests {
    use super::super::super::project::{Database, SourceFile};
    use super::*;

    #[test]
    fn tables_come_from_literals_that_continue_each_other_and_from_databases() {
        let text = "int x;\nconst char *sql =\n  \"create table messages (\"\n  \" ref text primary key,\"\n  \" state text default 'new')\";\n";
        let files = vec![SourceFile::new("w.c", text, false)];
        let schema = vec![
            "CREATE TABLE Messages (a int)".to_owned(),
            "CREATE TABLE q (id int, status text)".to_owned(),
        ];
        let databases = vec![Database { path: "dev.db".into(), schema, values: Vec::new() }];
        let mut findings = Findings::default();
        look(&Project { files, databases, ..Project::default() }, &mut findings);
        let seen: Vec<String> = findings
            .tables
            .iter()
            .map(|seen| format!("{} {} {}", seen.table.name, seen.table.columns.len(), seen.place))
            .collect();
        assert_eq!(seen, ["messages 2 w.c:3", "q 2 dev.db"]);
        assert_eq!(findings.tables[0].table.column("state").unwrap().default.as_deref(), Some("new"));
    }
}
