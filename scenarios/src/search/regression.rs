//! A plan that failed, kept as a scenario file; and what is said when its moments are gone.

use killpoint_model::{FaultAt, HitName, Plan, Rule};

use super::space::Space;
use crate::rule::plan_name;
use crate::sweep::nearest_hits;
use crate::write::{Texts, write};

/// Characters of a finding that are kept.
const FINDING_MAX: usize = 8000;
/// Characters of a comment's line.
const LINE_MAX: usize = 110;

/// The plan as a scenario file, with what was found and the replay token as comments. [`crate::load_scenario`] reads
/// it back; its name is that of the file without `.toml`: `explored-` and the plan's content id.
pub fn regression_toml(plan: &Plan, finding: &str, token: &str) -> String {
    let mut text = String::new();
    let finding: String = finding.chars().take(FINDING_MAX).collect();
    for line in finding.lines().flat_map(wrapped) {
        text.push_str(format!("# {line}").trim_end());
        text.push('\n');
    }
    text.push_str("#\n# killpoint replay ");
    text.push_str(&harmless(token));
    text.push_str("\n\n");
    let texts = Texts {
        name: format!("explored-{}", plan.content_id()),
        summary: describe(plan),
        explanation: "Found by exploring, and made as small as it could be. It runs first in every later run, and is kept \
            when it no longer fails."
            .to_owned(),
        source: "explored".to_owned(),
    };
    text.push_str(&write(plan, &texts));
    text
}

/// What a plan does, in one line without a full stop.
pub fn describe(plan: &Plan) -> String {
    let mut parts: Vec<String> = plan.rules.iter().map(describe_rule).collect();
    parts.extend(plan.faults.iter().map(describe_fault));
    if !plan.actions.is_empty() {
        let s = if plan.actions.len() == 1 { "" } else { "s" };
        parts.push(format!("{} action{s}", plan.actions.len()));
    }
    if plan.workers > 1 {
        parts.push(format!("{} workers", plan.workers));
    }
    if parts.is_empty() { "nothing is done".to_owned() } else { harmless(&parts.join(", ")) }
}

fn describe_rule(rule: &Rule) -> String {
    let operation = rule.matches.operation.as_deref().unwrap_or("write");
    let name = plan_name(rule.plan);
    match (rule.matches.nth, rule.times) {
        (Some(nth), _) => format!("{name} at {operation} {nth}"),
        (None, Some(1)) => format!("{name} at the first {operation}"),
        (None, Some(times)) => format!("{name} at the first {times} of {operation}"),
        (None, None) => format!("{name} at each {operation}"),
    }
}

fn describe_fault(fault: &FaultAt) -> String {
    let value = |value: &serde_json::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let with: Vec<String> =
        fault.fault.with.iter().map(|(name, with)| format!("{name} {}", value(with))).collect();
    let with = if with.is_empty() { String::new() } else { format!(" ({})", with.join(", ")) };
    format!("{}{with} at {}", fault.fault.name, fault.at)
}

/// The text on one line, without what could end a comment, turn the order of what is read or hide a part of it.
fn harmless(text: &str) -> String {
    let shown = |c: char| {
        let hides = matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
        if c.is_control() || hides { ' ' } else { c }
    };
    text.chars().map(shown).collect()
}

/// A line in pieces of a readable length, broken between words where there are any.
fn wrapped(line: &str) -> Vec<String> {
    let mut pieces = vec![String::new()];
    for word in harmless(line).split_inclusive(' ') {
        let length = |text: &str| text.chars().count();
        let last = pieces.last().map_or(0, |piece| length(piece));
        if last > 0 && last + length(word.trim_end()) > LINE_MAX {
            pieces.push(String::new());
        }
        if let Some(piece) = pieces.last_mut() {
            piece.push_str(word);
        }
    }
    pieces
}

/// The moments of a plan that are not there any more, each with the nearest names that are. Only the fault-free trial
/// is looked at: a mark that recovery alone makes is not in it, so ask this about faults that never came.
pub fn stale(plan: &Plan, space: &Space) -> Vec<(HitName, Vec<String>)> {
    let gone = plan.faults.iter().map(|fault| &fault.at).filter(|hit| !space.knows(hit));
    let mut stale: Vec<(HitName, Vec<String>)> = Vec::new();
    for hit in gone {
        if !stale.iter().any(|(known, _)| known == hit) {
            stale.push((hit.clone(), nearest_hits(hit, &space.hits)));
        }
    }
    stale
}

