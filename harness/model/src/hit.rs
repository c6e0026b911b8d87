//! Names of moments: `source:point[selector]#ordinal`.
//!
//! Ordinals count over the whole process tree of a trial, from 1, per `source:point[selector]`.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::diagnostic::nearest;
use crate::text_enum::text_enum;

text_enum! {
    /// Where a boundary comes from.
    pub enum Source {
        /// The fake provider's wire; needs nothing from the user.
        Provider = "provider",
        /// The worker's ledger, through a query of the configuration.
        Ledger = "ledger",
        /// One call in the worker.
        Mark = "mark",
    }
}

/// The points of the `provider` source, in the order in which a request passes them. `dropped` comes in
/// place of `replied` where the exchange ended without a whole reply.
pub const PROVIDER_POINTS: &[&str] =
    &["connected", "received", "committed", "replying", "replied", "dropped", "lookup"];

/// The articles' canonical names, which a scenario uses without a source, with the hit that each means
/// where the configuration binds nothing and the worker makes no mark of that name.
pub const CANONICAL: &[(&str, &str)] = &[
    ("result-committed", "ledger:execution-succeeded"),
    ("item-enqueued", "ledger:created"),
    ("item-claimed", "ledger:dispatching"),
    ("dispatch-started", "provider:received"),
    ("provider-accepted", "provider:committed"),
    ("ack-committed", "ledger:confirmed"),
    ("cleanup-done", "ledger:removed"),
    ("recovery-scanned", "provider:lookup"),
    ("cursor-committed", "ledger:created"),
];

/// One named moment.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HitName {
    /// Where it comes from; `None` is a canonical name that is bound after the baseline.
    pub source: Option<Source>,
    /// The point, such as `committed` or a mark's name.
    pub point: String,
    /// Narrows the point, such as an operation or an action id.
    pub selector: Option<String>,
    /// Which occurrence, from 1.
    pub ordinal: u32,
}

/// Why a text is no hit name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no boundary: {why}")]
pub struct HitNameError {
    /// What was written.
    pub text: String,
    /// What is wrong with it.
    pub why: String,
}

impl HitName {
    /// A hit of a known source.
    pub fn new(source: Source, point: impl Into<String>, ordinal: u32) -> Self {
        Self { source: Some(source), point: point.into(), selector: None, ordinal }
    }

    /// The same with a selector.
    #[must_use]
    pub fn select(mut self, selector: impl Into<String>) -> Self {
        self.selector = Some(selector.into());
        self
    }

    /// The name without its ordinal: `source:point[selector]`.
    pub fn series(&self) -> String {
        let source = self.source.map(|source| format!("{source}:")).unwrap_or_default();
        let selector = self.selector.as_ref().map(|selector| format!("[{selector}]")).unwrap_or_default();
        format!("{source}{}{selector}", self.point)
    }
}

impl HitName {
    /// Whether a request waits there to be accepted: it was begun or read, and the provider has not decided yet.
    pub fn awaits_acceptance(&self) -> bool {
        self.source == Some(Source::Provider) && ["connected", "received"].contains(&self.point.as_str())
    }
}

impl fmt::Display for HitName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}#{}", self.series(), self.ordinal))
    }
}

impl FromStr for HitName {
    type Err = HitNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fail = |why: String| HitNameError { text: text.to_owned(), why };
        let (series, ordinal) = match text.rsplit_once('#') {
            Some((series, digits)) => match digits.parse::<u32>() {
                Ok(ordinal) if ordinal >= 1 => (series, ordinal),
                _ => return Err(fail(format!("`#{digits}` is no ordinal; ordinals count from 1"))),
            },
            None => (text, 1),
        };
        let (series, selector) = match series.split_once('[') {
            Some((series, rest)) => match rest.strip_suffix(']') {
                Some(selector) if !selector.is_empty() => (series, Some(selector.to_owned())),
                _ => return Err(fail("a selector is `[text]`".into())),
            },
            None => (series, None),
        };
        let (source, point) = match series.split_once(':') {
            Some((source, point)) => {
                (Some(Source::from_str(source).map_err(|e| fail(format!("source: {e}")))?), point)
            }
            None => (None, series),
        };
        check_point(source, point).map_err(fail)?;
        Ok(Self { source, point: point.to_owned(), selector, ordinal })
    }
}

fn check_point(source: Option<Source>, point: &str) -> Result<(), String> {
    if point.is_empty() || point.len() > 200 || point.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err("a point is 1 to 200 characters without white space".into());
    }
    let known: Vec<&str> = match source {
        Some(Source::Provider) => PROVIDER_POINTS.to_vec(),
        None => CANONICAL.iter().map(|(name, _)| *name).collect(),
        // Marks and ledger queries are named by the user: unknown ones show as never reached.
        Some(Source::Mark | Source::Ledger) => return Ok(()),
    };
    if known.contains(&point) {
        return Ok(());
    }
    Err(match nearest(point, known.iter().copied()) {
        Some(word) => format!("nobody knows `{point}`; did you mean `{word}`?"),
        None => format!("nobody knows `{point}`; one of: {}", known.join(", ")),
    })
}

impl Serialize for HitName {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for HitName {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for HitName {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "HitName".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "description": "source:point[selector]#ordinal" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_waits_at_the_provider_until_it_decides() {
        let waits = |name: &str| name.parse::<HitName>().unwrap().awaits_acceptance();
        assert!(waits("provider:connected#1") && waits("provider:received[create]#2"));
        assert!(!waits("provider:committed#1") && !waits("provider:lookup#1") && !waits("mark:received#1"));
    }

    #[test]
    fn names_round_trip() {
        for text in
            ["provider:committed#1", "mark:item-claimed[job-7]#2", "ledger:confirmed#3", "item-claimed#1"]
        {
            assert_eq!(text.parse::<HitName>().map(|hit| hit.to_string()), Ok(text.to_owned()));
        }
        assert_eq!("provider:received".parse::<HitName>().map(|hit| hit.ordinal), Ok(1));
    }

    #[test]
    fn unknown_names_are_errors_with_the_nearest() {
        for (text, part) in [
            ("provider:comitted#1", "did you mean `committed`"),
            ("providr:committed", "did you mean `provider`"),
            ("item-claimd#1", "did you mean `item-claimed`"),
            ("provider:committed#0", "count from 1"),
            ("mark:a b", "without white space"),
            ("mark:a[", "selector"),
        ] {
            let error = text.parse::<HitName>().map(|hit| hit.to_string()).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
