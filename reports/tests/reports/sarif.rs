//! What code scanning reads.

use std::sync::LazyLock;

use jsonschema::Validator;
use killpoint_model::{Entry, SourceLine};
use killpoint_reports::Options;
use proptest::prelude::*;
use serde_json::Value;

use crate::every::{crowded, every_verdict, green, hostile, known, red_without_a_red_row, view};
use crate::golden::{Golden, HOSTILE};
use crate::report;

const INVARIANT: Entry = Entry {
    name: "no-duplicate-effects",
    summary: "no action reaches anybody twice",
    explanation: "What was counted at the provider is compared with what was owed.",
    example: "killpoint explain no-duplicate-effects",
};

fn sarif(golden: &Golden) -> Value {
    let options = Options { invariants: vec![INVARIANT], ..Options::default() };
    serde_json::from_str(&report("sarif", &view(golden), &options)).unwrap()
}

/// SARIF 2.1.0, without the pattern in it that is misprinted and that no engine for Unicode takes.
static SCHEMA: LazyLock<Validator> = LazyLock::new(|| {
    let text = include_str!("../schemas/sarif-schema-2.1.0.json");
    let mut schema: Value = serde_json::from_str(text).unwrap();
    for owner in ["run", "toolComponent"] {
        let language = schema["definitions"][owner]["properties"]["language"].as_object_mut().unwrap();
        assert_eq!(language.remove("pattern").unwrap(), "^[a-zA-Z]{2}|^[a-zA-Z]{2}-[a-zA-Z]{2}]?$");
    }
    jsonschema::options().should_validate_formats(true).build(&schema).unwrap()
});

/// Where documents are none of SARIF 2.1.0.
fn problems(documents: &[(&str, Value)]) -> Vec<String> {
    let of = |(what, document): &(&str, Value)| {
        let errors =
            SCHEMA.iter_errors(document).map(|error| format!("{what}: {}: {error}", error.instance_path()));
        errors.collect::<Vec<_>>()
    };
    documents.iter().flat_map(of).collect()
}

#[test]
fn a_run_with_every_verdict() {
    let options = Options { invariants: vec![INVARIANT], ..Options::default() };
    insta::assert_snapshot!(report("sarif", &view(&every_verdict()), &options));
}

#[test]
fn it_is_valid_for_the_schema() {
    let mut documents: Vec<(&str, Value)> =
        red_without_a_red_row().iter().map(|(what, golden)| (*what, sarif(golden))).collect();
    documents.push(("every verdict", sarif(&every_verdict())));
    documents.push(("green", sarif(&green())));
    documents.push(("crowded", sarif(&crowded())));
    documents.push(("hostile", sarif(&hostile(HOSTILE))));
    assert_eq!(problems(&documents), Vec::<String>::new());
    let mut wrong = sarif(&every_verdict());
    wrong["runs"][0]["results"][0]["level"] = "catastrophe".into();
    wrong["runs"][0]["invocations"][0]["startTimeUtc"] = "yesterday".into();
    assert_eq!(problems(&[("wrong", wrong)]).len(), 2, "the check itself can fail");
}

#[test]
fn a_violation_is_at_the_line_of_its_plan_and_what_has_no_line_is_no_result() {
    let mut golden = every_verdict();
    let run = &sarif(&golden)["runs"][0];
    assert_eq!(run["results"].as_array().unwrap().len(), 1);
    let result = &run["results"][0];
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "killpoint/late-accept.toml");
    assert_eq!(place["region"]["startLine"], 3);
    assert_eq!(run["tool"]["driver"]["rules"][0]["shortDescription"]["text"], INVARIANT.summary);
    let notes = run["invocations"][0]["toolExecutionNotifications"].as_array().unwrap();
    let text = |note: &Value| note["message"]["text"].as_str().unwrap().to_owned();
    assert!(
        notes
            .iter()
            .map(text)
            .any(|text| text.contains("no line of a file shows where: provider:committed#1"))
    );

    let fingerprint = result["partialFingerprints"].clone();
    golden.record.trials[5].folder = "another".into();
    golden.record.trials[5].plan.name = "renamed".into();
    golden.record.started_at_ms += 86_400_000;
    let again = sarif(&golden);
    assert_eq!(again["runs"][0]["results"][0]["partialFingerprints"], fingerprint, "the same in every run");
}

#[test]
fn a_known_violation_is_suppressed() {
    let log = sarif(&known());
    let result = &log["runs"][0]["results"][0];
    assert_eq!(result["suppressions"][0]["justification"], "listed in known.toml");
    assert_eq!(sarif(&every_verdict())["runs"][0]["results"][0]["suppressions"], serde_json::json!([]));
    assert_eq!(problems(&[("known", log)]), Vec::<String>::new());
}

#[test]
fn repetitions_are_one_result_with_a_count() {
    let mut golden = every_verdict();
    for repetition in 2..=4 {
        let mut trial = golden.record.trials[5].clone();
        trial.repetition = repetition;
        trial.folder = format!("again-{repetition}");
        golden.record.trials.push(trial);
    }
    let log = sarif(&golden);
    let results = log["runs"][0]["results"].as_array().unwrap();
    assert_eq!((results.len(), &results[0]["occurrenceCount"]), (1, &4.into()));
}

#[test]
fn a_run_that_proves_nothing_is_no_successful_execution() {
    let successful =
        |golden: &Golden| sarif(golden)["runs"][0]["invocations"][0]["executionSuccessful"].clone();
    assert_eq!(successful(&green()), true);
    for (what, golden) in red_without_a_red_row() {
        let log = sarif(&golden);
        let invocation = &log["runs"][0]["invocations"][0];
        let notes = invocation["toolExecutionNotifications"].as_array().unwrap();
        assert!(notes.iter().any(|note| note["level"] == "error"), "{what}");
        assert_eq!(invocation["executionSuccessful"], invocation["exitCode"] == 1, "{what}");
    }
}

#[test]
fn a_crowd_says_what_it_leaves_out() {
    let mut golden = crowded();
    for trial in &mut golden.record.trials {
        trial.source = Some(SourceLine { file: "killpoint.toml".into(), line: 1 });
    }
    let log = sarif(&golden);
    assert_eq!(log["runs"][0]["results"].as_array().unwrap().len(), 50, "equal plans are one result");
    assert_eq!(problems(&[("crowded", log)]), Vec::<String>::new());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_of_a_worker_breaks_the_document(text in r#"(\PC|\p{C}|["\\{}\[\]]|\]\(http://a\)|\n){0,60}"#) {
        let log = sarif(&hostile(&text));
        prop_assert_eq!(problems(&[("hostile", log.clone())]), Vec::<String>::new());
        let told = report("sarif", &view(&hostile(&text)), &Options::default());
        prop_assert!(!told.chars().any(|c| c.is_control() && c != '\n'));
        for result in log["runs"][0]["results"].as_array().unwrap() {
            prop_assert!(!result["message"]["text"].as_str().unwrap().contains("]("));
        }
        let json = report("json", &view(&hostile(&text)), &Options::default());
        prop_assert!(serde_json::from_str::<Value>(&json).is_ok());
    }
}
