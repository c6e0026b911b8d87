//! The public face of the crate: files in, data and diagnostics out.

mod config;
mod diagnostics;
mod library;
mod presets;
mod robustness;

use killpoint_model::{Catalog, Entry};

const fn entry(name: &'static str) -> Entry {
    Entry { name, summary: "", explanation: "", example: "" }
}

/// The faults that the library uses.
const FAULTS: &[&str] = &[
    "barrier",
    "change",
    "cleanup",
    "hold-producer",
    "kill",
    "power-cut",
    "provider-clock",
    "second-worker",
    "stop",
    "store-busy",
    "store-busy-snapshot",
    "store-copy",
    "store-lock",
    "store-no-space",
    "store-read-only",
    "store-restore",
    "store-rollback",
    "store-second",
    "terminate",
    "worker-clock",
];

/// The names that the files of these tests use.
fn catalog() -> Catalog {
    Catalog {
        faults: FAULTS.iter().copied().map(entry).collect(),
        dialects: vec![entry("rest"), entry("smtp")],
        ledgers: vec![entry("sqlite"), entry("command")],
        ..Catalog::default()
    }
}
