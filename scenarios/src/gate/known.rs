//! Known failures as TOML.

use std::collections::BTreeSet;

use killpoint_model::HitName;
use killpoint_model::known::KnownFailure;
use toml::Value;

use crate::code::Code;
use crate::log::{Loaded, Log};
use crate::table::Table;

const HEAD: &str = "\
# Violations that `killpoint run --baseline` lets pass. Each is still a violation; none may be added by hand.
# `plan`, `invariant` and `finding` say which one it is; the other keys are for readers.
# An entry that is not violated any more fails the run: take it out, or run with --update-baseline.
version = 1
";

/// Writes known failures, in their order.
pub fn known_toml(entries: &[KnownFailure]) -> String {
    let mut sorted: Vec<&KnownFailure> = entries.iter().collect();
    sorted.sort();
    HEAD.to_owned() + &sorted.into_iter().map(table).collect::<String>()
}

/// One entry; what a reader wants to know comes first.
fn table(entry: &KnownFailure) -> String {
    let hits: Vec<Value> = entry.boundary.iter().map(|hit| hit.to_string().into()).collect();
    let keys: [(&str, Option<Value>); 8] = [
        ("trial", Some(entry.trial.clone().into())),
        ("scenario", entry.scenario.clone().map(Value::from)),
        ("boundary", (!hits.is_empty()).then(|| hits.into())),
        ("provider-plan", Some(entry.provider_plan.clone().into())),
        ("invariant", Some(entry.invariant.clone().into())),
        ("finding", Some(entry.finding.clone().into())),
        ("plan", Some(entry.plan.clone().into())),
        ("flaky", entry.flaky.then(|| true.into())),
    ];
    let lines = keys.into_iter().filter_map(|(key, value)| Some(format!("{key} = {}\n", value?)));
    format!("\n[[known]]\n{}", lines.collect::<String>())
}

/// Reads known failures. `file` is the file's name for diagnostics.
pub fn load_known(text: &str, file: &str) -> Loaded<Vec<KnownFailure>> {
    super::load(text, file, |root, log| {
        let mut entries = Vec::new();
        let mut seen = BTreeSet::new();
        for table in root.tables("known", log) {
            let span = table.span;
            let Some(entry) = read(table, log) else { continue };
            if !seen.insert((entry.plan.clone(), entry.invariant.clone(), entry.finding.clone())) {
                let message = format!("`{}` violates `{}` in this way twice", entry.trial, entry.invariant);
                log.error(Code::Duplicate, span, message, "take one of the two entries out");
            }
            entries.push(entry);
        }
        entries.sort();
        entries
    })
}

fn read(mut table: Table, log: &mut Log) -> Option<KnownFailure> {
    let help = "entries are written by `killpoint run --baseline FILE --update-baseline`";
    let mut text = |key| {
        let item = table.required(key, help, log);
        item.and_then(|item| item.text(log)).map(|text| text.value.to_owned())
    };
    let (trial, provider_plan, plan) = (text("trial"), text("provider-plan"), text("plan"));
    let (invariant, finding) = (text("invariant"), text("finding"));
    let scenario = table.item("scenario").and_then(|item| item.text(log)).map(|text| text.value.to_owned());
    let boundary = table.item("boundary").and_then(|item| item.texts(log)).unwrap_or_default();
    let boundary = boundary
        .iter()
        .filter_map(|text| match text.value.parse::<HitName>() {
            Ok(hit) => Some(hit),
            Err(error) => {
                log.error(Code::BadBoundary, text.span, error.to_string(), help);
                None
            }
        })
        .collect();
    let flaky = table.item("flaky").and_then(|item| item.flag(log)).unwrap_or_default();
    table.close(log);
    Some(KnownFailure {
        trial: trial?,
        scenario,
        boundary,
        provider_plan: provider_plan?,
        plan: plan?,
        invariant: invariant?,
        finding: finding?,
        flaky,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entry(trial: &str, plan: &str) -> KnownFailure {
        KnownFailure {
            trial: trial.into(),
            scenario: None,
            boundary: vec!["provider:committed#1".parse().unwrap()],
            provider_plan: "ok".into(),
            plan: plan.into(),
            invariant: "no-duplicate-effect".into(),
            finding: "the recipient got N effect where N was owed".into(),
            flaky: false,
        }
    }

    #[test]
    fn the_file_is_readable_sorted_and_says_what_it_is() {
        let late = KnownFailure {
            scenario: Some("late-accept".into()),
            boundary: Vec::new(),
            flaky: true,
            ..entry("late accept", "2")
        };
        let text = known_toml(&[late, entry("kill at provider:committed#1", "1")]);
        insta::assert_snapshot!(text);
    }

    #[test]
    fn windows_line_endings_are_read() {
        let entries = vec![entry("a", "1"), entry("b", "2")];
        let text = known_toml(&entries).replace('\n', "\r\n");
        assert_eq!(load_known(&text, "known.toml").value, Some(entries));
    }

    #[test]
    fn mistakes_are_shown_with_their_places() {
        let said = |text: &str| -> Vec<String> {
            let loaded = load_known(text, "known.toml");
            assert_eq!(loaded.value, None);
            let line = |span: killpoint_model::Span| text[..span.start].matches('\n').count() + 1;
            let one = |problem: &killpoint_model::Diagnostic| {
                let place = problem.span.map(line).unwrap_or_default();
                format!("{} {place}: {}", problem.code, problem.message)
            };
            loaded.diagnostics.iter().map(one).collect()
        };
        assert_eq!(said(""), ["missing-key 1: `version` is missing"]);
        assert_eq!(said("version = 2"), ["out-of-range 1: `version` is 2"]);
        let twice = known_toml(&[entry("a", "1"), entry("a", "1")]);
        assert_eq!(said(&twice), ["duplicate 14: `a` violates `no-duplicate-effect` in this way twice"]);
        let wrong =
            known_toml(&[entry("a", "1")]).replace("finding", "fnding").replace("committed", "comitted");
        assert_eq!(
            said(&wrong),
            [
                "missing-key 6: `known[0].finding` is missing",
                "bad-boundary 8: `provider:comitted#1` is no boundary: nobody knows `comitted`; did you mean `committed`?",
                "unknown-key 11: unknown key `fnding` in `known[0]`",
            ]
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn what_is_written_is_read_back(
            entries in prop::collection::btree_set(("[ -~✓\n]{1,20}", "[0-9a-f]{1,4}", "[a-z N…'\"\\\\]{1,20}", prop::bool::ANY), 0..8),
        ) {
            let mut seen = BTreeSet::new();
            let mut entries: Vec<KnownFailure> = entries
                .into_iter()
                .filter(|(trial, plan, finding, _)| {
                    !trial.trim().is_empty() && !finding.trim().is_empty() && seen.insert((plan.clone(), finding.clone()))
                })
                .map(|(trial, plan, finding, flaky)| KnownFailure { finding, flaky, ..entry(&trial, &plan) })
                .collect();
            let text = known_toml(&entries);
            entries.sort();
            prop_assert_eq!(load_known(&text, "known.toml").value, Some(entries.clone()), "{}", text);
            entries.reverse();
            prop_assert_eq!(known_toml(&entries), text, "their order is no matter");
        }
    }
}
