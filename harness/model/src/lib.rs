//! The vocabulary of killpoint, and nothing else.
//!
//! Every other crate speaks in these types. This crate is pure: no I/O, no threads, no clock but the
//! one [`Clock`] trait, and it imports none of our crates.
//!
//! Reading order: [`hit`] (names of moments), [`plan`] (what to do in a trial), [`provider`] (what the
//! fake remote system saw), [`ledger`] (what the worker believes), [`event`] and [`history`] (the only
//! truth), [`finding`] and [`verdict`] (what follows from it), [`settings`] (what the user configured).

pub mod catalog;
pub mod changed;
pub mod checklist;
pub mod clock;
mod code;
pub mod credential;
pub mod diagnostic;
pub mod event;
pub mod exit_code;
pub mod exploration;
pub mod finding;
pub mod history;
pub mod hit;
mod json_words;
pub mod known;
pub mod ledger;
pub mod named_plan;
pub mod plan;
pub mod profile;
pub mod provider;
pub mod run;
pub mod settings;
pub mod shard;
mod text_enum;
pub mod verdict;

pub use catalog::{Catalog, Entry};
pub use clock::{Clock, ManualClock, SystemClock};
pub use code::DiagnosticCode;
pub use diagnostic::{Diagnostic, Severity, Span};
pub use event::{Event, EventKind};
pub use exit_code::ExitCode;
pub use finding::{Finding, InvariantOutcome, InvariantStatus};
pub use history::{History, HistoryReader};
pub use hit::{HitName, Source};
pub use json_words::json_words;
pub use ledger::{ExecutionState, LedgerRow, LedgerView, RowState};
pub use plan::{Fault, FaultAt, Plan, ProviderPlan, Rule, SourceLine};
pub use run::{RunRecord, TrialRecord};
pub use settings::Settings;
pub use shard::{MergedRecord, PlannedTrial, ShardRecord};
pub use verdict::{TrialVerdict, Verdict};
