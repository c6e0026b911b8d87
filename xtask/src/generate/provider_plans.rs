//! The named points of the provider's plan space.

use killpoint::model::named_plan::PROVIDER_PLANS;

use super::entries::section;
use super::{heading, table};

pub(super) fn render() -> String {
    let rows = PROVIDER_PLANS.iter().map(|named| {
        let entry = &named.entry;
        let twin = named.plan.twin().and_then(|twin| PROVIDER_PLANS.iter().find(|other| other.plan == twin));
        let twin = twin.map(|twin| format!("[`{0}`](#{0})", twin.entry.name)).unwrap_or_default();
        vec![
            format!("[`{0}`](#{0})", entry.name),
            entry.summary.to_owned(),
            format!("`{}`", named.plan),
            twin,
        ]
    });
    let mut text = heading("Provider plans");
    text += "What the fake provider does with one write request: whether and when the effect is committed, and what \
             the worker reads. A twin gives the worker the same bytes with the opposite truth.\n\n";
    text += &table(&["name", "summary", "axes", "twin"], rows);
    for named in PROVIDER_PLANS {
        text += &section(&named.entry);
    }
    text
}
