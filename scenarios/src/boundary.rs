//! Boundaries as users write them.

use killpoint_model::{HitName, RowState, Source};

use crate::code::Code;
use crate::item::Item;
use crate::log::{Log, did_you_mean};

/// Reads a hit name.
pub(crate) fn read(item: &Item, log: &mut Log) -> Option<HitName> {
    let text = item.text(log)?;
    match text.value.parse::<HitName>() {
        Ok(hit) => Some(hit),
        Err(error) => {
            let (why, help) = error
                .why
                .split_once("; ")
                .unwrap_or((&error.why, "write `source:point#ordinal`, such as `provider:committed#1`"));
            log.error(Code::BadBoundary, text.span, format!("`{}` is no boundary: {why}", text.value), help);
            None
        }
    }
}

/// The points of the `ledger` source that each mapped ledger has.
pub(crate) fn ledger_points() -> Vec<String> {
    let states = RowState::ALL.iter().map(|state| state.as_str().to_owned());
    states.chain(["removed".to_owned(), "execution-succeeded".to_owned()]).collect()
}

/// Reads a hit name; a point of the `ledger` source must be one that this ledger has. `points` is `None`
/// where no ledger is configured.
pub(crate) fn read_known(item: &Item, points: Option<&[String]>, log: &mut Log) -> Option<HitName> {
    let hit = read(item, log)?;
    if hit.source != Some(Source::Ledger) {
        return Some(hit);
    }
    let Some(points) = points else {
        let message = format!("`{hit}` needs a ledger, and none is configured");
        log.error(Code::BadBoundary, item.span, message, "add a `[ledger]` section");
        return None;
    };
    if points.contains(&hit.point) {
        return Some(hit);
    }
    let known: Vec<&str> = points.iter().map(String::as_str).collect();
    let message = format!("`{hit}` is no boundary: the ledger has no point `{}`", hit.point);
    log.error(Code::BadBoundary, item.span, message, did_you_mean(&hit.point, &known));
    None
}
