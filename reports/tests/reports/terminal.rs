//! What a person reads.

use killpoint_model::shard::{LackingShard, MergedRecord, MissingTrial, PlannedTrial, ShardRecord};
use killpoint_reports::{Options, View};
use proptest::prelude::*;

use crate::golden::golden;
use crate::report;

fn terminal(width: usize, color: bool) -> String {
    let golden = golden();
    let options =
        Options { color, width, run_dir: Some(".killpoint/runs/0001".into()), ..Options::default() };
    report("terminal", &View::new(&golden.record, &golden.histories), &options)
}

#[test]
fn a_wide_terminal() {
    insta::assert_snapshot!(terminal(100, false));
}

#[test]
fn a_narrow_terminal() {
    let text = terminal(40, false);
    for line in text.lines().filter(|line| !line.contains("replay: ")) {
        assert!(line.chars().count() <= 40, "{line}");
    }
    insta::assert_snapshot!(text);
}

#[test]
fn a_part_of_a_run_says_what_it_is_and_a_merged_run_what_is_missing() {
    let planned = |name: &str, repetition| PlannedTrial {
        content_id: "0123456789abcdef".into(),
        name: name.into(),
        repetition,
    };
    let mut golden = golden();
    golden.record.shard = Some(ShardRecord {
        index: 2,
        count: 4,
        planned: vec![planned("kill at provider:committed#1", 1); 9],
        settings_id: "a".into(),
    });
    let text = report("terminal", &View::new(&golden.record, &golden.histories), &Options::default());
    assert!(text.starts_with("✗ violated · shard 2/4 alone · 4 trials in"), "{text}");
    assert!(
        text.contains("shard 2 is one of 4 shards: 9 trials are planned in all; `killpoint merge RUN…`"),
        "{text}"
    );

    golden.record.shard = None;
    golden.record.merged = Some(MergedRecord {
        count: 4,
        lacking: vec![LackingShard { index: 3, why: "it was interrupted before 41 of its trials".into() }],
        missing: (1..=41)
            .map(|again| MissingTrial { shard: 3, trial: planned("kill at a#1", again) })
            .collect(),
    });
    let text = report("terminal", &View::new(&golden.record, &golden.histories), &Options::default());
    assert!(text.starts_with("✗ violated · 3 of 4 shards merged · 4 trials in"), "{text}");
    for part in [
        "shards that are not whole\n  - shard 3/4: it was interrupted before 41 of its trials\n",
        "trials that are missing\n  - kill at a#1 (shard 3)\n  - kill at a#1, repetition 2 (shard 3)\n",
        "  … 11 more\n",
        " of 4 trials, 41 missing · exit code 1",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn colour_adds_nothing_but_colour() {
    let colored = terminal(100, true);
    assert!(colored.contains("\x1b[31m"), "a violation is red");
    let mut plain = String::new();
    let mut parts = colored.split("\x1b[");
    plain.push_str(parts.next().unwrap());
    for part in parts {
        let (codes, rest) = part.split_once('m').unwrap();
        assert!(codes.chars().all(|c| c.is_ascii_digit() || c == ';'), "only colours: {codes}");
        plain.push_str(rest);
    }
    assert_eq!(plain, terminal(100, false));
}

#[test]
fn a_flood_of_trials_is_capped_and_counted_with_the_bad_ones_in_front() {
    let mut golden = golden();
    let (holds, violated) = (golden.record.trials[1].clone(), golden.record.trials[2].clone());
    for (kind, trial, count) in [("good", holds, 300), ("bad", violated, 70)] {
        for number in 0..count {
            let mut trial = trial.clone();
            trial.plan.name = format!("{kind} {number}");
            golden.record.trials.push(trial);
        }
    }
    let text = report("terminal", &View::new(&golden.record, &golden.histories), &Options::default());
    let rows =
        |verdict: &str| text.lines().filter(|line| line.starts_with(verdict) && line.ends_with("ms")).count();
    assert_eq!((rows("✗ violated"), rows("✓ holds")), (71, 128));
    assert!(text.contains("  … 174 more\n"), "rows that are left out are counted");
    assert_eq!(text.matches("  timeline (").count(), 12);
    assert!(text.contains("more trials that do not hold, in short"));
    assert!(text.contains("\n… 10 more\n"), "trials that are left out are counted");
    assert!(text.lines().count() < 1000);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_of_a_worker_controls_the_terminal(
        text in r"(\PC|\p{Cc}|\p{Cf}|\x1b\[[0-9]{1,2}m){0,120}",
        width in 0_usize..160,
    ) {
        let mut golden = golden();
        for trial in &mut golden.record.trials {
            trial.plan.name.clone_from(&text);
            trial.plan.scenario = Some(text.clone());
            trial.plan.provider_plan.clone_from(&text);
            trial.replay.clone_from(&text);
            trial.folder.clone_from(&text);
            let Some(judgement) = &mut trial.verdict else { continue };
            judgement.evidence.missing.push(text.clone());
            for outcome in &mut judgement.outcomes {
                outcome.invariant.clone_from(&text);
                outcome.reason = Some(text.clone());
                for finding in outcome.findings.iter_mut().chain(&mut outcome.notes) {
                    finding.message.clone_from(&text);
                    finding.subject.clone_from(&text);
                }
            }
            for action in &mut judgement.actions {
                action.action.clone_from(&text);
                action.recipient.clone_from(&text);
                action.state = Some(text.clone());
            }
        }
        golden.record.warnings.push(text.clone());
        golden.record.command_line.push(text.clone());
        let history = golden.histories.remove("003-kill").unwrap();
        golden.histories.insert(text.clone(), history);
        let options = Options { color: false, width, run_dir: Some(text), ..Options::default() };
        let report = report("terminal", &View::new(&golden.record, &golden.histories), &options);
        prop_assert!(!report.chars().any(|c| c.is_control() && c != '\n'));
        let hides = report.contains(['\u{202e}', '\u{2066}', '\u{2028}', '\u{200b}']);
        prop_assert!(!hides);
    }
}
