//! What is computed before any format sees it.

use std::collections::BTreeMap;
use std::convert::Infallible;

use killpoint_model::run::TrialRole;
use killpoint_model::{Event, ExitCode, TrialRecord, Verdict};
use killpoint_reports::{Precision, Reading, View};

use crate::golden::{Golden, golden, history, hit, holds, plan, trial};

fn view(golden: &Golden) -> View {
    View::new(&golden.record, &golden.histories)
}

#[test]
fn repetitions_fold_and_differing_verdicts_are_said_aloud() {
    let mut golden = golden();
    for repetition in 2..=3 {
        let mut again = golden.record.trials[2].clone();
        again.repetition = repetition;
        again.folder = format!("003-kill-{repetition}");
        if repetition == 3 {
            again.verdict = Some(holds());
        }
        golden.record.trials.push(again);
    }
    let view = view(&golden);
    assert_eq!(view.rows.len(), 4);
    let row = &view.rows[2];
    assert_eq!(row.verdict, Some(Verdict::Violated));
    assert_eq!(row.agreement().as_deref(), Some("repetitions differ: 2 of 3 violated, 1 of 3 holds"));
    assert_eq!(row.spread(|counters| counters.effects), "1–2");
    assert_eq!((view.tally.trials, view.tally.violated, view.tally.holds), (6, 2, 3));
}

#[test]
fn a_view_is_never_better_than_its_trials() {
    let mut golden = golden();
    golden.record.verdict = Verdict::Holds;
    assert_eq!(view(&golden).verdict, Verdict::Violated, "a trial is worse than the record");
    golden.record.trials.truncate(2);
    assert_eq!(view(&golden).verdict, Verdict::Holds);
    golden.record.trials[1].verdict = None;
    assert_eq!(view(&golden).verdict, Verdict::Inconclusive, "a trial was not judged");
    golden.record.trials.clear();
    golden.record.verdict = Verdict::Vacuous;
    assert_eq!(view(&golden).verdict, Verdict::Vacuous, "no trial shows nothing");
}

#[test]
fn exit_codes_put_interruption_and_a_failing_baseline_first() {
    let mut golden = golden();
    assert_eq!(view(&golden).exit_code(), ExitCode::Violated);
    if let Some(judgement) = &mut golden.record.trials[0].verdict {
        judgement.verdict = Verdict::Vacuous;
    }
    assert_eq!(
        view(&golden).exit_code(),
        ExitCode::Violated,
        "a violation is one whatever the baseline says"
    );
    golden.record.trials.truncate(1);
    golden.record.verdict = Verdict::Vacuous;
    assert_eq!(view(&golden).exit_code(), ExitCode::SetupFailed);
    golden.record.interrupted = true;
    assert_eq!(view(&golden).exit_code(), ExitCode::Interrupted);
}

#[test]
fn details_come_worst_first_with_their_evidence_marked() {
    let view = view(&golden());
    let verdicts: Vec<_> = view.details.iter().map(|detail| detail.verdict).collect();
    assert_eq!(verdicts, [Some(Verdict::Violated), Some(Verdict::Vacuous)]);
    let timeline = view.details[0].timeline.as_ref().unwrap();
    let marked: Vec<u64> = timeline
        .generations
        .iter()
        .flat_map(|generation| &generation.steps)
        .filter(|step| step.evidence)
        .map(|step| step.event)
        .collect();
    assert_eq!(marked, [9, 17]);
    let generations: Vec<u32> = timeline.generations.iter().map(|generation| generation.generation).collect();
    assert_eq!(generations, [1, 2], "nothing worth a line before the first start");
}

#[test]
fn notes_of_trials_that_hold_are_kept() {
    let notes = view(&golden()).notes;
    assert_eq!(notes.len(), 1);
    assert_eq!((notes[0].folder.as_str(), notes[0].note.events.as_slice()), ("002-drop", &[4, 8][..]));
}

