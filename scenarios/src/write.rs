//! A plan as the text of a scenario file, so that any trial can be kept and run again.

use killpoint_model::Plan;
use killpoint_model::plan::Match;
use toml::{Table, Value};

/// What a scenario file says beside its plan.
pub(crate) struct Texts {
    pub(crate) name: String,
    pub(crate) summary: String,
    pub(crate) explanation: String,
    pub(crate) source: String,
}

/// Writes a plan as a scenario file that [`crate::load_scenario`] reads back.
pub fn to_toml(plan: &Plan) -> String {
    let name: String = plan.name.to_ascii_lowercase();
    let words: Vec<&str> =
        name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let texts = Texts {
        name: plan.scenario.clone().unwrap_or_else(|| words.join("-")),
        summary: plan.name.clone(),
        explanation: "One trial of a run, as it was done.".to_owned(),
        source: "a stored run".to_owned(),
    };
    write(plan, &texts)
}

/// Writes a plan with these texts.
pub(crate) fn write(plan: &Plan, texts: &Texts) -> String {
    let mut root = Table::new();
    root.insert("name".into(), texts.name.clone().into());
    root.insert("summary".into(), texts.summary.clone().into());
    root.insert("explanation".into(), texts.explanation.clone().into());
    root.insert("source".into(), texts.source.clone().into());
    if plan.workers > 0 {
        root.insert("workers".into(), i64::from(plan.workers).into());
    }
    let actions = plan.actions.iter().map(|action| {
        let to: Vec<Value> = action.to.iter().cloned().map(Value::from).collect();
        table([("id", action.id.clone().into()), ("to", to.into()), ("body", action.body.clone().into())])
    });
    insert_array(&mut root, "action", actions.collect());
    let rules: Vec<Value> = plan.rules.iter().map(rule).collect();
    if !rules.is_empty() {
        root.insert("provider".into(), table([("rule", rules.into())]));
    }
    let faults = plan.faults.iter().map(|fault| {
        let mut entry = Table::new();
        entry.insert("at".into(), fault.at.to_string().into());
        entry.insert("do".into(), fault.fault.name.clone().into());
        // Parameters were read from TOML, so each has a TOML form.
        let with: Table = fault
            .fault
            .with
            .iter()
            .filter_map(|(key, value)| Some((key.clone(), Value::try_from(value).ok()?)))
            .collect();
        if !with.is_empty() {
            entry.insert("with".into(), with.into());
        }
        Value::from(entry)
    });
    insert_array(&mut root, "fault", faults.collect());
    // Tables of strings, numbers and arrays always serialise.
    toml::to_string(&root).unwrap_or_default()
}

fn rule(rule: &killpoint_model::Rule) -> Value {
    let plan = table([
        ("commit", rule.plan.commit.to_string().into()),
        ("reply", rule.plan.reply.to_string().into()),
        ("visible", rule.plan.visible.to_string().into()),
        ("aftermath", rule.plan.aftermath.to_string().into()),
    ]);
    let mut entry = Table::new();
    entry.insert("id".into(), rule.id.clone().into());
    entry.insert("match".into(), matches(&rule.matches));
    entry.insert("plan".into(), plan);
    if let Some(times) = rule.times {
        entry.insert("times".into(), i64::from(times).into());
    }
    entry.into()
}

fn matches(matches: &Match) -> Value {
    let mut entry = Table::new();
    let texts = [("dialect", &matches.dialect), ("operation", &matches.operation), ("key", &matches.key)];
    for (name, text) in texts {
        entry.extend(text.iter().map(|text| (name.to_owned(), Value::from(text.clone()))));
    }
    entry.extend(matches.nth.iter().map(|nth| ("nth".to_owned(), Value::from(i64::from(*nth)))));
    for (name, map) in [("header", &matches.header), ("pointer", &matches.pointer)] {
        if !map.is_empty() {
            let map: Table = map.iter().map(|(key, value)| (key.clone(), value.clone().into())).collect();
            entry.insert(name.to_owned(), map.into());
        }
    }
    entry.into()
}

fn table<const N: usize>(entries: [(&str, Value); N]) -> Value {
    Value::Table(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

fn insert_array(root: &mut Table, name: &str, values: Vec<Value>) {
    if !values.is_empty() {
        root.insert(name.to_owned(), values.into());
    }
}
