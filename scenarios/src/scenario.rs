//! Scenario files: a plan with a name and a reason. A counterexample is one of these too.

use std::collections::BTreeSet;

use killpoint_model::{Catalog, Fault, FaultAt, Plan, SourceLine};

use crate::actions;
use crate::boundary;
use crate::code::Code;
use crate::item::Item;
use crate::kinds::KINDS;
use crate::log::{Loaded, Log};
use crate::needs::NEEDS;
use crate::rule;
use crate::table::Table;

/// Workers that a scenario may start at once.
const WORKERS_MAX: i64 = 16;

/// A scenario.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// Kebab-case name; that of its file.
    pub name: String,
    /// One line, no full stop.
    pub summary: String,
    /// What is staged, and what passes.
    pub explanation: String,
    /// Where it comes from: an article's list, a kind of fault, a counterexample's run.
    pub source: String,
    /// The kind of fault that it stages, by its id in [`KINDS`], such as `K07`.
    pub kind: Option<String>,
    /// What it needs of the configuration beside a worker: names of [`NEEDS`].
    pub needs: Vec<String>,
    /// What is done in its one trial; canonical names are not bound yet. Its source is the line of its name.
    pub plan: Plan,
}

/// Reads a scenario. `file` is its name for diagnostics.
pub fn load_scenario(text: &str, file: &str, catalog: &Catalog) -> Loaded<Scenario> {
    let mut log = Log::new(file);
    let (document, errors) = toml::de::DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        log.syntax(text, &errors);
        return log.finish(None);
    }
    let scenario = resolve(Table::root(document.get_ref()), catalog, &mut log).map(|(scenario, name_at)| {
        let source = SourceLine { file: file.to_owned(), line: line_of(text, name_at) };
        Scenario { plan: Plan { source: Some(source), ..scenario.plan }, ..scenario }
    });
    log.finish(scenario)
}

/// The line of a byte, from 1.
fn line_of(text: &str, byte: usize) -> u32 {
    let before = text.bytes().take(byte).filter(|byte| *byte == b'\n').count();
    u32::try_from(before).unwrap_or(u32::MAX).saturating_add(1)
}

/// The scenario, and the byte at which its name stands.
fn resolve(mut root: Table, catalog: &Catalog, log: &mut Log) -> Option<(Scenario, usize)> {
    let name = read_name(&mut root, log);
    let summary = root.required("summary", "say in one line what is staged", log);
    let summary = summary.and_then(|item| item.text(log)).map(|text| text.value.to_owned());
    let mut optional = |key, log: &mut Log| {
        let text = root.item(key).and_then(|item| item.text(log));
        text.map(|text| text.value.trim().to_owned()).unwrap_or_default()
    };
    let explanation = optional("explanation", log);
    let source = optional("source", log);
    let kinds: Vec<&str> = KINDS.iter().map(|kind| kind.id).collect();
    let kind = root.item("kind").and_then(|item| item.name("kind of fault", &kinds, log));
    let needs = root.item("needs").map(|item| read_needs(&item, log)).unwrap_or_default();
    let workers = root.item("workers");
    let one_worker = workers.is_none();
    let workers = workers.and_then(|item| item.number(1..=WORKERS_MAX, log));
    let workers = workers.and_then(|workers| u32::try_from(workers).ok()).unwrap_or_default();
    let actions = actions::read(&mut root, log);
    let dialects: Vec<&str> = catalog.dialects.iter().map(|entry| entry.name).collect();
    let provider = root.table("provider", log);
    let rules = provider.map_or_else(Vec::new, |mut table| {
        let rules = table.tables("rule", log);
        table.close(log);
        rules
    });
    let faults = root.tables("fault", log);
    if rules.is_empty() && faults.is_empty() && (one_worker || workers == 1) {
        let help =
            "add a `[[fault]]`, a `[[provider.rule]]` or `workers = 2`: else it is the fault-free trial";
        log.error(Code::NothingInjected, root.span, "the scenario injects nothing", help);
    }
    let rules = rule::read_all(rules, "rule", &dialects, log);
    let faults = read_faults(faults, catalog, log);
    root.close(log);
    let (name, name_at) = name?;
    let plan = Plan {
        name: name.clone(),
        scenario: Some(name.clone()),
        provider_plan: rule::plans_name(&rules),
        rules,
        faults,
        actions,
        workers,
        source: None,
    };
    Some((Scenario { name, summary: summary?, explanation, source, kind, needs, plan }, name_at))
}

fn read_needs(item: &Item, log: &mut Log) -> Vec<String> {
    let known: Vec<&str> = NEEDS.iter().map(|need| need.name).collect();
    let Some(elements) = item.elements() else {
        item.wrong_type("a list of needs", "write a list: `[\"ledger\"]`", log);
        return Vec::new();
    };
    elements.iter().filter_map(|element| element.name("need of a scenario", &known, log)).collect()
}

fn read_name(root: &mut Table, log: &mut Log) -> Option<(String, usize)> {
    let item = root.required("name", "give it the name of its file, such as `name = \"lost-reply\"`", log)?;
    let name = item.text(log)?;
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    if !name.value.split('-').all(|word| !word.is_empty() && word.chars().all(allowed)) {
        let message = format!("`{}` can't be the name of a scenario", name.value);
        log.error(
            Code::BadText,
            name.span,
            message,
            "write small letters, digits and single dashes between them",
        );
        return None;
    }
    Some((name.value.to_owned(), name.span.start))
}

fn read_faults(tables: Vec<Table>, catalog: &Catalog, log: &mut Log) -> Vec<FaultAt> {
    let known: Vec<&str> = catalog.faults.iter().map(|entry| entry.name).collect();
    let mut seen = BTreeSet::new();
    let mut faults = Vec::new();
    for mut table in tables {
        let span = table.span;
        let at = table.required("at", "write the moment, such as `at = \"provider:committed#1\"`", log);
        let name = table.required("do", "write what is done, such as `do = \"kill\"`", log);
        let with = table.item("with").and_then(|item| item.table(log));
        table.close(log);
        let at = at.and_then(|item| boundary::read(&item, log));
        let name = name.and_then(|item| item.name("fault", &known, log));
        let with = with.iter().flat_map(Table::entries);
        let with = with.filter_map(|(key, _, item)| Some((key.to_owned(), item.json(log)?))).collect();
        let (Some(at), Some(name)) = (at, name) else { continue };
        if !seen.insert((at.clone(), name.clone())) {
            let message = format!("`{name}` at `{at}` is there twice");
            log.error(
                Code::Duplicate,
                span,
                message,
                "a hit comes once; choose a later ordinal, such as `#2`",
            );
        }
        faults.push(FaultAt { at, fault: Fault { name, with } });
    }
    faults
}
