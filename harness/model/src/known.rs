//! Known failures: violations that a gate lets pass because a file lists them, and what became of each entry.
//!
//! Everything here is a function of the entries and of the trials on record, so that a stored run says the same as
//! the run itself. The verdict of a trial is never touched: a known violation is a violation.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::hit::HitName;
use crate::run::{RunRecord, TrialRecord};
use crate::verdict::{TrialEvidence, TrialVerdict, Verdict};
use crate::{InvariantStatus, Plan};

/// One known violation: a trial, an invariant, and the kind of finding, without anything that another run would
/// word otherwise. Entries are in the order of their fields.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KnownFailure {
    /// The plan's name. For readers: what counts is `plan`.
    pub trial: String,
    /// The scenario that the plan comes from. For readers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scenario: Option<String>,
    /// Where the plan does something. For readers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub boundary: Vec<HitName>,
    /// The provider plan's name. For readers.
    pub provider_plan: String,
    /// What the plan does: its content id.
    pub plan: String,
    /// The invariant's name.
    pub invariant: String,
    /// The kind of finding: its message without numbers, names and quotations.
    pub finding: String,
    /// Whether the trial shows it only now and then, so that it may be absent without being stale.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub flaky: bool,
}

/// What tells an entry from others.
type Id<'a> = (&'a str, &'a str, &'a str);

impl KnownFailure {
    fn new(plan: &Plan, content_id: &str, invariant: &str, finding: &str) -> Self {
        Self {
            trial: plan.name.clone(),
            scenario: plan.scenario.clone(),
            boundary: plan.faults.iter().map(|fault| fault.at.clone()).collect(),
            provider_plan: plan.provider_plan.clone(),
            plan: content_id.to_owned(),
            invariant: invariant.to_owned(),
            finding: finding.to_owned(),
            flaky: false,
        }
    }

    fn id(&self) -> Id<'_> {
        (&self.plan, &self.invariant, &self.finding)
    }
}

/// A message without what differs between runs and workers: the first clause, each word with a digit as `N`, each
/// quotation, address and subject as `…`.
pub fn kind_of(message: &str, subject: &str) -> String {
    let named = without_subject(message, subject);
    let mut plain = String::new();
    for (index, piece) in named.split('`').enumerate() {
        plain.push_str(if index % 2 == 0 { piece } else { "…" });
    }
    let clause = plain.split([':', ';', '(']).next().unwrap_or_default();
    let mut words: Vec<String> = Vec::new();
    for word in clause.split_whitespace() {
        let bare = word.trim_end_matches(',');
        let comma = &word[bare.len()..];
        let kind = if bare.contains('…') || bare.contains('@') {
            "…"
        } else if bare.chars().any(|c| c.is_ascii_digit()) {
            "N"
        } else if bare == "once" || bare == "twice" {
            words.extend(["N".to_owned(), format!("times{comma}")]);
            continue;
        } else {
            bare
        };
        // `1 effect` and `2 effects` are the same.
        let follows_number = words.last().is_some_and(|last| last == "N");
        let kind = match kind.strip_suffix('s') {
            Some(one) if follows_number && one.len() > 2 && kind != "times" => one,
            _ => kind,
        };
        let is_list = kind == "…" && words.last().is_some_and(|last| last.trim_end_matches(',') == "…");
        if is_list {
            words.pop();
        }
        words.push(format!("{kind}{comma}"));
    }
    words.join(" ").trim_end_matches(',').to_owned()
}

/// The message with `…` where the subject stands as a whole word.
fn without_subject(message: &str, subject: &str) -> String {
    if subject.is_empty() {
        return message.to_owned();
    }
    let mut named = String::new();
    let mut rest = message;
    while let Some(at) = rest.find(subject) {
        let (before, after) = (&rest[..at], &rest[at + subject.len()..]);
        let inside = before.ends_with(char::is_alphanumeric) || after.starts_with(char::is_alphanumeric);
        named.push_str(before);
        named.push_str(if inside { subject } else { "…" });
        rest = after;
    }
    named + rest
}

/// The kinds of violation that a trial shows: invariant and kind of finding.
fn violations(judged: &TrialVerdict) -> BTreeSet<(&str, String)> {
    let of = |outcome: &'_ crate::InvariantOutcome| -> Vec<String> {
        outcome.findings.iter().map(|finding| kind_of(&finding.message, &finding.subject)).collect()
    };
    judged
        .violated()
        .flat_map(|outcome| of(outcome).into_iter().map(|kind| (outcome.invariant.as_str(), kind)))
        .collect()
}

