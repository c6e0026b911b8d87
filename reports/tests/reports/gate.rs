//! Known failures and changed boundaries in the reports, and what they do to the exit code.

use killpoint_model::changed::{BoundaryChanges, ChangedRecord, SeriesChange};
use killpoint_model::known::{Baseline, BaselineRecord, BaselineUpdate, KnownFailure};
use killpoint_model::{ExitCode, HitName, RunRecord, Verdict};
use killpoint_reports::{Options, View};

use crate::golden::golden;
use crate::report;

/// The golden run without the trials that prove nothing, so that only violations are wrong with it.
fn red() -> RunRecord {
    let mut record = golden().record;
    record.profile = None;
    let is_clear = |verdict| matches!(verdict, Verdict::Holds | Verdict::Violated);
    record.trials.retain(|trial| trial.verdict.as_ref().is_some_and(|judged| is_clear(judged.verdict)));
    for judged in record.trials.iter_mut().filter_map(|trial| trial.verdict.as_mut()) {
        judged.outcomes.retain(|outcome| outcome.status != killpoint_model::InvariantStatus::Inconclusive);
    }
    record
}

/// Everything that the run violates.
fn all_of(record: &RunRecord) -> Vec<KnownFailure> {
    Baseline::compare(&[], &record.trials).updated(&[], true).0
}

fn against(entries: Vec<KnownFailure>, update: Option<BaselineUpdate>) -> View {
    let mut record = red();
    record.baseline = Some(BaselineRecord { file: "known.toml".into(), entries, update });
    View::new(&record, &golden().histories)
}

fn gone(plan: &str) -> KnownFailure {
    let first = all_of(&red()).remove(0);
    KnownFailure { plan: plan.into(), trial: format!("kill at mark:{plan}#1"), ..first }
}

#[test]
fn the_exit_code_is_that_of_what_is_not_known() {
    let record = red();
    assert_eq!(View::new(&record, &golden().histories).exit_code(), ExitCode::Violated);
    let all = all_of(&record);
    assert!(!all.is_empty());
    let known = against(all.clone(), None);
    assert_eq!((known.verdict, known.exit_code()), (Verdict::Violated, ExitCode::Holds));
    assert!(known.exit_meaning().ends_with("none new"), "{}", known.exit_meaning());
    assert_eq!(against(all[1..].to_vec(), None).exit_code(), ExitCode::Violated);

    // An entry that the run's fault-free trials should violate and do not.
    let baseline = record.trials.iter().find(|trial| trial.plan.is_baseline()).unwrap();
    let stale = gone(&baseline.plan.content_id());
    let stale = against([all.clone(), vec![stale]].concat(), None);
    assert_eq!(stale.exit_code(), ExitCode::Unproven);
    assert_eq!(stale.exit_meaning(), "1 known failure is none any more");
    let not_run = against([all, vec![gone("feed")]].concat(), None);
    assert_eq!(not_run.exit_code(), ExitCode::Holds, "what was not tried is left alone");
}

#[test]
fn the_terminal_names_what_is_known_new_stale_and_not_run() {
    let record = red();
    let all = all_of(&record);
    let baseline = record.trials.iter().find(|trial| trial.plan.is_baseline()).unwrap();
    let stale = gone(&baseline.plan.content_id());
    let flaky = KnownFailure { flaky: true, finding: "another".into(), ..stale.clone() };
    let entries = [all[..1].to_vec(), vec![stale, flaky, gone("feed")]].concat();
    let view = against(entries, Some(BaselineUpdate { written: true, added: 0, removed: 2 }));
    for width in [100, 40] {
        let text = report("terminal", &view, &Options { width, ..Options::default() });
        let at = text.find("known failures of").unwrap();
        let part = &text[at..text[at..].find("not shown").unwrap() + at];
        assert!(part.lines().all(|line| line.chars().count() <= width), "{part}");
        insta::assert_snapshot!(format!("known_{width}"), part);
    }
    let first = report("terminal", &view, &Options::default());
    assert!(first.starts_with("✗ violated · 1 known violation · "), "{first}");
}

#[test]
fn the_terminal_says_what_changed_and_what_was_left_out() {
    let hits = |names: &[&str]| names.iter().map(|name| name.parse::<HitName>().unwrap()).collect::<Vec<_>>();
    let mut record = red();
    let changes = BoundaryChanges {
        new: hits(&["provider:committed#2", "mark:audited#1"]),
        gone: hits(&["ledger:removed#1"]),
        counts: vec![SeriesChange { series: "provider:committed".into(), before: 1, now: 2 }],
        moved: hits(&["mark:ack-committed#1"]),
    };
    record.changed = Some(ChangedRecord {
        file: "killpoint/boundaries.toml".into(),
        changes,
        uncovered: hits(&["mark:audited#1"]),
        skipped: 31,
        of: 40,
        not_written: Some("the run is not green".into()),
        ..ChangedRecord::default()
    });
    let view = View::new(&record, &golden().histories);
    assert_eq!(view.skipped(), 31);
    for width in [100, 40] {
        let text = report("terminal", &view, &Options { width, ..Options::default() });
        let at = text.find("changes of boundaries").unwrap();
        let part = &text[at..text[at..].find("not shown").unwrap() + at];
        assert!(part.lines().all(|line| line.chars().count() <= width), "{part}");
        insta::assert_snapshot!(format!("changed_{width}"), part);
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            flat.contains("31 trials left out ·") && flat.contains(", 31 left out · exit code 1"),
            "{text}"
        );
    }
}
