//! What to do in one trial: provider rules plus faults at hits.
//!
//! A provider fault is not a name but a point in four independent axes ([`ProviderPlan`]). For each plan
//! that commits there is a twin that does not, whose bytes as the worker sees them are the same: a
//! worker must be safe in both.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::hit::HitName;

/// When the side effect comes into being.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Commit {
    /// No effect.
    Never,
    /// Before any byte of the reply.
    Now,
    /// This long after the request was read, whatever the reply was.
    After {
        /// Delay in milliseconds.
        ms: u64,
    },
    /// The provider itself delivers two copies.
    Twice,
}

/// What the worker sees on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reply {
    /// The dialect's ordinary answer.
    Ok,
    /// An error answer in the dialect's own shape.
    Status {
        /// HTTP status code, 400 to 599.
        code: u16,
    },
    /// Connection closed (FIN) without one byte.
    Fin,
    /// Connection reset (RST) without one byte.
    Rst,
    /// The ordinary answer, cut short, then FIN.
    Cut {
        /// Where it is cut.
        at: CutAt,
    },
    /// No byte until the harness ends the hang.
    Hang,
    /// Parked at the committed point until somebody releases it: a rendezvous.
    Hold,
}

/// Where an answer is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CutAt {
    /// Before the first byte.
    Zero,
    /// Inside the header block.
    Headers,
    /// Inside the body.
    Body,
}

/// What a lookup may see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Visible {
    /// At once.
    Now,
    /// Only this long after the commit.
    After {
        /// Delay in milliseconds.
        ms: u64,
    },
    /// Never.
    Never,
}

/// What the provider does of its own accord afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Aftermath {
    /// Nothing.
    None,
    /// The effect is reported as bounced.
    Bounce {
        /// Delay in milliseconds.
        after_ms: u64,
    },
    /// The provider delivers a second copy later, by itself.
    Redeliver,
    /// The delivery receipt comes late.
    ReceiptLate,
    /// The delivery receipt comes twice.
    ReceiptDuplicate,
    /// The delivery receipt never comes.
    ReceiptLost,
}

/// One point in the space of provider behaviour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ProviderPlan {
    /// When the effect comes into being: `never`, `now`, `after(500ms)`, `twice`.
    pub commit: Commit,
    /// What the worker sees: `ok`, `status(503)`, `fin`, `rst`, `cut(zero)`, `cut(headers)`,
    /// `cut(body)`, `hang`, `hold`.
    pub reply: Reply,
    /// What a lookup sees: `now`, `after(2s)`, `never`.
    pub visible: Visible,
    /// What follows: `none`, `bounce(1s)`, `redeliver`, `receipt(late)`, `receipt(duplicate)`, `receipt(lost)`.
    pub aftermath: Aftermath,
}

impl Default for ProviderPlan {
    fn default() -> Self {
        Self { commit: Commit::Now, reply: Reply::Ok, visible: Visible::Now, aftermath: Aftermath::None }
    }
}

impl ProviderPlan {
    /// The plan whose bytes look the same to the worker, with the opposite truth; `None` for plans
    /// that tell the truth.
    #[must_use]
    pub fn twin(self) -> Option<Self> {
        let lossy = !matches!(self.reply, Reply::Ok | Reply::Hold);
        match self.commit {
            Commit::Now if lossy => Some(Self { commit: Commit::Never, ..self }),
            Commit::Never if lossy => Some(Self { commit: Commit::Now, ..self }),
            _ => None,
        }
    }
}

impl fmt::Display for ProviderPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "commit {}, reply {}", self.commit, self.reply)?;
        if self.visible != Visible::Now {
            write!(f, ", visible {}", self.visible)?;
        }
        if self.aftermath != Aftermath::None {
            write!(f, ", aftermath {}", self.aftermath)?;
        }
        Ok(())
    }
}

/// A text that is no value of an axis.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no value for `{axis}`; one of: {known}")]
pub struct AxisError {
    /// What was written.
    pub text: String,
    /// The axis.
    pub axis: &'static str,
    /// What could have been written.
    pub known: &'static str,
}

/// `name(argument)` taken apart; the argument is empty where there are no parentheses.
fn call(text: &str) -> (&str, &str) {
    match text.split_once('(') {
        Some((name, rest)) => (name, rest.strip_suffix(')').unwrap_or("")),
        None => (text, ""),
    }
}

/// Reads a duration such as `250ms`, `2s`, `5m` or `25h` as milliseconds.
pub fn duration_ms(text: &str) -> Option<u64> {
    let split = text.find(|c: char| !c.is_ascii_digit())?;
    let number: u64 = text[..split].parse().ok()?;
    let unit = match &text[split..] {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    number.checked_mul(unit)
}

macro_rules! axis {
    ($type:ident, $axis:literal, $known:literal, $parse:expr, $show:expr) => {
        impl FromStr for $type {
            type Err = AxisError;

            fn from_str(text: &str) -> Result<Self, AxisError> {
                let parse: fn(&str, &str) -> Option<$type> = $parse;
                let (name, argument) = call(text);
                parse(name, argument).ok_or_else(|| AxisError {
                    text: text.to_owned(),
                    axis: $axis,
                    known: $known,
                })
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let show: fn(&$type) -> String = $show;
                f.pad(&show(self))
            }
        }

        impl Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }

        impl JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "description": $known })
            }
        }
    };
}

