//! What is observed beside the wire and the ledger: the worker's own metrics, its alarms, and planted
//! credentials.

pub(crate) mod metrics;
pub(crate) mod secrets;
