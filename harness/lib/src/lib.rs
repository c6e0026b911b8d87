//! killpoint as a library: plan, run, check, report. The program `killpoint` uses nothing else. Tests start at
//! [`Gate`].
//!
//! ```no_run
//! # async fn demo() -> Result<(), killpoint::RunError> {
//! use killpoint::{RunRequest, Silent, run};
//!
//! let settings = killpoint::scenarios::bare_settings(vec!["python3".into(), "worker.py".into()], ".".into());
//! let finished = run(RunRequest::sweep(settings, "killpoint-runs/one"), &Silent).await?;
//! assert_eq!(finished.record.verdict, killpoint::model::Verdict::Holds);
//! # Ok(())
//! # }
//! ```

mod agree;
mod arrange;
mod attempt;
mod carry;
mod catalog;
mod changed;
mod check;
mod code;
pub mod doctor;
mod error;
mod explore;
mod folder;
mod gate;
mod host;
pub mod init;
mod job;
mod known;
mod layout;
mod merge;
mod profile;
mod progress;
mod record;
mod replay;
mod run;
mod second_level;
mod shard;
pub mod simulate;
mod surroundings;
mod text_file;

pub use catalog::catalog;
pub use changed::StoredBoundaries;
pub use check::{Checked, check};
pub use code::Code;
pub use error::RunError;
pub use explore::{ExploreRequest, worker_id};
pub use folder::RunFolder;
pub use gate::{Gate, GateError, GateRun, GateTrial, Problem};
pub use job::{Job, RunRequest, SecondLevel, Strategy};
pub use known::{BaselineUpdate, KnownFailures};
pub use merge::merge;
pub use profile::profile;
pub use progress::{Progress, Running, Silent};
pub use replay::{replay_of_command, replay_of_config};
pub use run::{Finished, run};
pub use shard::{Shard, ShardError};
pub use surroundings::{CommandShown, Surroundings, surroundings};
pub use text_file::{Unreadable, read_text};

pub use fake_provider as provider;
pub use killpoint_checks as checks;
pub use killpoint_engine as engine;
pub use killpoint_model as model;
pub use killpoint_reports as reports;
pub use killpoint_scenarios as scenarios;
