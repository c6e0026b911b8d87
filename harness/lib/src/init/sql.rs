//! `CREATE TABLE` statements, as far as a mapping needs them: names, types, defaults, lists of allowed values.

use super::pattern::Pattern;

/// One column.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Column {
    /// Its name, without quotes.
    pub name: String,
    /// Its declared type, lower-case; may be empty.
    pub kind: String,
    /// A text default.
    pub default: Option<String>,
    /// The values that a `CHECK` allows.
    pub allowed: Vec<String>,
    /// Whether it is the primary key by itself.
    pub primary: bool,
}

/// One table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// Its name, without quotes or schema.
    pub name: String,
    /// Its columns, in order.
    pub columns: Vec<Column>,
}

impl Table {
    /// A column by its name, whatever its case.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name.eq_ignore_ascii_case(name))
    }
}

const CREATE: &str =
    r#"(?i)\bcreate\s+(?:temp\s+|temporary\s+)?table\s+(?:if\s+not\s+exists\s+)?([\w."`\[\]]+)\s*\("#;
const DEFAULT: &str = r"(?i)\bdefault\s+\(?\s*'([^']*)'";
const CHECK_IN: &str = r#"(?i)\bcheck\s*\(\s*["`\[]?(\w+)["`\]]?\s+in\s*\(([^)]*)\)"#;

/// More than that is no table's definition.
const TABLE_BYTES_MAX: usize = 8 << 10;

/// Every table that a text makes, with the byte at which it begins.
pub(super) fn tables(text: &str) -> Vec<(usize, Table)> {
    let create = Pattern::new(CREATE);
    let found = create.matches(text).into_iter().filter_map(|found| {
        let rest = text.get(found.end..)?;
        let end = rest.char_indices().map(|(at, _)| at).take_while(|at| *at < TABLE_BYTES_MAX).last()?;
        let rest = without_comments(rest.get(..=end).unwrap_or(rest));
        let name = unquoted(found.groups.first()?.rsplit('.').next()?);
        let columns = columns(balanced(&rest)?);
        (!columns.is_empty()).then_some((found.start, Table { name, columns }))
    });
    found.collect()
}

/// What stands before the parenthesis that closes; `None` where none does.
pub(super) fn balanced(text: &str) -> Option<&str> {
    let (mut depth, mut quoted) = (0_u32, false);
    for (at, character) in text.char_indices() {
        match character {
            '\'' => quoted = !quoted,
            _ if quoted => {}
            '(' => depth += 1,
            ')' if depth == 0 => return text.get(..at),
            ')' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Parts between commas that stand in no parentheses and quotes.
pub(super) fn parts(text: &str) -> Vec<&str> {
    let (mut depth, mut quoted, mut begin) = (0_i32, false, 0);
    let mut found = Vec::new();
    for (at, character) in text.char_indices() {
        match character {
            '\'' => quoted = !quoted,
            _ if quoted => {}
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                found.push(text[begin..at].trim());
                begin = at + 1;
            }
            _ => {}
        }
    }
    found.push(text[begin..].trim());
    found
}

/// The texts in single or double quotes.
pub(super) fn quoted(text: &str) -> Vec<String> {
    let pattern = Pattern::new(r#"'([^']*)'|"([^"]*)""#);
    let found = pattern.matches(text).into_iter();
    found.map(|found| found.groups.concat()).filter(|word| !word.is_empty()).collect()
}

fn without_comments(body: &str) -> String {
    body.lines().map(|line| line.split("--").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

fn columns(body: &str) -> Vec<Column> {
    let mut found: Vec<Column> = Vec::new();
    let mut constraints = Vec::new();
    for part in parts(body) {
        let first = part.split_whitespace().next().unwrap_or_default();
        let upper = first.split('(').next().unwrap_or_default().to_ascii_uppercase();
        match upper.as_str() {
            "" => {}
            "CHECK" | "PRIMARY" | "UNIQUE" | "FOREIGN" | "CONSTRAINT" | "EXCLUDE" => constraints.push(part),
            _ => found.push(column(part, first)),
        }
    }
    for part in constraints {
        add_allowed(&mut found, part);
    }
    found.retain(|column| column.name.chars().all(|c| c.is_alphanumeric() || c == '_'));
    found
}

fn column(part: &str, first: &str) -> Column {
    let rest = part[first.len()..].trim_start();
    let kind = rest.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_ascii_lowercase();
    let default = Pattern::new(DEFAULT).first(part).map(|found| found.groups.concat());
    let upper = rest.to_ascii_uppercase();
    let mut made = vec![Column {
        name: unquoted(first),
        kind,
        default,
        allowed: Vec::new(),
        primary: upper.contains("PRIMARY KEY"),
    }];
    add_allowed(&mut made, part);
    made.pop().unwrap_or_default()
}

fn add_allowed(columns: &mut [Column], part: &str) {
    for found in Pattern::new(CHECK_IN).matches(part) {
        let [name, list] = found.groups[..] else { continue };
        if let Some(column) = columns.iter_mut().find(|column| column.name.eq_ignore_ascii_case(name)) {
            column.allowed.extend(quoted(list));
        }
    }
}

fn unquoted(name: &str) -> String {
    name.trim_matches(['"', '`', '[', ']']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_patterns_compile() {
        assert!([CREATE, DEFAULT, CHECK_IN].iter().all(|text| Pattern::compiles(text)));
    }

    #[test]
    fn a_table_is_read_with_defaults_and_checks() {
        let text = "x = '''CREATE TABLE IF NOT EXISTS \"outbox\" (
            id INTEGER PRIMARY KEY, -- (the number
            [to] TEXT NOT NULL,
            amount NUMERIC(10, 2),
            status TEXT NOT NULL DEFAULT 'new' CHECK (status IN ('new', 'sent')),
            kind text,
            CHECK (kind in ('a','b')), UNIQUE (id, status)
        )'''";
        let found = tables(text);
        let [(4..=8, table)] = &found[..] else { panic!("{found:?}") };
        let names: Vec<&str> = table.columns.iter().map(|column| column.name.as_str()).collect();
        assert_eq!((table.name.as_str(), names), ("outbox", vec!["id", "to", "amount", "status", "kind"]));
        let status = table.column("STATUS").unwrap();
        assert_eq!(status.default.as_deref(), Some("new"));
        assert_eq!(status.allowed, ["new", "sent"]);
        assert_eq!(table.column("kind").unwrap().allowed, ["a", "b"]);
        assert!(table.column("id").unwrap().primary && !status.primary);
    }

    #[test]
    fn what_is_no_table_or_is_cut_off_gives_none() {
        assert_eq!(tables("create table t (id"), []);
        assert_eq!(tables("create table t ()"), []);
        assert_eq!(tables("create index t on u (id)"), []);
        assert_eq!(tables("create table t as select 1"), []);
        assert_eq!(parts("a, b(c, d), 'e, f'"), ["a", "b(c, d)", "'e, f'"]);
    }
}