axis!(
    Commit,
    "commit",
    "never, now, twice, after(DURATION)",
    |name, argument| match (name, argument) {
        ("never", "") => Some(Commit::Never),
        ("now", "") => Some(Commit::Now),
        ("twice", "") => Some(Commit::Twice),
        ("after", delay) => duration_ms(delay).map(|ms| Commit::After { ms }),
        _ => None,
    },
    |value| match value {
        Commit::Never => "never".into(),
        Commit::Now => "now".into(),
        Commit::Twice => "twice".into(),
        Commit::After { ms } => format!("after({ms}ms)"),
    }
);

axis!(
    Reply,
    "reply",
    "ok, status(CODE), fin, rst, cut(zero), cut(headers), cut(body), hang, hold",
    |name, argument| match (name, argument) {
        ("ok", "") => Some(Reply::Ok),
        ("fin", "") => Some(Reply::Fin),
        ("rst", "") => Some(Reply::Rst),
        ("hang", "") => Some(Reply::Hang),
        ("hold", "") => Some(Reply::Hold),
        ("status", code) => {
            code.parse().ok().filter(|code| (400..600).contains(code)).map(|code| Reply::Status { code })
        }
        ("cut", "zero") => Some(Reply::Cut { at: CutAt::Zero }),
        ("cut", "headers") => Some(Reply::Cut { at: CutAt::Headers }),
        ("cut", "body") => Some(Reply::Cut { at: CutAt::Body }),
        _ => None,
    },
    |value| match value {
        Reply::Ok => "ok".into(),
        Reply::Fin => "fin".into(),
        Reply::Rst => "rst".into(),
        Reply::Hang => "hang".into(),
        Reply::Hold => "hold".into(),
        Reply::Status { code } => format!("status({code})"),
        Reply::Cut { at: CutAt::Zero } => "cut(zero)".into(),
        Reply::Cut { at: CutAt::Headers } => "cut(headers)".into(),
        Reply::Cut { at: CutAt::Body } => "cut(body)".into(),
    }
);

axis!(
    Visible,
    "visible",
    "now, never, after(DURATION)",
    |name, argument| match (name, argument) {
        ("now", "") => Some(Visible::Now),
        ("never", "") => Some(Visible::Never),
        ("after", delay) => duration_ms(delay).map(|ms| Visible::After { ms }),
        _ => None,
    },
    |value| match value {
        Visible::Now => "now".into(),
        Visible::Never => "never".into(),
        Visible::After { ms } => format!("after({ms}ms)"),
    }
);

axis!(
    Aftermath,
    "aftermath",
    "none, bounce(DURATION), redeliver, receipt(late), receipt(duplicate), receipt(lost)",
    |name, argument| match (name, argument) {
        ("none", "") => Some(Aftermath::None),
        ("redeliver", "") => Some(Aftermath::Redeliver),
        ("bounce", delay) => duration_ms(delay).map(|after_ms| Aftermath::Bounce { after_ms }),
        ("receipt", "late") => Some(Aftermath::ReceiptLate),
        ("receipt", "duplicate") => Some(Aftermath::ReceiptDuplicate),
        ("receipt", "lost") => Some(Aftermath::ReceiptLost),
        _ => None,
    },
    |value| match value {
        Aftermath::None => "none".into(),
        Aftermath::Redeliver => "redeliver".into(),
        Aftermath::Bounce { after_ms } => format!("bounce({after_ms}ms)"),
        Aftermath::ReceiptLate => "receipt(late)".into(),
        Aftermath::ReceiptDuplicate => "receipt(duplicate)".into(),
        Aftermath::ReceiptLost => "receipt(lost)".into(),
    }
);

/// Which requests a rule is for. Every given field must match; an empty one matches all writes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Match {
    /// The dialect, such as `rest`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dialect: Option<String>,
    /// The dialect's operation, such as `create` or `lookup`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// Which of the requests that match all the rest, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nth: Option<u32>,
    /// The idempotency key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Header name (any case) to exact value.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub header: BTreeMap<String, String>,
    /// JSON pointer (RFC 6901) into the body to the value's text.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub pointer: BTreeMap<String, String>,
}

/// Behaviour for the requests that match. The first rule that matches and is not used up wins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Unique among the rules in force.
    pub id: String,
    /// Which requests.
    #[serde(default, rename = "match")]
    pub matches: Match,
    /// What happens to them.
    pub plan: ProviderPlan,
    /// How often it fires at most; no limit where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u32>,
}