#[test]
fn boundaries_say_how_sharply_they_are_known() {
    let mut golden = golden();
    golden.histories.insert("002-drop".into(), history("002-drop", vec![(1, hit("ledger:created#1", true))]));
    let precisions: BTreeMap<String, (Precision, bool, u32)> = view(&golden)
        .boundaries
        .into_iter()
        .map(|boundary| (boundary.hit, (boundary.precision, boundary.in_baseline, boundary.trials)))
        .collect();
    assert_eq!(precisions["ledger:created#1"], (Precision::Mixed, true, 2));
    assert_eq!(precisions["ledger:created#2"], (Precision::Sampled, true, 1));
    assert_eq!(precisions["ledger:dispatching#1"], (Precision::Sampled, false, 1));
    assert_eq!(precisions["provider:committed#1"], (Precision::Exact, true, 2));
}

#[test]
fn invariants_not_shown_are_said_once_and_missing_histories_are_warned_of() {
    let mut golden = golden();
    golden.record.trials.push(trial("005-lost", TrialRole::Faulted, plan("lost", &[], "ok"), holds()));
    golden.histories.get_mut("003-kill").unwrap().truncated = true;
    let view = view(&golden);
    assert_eq!(view.not_shown.len(), 1);
    assert_eq!((view.not_shown[0].trials, view.not_shown[0].of), (5, 5));
    assert!(view.warnings.iter().any(|warning| warning.contains("no history of trial `005-lost`")));
    assert!(view.warnings.iter().any(|warning| warning.contains("`003-kill` ends before")));
}

#[test]
fn a_history_is_read_once_and_its_events_are_not_kept() {
    let golden = golden();
    let mut asked = Vec::new();
    let read = |trial: &TrialRecord, sink: &mut dyn FnMut(&Event)| {
        asked.push(trial.folder.clone());
        let Some(history) = golden.histories.get(&trial.folder) else { return Ok(Reading::Missing) };
        history.events.iter().for_each(sink);
        Ok::<_, Infallible>(Reading::Whole)
    };
    let Ok(read) = View::read(&golden.record, read);
    assert_eq!(asked, ["001-baseline", "002-drop", "003-kill", "004-kill"]);
    assert_eq!(read, view(&golden));
    let error = View::read(&golden.record, |_, _| Err("unreadable")).err();
    assert_eq!(error, Some("unreadable"));
}

#[test]
fn trials_that_hold_are_kept_as_examples_and_not_in_json() {
    let view = view(&golden());
    let folders: Vec<&str> = view.holding.iter().map(|detail| detail.folder.as_str()).collect();
    assert_eq!(folders, ["001-baseline", "002-drop"]);
    let steps = |index: usize| {
        view.holding[index].timeline.as_ref().map(|timeline| timeline.generations[0].steps.len())
    };
    assert_eq!((steps(0), steps(1)), (Some(4), None));
    assert!(serde_json::to_value(&view).unwrap().get("holding").is_none());
}

#[test]
fn a_long_history_keeps_a_short_list_of_boundaries_and_says_how_many_more_there_are() {
    let mut golden = golden();
    let hits = (1..=12_000).map(|ordinal| (1, hit(&format!("mark:item-claimed#{ordinal}"), true)));
    golden.histories.insert("003-kill".into(), history("003-kill", hits.collect()));
    let view = view(&golden);
    assert_eq!(view.boundaries.iter().filter(|one| one.series == "mark:item-claimed").count(), 10_000);
    let warning = "trial `003-kill` reached 2000 more boundaries than are listed";
    assert!(view.warnings.iter().any(|one| one == warning), "{:?}", view.warnings);
}

#[test]
fn a_green_whose_history_is_cut_short_is_not_green() {
    let mut golden = golden();
    golden.record.trials.truncate(2);
    golden.record.verdict = Verdict::Holds;
    assert_eq!(view(&golden).verdict, Verdict::Holds);
    golden.histories.get_mut("001-baseline").unwrap().truncated = true;
    let view = view(&golden);
    assert_eq!((view.verdict, view.exit_code()), (Verdict::Inconclusive, ExitCode::Unproven));
    assert!(view.warnings.iter().any(|warning| warning.contains("`001-baseline` ends before")));
}