/// What is left of a violated trial when its violations are known: what could not be told stays so, and a trial that
/// did not do what it was for has shown nothing else. Evidence that a bug itself can take away (recovery, settling)
/// is not asked for.
fn rest_of(judged: &TrialVerdict) -> Verdict {
    let TrialEvidence {
        boundary_reached,
        signal_landed,
        generation_advanced,
        faults_landed,
        means_at_hand,
        provider_plan_fired,
        ..
    } = &judged.evidence;
    let done = [
        boundary_reached,
        signal_landed,
        generation_advanced,
        faults_landed,
        means_at_hand,
        provider_plan_fired,
    ];
    if judged.outcomes.iter().any(|outcome| outcome.status == InvariantStatus::Inconclusive) {
        Verdict::Inconclusive
    } else if done.contains(&&Some(false)) {
        Verdict::Vacuous
    } else {
        Verdict::Holds
    }
}

/// The list of known failures that a run was held against, in its record.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BaselineRecord {
    /// The file, as the user named it.
    pub file: String,
    /// Its entries; after an update those that it then had.
    pub entries: Vec<KnownFailure>,
    /// What the run changed in the file, where it was asked to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update: Option<BaselineUpdate>,
}

/// What a run changed in the file of known failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BaselineUpdate {
    /// Whether the file was written. It is not where the run was interrupted or failed.
    pub written: bool,
    /// Entries that were put in.
    pub added: u32,
    /// Entries that were taken out.
    pub removed: u32,
}

/// A violation, and in how many trials of its plan it was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SeenFailure {
    /// Which.
    #[serde(flatten)]
    pub failure: KnownFailure,
    /// Trials that show it.
    pub red: u32,
    /// Trials of the plan.
    pub of: u32,
}

/// The trials of a run held against the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Baseline {
    /// The file, as the user named it.
    pub file: String,
    /// The verdict of the run without the trials whose violations are all known. It never replaces the verdict.
    pub rest: Verdict,
    /// Folders of the trials whose violations are all known.
    pub known_trials: Vec<String>,
    /// Violations that are in the list.
    pub known: Vec<SeenFailure>,
    /// Violations that are not.
    pub new: Vec<SeenFailure>,
    /// Entries whose trials were done and do not show them any more.
    pub stale: Vec<KnownFailure>,
    /// Flaky entries whose trials were done and did not show them this time.
    pub unseen: Vec<KnownFailure>,
    /// Entries of whose trials some could not be judged, so that nothing is known of them.
    pub unclear: Vec<KnownFailure>,
    /// Entries whose trials were not part of this run.
    pub not_run: Vec<KnownFailure>,
    /// What the run changed in the file, where it was asked to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub update: Option<BaselineUpdate>,
}

/// The trials of one plan.
#[derive(Default)]
struct OfPlan<'t> {
    trials: Vec<&'t TrialRecord>,
    red: BTreeMap<(String, String), u32>,
    plan: Option<&'t Plan>,
}

impl OfPlan<'_> {
    /// Whether each of its trials says something of the worker.
    fn speaks(&self) -> bool {
        self.trials.iter().all(|trial| {
            trial
                .verdict
                .as_ref()
                .is_some_and(|judged| matches!(judged.verdict, Verdict::Holds | Verdict::Violated))
        })
    }
}

fn by_plan(trials: &[TrialRecord]) -> BTreeMap<String, OfPlan<'_>> {
    let mut plans: BTreeMap<String, OfPlan> = BTreeMap::new();
    for trial in trials {
        let of = plans.entry(trial.plan.content_id()).or_default();
        of.trials.push(trial);
        of.plan.get_or_insert(&trial.plan);
        for (invariant, kind) in trial.verdict.iter().flat_map(violations) {
            *of.red.entry((invariant.to_owned(), kind)).or_default() += 1;
        }
    }
    plans
}

impl Baseline {
    /// Holds the trials of a run against its list; `None` where it has none.
    pub fn of(record: &RunRecord) -> Option<Self> {
        let list = record.baseline.as_ref()?;
        let mut compared = Self::compare(&list.entries, &record.trials);
        let known: BTreeSet<&str> = compared.known_trials.iter().map(String::as_str).collect();
        compared.rest = record.verdict_with(|trial| {
            let judged = trial.verdict.as_ref()?;
            Some(if known.contains(trial.folder.as_str()) { rest_of(judged) } else { judged.verdict })
        });
        compared.file.clone_from(&list.file);
        compared.update = list.update;
        Some(compared)
    }

