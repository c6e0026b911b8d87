//! The worker as a program of its own, against a scripted provider, with crashes at its own marks.

mod kinds;
mod provider;
mod right;
mod schedules;
mod stand;
mod wrong;