/// What is done at a hit: a name from the fault slice and its parameters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// A name from `list faults`, such as `kill`.
    pub name: String,
    /// The fault's own parameters.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub with: BTreeMap<String, serde_json::Value>,
}

impl Fault {
    /// A fault without parameters.
    pub fn named(name: &str) -> Self {
        Self { name: name.to_owned(), with: BTreeMap::new() }
    }
}

/// A fault and the hit at which it is done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FaultAt {
    /// The moment.
    pub at: HitName,
    /// What is done.
    pub fault: Fault,
}

/// One logical thing that the worker is asked to do, handed to the enqueue command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ActionSpec {
    /// The logical id.
    pub id: String,
    /// Destinations; one message to each.
    pub to: Vec<String>,
    /// The text that a recipient sees.
    pub body: String,
}

/// A line of a file that the user wrote.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SourceLine {
    /// The file, as the user named it.
    pub file: String,
    /// Which line, from 1.
    pub line: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// What to do in one trial.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Plan {
    /// A readable, unique name within the run, such as `kill at provider:committed#1`.
    pub name: String,
    /// The scenario that it comes from, where it comes from one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scenario: Option<String>,
    /// The name of the provider plan for reports: `ok`, `drop-after-accept`, …
    pub provider_plan: String,
    /// The provider's behaviour.
    pub rules: Vec<Rule>,
    /// Faults at hits.
    pub faults: Vec<FaultAt>,
    /// What is enqueued; empty means the configuration's default.
    pub actions: Vec<ActionSpec>,
    /// Workers that are started at the same time at the beginning; 0 and 1 are one.
    #[serde(skip_serializing_if = "is_zero")]
    pub workers: u32,
    /// The file that it was read from. It is no part of what is done, and a trial's record holds it, not its plan.
    #[serde(skip)]
    pub source: Option<SourceLine>,
}

impl Plan {
    /// Whether this is the fault-free trial.
    pub fn is_baseline(&self) -> bool {
        self.rules.is_empty() && self.faults.is_empty() && self.workers <= 1
    }

    /// What the plan does, as 16 hexadecimal digits: the beginning of the SHA-256 of its contents without its
    /// names. Two plans that do the same have the same one, in every run and on every machine.
    pub fn content_id(&self) -> String {
        let unnamed =
            Self { name: String::new(), scenario: None, provider_plan: String::new(), ..self.clone() };
        // A plan has only text keys, so this can't fail; maps are ordered, so it is the same each time.
        let text = serde_json::to_vec(&unnamed).unwrap_or_default();
        let digest = <sha2::Sha256 as sha2::Digest>::digest(text);
        let first = digest.iter().take(8).fold(0_u64, |number, byte| (number << 8) | u64::from(*byte));
        format!("{first:016x}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_round_trip_as_text() {
        for text in ["never", "now", "twice", "after(500ms)"] {
            assert_eq!(text.parse::<Commit>().map(|v| v.to_string()), Ok(text.to_owned()));
        }
        for text in
            ["ok", "status(503)", "fin", "rst", "cut(zero)", "cut(headers)", "cut(body)", "hang", "hold"]
        {
            assert_eq!(text.parse::<Reply>().map(|v| v.to_string()), Ok(text.to_owned()));
        }
        for text in ["none", "bounce(1000ms)", "redeliver", "receipt(late)"] {
            assert_eq!(text.parse::<Aftermath>().map(|v| v.to_string()), Ok(text.to_owned()));
        }
        assert!("status(200)".parse::<Reply>().is_err(), "a status plan is an error answer");
        assert!("after(5 parsecs)".parse::<Commit>().is_err());
        assert_eq!(duration_ms("25h"), Some(90_000_000));
    }

    #[test]
    fn plans_that_do_the_same_have_the_same_content_id() -> Result<(), crate::hit::HitNameError> {
        let kill = |at: &str| -> Result<Plan, crate::hit::HitNameError> {
            let faults = vec![FaultAt { at: at.parse()?, fault: Fault::named("kill") }];
            Ok(Plan { faults, ..Plan::default() })
        };
        let one = kill("provider:committed#1")?;
        let renamed = Plan { name: "another".into(), scenario: Some("file".into()), ..one.clone() };
        assert_eq!(one.content_id(), renamed.content_id());
        assert_eq!(one.content_id(), "9d72093a57f298b8", "the same on every machine and in every version");
        assert_ne!(one.content_id(), kill("provider:committed#2")?.content_id());
        Ok(())
    }

    #[test]
    fn twins_show_the_worker_the_same_bytes() {
        let drop_after = ProviderPlan { reply: Reply::Fin, ..ProviderPlan::default() };
        let twin = drop_after.twin();
        assert_eq!(twin.map(|plan| (plan.commit, plan.reply)), Some((Commit::Never, Reply::Fin)));
        assert_eq!(twin.and_then(ProviderPlan::twin), Some(drop_after));
        assert_eq!(ProviderPlan::default().twin(), None);
    }
}
