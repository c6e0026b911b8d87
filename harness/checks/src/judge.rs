//! The judgement of one trial: every invariant, the evidence, and the worst of it all.

use std::panic::{AssertUnwindSafe, catch_unwind};

use killpoint_model::event::EventKind;
use killpoint_model::finding::{Finding, InvariantOutcome, InvariantStatus};
use killpoint_model::provider::Counters;
use killpoint_model::run::TrialRole;
use killpoint_model::verdict::{ActionOutcome, TrialEvidence, TrialVerdict, Verdict};
use killpoint_model::{History, Settings};

use crate::evidence;
use crate::facts::Facts;
use crate::facts::sorted::Sorted;
use crate::invariants::{INVARIANTS, Invariant};

/// One trial with all that its judgement depends on.
#[derive(Debug, Clone, Copy)]
pub struct Case<'a> {
    /// What the user configured.
    pub settings: &'a Settings,
    /// What the trial is for.
    pub role: TrialRole,
    /// Its history.
    pub history: &'a History,
    /// The fault-free trials, first and second; may be empty when a baseline itself is judged.
    pub baselines: &'a [History],
}

/// Judges one trial. Worst wins: a violation, then what can't be told, then what was not shown. A
/// checker that crashes makes the trial inconclusive, never green.
pub fn judge(case: &Case<'_>) -> TrialVerdict {
    judge_with(case, INVARIANTS)
}

pub(crate) fn judge_with(case: &Case<'_>, invariants: &[&dyn Invariant]) -> TrialVerdict {
    let last_seq = case.history.events.last().map_or(1, |event| event.seq);
    let sorted = Sorted::of(case.history);
    let facts = catch_unwind(AssertUnwindSafe(|| Facts::gather(case, &sorted)));
    let outcomes: Vec<InvariantOutcome> = invariants
        .iter()
        .map(|invariant| {
            let facts = facts.as_ref().map_err(|_| ());
            facts
                .and_then(|facts| {
                    catch_unwind(AssertUnwindSafe(|| invariant.check(facts).into_outcome())).map_err(|_| ())
                })
                .unwrap_or_else(|()| crashed(invariant.entry().name, last_seq))
        })
        .collect();
    let mut evidence = evidence::collect(case, &sorted, &outcomes);
    let doubts = doubts(case, &sorted, facts.as_ref().ok());
    let verdict = merge(&evidence, &outcomes, !doubts.is_empty());
    evidence.missing.extend(doubts);
    TrialVerdict {
        verdict,
        evidence,
        outcomes,
        actions: facts.as_ref().map(actions).unwrap_or_default(),
        counters: Counters::count(sorted.provider.iter().map(|(_, event)| *event)),
    }
}

fn crashed(invariant: &str, last_seq: u64) -> InvariantOutcome {
    let finding = Finding {
        invariant: invariant.to_owned(),
        message: "the checker crashed on this history: please report it with the history file".into(),
        subject: "the checker itself".into(),
        events: vec![last_seq],
    };
    InvariantOutcome {
        invariant: invariant.to_owned(),
        status: InvariantStatus::Inconclusive,
        looked_at: 0,
        findings: vec![finding],
        notes: Vec::new(),
        reason: None,
    }
}

fn merge(evidence: &TrialEvidence, outcomes: &[InvariantOutcome], doubted: bool) -> Verdict {
    let of_outcomes = outcomes.iter().map(|outcome| match outcome.status {
        InvariantStatus::Violated => Verdict::Violated,
        InvariantStatus::Inconclusive => Verdict::Inconclusive,
        InvariantStatus::Holds | InvariantStatus::NotShown => Verdict::Holds,
    });
    let of_evidence = if evidence.is_complete() { Verdict::Holds } else { Verdict::Vacuous };
    let of_doubts = if doubted { Verdict::Inconclusive } else { Verdict::Holds };
    Verdict::worst(of_outcomes.chain([of_evidence, of_doubts]))
}

