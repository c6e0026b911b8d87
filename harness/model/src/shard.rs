//! What a run's record says where the run is one of several parts, or was put together from parts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A trial that was planned, by what tells it from others in every part of a run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlannedTrial {
    /// [`Plan::content_id`](crate::Plan::content_id): what it does.
    pub content_id: String,
    /// The plan's name.
    pub name: String,
    /// Which repetition, from 1.
    pub repetition: u32,
}

/// One part of a run that was divided among several processes or machines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShardRecord {
    /// Which part, from 1.
    pub index: u32,
    /// Into how many parts the run was divided.
    pub count: u32,
    /// Every faulted trial of the whole run, in order; those of other parts too. Empty until it is known.
    pub planned: Vec<PlannedTrial>,
    /// SHA-256 of the settings as they are written down, in hexadecimal digits.
    pub settings_id: String,
}

/// A part of a merged run of which something is not there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LackingShard {
    /// Which part, from 1.
    pub index: u32,
    /// What became of it, as far as it is known.
    pub why: String,
}

/// A trial that was planned, and of which no part has a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MissingTrial {
    /// The part to which it belongs.
    pub shard: u32,
    /// Which trial.
    pub trial: PlannedTrial,
}

/// What a run was put together from, and what is not there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MergedRecord {
    /// Into how many parts the run was divided.
    pub count: u32,
    /// Parts that are not there or ended early.
    pub lacking: Vec<LackingShard>,
    /// Trials that are not there.
    pub missing: Vec<MissingTrial>,
}

impl MergedRecord {
    /// Whether every part ended and every planned trial is there. Otherwise the run is `inconclusive` at best.
    pub const fn is_complete(&self) -> bool {
        self.lacking.is_empty() && self.missing.is_empty()
    }
}
