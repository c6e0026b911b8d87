//! Everything that can be named, gathered from the slices.

use killpoint_model::Catalog;
use killpoint_model::named_plan::PROVIDER_PLANS;

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
