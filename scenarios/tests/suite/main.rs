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

/// The names that the files of these tests use.
fn catalog() -> Catalog {
    Catalog {
        faults: vec![entry("kill"), entry("second-worker")],
        dialects: vec![entry("rest"), entry("smtp")],
        ledgers: vec![entry("sqlite"), entry("command")],
        ..Catalog::default()
    }
}
