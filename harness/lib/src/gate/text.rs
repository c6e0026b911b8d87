//! What a test that fails prints: the first trial that does not hold in full, the others by name.
//!
//! The clients for other languages' test runners print the same text; `harness/clients/recorded-runs.json` holds
//! them to it.

use std::fmt::{self, Write};

use killpoint_model::{InvariantStatus, Verdict};
use killpoint_reports::{Detail, Judged, clean, is_bad};

use super::outcome::{GateRun, GateTrial};

/// Findings of one invariant, and actions, that are shown.
const FINDINGS_MAX: usize = 5;
/// Trials that are named after the first.
const NAMED_MAX: usize = 10;
/// Event numbers of one finding that are shown.
const EVENTS_MAX: usize = 20;

/// The text of a whole run.
pub(super) fn write_run(run: &GateRun, out: &mut dyn Write) -> fmt::Result {
    let trials: Vec<GateTrial<'_>> = run.trials().collect();
    let bad = run.not_holding();
    if run.verdict() == Verdict::Holds {
        return write!(out, "holds: all {} trials hold", trials.len());
    }
    write!(out, "{}: {} of {} trials do not hold", run.verdict(), bad.len(), trials.len())?;
    if let Some((first, others)) = bad.split_first() {
        writeln!(out)?;
        write_trial(first, out)?;
        for other in others.iter().take(NAMED_MAX) {
            write!(out, "\nand {}: {}", clean(other.name()), other.verdict())?;
            let names: Vec<&str> = other.violated().collect();
            if !names.is_empty() {
                write!(out, " ({})", names.join(", "))?;
            }
        }
        write_rest(out, "\nand", others.len(), NAMED_MAX)?;
    } else {
        write!(out, "; no trial shows why: see `killpoint report {}`", run.folder().display())?;
    }
    for warning in run.warnings().iter().take(FINDINGS_MAX) {
        write!(out, "\nwarning: {}", clean(warning))?;
    }
    write_rest(out, "\nwarning:", run.warnings().len(), FINDINGS_MAX)
}

/// The text of one trial.
pub(super) fn write_trial(trial: &GateTrial<'_>, out: &mut dyn Write) -> fmt::Result {
    write!(out, "{}: {}", clean(trial.name()), trial.verdict())?;
    let Some(detail) = trial.detail() else { return Ok(()) };
    for judged in &detail.judged {
        write_judged(judged, out)?;
    }
    write_actions(detail, out)?;
    match detail.verdict {
        None => write!(out, "\n  not judged: the run ended before")?,
        Some(Verdict::Violated | Verdict::Holds) => {}
        Some(Verdict::Vacuous | Verdict::Inconclusive) => {
            for missing in &detail.missing {
                write!(out, "\n  missing: {}", clean(missing))?;
            }
        }
    }
    write!(out, "\n  where: {}, provider plan {}", clean(&detail.boundary), clean(&detail.provider_plan))?;
    write!(out, "\n  replay: {}", clean(&detail.replay))?;
    write!(out, "\n  folder: {}", clean(&trial.folder().display().to_string()))
}

fn write_judged(judged: &Judged, out: &mut dyn Write) -> fmt::Result {
    let doubt = if judged.status == InvariantStatus::Violated { "" } else { " (inconclusive)" };
    for finding in judged.findings.iter().take(FINDINGS_MAX) {
        write!(out, "\n  {}{doubt}: {}", judged.invariant, clean(&finding.message))?;
        let shown: Vec<String> = finding.events.iter().take(EVENTS_MAX).map(u64::to_string).collect();
        let more = if finding.events.len() > EVENTS_MAX { ", …" } else { "" };
        write!(out, "\n    about {}, events {}{more}", clean(&finding.subject), shown.join(", "))?;
    }
    write_rest(out, &format!("\n  {}{doubt}:", judged.invariant), judged.findings.len(), FINDINGS_MAX)
}

fn write_actions(detail: &Detail, out: &mut dyn Write) -> fmt::Result {
    let wrong: Vec<_> = detail.actions.iter().filter(|action| is_bad(action.verdict)).collect();
    for action in wrong.iter().take(FINDINGS_MAX) {
        let (name, recipient) = (clean(&action.action), clean(&action.recipient));
        let (verdict, effects, expected) = (action.verdict, action.effects, action.expected);
        write!(out, "\n  {name} to {recipient}: {verdict}, effects {effects}, owed {expected}")?;
    }
    write_rest(out, "\n  actions:", wrong.len(), FINDINGS_MAX)
}

/// How many were left out.
fn write_rest(out: &mut dyn Write, start: &str, all: usize, shown: usize) -> fmt::Result {
    if all > shown { write!(out, "{start} {} more", all - shown) } else { Ok(()) }
}
