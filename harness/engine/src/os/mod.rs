//! Processes: one container for a worker's whole tree, and the proof that the tree is dead.
//!
//! A [`Slot`] is a tiny init process that starts workers, stops and resumes them, and kills everything
//! they left behind. Where the machine permits it, the init is process 1 of a PID namespace and the
//! kernel itself empties it; elsewhere it is a child subreaper that sweeps until nothing is left. Either
//! way `wait` answering "no children" in the init is the proof: every orphan below it becomes its child.
//!
//! The init is made by `clone` without `exec`, so that it works from any program, also from a test
//! binary. Its code ([`init`]) therefore keeps to system calls on memory that was prepared before.
//!
//! | file | holds |
//! |---|---|
//! | `slot` | [`Slot`], what the rest of the engine uses |
//! | `link` | the harness's side of the conversation with the init |
//! | `launch` | starting an init, and why a tier can't be had |
//! | `init`, `birth` | what runs in the init, and between its `clone` and a worker's `exec` |
//! | `wire` | the messages between the two, and the plan of a worker in memory |
//! | `traced`, `vdso` | another wall clock for a worker's tree: following it, and the patch |
//! | `tree` | the process tree as `/proc` shows it |
//! | `files` | a file's attributes, and which of its pages are on disk |
//! | `limits` | which process limit holds |
//! | `command` | finding a program |
//! | `sys` | the system calls that have no safe wrapper elsewhere |
//! | `error` | [`OsError`] |

// The only place of unsafe code in the workspace: clone, exec, pidfds and descriptor passing have no
// safe wrapper that is allowed between a clone and an exec.
#![allow(unsafe_code)]

mod birth;
mod command;
mod error;
mod files;
mod init;
mod launch;
mod limits;
mod link;
mod slot;
mod sys;
#[cfg(test)]
mod tests;
mod traced;
mod tree;
mod vdso;
mod wire;

pub use command::find_program;
pub use error::OsError;
pub(crate) use files::{dirty_pages, set_immutable};
pub use launch::{Capabilities, probe};
pub use link::SlotEvent;
pub use slot::{Slot, SlotSpec, SpawnSpec};
pub(crate) use sys::wait_readable;
pub use traced::{ClockReport, probe_clock};