    /// Holds trials against entries. The verdict of the rest is that of these trials alone.
    pub fn compare(entries: &[KnownFailure], trials: &[TrialRecord]) -> Self {
        let plans = by_plan(trials);
        let listed: BTreeSet<Id> = entries.iter().map(KnownFailure::id).collect();
        let mut compared = Self {
            file: String::new(),
            rest: Verdict::Vacuous,
            known_trials: Vec::new(),
            known: Vec::new(),
            new: Vec::new(),
            stale: Vec::new(),
            unseen: Vec::new(),
            unclear: Vec::new(),
            not_run: Vec::new(),
            update: None,
        };
        for entry in entries {
            let Some(of) = plans.get(&entry.plan) else {
                compared.not_run.push(entry.clone());
                continue;
            };
            let key = (entry.invariant.clone(), entry.finding.clone());
            match of.red.get(&key) {
                Some(red) => compared.known.push(SeenFailure {
                    failure: entry.clone(),
                    red: *red,
                    of: of.trials.len() as u32,
                }),
                None if !of.speaks() => compared.unclear.push(entry.clone()),
                None if entry.flaky => compared.unseen.push(entry.clone()),
                None => compared.stale.push(entry.clone()),
            }
        }
        for (id, of) in &plans {
            let Some(plan) = of.plan else { continue };
            for ((invariant, kind), red) in &of.red {
                if !listed.contains(&(id.as_str(), invariant.as_str(), kind.as_str())) {
                    let failure = KnownFailure::new(plan, id, invariant, kind);
                    compared.new.push(SeenFailure { failure, red: *red, of: of.trials.len() as u32 });
                }
            }
        }
        compared.new.sort_by(|a, b| a.failure.cmp(&b.failure));
        let is_known = |trial: &&TrialRecord| {
            let shown = trial.verdict.as_ref().map(violations).unwrap_or_default();
            if shown.is_empty() {
                return false;
            }
            let id = trial.plan.content_id();
            shown.iter().all(|(invariant, kind)| listed.contains(&(&*id, *invariant, kind.as_str())))
        };
        compared.known_trials = trials.iter().filter(is_known).map(|trial| trial.folder.clone()).collect();
        compared
    }

