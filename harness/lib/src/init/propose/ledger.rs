//! The mapping of the worker's rows to canonical states.

use std::collections::BTreeMap;

use killpoint_model::{ExecutionState, RowState};
use killpoint_scenarios::{PRESET_STATES, PRESETS};

use super::super::finding::{Findings, Literal, SeenTable, StateWord, Sure};
use super::super::sql::Column;
use super::super::vocabulary::{ACTION_FIELDS, COLUMNS, RECIPIENT_FIELDS, STATE_COLUMNS, TABLES, state_of};
use super::places::{Places, sqlite_path};
use super::{Proposal, list, text};

/// A table's name, and columns that it has.
type Columns = (&'static str, &'static [&'static str]);

/// What each preset's query reads.
const PRESET_TABLES: &[(&str, &[Columns])] = &[
    (
        "outbound-actions",
        &[(
            "outbound_actions",
            &[
                "action_id",
                "delivery_state",
                "execution_state",
                "idempotency_key",
                "provider_id",
                "attempt_count",
                "last_error",
            ],
        )],
    ),
    ("jobs", &[("jobs", &["id", "delivery_state", "execution_state", "attempt"])]),
    (
        "run-delivery",
        &[
            ("executions", &["run_id", "execution_status"]),
            (
                "deliveries",
                &[
                    "delivery_id",
                    "run_id",
                    "destination",
                    "delivery_status",
                    "provider_message_id",
                    "attempt_count",
                ],
            ),
        ],
    ),
];

/// Proposes a ledger, and the pointers into requests that go with it. Says whether rows are mapped.
pub(super) fn propose(findings: &Findings, places: &Places, proposal: &mut Proposal) -> bool {
    let path = places.stores.iter().find_map(|(value, _)| sqlite_path(value));
    let mapped = match path {
        None => {
            no_database(findings, proposal);
            None
        }
        Some(path) => preset(findings, path, proposal).or_else(|| mapping(findings, path, proposal)),
    };
    requests(findings, mapped.as_ref(), proposal);
    mapped.is_some()
}

/// What rows are mapped: the column that is the action.
struct Mapped {
    action: String,
}

fn no_database(findings: &Findings, proposal: &mut Proposal) {
    let why = if findings.tables.is_empty() {
        "no SQLite database was found".to_owned()
    } else {
        format!("tables were found ({}), but not the file that they are in", findings.tables[0].place)
    };
    proposal.gap(
        "the ledger",
        why,
        "without one the fault-free trial is the only oracle, and a row that stays undone after its message went \
         out is not seen; for more, write a `[ledger]` whose `command` prints \
         the worker's rows, or with `path` and `query`",
    );
}

fn preset(findings: &Findings, path: &str, proposal: &mut Proposal) -> Option<Mapped> {
    let table = |name: &str| findings.tables.iter().find(|seen| seen.table.name.eq_ignore_ascii_case(name));
    let has = |(name, columns): &(&str, &[&str])| {
        table(name).is_some_and(|seen| columns.iter().all(|column| seen.table.column(column).is_some()))
    };
    let (name, tables) = PRESET_TABLES.iter().find(|(_, tables)| tables.iter().all(has))?;
    let preset = PRESETS.iter().find(|preset| preset.name == *name)?;
    let seen = table(tables.last()?.0)?;
    proposal.add(
        ("ledger", "path"),
        text(path),
        Sure::Likely,
        (Some(&seen.place), "where the database lies"),
    );
    let why = format!("the schema of the preset: {}", preset.summary);
    proposal.add(("ledger", "preset"), text(preset.name), Sure::Certain, (Some(&seen.place), &why));
    let column = seen.table.columns.iter().find(|column| is_state(&column.name))?;
    let known = |word: &str| PRESET_STATES.iter().any(|(known, _)| *known == word);
    states(findings, seen, column, &known, proposal);
    Some(Mapped { action: tables.last()?.1.first().map(|name| (*name).to_owned())? })
}

fn mapping(findings: &Findings, path: &str, proposal: &mut Proposal) -> Option<Mapped> {
    let Some((seen, column)) = best_table(findings) else {
        let why = if findings.tables.is_empty() {
            "no `create table` was found: a library may make its own tables".to_owned()
        } else {
            let names: Vec<&str> = findings.tables.iter().map(|seen| seen.table.name.as_str()).collect();
            format!("no table has a column with the state of a delivery, of: {}", names.join(", "))
        };
        proposal.gap(
            "the ledger",
            why,
            format!(
                "without one, a row that stays undone after its message went out is not seen; run the worker once so that its database lies in the project, and `killpoint init` again; or write \
                 `[ledger]` with `path = \"{path}\"` and `query = \"select … as action, … as state from …\"`"
            ),
        );
        return None;
    };
    if column.kind.starts_with("int") {
        proposal.gap(
            "the ledger",
            format!("`{}.{}` is a number ({}), and what the numbers mean is not said", seen.table.name, column.name, seen.place),
            format!(
                "write `[ledger]` with `path = \"{path}\"` and `query = \"select id as action, case {} when 0 then \
                 'created' … end as state from {}\"`",
                column.name, seen.table.name
            ),
        );
        return None;
    }
    let action = action_column(findings, seen)?;
    let mut columns =
        vec![format!("{} as action", identifier(&action)), format!("{} as state", identifier(&column.name))];
    for (canonical, names) in COLUMNS.iter().filter(|(canonical, _)| *canonical != "action") {
        let found =
            names.iter().find_map(|name| seen.table.column(name)).filter(|found| found.name != action);
        let Some(found) = found else { continue };
        if *canonical == "execution" && !executions_known(findings, seen, found) {
            continue;
        }
        let name = identifier(&found.name);
        columns.push(if found.name == *canonical { name } else { format!("{name} as {canonical}") });
    }
    proposal.add(
        ("ledger", "path"),
        text(path),
        Sure::Likely,
        (Some(&seen.place), "where the database lies"),
    );
    let query = format!("select {} from {}", columns.join(", "), identifier(&seen.table.name));
    let why = format!("the table `{}`, by the names of its columns", seen.table.name);
    proposal.add(("ledger", "query"), text(&query), Sure::Likely, (Some(&seen.place), &why));
    states(findings, seen, column, &|_| false, proposal);
    Some(Mapped { action })
}

fn is_state(name: &str) -> bool {
    STATE_COLUMNS.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// The table that looks most like what is to be delivered, with its state's column.
fn best_table(findings: &Findings) -> Option<(&SeenTable, &Column)> {
    let state = |seen: &SeenTable| {
        let rank =
            |column: &&Column| STATE_COLUMNS.iter().position(|name| name.eq_ignore_ascii_case(&column.name));
        let position = seen.table.columns.iter().position(|column| is_state(&column.name))?;
        let best =
            seen.table.columns.iter().enumerate().filter_map(|(at, column)| Some((rank(&column)?, at))).min();
        Some(best.map_or(position, |(_, at)| at))
    };
    let score = |seen: &SeenTable| {
        let name = seen.table.name.to_ascii_lowercase();
        let by_name = TABLES.iter().position(|word| name.contains(word)).map_or(0, |rank| 30 - rank);
        let columns =
            COLUMNS.iter().filter(|(_, names)| names.iter().any(|name| seen.table.column(name).is_some()));
        by_name + 5 * columns.count()
    };
    let tables = findings.tables.iter().filter_map(|seen| Some((seen, state(seen)?)));
    let tables = tables.filter(|(seen, _)| action_column(findings, seen).is_some());
    let best = tables.max_by_key(|(seen, _)| (score(seen), std::cmp::Reverse(seen.place.clone())));
    best.map(|(seen, at)| (seen, &seen.table.columns[at]))
}

/// A field of the requests that is a column, else the usual names, else the primary key.
fn action_column(findings: &Findings, seen: &SeenTable) -> Option<String> {
    let is_sent = |name: &&&str| findings.fields.iter().any(|field| field.text == ***name);
    let sent = ACTION_FIELDS.iter().filter(is_sent).find_map(|name| seen.table.column(name));
    let usual = || COLUMNS[0].1.iter().find_map(|name| seen.table.column(name));
    let primary = || seen.table.columns.iter().find(|column| column.primary);
    sent.or_else(usual).or_else(primary).map(|column| column.name.clone())
}

/// A name as SQL takes it.
fn identifier(name: &str) -> String {
    const RESERVED: &[&str] =
        &["to", "from", "key", "order", "group", "index", "values", "table", "check", "default"];
    if RESERVED.contains(&name.to_ascii_lowercase().as_str()) {
        format!("\"{name}\"")
    } else {
        name.to_owned()
    }
}

/// Words of a column: of its definition, of statements and rows; each with whether it is looked for.
fn words<'f>(findings: &'f Findings, seen: &'f SeenTable, column: &'f Column) -> BTreeMap<&'f str, bool> {
    let mut words: BTreeMap<&str, bool> = BTreeMap::new();
    for word in column.allowed.iter().chain(&column.default) {
        words.entry(word).or_default();
    }
    // Where several tables have such a column, a word that no definition has may belong to another one.
    let alone =
        findings.tables.iter().filter(|other| other.table.column(&column.name).is_some()).count() == 1;
    let is_ours = |word: &&StateWord| {
        word.column.eq_ignore_ascii_case(&column.name)
            && word.table.as_ref().map_or(alone, |table| table.eq_ignore_ascii_case(&seen.table.name))
    };
    for word in findings.states.iter().filter(is_ours) {
        if column.allowed.is_empty() || column.allowed.contains(&word.word) {
            *words.entry(&word.word).or_default() |= word.sought;
        }
    }
    words
}

/// Whether all words of a column are canonical: others would have to be mapped.
fn executions_known(findings: &Findings, seen: &SeenTable, column: &Column) -> bool {
    let words = words(findings, seen, column);
    !words.is_empty() && words.keys().all(|word| word.parse::<ExecutionState>().is_ok())
}

/// What words of a column mean.
#[derive(Default)]
struct Meanings<'f> {
    mapped: Vec<(&'f str, RowState)>,
    unknown: Vec<&'f str>,
    /// Those that say failed and are tried again.
    retried: Vec<String>,
    seen: bool,
}

fn meanings<'f>(
    findings: &'f Findings,
    seen: &'f SeenTable,
    column: &'f Column,
    is_known: &dyn Fn(&str) -> bool,
) -> Meanings<'f> {
    let words = words(findings, seen, column);
    let mut meanings = Meanings { seen: !words.is_empty(), ..Meanings::default() };
    for (word, sought) in &words {
        match state_of(word) {
            // A worker that looks for what it calls failed tries it again.
            Some(RowState::Failed) if *sought => {
                meanings.retried.push(format!("`{word}`"));
                meanings.mapped.push((word, RowState::Created));
            }
            Some(state) if word.parse::<RowState>().is_err() && !is_known(word) => {
                meanings.mapped.push((word, state));
            }
            Some(_) => {}
            None => meanings.unknown.push(word),
        }
    }
    // Words that reach the column as arguments stand in files that name the table.
    let in_its_files = |one: &&Literal| column.allowed.is_empty() && seen.named_in.contains(&one.place.file);
    for one in findings.spoken.iter().filter(in_its_files) {
        let word = one.text.as_str();
        let is_new = !words.contains_key(word) && meanings.mapped.iter().all(|(known, _)| *known != word);
        let is_own = word.parse::<RowState>().is_err() && !is_known(word);
        if let Some(state) = state_of(word).filter(|_| is_new && is_own) {
            meanings.mapped.push((word, state));
        }
    }
    meanings
}