#[cfg(test)]
mod tests {
    use super::super::fixture;
    use super::*;
    use crate::load_scenario;
    use proptest::prelude::*;

    fn plan() -> Plan {
        let mut plan = fixture::kills(&["provider:committed#1", "mark:before-claim#2"]);
        plan.faults[1].fault.with.insert("new-identity".into(), true.into());
        plan.workers = 2;
        plan
    }

    fn read(text: &str) -> crate::Scenario {
        let loaded = load_scenario(text, "a.toml", &fixture::catalog());
        loaded.value.unwrap_or_else(|| panic!("{:?}\n{text}", loaded.diagnostics))
    }

    #[test]
    fn a_regression_is_a_scenario_with_what_was_found_on_top() {
        let finding =
            "no-duplicate-effect: 2 effects for action-1 to user1@example.com\n\n  seen at events 12 and 31";
        let text = regression_toml(&plan(), finding, "kp1:AAAA");
        let top: Vec<&str> = text.lines().take(6).collect();
        assert_eq!(
            top,
            [
                "# no-duplicate-effect: 2 effects for action-1 to user1@example.com",
                "#",
                "#   seen at events 12 and 31",
                "#",
                "# killpoint replay kp1:AAAA",
                "",
            ]
        );
        let scenario = read(&text);
        assert_eq!(scenario.name, format!("explored-{}", plan().content_id()));
        assert_eq!(
            scenario.summary,
            "kill at provider:committed#1, kill (new-identity true) at mark:before-claim#2, 2 workers"
        );
        assert!(!scenario.explanation.is_empty() && !scenario.source.is_empty());
        assert_eq!(scenario.plan.content_id(), plan().content_id());
    }

    #[test]
    fn long_lines_are_wrapped_and_long_findings_cut() {
        let text = regression_toml(&plan(), &"word ".repeat(5000), "kp1:A");
        let comments: Vec<&str> = text.lines().take_while(|line| line.starts_with('#')).collect();
        assert!(comments.iter().all(|line| line.chars().count() <= LINE_MAX + 2), "{comments:?}");
        assert!((60..100).contains(&comments.len()), "{}", comments.len());
        read(&text);
    }

    #[test]
    fn plans_are_described_in_words() {
        let mut plan = Plan::default();
        assert_eq!(describe(&plan), "nothing is done");
        plan = toml_plan(
            "actions = 1\n[[provider.rule]]\nmatch = { operation = \"create\", nth = 2 }\nplan = \"drop-after-accept\"\n\
             [[provider.rule]]\nmatch = { operation = \"lookup\" }\nplan = { commit = \"never\", reply = \"hang\" }\ntimes = 3",
        );
        assert_eq!(
            describe(&plan),
            "drop-after-accept at create 2, timeout-before-accept at the first 3 of lookup, 1 action"
        );
    }

    fn toml_plan(rest: &str) -> Plan {
        read(&format!("name = \"a\"\nsummary = \"b\"\n{rest}")).plan
    }

    #[test]
    fn moments_that_are_gone_are_named_with_the_nearest() {
        let space = fixture::space();
        let plan = fixture::kills(&[
            "provider:committed#9",
            "provider:lookup#1",
            "ledger:unknown#1",
            "mark:before-claim[job]#4",
            "mark:producer-open#1",
            "item-claimed#1",
        ]);
        assert_eq!(stale(&plan, &space), [], "recovery, the ledger or the producer can make each of these");
        let plan = fixture::kills(&["mark:before-clam#1", "ledger:sent-out#1", "mark:before-clam#1"]);
        let stale = stale(&plan, &space);
        assert_eq!(stale.len(), 2);
        assert_eq!(stale[0].0.to_string(), "mark:before-clam#1");
        assert_eq!(stale[0].1[0], "mark:before-claim#1");
        assert!(stale[0].1.len() <= 3);
    }

    proptest! {
        #[test]
        fn no_finding_breaks_out_of_its_comment(finding: String, token: String) {
            let text = regression_toml(&plan(), &finding, &token);
            prop_assert_eq!(read(&text).plan.content_id(), plan().content_id());
        }
    }

    #[test]
    fn line_ends_and_text_that_turns_around_stay_inside() {
        let finding = "a\rname = \"x\"\u{85}b\u{2028}c\u{202e}d\u{0}e\u{b}f\r\ng";
        let text = regression_toml(&plan(), finding, "kp1:A\n[[fault]]\n");
        assert_eq!(text.lines().next(), Some("# a name = \"x\" b c d e f"));
        assert_eq!(read(&text).plan.content_id(), plan().content_id());
    }
}
