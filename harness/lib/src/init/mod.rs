//! Looks at a project and proposes a configuration for it.
//!
//! Data flows one way: [`read_project`] reads files, [`find`] notes facts with their places, [`propose()`] weighs
//! them, and [`Proposal::to_toml`] writes them down. Only the first touches anything outside.

mod detect;
mod finding;
mod pattern;
mod project;
mod propose;
mod read;
mod show;
mod sql;
mod vocabulary;
mod write;

pub use detect::{DETECTORS, Detector, find};
pub use finding::{
    Amount, Findings, Holds, Literal, LongOption, Program, Role, SeenTable, StateWord, Sure, Variable, Word,
};
pub use project::{Database, Language, Place, Project, SourceFile};
pub use propose::{Assumed, Gap, Proposal, propose};
pub use read::{ProjectError, read_project};
pub use show::show;
pub use sql::{Column, Table};