fn states(
    findings: &Findings,
    seen: &SeenTable,
    column: &Column,
    is_known: &dyn Fn(&str) -> bool,
    proposal: &mut Proposal,
) {
    let Meanings { mapped, unknown, retried, seen: any } = meanings(findings, seen, column, is_known);
    let name = format!("`{}.{}`", seen.table.name, column.name);
    if !mapped.is_empty() {
        let entries: Vec<String> =
            mapped.iter().map(|(word, state)| format!("{} = {}", key(word), text(state.as_str()))).collect();
        let mut why = format!("what the words of `{}` usually mean", column.name);
        if !retried.is_empty() {
            why = format!("{why}; {} is looked for, so that it is tried again", retried.join(", "));
        }
        let sure = if retried.is_empty() { Sure::Likely } else { Sure::Guess };
        let value = format!("{{ {} }}", entries.join(", "));
        proposal.add(("ledger", "states"), value, sure, (Some(&seen.place), &why));
    }
    if !unknown.is_empty() {
        let entries: Vec<String> = unknown.iter().map(|word| format!("{} = \"…\"", key(word))).collect();
        let states: Vec<&str> = RowState::ALL.iter().map(|state| state.as_str()).collect();
        proposal.gap(
            "words of the ledger",
            format!("{name} has words that mean nothing to killpoint: {}", list_of(&unknown)),
            format!("add to `ledger.states`, with one of {}: `{}`", states.join(", "), entries.join(", ")),
        );
    }
    if !any && mapped.is_empty() {
        proposal.gap(
            "words of the ledger",
            format!("no word for {name} was seen ({})", seen.place),
            "a word that is not canonical must be in `ledger.states`; the first run names it",
        );
    }
}

