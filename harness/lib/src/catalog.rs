//! Everything that can be named, gathered from the slices.

use killpoint_model::Catalog;
use killpoint_model::named_plan::PROVIDER_PLANS;
use killpoint_scenarios::{LIBRARY, Scenario, load_scenario};

use crate::error::RunError;

/// The catalog of this build.
pub fn catalog() -> Catalog {
    Catalog {
        faults: killpoint_engine::faults::FAULTS.iter().map(|fault| *fault.entry()).collect(),
        boundaries: killpoint_engine::boundaries::BOUNDARIES.iter().map(|source| *source.entry()).collect(),
        invariants: killpoint_checks::entries(),
        dialects: fake_provider::DIALECTS.iter().map(|dialect| *dialect.entry()).collect(),
        ledgers: killpoint_engine::ledgers::LEDGERS.iter().map(|ledger| *ledger.entry()).collect(),
        formats: killpoint_reports::entries(),
        plans: PROVIDER_PLANS.iter().map(|named| named.entry).collect(),
        profiles: killpoint_checks::profiles::entries(),
    }
}

/// The scenarios of the library, in its order.
///
/// # Errors
/// One that can't be read: a defect of this build.
pub(crate) fn library() -> Result<Vec<Scenario>, RunError> {
    let catalog = catalog();
    let load = |entry: &killpoint_scenarios::LibraryScenario| {
        let loaded = load_scenario(entry.text, entry.name, &catalog);
        loaded.value.ok_or(RunError::Invalid(loaded.diagnostics))
    };
    LIBRARY.iter().map(load).collect()
}