    /// The entries after an update: without the stale ones, and with the new violations only where they are accepted.
    /// A new one that some trials of its plan do not show is written down as flaky.
    pub fn updated(&self, entries: &[KnownFailure], accept_new: bool) -> (Vec<KnownFailure>, BaselineUpdate) {
        let stale: BTreeSet<Id> = self.stale.iter().map(KnownFailure::id).collect();
        let mut kept: Vec<KnownFailure> =
            entries.iter().filter(|entry| !stale.contains(&entry.id())).cloned().collect();
        let removed = (entries.len() - kept.len()) as u32;
        let mut added = 0;
        if accept_new {
            added = self.new.len() as u32;
            kept.extend(
                self.new
                    .iter()
                    .map(|seen| KnownFailure { flaky: seen.red < seen.of, ..seen.failure.clone() }),
            );
        }
        kept.sort();
        (kept, BaselineUpdate { written: false, added, removed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::FaultAt;
    use crate::run::TrialRole;
    use crate::{Fault, Finding, InvariantOutcome};
    use proptest::prelude::*;

    fn plan(ordinal: u32) -> Plan {
        let at = format!("provider:committed#{ordinal}").parse().unwrap();
        Plan {
            name: format!("kill at {at}"),
            provider_plan: "ok".into(),
            faults: vec![FaultAt { at, fault: Fault::named("kill") }],
            ..Plan::default()
        }
    }

    /// A trial; violated where it has findings.
    fn trial(ordinal: u32, repetition: u32, verdict: Verdict, findings: &[(&str, &str)]) -> TrialRecord {
        let outcome = |(invariant, message): &(&str, &str)| InvariantOutcome {
            invariant: (*invariant).into(),
            status: InvariantStatus::Violated,
            looked_at: 1,
            findings: vec![Finding {
                invariant: (*invariant).into(),
                message: (*message).into(),
                subject: "deploy-42".into(),
                events: vec![1],
            }],
            notes: Vec::new(),
            reason: None,
        };
        TrialRecord {
            folder: format!("{ordinal:04}-{repetition}"),
            role: TrialRole::Faulted,
            plan: plan(ordinal),
            repetition,
            verdict: Some(TrialVerdict {
                verdict,
                evidence: TrialEvidence::default(),
                outcomes: findings.iter().map(outcome).collect(),
                actions: Vec::new(),
                counters: crate::provider::Counters::default(),
            }),
            replay: String::new(),
            duration_ms: 1,
            drawn: false,
            shard: None,
            source: None,
        }
    }

    const TWICE: (&str, &str) = ("no-duplicate-effect", "the recipient got 2 effects where 1 was owed");
    const LOST: (&str, &str) = ("no-lost-action", "1 owed, 0 delivered, and no row says so");

    fn red(ordinal: u32, findings: &[(&str, &str)]) -> TrialRecord {
        trial(ordinal, 1, Verdict::Violated, findings)
    }

    fn green(ordinal: u32) -> TrialRecord {
        trial(ordinal, 1, Verdict::Holds, &[])
    }

    fn listed(trials: &[TrialRecord]) -> Vec<KnownFailure> {
        Baseline::compare(&[], trials).updated(&[], true).0
    }

    fn record(trials: Vec<TrialRecord>, entries: Vec<KnownFailure>) -> RunRecord {
        RunRecord {
            trials,
            baseline: Some(BaselineRecord { file: "known.toml".into(), entries, update: None }),
            ..RunRecord::new(crate::Settings::default())
        }
    }

    #[test]
    fn a_kind_is_the_same_in_every_run() {
        for (message, subject, kind) in [
            (
                "the recipient got 2 effects where 1 was owed: attempts 1, 2",
                "a",
                "the recipient got N effect where N was owed",
            ),
            (
                "the recipient got 1 effect where 0 was owed",
                "a",
                "the recipient got N effect where N was owed",
            ),
            ("refused with 429, and sent again once", "a", "refused with N, and sent again N times"),
            ("refused with 503, and sent again 3 times", "a", "refused with N, and sent again N times"),
            ("key `k-17` serves 2 different messages", "a", "key … serves N different messages"),
            (
                "it went to `ann@x`, and was committed for bob@x, carl@x",
                "a",
                "it went to …, and was committed for …",
            ),
            (
                "undecided for 812 ms, more than the 500 ms that are allowed",
                "",
                "undecided for N ms, more than the N ms that are allowed",
            ),
            ("deploy-42 has no row", "deploy-42", "… has no row"),
            ("the row said `sent` and became `new`: it went back", "a", "the row said … and became …"),
        ] {
            assert_eq!(kind_of(message, subject), kind);
        }
    }

    #[test]
    fn what_is_listed_is_known_and_what_is_not_is_new() {
        let entries = listed(&[red(1, &[TWICE])]);
        assert_eq!(
            (entries[0].trial.as_str(), entries[0].boundary.len()),
            ("kill at provider:committed#1", 1)
        );
        let again = Baseline::compare(
            &entries,
            &[red(1, &[("no-duplicate-effect", "the recipient got 3 effects where 1 was owed")]), green(2)],
        );
        assert_eq!((again.known.len(), again.new.len(), again.stale.len()), (1, 0, 0));
        assert_eq!(again.known_trials, ["0001-1"]);
        for other in [red(2, &[TWICE]), red(1, &[LOST]), red(1, &[("no-duplicate-effect", "something else")])]
        {
            let compared = Baseline::compare(&entries, &[red(1, &[TWICE]), other]);
            assert_eq!(compared.new.len(), 1);
        }
        let both = Baseline::compare(&entries, &[red(1, &[TWICE, LOST])]);
        assert_eq!((both.known.len(), both.new.len()), (1, 1));
        assert!(both.known_trials.is_empty(), "one of its violations is new");
    }

    #[test]
    fn an_entry_is_stale_only_where_its_trial_says_so() {
        let entries = listed(&[red(1, &[TWICE]), red(2, &[TWICE]), red(3, &[TWICE])]);
        let compared = Baseline::compare(&entries, &[green(1), trial(2, 1, Verdict::Vacuous, &[])]);
        let plans = |list: &[KnownFailure]| list.iter().map(|one| one.plan.clone()).collect::<Vec<_>>();
        assert_eq!(plans(&compared.stale), [plan(1).content_id()]);
        assert_eq!(plans(&compared.unclear), [plan(2).content_id()]);
        assert_eq!(plans(&compared.not_run), [plan(3).content_id()]);
        let unjudged = TrialRecord { verdict: None, ..green(1) };
        let half = Baseline::compare(&entries[..1], &[green(1), unjudged]);
        assert_eq!((half.stale.len(), half.unclear.len()), (0, 1));
    }

    #[test]
    fn a_flaky_trial_is_known_by_its_invariant_and_never_stale() {
        let trials = [red(1, &[TWICE]), trial(1, 2, Verdict::Holds, &[])];
        let entries = listed(&trials);
        assert!(entries[0].flaky, "one of two");
        let again = Baseline::compare(&entries, &trials);
        assert_eq!((again.known[0].red, again.known[0].of, again.new.len()), (1, 2, 0));
        let green = Baseline::compare(&entries, &[green(1)]);
        assert_eq!((green.unseen.len(), green.stale.len()), (1, 0));
        assert_eq!(green.updated(&entries, false).0, entries, "it is left alone");
        assert_eq!(Baseline::compare(&entries, &[red(1, &[LOST])]).new.len(), 1);
    }

    #[test]
    fn the_rest_is_never_better_than_what_is_not_excused() {
        let entries = listed(&[red(1, &[TWICE])]);
        let rest = |trials| Baseline::of(&record(trials, entries.clone())).map(|compared| compared.rest);
        assert_eq!(rest(vec![red(1, &[TWICE]), green(2)]), Some(Verdict::Holds));
        assert_eq!(rest(vec![red(1, &[TWICE]), red(2, &[LOST])]), Some(Verdict::Violated));
        for bad in [Verdict::Vacuous, Verdict::Inconclusive] {
            assert_eq!(rest(vec![red(1, &[TWICE]), trial(2, 1, bad, &[])]), Some(bad));
        }
        let mut unclear = red(1, &[TWICE]);
        let judged = unclear.verdict.as_mut().unwrap();
        judged
            .outcomes
            .push(InvariantOutcome { status: InvariantStatus::Inconclusive, ..judged.outcomes[0].clone() });
        assert_eq!(rest(vec![unclear]), Some(Verdict::Inconclusive));
        let mut missed = red(1, &[TWICE]);
        missed.verdict.as_mut().unwrap().evidence.provider_plan_fired = Some(false);
        assert_eq!(rest(vec![missed]), Some(Verdict::Vacuous));
        assert_eq!(rest(vec![TrialRecord { verdict: None, ..green(1) }]), Some(Verdict::Inconclusive));
    }

    fn trials() -> impl Strategy<Value = Vec<TrialRecord>> {
        let findings = prop::sample::select(vec![vec![], vec![TWICE], vec![LOST], vec![TWICE, LOST]]);
        prop::collection::vec((1_u32..6, 1_u32..4, findings, prop::bool::ANY), 0..12).prop_map(|list| {
            let one = |(place, (ordinal, repetition, findings, clear)): (usize, (u32, u32, Vec<_>, bool))| {
                let verdict = match (findings.is_empty(), clear) {
                    (false, _) => Verdict::Violated,
                    (true, true) => Verdict::Holds,
                    (true, false) => Verdict::Vacuous,
                };
                let folder = format!("{place:04}");
                TrialRecord { folder, ..trial(ordinal, repetition, verdict, &findings) }
            };
            list.into_iter().enumerate().map(one).collect()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn what_was_accepted_is_known_the_next_time(trials in trials()) {
            let (entries, update) = Baseline::compare(&[], &trials).updated(&[], true);
            prop_assert_eq!(update.added as usize, entries.len());
            let again = Baseline::compare(&entries, &trials);
            prop_assert_eq!(again.known.len(), entries.len());
            prop_assert!(again.new.is_empty() && again.stale.is_empty());
            let (kept, update) = again.updated(&entries, true);
            prop_assert_eq!((&kept, update.added, update.removed), (&entries, 0, 0), "an update changes nothing");
        }

        #[test]
        fn without_accepting_the_list_only_shrinks_and_each_entry_is_in_one_place(
            before in trials(), now in trials(),
        ) {
            let entries = listed(&before);
            let compared = Baseline::compare(&entries, &now);
            let (kept, update) = compared.updated(&entries, false);
            prop_assert_eq!(update.added, 0);
            prop_assert!(kept.iter().all(|entry| entries.contains(entry)));
            prop_assert_eq!(kept.len() + update.removed as usize, entries.len());
            let places = compared.known.len() + compared.stale.len() + compared.unseen.len()
                + compared.unclear.len() + compared.not_run.len();
            prop_assert_eq!(places, entries.len());
            prop_assert!(compared.new.iter().all(|new| !entries.iter().any(|entry| entry.id() == new.failure.id())));
        }

        #[test]
        fn a_trial_is_excused_only_if_all_that_it_shows_is_listed(before in trials(), now in trials()) {
            let entries = listed(&before);
            let compared = Baseline::of(&record(now.clone(), entries)).unwrap();
            for trial in &now {
                let red = trial.verdict.as_ref().unwrap().verdict == Verdict::Violated;
                let own = |seen: &SeenFailure| seen.failure.plan == trial.plan.content_id();
                let is_known = compared.known_trials.contains(&trial.folder);
                prop_assert!(red || !is_known);
                prop_assert!(is_known || !red || compared.new.iter().any(own));
            }
            if !compared.new.is_empty() {
                prop_assert_eq!(compared.rest, Verdict::Violated);
            }
        }
    }
}
