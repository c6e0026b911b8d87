//! What happens later by itself: late commits, the provider's own copies, delivery receipts.

use killpoint_model::plan::{Aftermath, Commit, ProviderPlan};

/// How long after the commit the provider delivers another copy by itself, in milliseconds.
const REDELIVERY_MS: u64 = 100;
/// How late a late receipt is, in milliseconds.
const LATE_RECEIPT_MS: u64 = 500;

/// Something that is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Due {
    Commit { attempt: u32 },
    Redelivery { effect: String },
    Receipt { effect: String, copies: u32, late: bool },
}

/// All that is due later, in the order in which it was scheduled.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Schedule {
    entries: Vec<(u64, Due)>,
}

impl Schedule {
    pub(super) fn commit_later(&mut self, attempt: u32, received_at_ms: u64, plan: &ProviderPlan) {
        if let Commit::After { ms } = plan.commit {
            self.entries.push((received_at_ms.saturating_add(ms), Due::Commit { attempt }));
        }
    }

    pub(super) fn follow(&mut self, effect: &str, committed_at_ms: u64, aftermath: Aftermath) {
        let effect = effect.to_owned();
        let (after_ms, due) = match aftermath {
            // A bounce is a time in the effect itself.
            Aftermath::None | Aftermath::Bounce { .. } => return,
            Aftermath::Redeliver => (REDELIVERY_MS, Due::Redelivery { effect }),
            Aftermath::ReceiptLate => (LATE_RECEIPT_MS, Due::Receipt { effect, copies: 1, late: true }),
            Aftermath::ReceiptDuplicate => (0, Due::Receipt { effect, copies: 2, late: false }),
            Aftermath::ReceiptLost => (0, Due::Receipt { effect, copies: 0, late: false }),
        };
        self.entries.push((committed_at_ms.saturating_add(after_ms), due));
    }

    pub(super) fn cancel_commit(&mut self, attempt: u32) {
        self.entries.retain(|(_, due)| *due != Due::Commit { attempt });
    }

    pub(super) fn redelivered(&mut self, effect: &str) {
        self.entries.retain(|(_, due)| !matches!(due, Due::Redelivery { effect: of } if of == effect));
    }

    pub(super) fn receipted(&mut self, effect: &str) {
        self.entries.retain(|(_, due)| !matches!(due, Due::Receipt { effect: of, .. } if of == effect));
    }

    /// What is due first, `skip` aside.
    pub(super) fn first(&self, skip: impl Fn(&Due) -> bool) -> Option<&(u64, Due)> {
        // The earliest, and of equals the one scheduled first.
        self.entries.iter().filter(|(_, due)| !skip(due)).min_by_key(|(at_ms, _)| *at_ms)
    }

    /// Late commits and copies that have not happened yet.
    pub(super) fn effects_to_come(&self) -> usize {
        self.entries.iter().filter(|(_, due)| !matches!(due, Due::Receipt { .. })).count()
    }
}
