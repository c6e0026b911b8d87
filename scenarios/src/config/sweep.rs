//! `[sweep]` and `[boundaries]`.

use std::collections::BTreeMap;

use killpoint_model::HitName;
use killpoint_model::hit::CANONICAL;
use killpoint_model::named_plan::PROVIDER_PLANS;
use killpoint_model::settings::SweepSettings;

use crate::boundary;
use crate::code::Code;
use crate::item::set_u32;
use crate::log::{Log, Placed};
use crate::table::Table;

/// Reads what canonical names mean here.
pub(super) fn read_bindings(
    table: &Table,
    points: Option<&[String]>,
    log: &mut Log,
) -> BTreeMap<String, HitName> {
    let canonical: Vec<&str> = CANONICAL.iter().map(|(name, _)| *name).collect();
    let mut bindings = BTreeMap::new();
    for (name, span, item) in table.entries() {
        if !canonical.contains(&name) {
            log.unknown_word("canonical boundary", &Placed { value: name, span }, &canonical);
        }
        let Some(hit) = boundary::read_known(&item, points, log) else { continue };
        if hit.source.is_none() {
            let message = format!("`{hit}` is a canonical name itself");
            log.error(
                Code::BadBoundary,
                item.span,
                message,
                "write what it means here, such as `mark:claimed`",
            );
        }
        bindings.insert(name.to_owned(), hit);
    }
    bindings
}

/// Reads the section into the defaults that are in `sweep`.
pub(super) fn read(mut table: Table, sweep: &mut SweepSettings, points: Option<&[String]>, log: &mut Log) {
    if let Some(item) = table.item("boundaries") {
        match item.elements() {
            Some(elements) => {
                let hits = elements.iter().filter_map(|element| boundary::read_known(element, points, log));
                sweep.boundaries = hits.collect();
            }
            None => {
                item.wrong_type("a list of boundaries", "write a list: `[\"provider:committed#1\"]`", log);
            }
        }
    }
    if let Some(item) = table.item("plans") {
        // The fault-free plan is no choice: every sweep begins with it.
        let plans = PROVIDER_PLANS.iter().map(|named| named.entry.name);
        let known: Vec<&str> = plans.filter(|name| *name != "ok").collect();
        match item.elements() {
            Some(elements) => {
                let names = elements.iter().filter_map(|element| element.name("provider plan", &known, log));
                sweep.plans = names.collect();
            }
            None => item.wrong_type("a list of plans", "write a list: `[\"drop-after-accept\"]`", log),
        }
    }
    set_u32(
        &mut sweep.hits_per_series_max,
        table.item("hits-per-series").and_then(|item| item.number(1..=1_000_000, log)),
    );
    table.close(log);
}
