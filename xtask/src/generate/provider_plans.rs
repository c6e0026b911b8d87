//! The named points of the provider's plan space.

use std::fmt::Write as _;

use killpoint_model::named_plan::PROVIDER_PLANS;

use super::{heading, table};

pub(super) fn render() -> String {
    let rows = PROVIDER_PLANS.iter().map(|named| {
        let entry = &named.entry;
        vec![format!("[`{0}`](#{0})", entry.name), entry.summary.to_owned()]
    });
    let mut text = heading("Provider plans");
    text += "What the fake provider does with one write request: whether and when the effect is committed, and what \
             the worker reads.\n\n";
    text += &table(&["name", "summary"], rows);
    for named in PROVIDER_PLANS {
        let entry = &named.entry;
        // Writing to a String cannot fail.
        let _ =
            write!(text, "\n## {}\n\n{}\n\n```toml\n{}\n```\n", entry.name, entry.explanation, entry.example);
    }
    text
}
