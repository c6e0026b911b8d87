//! What programs read.

use killpoint_reports::{Options, View, json_schema};
use serde_json::{Map, Value};

use crate::every::{crowded, every_verdict, green, hostile, red_without_a_red_row, view};
use crate::golden::{Golden, HOSTILE, golden};
use crate::report;

fn json() -> String {
    let golden = golden();
    report("json", &View::new(&golden.record, &golden.histories), &Options::default())
}

#[test]
fn the_whole_document() {
    insta::assert_snapshot!(json());
}

#[test]
fn it_is_versioned_and_says_the_exit_code_and_the_evidence() {
    let report: Value = serde_json::from_str(&json()).unwrap();
    assert_eq!(report["format"], "killpoint-report");
    assert_eq!(report["version"], serde_json::json!([1, 3]));
    assert_eq!((&report["verdict"], &report["exit_code"]), (&"violated".into(), &1.into()));
    let finding = &report["details"][0]["judged"][0]["findings"][0];
    assert_eq!(finding["events"], serde_json::json!([9, 17]));
    assert!(finding["message"].as_str().unwrap().contains(HOSTILE), "nothing of the text is lost");
}

#[test]
fn it_validates_against_its_schema() {
    let schema = json_schema();
    let mut report: Value = serde_json::from_str(&json()).unwrap();
    assert_eq!(problems(&schema, &schema, &report, "$"), Vec::<String>::new());
    report["rows"][0]["tally"]["holds"] = "many".into();
    report["details"][0]["timeline"]["generations"][0]["steps"][0]["kind"] = "magic".into();
    report.as_object_mut().unwrap().remove("exit_code");
    assert_eq!(problems(&schema, &schema, &report, "$").len(), 3, "the check itself can fail");
}

#[test]
fn whatever_a_run_says_it_is_valid_for_the_published_schema() {
    let published = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/schema/report.schema.json");
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(published).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let mut runs: Vec<(&str, Golden)> = red_without_a_red_row();
    runs.extend([
        ("every verdict", every_verdict()),
        ("green", green()),
        ("hostile", hostile(HOSTILE)),
        ("crowded", crowded()),
    ]);
    for (what, golden) in runs {
        let text = report("json", &view(&golden), &Options::default());
        let document: Value = serde_json::from_str(&text).unwrap();
        let problems: Vec<String> = validator
            .iter_errors(&document)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert_eq!(problems, Vec::<String>::new(), "{what}");
    }
    let mut wrong: Value = serde_json::from_str(&json()).unwrap();
    wrong["exit_code"] = "red".into();
    assert!(!validator.is_valid(&wrong), "the check itself can fail");
}

#[test]
fn every_field_of_the_schema_is_described() {
    let schema = json_schema();
    let mut missing = undescribed("report", &schema);
    for (name, definition) in schema["$defs"].as_object().unwrap() {
        missing.extend(undescribed(name, definition));
    }
    assert_eq!(missing, Vec::<String>::new());
}

fn undescribed(name: &str, schema: &Value) -> Vec<String> {
    let properties = schema["properties"].as_object().cloned().unwrap_or_default();
    properties
        .iter()
        .filter(|(_, property)| property["description"].as_str().is_none_or(str::is_empty))
        .map(|(property, _)| format!("{name}.{property}"))
        .collect()
}

/// A validator of just the keywords that our schemas use.
fn problems(root: &Value, schema: &Value, value: &Value, place: &str) -> Vec<String> {
    if let Some(reference) = schema["$ref"].as_str() {
        let target = root.pointer(reference.trim_start_matches('#')).unwrap();
        return problems(root, target, value, place);
    }
    for keyword in ["anyOf", "oneOf"] {
        if let Some(choices) = schema[keyword].as_array() {
            let fits = choices.iter().any(|choice| problems(root, choice, value, place).is_empty());
            return if fits { Vec::new() } else { vec![format!("{place}: no choice fits {value}")] };
        }
    }
    let mut found = Vec::new();
    let names = match &schema["type"] {
        Value::Array(names) => names.clone(),
        Value::Null => Vec::new(),
        name => vec![name.clone()],
    };
    if !names.is_empty() && !names.iter().any(|name| has_type(name.as_str().unwrap(), value)) {
        found.push(format!("{place}: {value} is no {names:?}"));
    }
    let constant = schema.get("const").into_iter().chain(schema["enum"].as_array().into_iter().flatten());
    let constants: Vec<&Value> = constant.collect();
    if !constants.is_empty() && !constants.contains(&value) {
        found.push(format!("{place}: {value} is none of {constants:?}"));
    }
    if let Some(object) = value.as_object() {
        found.extend(object_problems(root, schema, object, place));
    }
    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
        let item_schema = schema["prefixItems"].get(index).unwrap_or(&schema["items"]);
        found.extend(problems(root, item_schema, item, &format!("{place}[{index}]")));
    }
    found
}

fn object_problems(root: &Value, schema: &Value, object: &Map<String, Value>, place: &str) -> Vec<String> {
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let mut found: Vec<String> = required
        .filter(|name| !object.contains_key(*name))
        .map(|name| format!("{place}: `{name}` is missing"))
        .collect();
    for (name, value) in object {
        match schema["properties"].get(name) {
            Some(property) => found.extend(problems(root, property, value, &format!("{place}.{name}"))),
            None => found.push(format!("{place}: `{name}` is not in the schema")),
        }
    }
    found
}

fn has_type(name: &str, value: &Value) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "null" => value.is_null(),
        other => panic!("the schema uses the type {other}, which this check does not know"),
    }
}