/// Why the whole history can't carry a verdict, in words.
fn doubts(case: &Case<'_>, sorted: &Sorted<'_>, facts: Option<&Facts<'_>>) -> Vec<String> {
    let mut doubts = Vec::new();
    if case.history.truncated {
        doubts.push("the history ends before the end of the trial: run the trial again".to_owned());
    }
    for event in &sorted.rare {
        if let EventKind::Infrastructure { doing, error } = &event.event {
            doubts
                .push(format!("the machine failed while {doing} ({error}): free the resource and run again"));
        }
    }
    match facts {
        Some(facts) => {
            doubts.extend(facts.baselines_differ.as_ref().map(ToString::to_string));
            if case.role == TrialRole::Faulted && case.baselines.is_empty() && !facts.is_mapped() {
                doubts.push(
                    "nothing says what was owed: run the fault-free trials first, or map the ledger"
                        .to_owned(),
                );
            }
        }
        None => doubts.push("the facts of this history could not be computed: please report it".to_owned()),
    }
    doubts
}

fn actions(facts: &Facts<'_>) -> Vec<ActionOutcome> {
    let told = facts.units().filter(|(_, unit, account)| {
        let touched = !unit.attempts.is_empty() || account.total > 0 || account.expected > 0;
        touched && !account.preexisting
    });
    told.map(|(_, unit, account)| ActionOutcome {
        action: unit.label(),
        recipient: unit.recipient.clone(),
        verdict: account.verdict,
        effects: account.total,
        expected: account.expected,
        state: account.state_words(),
        events: account.events.clone(),
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use killpoint_model::Entry;
    use killpoint_model::event::{Containment, KillProof};
    use killpoint_model::plan::{FaultAt, Rule};

    use super::*;
    use crate::invariants::Looked;
    use crate::sample::{Trial, judged, outcome, plain_baseline};

    fn killed() -> Trial {
        let mut trial = Trial::new();
        let attempt = trial.send("bob@x", Some("k-deploy-42"), "deployed");
        trial.commit(attempt);
        trial.kill("provider:committed#1").look_up("k-deploy-42", &["msg_1"]);
        trial
    }

    fn verdict_of(history: &History) -> TrialVerdict {
        judged(&Settings::default(), history, &plain_baseline())
    }

    fn assert_vacuous(history: &History, field: &str) {
        let verdict = verdict_of(history);
        let missing: Vec<&str> = (verdict.evidence.fields().iter())
            .filter(|(_, value)| *value == Some(false))
            .map(|(name, _)| *name)
            .collect();
        assert!(missing.contains(&field), "{field}: {:?}", verdict.evidence);
        assert!(verdict.evidence.missing.len() >= missing.len());
        assert_eq!(verdict.verdict, Verdict::Vacuous, "{field}: {:?}", verdict.outcomes);
    }

    #[test]
    fn all_the_evidence_is_green() {
        let verdict = verdict_of(&killed().end());
        assert_eq!(verdict.verdict, Verdict::Holds, "{:?}", verdict.evidence);
        assert_eq!(verdict.evidence.recovery_acted, Some(true));
        assert_eq!(verdict.evidence.provider_plan_fired, None);
        assert!(verdict.evidence.missing.is_empty());
        assert_eq!((verdict.counters.attempts, verdict.counters.acknowledged), (1, 0));
    }

    #[test]
    fn a_boundary_that_was_not_reached_is_vacuous() {
        let mut trial = killed();
        let at: killpoint_model::HitName = "mark:never#1".parse().unwrap();
        let fault = killpoint_model::Fault::named("stop");
        trial.plan.faults.push(FaultAt { at, fault });
        assert_vacuous(&trial.end(), "boundary reached");
    }

    #[test]
    fn a_canonical_name_is_reached_by_its_default_or_its_mark() {
        for (hit, canonical, reached) in [
            ("provider:committed#1", "provider-accepted#1", true),
            ("mark:provider-accepted#1", "provider-accepted#1", true),
            ("provider:committed#1", "item-claimed#1", false),
        ] {
            let mut trial = Trial::new();
            trial.hit(hit).deliver("bob@x", None, "deployed");
            let fault = killpoint_model::Fault::named("stop");
            trial.plan.faults.push(FaultAt { at: canonical.parse().unwrap(), fault });
            assert_eq!(verdict_of(&trial.end()).evidence.boundary_reached, Some(reached), "{hit}");
        }
    }

    fn proof() -> KillProof {
        let containment = Containment::Subreaper;
        KillProof { signal: Some(9), code: None, was_alive: true, reaped: 1, survivors: 0, containment }
    }

    #[test]
    fn a_signal_that_did_not_land_is_vacuous() {
        for proof in [
            KillProof { was_alive: false, signal: None, code: Some(0), ..proof() },
            KillProof { signal: Some(15), ..proof() },
        ] {
            let mut trial = Trial::new();
            trial.deliver("bob@x", None, "deployed").die_with("provider:replied#1", proof).spawn();
            assert_vacuous(&trial.end(), "signal 9 landed");
        }
    }

    #[test]
    fn a_kill_without_a_restart_is_vacuous() {
        let mut trial = Trial::new();
        trial.deliver("bob@x", None, "deployed").die("provider:replied#1");
        assert_vacuous(&trial.end(), "generation advanced");
    }

    #[test]
    fn a_survivor_is_vacuous() {
        let mut trial = Trial::new();
        let survived = KillProof { survivors: 1, ..proof() };
        trial.deliver("bob@x", None, "deployed").die_with("provider:replied#1", survived).spawn();
        assert_vacuous(&trial.end(), "generation advanced");
    }

    fn fault(trial: &mut Trial, name: &str, landed: bool) {
        let at: killpoint_model::HitName = "mark:here#1".parse().unwrap();
        let fault = killpoint_model::Fault::named(name);
        trial.hit("mark:here#1");
        trial.plan.faults.push(FaultAt { at: at.clone(), fault: fault.clone() });
        trial.push(EventKind::FaultAnnounced { at: at.clone(), fault });
        trial.push(EventKind::FaultDone { at, landed, note: "as the test wants it".into() });
    }

    #[test]
    fn a_fault_that_did_not_take_hold_is_vacuous() {
        let mut trial = killed();
        fault(&mut trial, "stop", true);
        assert_eq!(verdict_of(&trial.end()).evidence.faults_landed, Some(true));
        fault(&mut trial, "store-busy", false);
        assert_vacuous(&trial.end(), "faults took hold");
        let mut alone = killed();
        alone.push(EventKind::PartKilled { worker: 1, part: "children".into(), processes: 0 });
        assert_vacuous(&alone.end(), "faults took hold");
    }

    #[test]
    fn a_fault_that_was_never_begun_is_vacuous_though_its_boundary_is_on_record() {
        let mut trial = killed();
        let at: killpoint_model::HitName = "ledger:confirmed#2".parse().unwrap();
        trial.hit("ledger:confirmed#2");
        let fault = killpoint_model::Fault::named("stop");
        trial.plan.faults.push(FaultAt { at, fault });
        assert_vacuous(&trial.end(), "faults took hold");
    }

    #[test]
    fn a_trial_without_a_kill_does_not_miss_one() {
        let mut trial = Trial::new();
        trial.deliver("bob@x", None, "deployed");
        fault(&mut trial, "stop", true);
        assert_eq!(verdict_of(&trial.end()).evidence.missing, Vec::<String>::new());
    }

    #[test]
    fn what_is_not_to_be_had_is_never_green() {
        let mut trial = killed();
        let why = "the worker does not read the variable: let it, or leave the fault out".into();
        trial.push(EventKind::Limitation { what: "worker-clock".into(), why });
        assert_vacuous(&trial.end(), "means at hand");
    }

    #[test]
    fn a_worker_that_stays_stopped_is_vacuous() {
        let mut trial = killed();
        trial.push(EventKind::Stopped { worker: 1 });
        let mut resumed = trial.clone();
        resumed.push(EventKind::Resumed { worker: 1 });
        assert_eq!(verdict_of(&resumed.end()).verdict, Verdict::Holds);
        let stopped = edited(&trial.end(), |event| {
            if matches!(event, EventKind::Exited { .. }) {
                *event = EventKind::StateReady { from: "fresh".into() };
            }
        });
        assert_vacuous(&stopped, "faults over");
    }

    #[test]
    fn a_worker_that_was_asked_to_end_may_end_by_itself() {
        let ended = |code| {
            let mut trial = Trial::new();
            trial.deliver("bob@x", None, "deployed");
            fault(&mut trial, "terminate", true);
            trial.push(EventKind::Signalled { worker: 1, signal: 15 });
            if let Some(code) = code {
                trial.push(EventKind::Exited { worker: 1, code: Some(code), signal: None });
            }
            trial
        };
        let verdict = verdict_of(&ended(Some(0)).spawn().end());
        assert_eq!((verdict.verdict, verdict.evidence.signal_landed), (Verdict::Holds, Some(true)));
        assert_vacuous(&ended(Some(143)).end(), "generation advanced");
        let mut deaf = edited(&ended(None).end(), |event| {
            if matches!(event, EventKind::Exited { .. }) {
                *event = EventKind::StateReady { from: "fresh".into() };
            }
        });
        assert_vacuous(&deaf, "signal 9 landed");
        deaf.truncated = true;
        assert_eq!(verdict_of(&deaf).verdict, Verdict::Inconclusive);
    }

    #[test]
    fn a_part_that_is_killed_leaves_the_rest_alive() {
        let mut trial = Trial::new();
        let at: killpoint_model::HitName = "mark:here#1".parse().unwrap();
        let with = [("part".to_owned(), serde_json::json!("children"))].into();
        let fault = killpoint_model::Fault { name: "kill".into(), with };
        trial.hit("mark:here#1").plan.faults.push(FaultAt { at: at.clone(), fault: fault.clone() });
        trial.push(EventKind::FaultAnnounced { at: at.clone(), fault });
        trial.push(EventKind::PartKilled { worker: 1, part: "children".into(), processes: 2 });
        trial.push(EventKind::FaultDone { at, landed: true, note: "2 processes".into() });
        let verdict = verdict_of(&trial.deliver("bob@x", None, "deployed").end());
        assert_eq!(verdict.verdict, Verdict::Holds, "{:?}", verdict.evidence);
    }

    #[test]
    fn a_rule_that_never_fired_is_vacuous() {
        let mut trial = killed();
        let plan = killpoint_model::ProviderPlan::default();
        let matches = killpoint_model::plan::Match::default();
        trial.plan.rules.push(Rule { id: "drop".into(), matches, plan, times: Some(1) });
        assert_vacuous(&trial.end(), "provider plan fired");
    }

    fn edited(history: &History, edit: impl Fn(&mut EventKind)) -> History {
        let mut history = history.clone();
        history.events.iter_mut().for_each(|event| edit(&mut event.event));
        history
    }

    #[test]
    fn a_recovery_without_a_trace_is_vacuous() {
        let mut baseline = Trial::new();
        baseline.deliver("bob@x", None, "deployed").deliver("eve@x", None, "deployed");
        let mut trial = Trial::new();
        trial.deliver("bob@x", None, "deployed");
        trial.words = vec!["unknown".into()];
        let history = edited(&trial.kill("provider:replied#1").end(), |event| {
            if let EventKind::Exited { code, .. } = event {
                *code = Some(1);
            }
        });
        let verdict = judged(&Settings::default(), &history, &baseline.end());
        assert_eq!(verdict.evidence.recovery_acted, Some(false));
        let nothing_owed = verdict_of(&history);
        assert_eq!(nothing_owed.evidence.recovery_acted, Some(true));
    }

    #[test]
    fn an_incomplete_window_is_vacuous() {
        let history = edited(&killed().end(), |event| {
            if let EventKind::Settled { window_complete, .. } = event {
                *window_complete = false;
            }
        });
        assert_vacuous(&history, "settle window complete");
    }

    #[test]
    fn faults_that_are_not_over_are_vacuous() {
        let history = edited(&killed().end(), |event| {
            if *event == EventKind::FaultsOver {
                *event = EventKind::StateReady { from: "fresh".into() };
            }
        });
        assert_vacuous(&history, "faults over");
        let mut late = killed().end();
        let over = late.events.iter().position(|event| event.event == EventKind::FaultsOver).unwrap();
        late.events[over].event = EventKind::StateReady { from: "fresh".into() };
        let last = late.events.len() - 1;
        late.events[last].event = EventKind::FaultsOver;
        assert_vacuous(&late, "faults over");
    }

    #[test]
    fn nothing_looked_at_is_vacuous() {
        let empty = Trial::new().end();
        let case = Case {
            settings: &Settings::default(),
            role: TrialRole::Baseline,
            history: &empty,
            baselines: &[],
        };
        let verdict = judge(&case);
        assert_eq!((verdict.verdict, verdict.evidence.invariants_looked), (Verdict::Vacuous, Some(false)));
        assert!(verdict.outcomes.iter().all(|outcome| outcome.reason.is_some()));
    }

    #[test]
    fn truncation_and_a_failing_machine_are_inconclusive() {
        let mut truncated = killed().end();
        truncated.truncated = true;
        assert_eq!(verdict_of(&truncated).verdict, Verdict::Inconclusive);
        let mut failing = killed();
        let (doing, error) = ("starting the worker".into(), "EAGAIN".into());
        failing.push(EventKind::Infrastructure { doing, error });
        let verdict = verdict_of(&failing.end());
        assert_eq!(verdict.verdict, Verdict::Inconclusive);
        assert!(verdict.evidence.missing.iter().any(|why| why.contains("EAGAIN")));
    }

    #[test]
    fn without_an_oracle_nothing_is_green() {
        let history = killed().end();
        let case = Case {
            settings: &Settings::default(),
            role: TrialRole::Faulted,
            history: &history,
            baselines: &[],
        };
        assert_eq!(judge(&case).verdict, Verdict::Inconclusive);
        let other = Trial::new().deliver("eve@x", None, "deployed").end();
        let baselines = [plain_baseline(), other];
        assert_eq!(judge(&Case { baselines: &baselines, ..case }).verdict, Verdict::Inconclusive);
    }

    static CRASHER: Entry = Entry { name: "crasher", summary: "crashes", explanation: "", example: "" };

    struct Crasher;

    impl Invariant for Crasher {
        fn entry(&self) -> &'static Entry {
            &CRASHER
        }

        fn check(&self, facts: &Facts<'_>) -> Looked {
            let nothing: &[u64] = &facts.kills[..0];
            panic!("{}", nothing[0]);
        }
    }

    #[test]
    fn a_crashing_checker_is_inconclusive_and_the_others_still_speak() {
        let history = killed().end();
        let baselines = [plain_baseline(), plain_baseline()];
        let settings = Settings::default();
        let case =
            Case { settings: &settings, role: TrialRole::Faulted, history: &history, baselines: &baselines };
        let invariants: Vec<&dyn Invariant> =
            [&Crasher as &dyn Invariant].into_iter().chain(INVARIANTS.iter().copied()).collect();
        let verdict = judge_with(&case, &invariants);
        assert_eq!(verdict.verdict, Verdict::Inconclusive);
        assert_eq!(outcome(&verdict, "crasher").status, InvariantStatus::Inconclusive);
        assert_eq!(outcome(&verdict, "no-duplicate-effect").status, InvariantStatus::Holds);
    }

    #[test]
    fn the_baseline_itself_is_judged() {
        let history = plain_baseline();
        let case = Case {
            settings: &Settings::default(),
            role: TrialRole::Baseline,
            history: &history,
            baselines: &[],
        };
        assert_eq!(judge(&case).verdict, Verdict::Holds);
    }
}
