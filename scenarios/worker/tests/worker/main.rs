//! The worker as a program of its own, against a scripted provider, with crashes at its own marks.

mod provider;
mod right;
mod stand;
mod wrong;