fn list_of(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

/// A word as a key of TOML.
fn key(word: &str) -> String {
    let bare = word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if bare { word.to_owned() } else { text(word) }
}

/// Pointers into the bodies of requests, and the header with the key.
fn requests(findings: &Findings, mapped: Option<&Mapped>, proposal: &mut Proposal) {
    let field =
        |names: &[&str]| names.iter().find_map(|name| findings.fields.iter().find(|one| one.text == **name));
    let knows_recipient = ["to", "recipient", "destination", "channel", "email", "user", "customer"];
    if let (None, Some(recipient)) = (field(&knows_recipient), field(RECIPIENT_FIELDS)) {
        let value = list([&format!("/{}", recipient.text)]);
        let why = "a field of the requests that names whom they are for";
        proposal.add(("provider", "recipient"), value, Sure::Likely, (Some(&recipient.place), why));
    }
    // An id that the rows don't have would keep requests and rows apart.
    let action = field(ACTION_FIELDS).filter(|one| mapped.is_none_or(|mapped| mapped.action == one.text));
    if let Some(action) = action {
        let why = "a field of the requests that names the action";
        let value = text(&format!("/{}", action.text));
        proposal.add(("provider", "action"), value, Sure::Likely, (Some(&action.place), why));
    }
    let header = findings.key_headers.iter().find(|one| !one.text.eq_ignore_ascii_case("idempotency-key"));
    let usual = findings.key_headers.iter().find(|one| one.text.eq_ignore_ascii_case("idempotency-key"));
    if let (None, Some(header)) = (usual, header) {
        let why = "a header that looks like the key of a request";
        let value = text(&header.text);
        proposal.add(("provider.idempotency", "header"), value, Sure::Guess, (Some(&header.place), why));
    }
    if let Some(seen) = usual.or(header) {
        proposal.gap(
            "whether your provider dedupes",
            format!(
                "requests carry a key ({}); the fake provider records it and takes each request anew",
                seen.place
            ),
            "if yours answers a repeated key without sending again, write `dedupe = true` under \
             `[provider.idempotency]`",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_read_what_their_tables_have() {
        assert_eq!(PRESET_TABLES.len(), PRESETS.len());
        for (name, tables) in PRESET_TABLES {
            let preset = PRESETS.iter().find(|preset| preset.name == *name).unwrap();
            for (table, columns) in *tables {
                assert!(preset.query.contains(table), "{name}: {table}");
                let missing = columns.iter().find(|column| !preset.query.contains(**column));
                assert_eq!(missing, None, "{name}");
            }
        }
    }
}
