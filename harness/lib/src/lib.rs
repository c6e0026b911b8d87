//! killpoint as a library: plan, run, check, report. The program `killpoint` uses nothing else.
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

mod attempt;
mod catalog;
mod check;
mod error;
mod folder;
mod host;
mod job;
mod profile;
mod progress;
mod run;
pub mod simulate;

pub use catalog::catalog;
pub use check::{Checked, check};
pub use error::RunError;
pub use folder::RunFolder;
pub use job::{Job, RunRequest, Strategy};
pub use profile::profile;
pub use progress::{Progress, Silent};
pub use run::{Finished, run};

pub use fake_provider as provider;
pub use killpoint_checks as checks;
pub use killpoint_engine as engine;
pub use killpoint_model as model;
pub use killpoint_reports as reports;
pub use killpoint_scenarios as scenarios;
