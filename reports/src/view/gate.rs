//! What a run tells its caller, with known failures and left-out trials taken into account.

use killpoint_model::run::TrialRole;
use killpoint_model::{ExitCode, Verdict};

use super::View;

impl View {
    /// What the process that made the run tells its caller. A violation is one, with or without a fault, unless a
    /// file of known failures lists all that its trial shows; a fault-free baseline that does not hold otherwise, or
    /// that could not be judged, is a failed set-up: nothing can be compared with it. A known failure that is none any
    /// more proves nothing until it is taken out of the file.
    pub fn exit_code(&self) -> ExitCode {
        let verdict = self.baseline.as_ref().map_or(self.verdict, |baseline| baseline.rest);
        let fails = |verdict: Option<Verdict>| match verdict {
            Some(Verdict::Violated) => self.baseline.is_none(),
            verdict => verdict != Some(Verdict::Holds),
        };
        let baseline_fails = self.rows.iter().any(|row| row.role != TrialRole::Faulted && fails(row.verdict));
        if self.interrupted {
            ExitCode::Interrupted
        } else if verdict == Verdict::Violated {
            // A violation without any fault is a violation all the more.
            ExitCode::Violated
        } else if baseline_fails {
            ExitCode::SetupFailed
        } else if verdict == Verdict::Holds && self.stale() > 0 {
            ExitCode::Unproven
        } else {
            verdict.into()
        }
    }

    /// What the exit code means for this run.
    pub fn exit_meaning(&self) -> String {
        let code = self.exit_code();
        let known = self.baseline.as_ref().map_or(0, |baseline| baseline.known.len());
        match code {
            ExitCode::Holds if known > 0 => format!("{}, none new", violations(known, "known")),
            ExitCode::Unproven if self.baseline_rest() == Some(Verdict::Holds) => {
                let stale = self.stale();
                let (noun, verb) = if stale == 1 { ("failure", "is") } else { ("failures", "are") };
                format!("{stale} known {noun} {verb} none any more")
            }
            ExitCode::Violated => match self.baseline.as_ref().map(|baseline| baseline.new.len()) {
                Some(new) if new > 0 => format!("{}, with evidence", violations(new, "new")),
                _ => code.meaning().to_owned(),
            },
            _ => code.meaning().to_owned(),
        }
    }

    /// How many trials the run left out because nothing had changed where they act.
    pub fn skipped(&self) -> u32 {
        self.changed.as_ref().map_or(0, |changed| changed.skipped)
    }

    fn baseline_rest(&self) -> Option<Verdict> {
        self.baseline.as_ref().map(|baseline| baseline.rest)
    }

    fn stale(&self) -> usize {
        self.baseline.as_ref().map_or(0, |baseline| baseline.stale.len())
    }
}

fn violations(count: usize, which: &str) -> String {
    format!("{count} {which} violation{}", if count == 1 { "" } else { "s" })
}
