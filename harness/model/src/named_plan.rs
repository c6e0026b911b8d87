//! Named points of the provider's plan space: what sweeps, scenarios and reports call them.

use crate::catalog::Entry;
use crate::plan::{Aftermath, Commit, CutAt, ProviderPlan, Reply, Visible};

/// A provider plan with a name.
#[derive(Debug, Clone, Copy)]
pub struct NamedPlan {
    /// Name and texts.
    pub entry: Entry,
    /// The point in the plan space.
    pub plan: ProviderPlan,
}

const fn plan(commit: Commit, reply: Reply) -> ProviderPlan {
    ProviderPlan { commit, reply, visible: Visible::Now, aftermath: Aftermath::None }
}

macro_rules! named {
    ($name:literal, $summary:literal, $plan:expr, $explanation:literal) => {
        NamedPlan {
            entry: Entry {
                name: $name,
                summary: $summary,
                explanation: $explanation,
                example: concat!(
                    "[[provider.rule]]\nplan = \"",
                    $name,
                    "\"\nmatch = { operation = \"create\", nth = 1 }"
                ),
            },
            plan: $plan,
        }
    };
}

/// Every named provider plan.
pub const PROVIDER_PLANS: &[NamedPlan] = &[
    named!(
        "ok",
        "the provider accepts and answers",
        plan(Commit::Now, Reply::Ok),
        "The ordinary answer: the effect is committed, then the whole reply is written."
    ),
    named!(
        "drop-after-accept",
        "accepts, then closes the connection without a byte",
        plan(Commit::Now, Reply::Fin),
        "The effect exists and the worker reads end-of-file. Its twin is drop-before-accept: the worker sees the same bytes, so it must not guess."
    ),
    named!(
        "drop-before-accept",
        "closes the connection without a byte; no effect",
        plan(Commit::Never, Reply::Fin),
        "The request was read whole but nothing was committed. Twin of drop-after-accept."
    ),
    named!(
        "reset-after-accept",
        "accepts, then resets the connection",
        plan(Commit::Now, Reply::Rst),
        "The effect exists and the worker sees ECONNRESET. Some clients retry on it below the worker's own code."
    ),
    named!(
        "reset-before-accept",
        "resets the connection; no effect",
        plan(Commit::Never, Reply::Rst),
        "Nothing was committed and the worker sees ECONNRESET. Twin of reset-after-accept."
    ),
    named!(
        "cut-headers-after-accept",
        "accepts, then cuts the reply inside its headers",
        plan(Commit::Now, Reply::Cut { at: CutAt::Headers }),
        "The effect exists and the reply ends inside the header block. Many clients retry on this one, though not on a cut body."
    ),
    named!(
        "cut-body-after-accept",
        "accepts, then cuts the reply inside its body",
        plan(Commit::Now, Reply::Cut { at: CutAt::Body }),
        "The effect exists, the status line says success, and the body ends early. A worker that takes this as success without an id has no receipt."
    ),
    named!(
        "timeout-after-accept",
        "accepts, then never answers",
        plan(Commit::Now, Reply::Hang),
        "The effect exists and no byte comes. The harness ends the hang, so that a client without a timeout does not stop the run."
    ),
    named!(
        "timeout-before-accept",
        "never answers; no effect",
        plan(Commit::Never, Reply::Hang),
        "Nothing was committed and no byte comes. Twin of timeout-after-accept."
    ),
    named!(
        "error-after-accept",
        "accepts, then answers 500",
        plan(Commit::Now, Reply::Status { code: 500 }),
        "The effect exists and the answer is a server error: a 5xx says nothing about acceptance."
    ),
    named!(
        "error-before-accept",
        "answers 500; no effect",
        plan(Commit::Never, Reply::Status { code: 500 }),
        "Nothing was committed and the answer is a server error. Twin of error-after-accept."
    ),
    named!(
        "rejected",
        "answers 400; no effect",
        plan(Commit::Never, Reply::Status { code: 400 }),
        "A definite refusal: the action must end as an explicit failure, without a retry that can't succeed."
    ),
    named!(
        "late-accept",
        "no answer, and the effect comes into being later",
        plan(Commit::After { ms: 300 }, Reply::Hang),
        "A lookup first says that there is nothing, then the effect lands. A worker that resends on that first answer duplicates."
    ),
];

/// Finds a named plan.
pub fn find(name: &str) -> Option<&'static NamedPlan> {
    PROVIDER_PLANS.iter().find(|named| named.entry.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slice_is_well_formed() {
        let entries: Vec<Entry> = PROVIDER_PLANS.iter().map(|named| named.entry).collect();
        assert_eq!(crate::catalog::slice_problems(&entries), Vec::<String>::new());
    }

    #[test]
    fn every_before_plan_is_the_twin_of_its_after_plan() {
        for kind in ["drop", "reset", "timeout", "error"] {
            let after = find(&format!("{kind}-after-accept")).map(|named| named.plan);
            let before = find(&format!("{kind}-before-accept")).map(|named| named.plan);
            assert_eq!(after.and_then(ProviderPlan::twin), before, "{kind}");
        }
    }
}
