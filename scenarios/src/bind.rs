//! Canonical names to the hits that they mean for this worker.

use std::collections::BTreeSet;

use killpoint_model::hit::CANONICAL;
use killpoint_model::{Diagnostic, HitName, Plan, Settings, Source};

use crate::code::Code;

/// Gives each canonical name in `plan` its meaning: what `[boundaries]` says, or else a mark of that name
/// where the baseline `reached` one, or else the meaning that the name has everywhere. An ordinal counts
/// on from the hit that the name is bound to. A name whose meaning the baseline did not reach stays as it is: it
/// may belong to recovery, and the trial takes its mark or its general meaning, whichever comes first.
///
/// The diagnostics are warnings about names whose meaning the baseline did not reach: the fault may still
/// come, in recovery, but a trial in which it does not proves nothing.
pub fn bind(plan: &Plan, settings: &Settings, reached: &BTreeSet<HitName>) -> (Plan, Vec<Diagnostic>) {
    let mut bound = plan.clone();
    let mut diagnostics = Vec::new();
    for fault in &mut bound.faults {
        if fault.at.source.is_some() {
            continue;
        }
        let hit = meaning(&fault.at, settings, reached);
        if reached.iter().any(|other| other.series() == hit.series()) {
            fault.at = hit;
            continue;
        }
        diagnostics.push(never_reached(&fault.at, &hit));
        if settings.bindings.contains_key(&fault.at.point) {
            fault.at = hit;
        }
    }
    (bound, diagnostics)
}

/// The hit that a name means; a name with a source means itself.
pub(crate) fn meaning(name: &HitName, settings: &Settings, reached: &BTreeSet<HitName>) -> HitName {
    if name.source.is_some() {
        return name.clone();
    }
    let marked = || {
        let made = |hit: &&HitName| hit.source == Some(Source::Mark) && hit.point == name.point;
        reached.iter().find(made).map(|_| HitName::new(Source::Mark, name.point.clone(), 1))
    };
    let everywhere = || {
        let (_, text) = CANONICAL.iter().find(|(canonical, _)| *canonical == name.point)?;
        text.parse::<HitName>().ok()
    };
    let first = settings.bindings.get(&name.point).cloned().or_else(marked).or_else(everywhere);
    let Some(first) = first else { return name.clone() };
    HitName {
        ordinal: first.ordinal.saturating_add(name.ordinal - 1),
        selector: name.selector.clone().or(first.selector.clone()),
        ..first
    }
}

fn never_reached(name: &HitName, hit: &HitName) -> Diagnostic {
    let message = format!("`{name}` means `{hit}` here, which the fault-free trial never reached");
    let help = format!(
        "say what it means: `{point} = \"mark:…\"` under `[boundaries]`, or call mark(\"{point}\") in the worker",
        point = name.point
    );
    warning(Code::BoundaryNotReached, message, help)
}

pub(crate) fn warning(code: Code, message: String, help: String) -> Diagnostic {
    Diagnostic::error(code, message).with_help(help).as_warning()
}

#[cfg(test)]
mod tests {
    use super::*;
    use killpoint_model::{Fault, FaultAt, Severity};

    fn hits(names: &[&str]) -> BTreeSet<HitName> {
        names.iter().map(|name| name.parse().unwrap()).collect()
    }

    fn bound(name: &str, settings: &Settings, reached: &[&str]) -> (String, Vec<Diagnostic>) {
        let fault = FaultAt { at: name.parse().unwrap(), fault: Fault::named("kill") };
        let plan = Plan { faults: vec![fault], ..Plan::default() };
        let (plan, diagnostics) = bind(&plan, settings, &hits(reached));
        (plan.faults[0].at.to_string(), diagnostics)
    }

    #[test]
    fn the_configuration_goes_before_a_mark_and_a_mark_before_the_general_meaning() {
        let mut settings = Settings::default();
        let reached = ["mark:item-claimed#1", "mark:claimed#3", "ledger:dispatching#1"];
        assert_eq!(bound("item-claimed#2", &settings, &reached).0, "mark:item-claimed#2");
        assert_eq!(bound("item-claimed#2", &settings, &reached[2..]).0, "ledger:dispatching#2");
        settings.bindings.insert("item-claimed".into(), "mark:claimed#3".parse().unwrap());
        assert_eq!(bound("item-claimed#2", &settings, &reached).0, "mark:claimed#4");
        assert_eq!(bound("item-claimed[job-7]", &settings, &reached).0, "mark:claimed[job-7]#3");
    }

    #[test]
    fn a_name_with_a_source_means_itself_and_may_come_in_recovery() {
        let (hit, diagnostics) = bound("provider:lookup#1", &Settings::default(), &[]);
        assert_eq!((hit.as_str(), diagnostics.len()), ("provider:lookup#1", 0));
    }

    #[test]
    fn a_canonical_name_that_was_not_reached_is_named() {
        let reached = ["provider:committed#1"];
        let (hit, diagnostics) = bound("ack-committed", &Settings::default(), &reached);
        assert_eq!(hit, "ack-committed#1", "it may come in recovery, as a mark or as its general meaning");
        let [warning] = diagnostics.as_slice() else { panic!("{diagnostics:?}") };
        assert_eq!((warning.code.as_str(), warning.severity), ("boundary-not-reached", Severity::Warning));
        assert_eq!(
            warning.message,
            "`ack-committed#1` means `ledger:confirmed#1` here, which the fault-free trial never reached"
        );
        assert_eq!(
            warning.help.as_deref(),
            Some(
                "say what it means: `ack-committed = \"mark:…\"` under `[boundaries]`, or call mark(\"ack-committed\") in the worker"
            )
        );
    }

    #[test]
    fn what_the_configuration_says_holds_for_recovery_too() {
        let mut settings = Settings::default();
        settings.bindings.insert("recovery-scanned".into(), "mark:scanned#1".parse().unwrap());
        let (hit, diagnostics) = bound("recovery-scanned#2", &settings, &["provider:committed#1"]);
        assert_eq!((hit.as_str(), diagnostics.len()), ("mark:scanned#2", 1));
    }

    #[test]
    fn every_canonical_meaning_can_be_read() {
        for (name, _) in CANONICAL {
            let hit = meaning(&name.parse().unwrap(), &Settings::default(), &BTreeSet::new());
            assert!(hit.source.is_some(), "{name}");
        }
    }
}
