//! Whether stored runs are the parts of one run.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use killpoint_model::run::TrialRole;
use killpoint_model::{RunRecord, Settings, ShardRecord};
use serde_json::Value;

use crate::error::RunError;
use crate::folder::RunFolder;
use crate::shard::{Shard, planned_of};

/// Most characters of a value in a message.
const VALUE_CHARS_MAX: usize = 60;

/// A stored part of a run.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) folder: RunFolder,
    pub(crate) record: RunRecord,
    pub(crate) shard: ShardRecord,
}

impl Part {
    fn open(path: &Path) -> Result<Self, RunError> {
        let bad = |why: String| RunError::BadRun { path: path.join("run.json"), why };
        let (folder, record) = RunFolder::open(path)?;
        let Some(shard) = record.shard.clone() else {
            let what = if record.merged.is_some() { "a merged run" } else { "a whole run" };
            return Err(bad(format!("this is {what}, not a shard of one; `--shard I/N` makes shards")));
        };
        let own = Shard::new(shard.index, shard.count).map_err(|error| bad(error.to_string()))?;
        for trial in &record.trials {
            // The names come from a file, and something is copied from and to where they point.
            let mut parts = Path::new(&trial.folder).components();
            if !matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None)) {
                return Err(bad(format!("`{}` is no name of a trial's folder", trial.folder)));
            }
            if trial.role == TrialRole::Faulted && !own.has(&planned_of(trial)) {
                return Err(bad(format!("the trial `{}` does not belong to shard {own}", trial.plan.name)));
            }
        }
        Ok(Self { folder, record, shard })
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// The parts that are there, in their order, and the paths at which there is nothing.
///
/// # Errors
/// Something that is there is no part of a run, two are no parts of the same, or nothing is there at all.
pub(crate) fn parts(runs: &[PathBuf]) -> Result<(Vec<Part>, Vec<PathBuf>), RunError> {
    let (there, absent): (Vec<_>, Vec<_>) =
        runs.iter().cloned().partition(|path| !matches!(path.try_exists(), Ok(false)));
    let mut parts = there.iter().map(|path| Part::open(path)).collect::<Result<Vec<_>, _>>()?;
    let Some(first) = parts.first() else {
        let path = absent.first().cloned().unwrap_or_default();
        return Err(RunError::BadRun {
            path,
            why: "none of the shards is there; nothing can be merged".into(),
        });
    };
    for other in &parts {
        compare(first, other)?;
    }
    parts.sort_by_key(|part| part.shard.index);
    let twice = parts.windows(2).find(|pair| pair[0].shard.index == pair[1].shard.index);
    if let Some([one, other]) = twice {
        return Err(apart(one, other, format!("both are shard {}", one.shard.index)));
    }
    Ok((parts, absent))
}

fn apart(one: &Part, other: &Part, why: String) -> RunError {
    RunError::Apart { one: one.path().to_owned(), other: other.path().to_owned(), why }
}

fn compare(one: &Part, other: &Part) -> Result<(), RunError> {
    let (left, right) = (&one.record, &other.record);
    let profile = |record: &RunRecord| {
        record
            .profile
            .as_ref()
            .map_or("no profile".to_owned(), |profile| format!("the profile {}", profile.name))
    };
    let why = if left.killpoint != right.killpoint {
        Some(format!("killpoint {} ran the one, killpoint {} the other", left.killpoint, right.killpoint))
    } else if one.shard.count != other.shard.count {
        Some(format!("the one is of {} shards, the other of {}", one.shard.count, other.shard.count))
    } else if left.settings != right.settings || one.shard.settings_id != other.shard.settings_id {
        Some(settings_difference(&left.settings, &right.settings))
    } else if profile(left) != profile(right) {
        Some(format!("{} was asked for in the one, {} in the other", profile(left), profile(right)))
    } else {
        None
    };
    why.map_or(Ok(()), |why| Err(apart(one, other, why)))
}

fn settings_difference(one: &Settings, other: &Settings) -> String {
    // Settings have only text keys, so this can't fail.
    let value = |settings| serde_json::to_value(settings).unwrap_or_default();
    difference("settings", Some(&value(one)), Some(&value(other)))
        .unwrap_or_else(|| "their settings have different ids, though what is on record is the same".into())
}

/// The first place where two documents differ, with both values.
fn difference(path: &str, one: Option<&Value>, other: Option<&Value>) -> Option<String> {
    match (one, other) {
        (Some(Value::Object(one)), Some(Value::Object(other))) => {
            let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            names
                .into_iter()
                .find_map(|name| difference(&format!("{path}.{name}"), one.get(name), other.get(name)))
        }
        (Some(Value::Array(one)), Some(Value::Array(other))) => (0..one.len().max(other.len()))
            .find_map(|index| difference(&format!("{path}[{index}]"), one.get(index), other.get(index))),
        _ if one == other => None,
        _ => Some(format!("`{path}` is {} in the one, {} in the other", shown(one), shown(other))),
    }
}

fn shown(value: Option<&Value>) -> String {
    let Some(value) = value else { return "absent".into() };
    let text = value.to_string();
    let mut shown: String = text.chars().take(VALUE_CHARS_MAX).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_first_difference_is_named_with_both_values() {
        let of = |one: Value, other: Value| difference("settings", Some(&one), Some(&other));
        assert_eq!(of(json!({"a": [1, {"b": 2}]}), json!({"a": [1, {"b": 2}]})), None);
        assert_eq!(
            of(json!({"a": [1, {"b": 2}], "c": 1}), json!({"a": [1, {"b": "x"}], "c": 2})).unwrap(),
            "`settings.a[1].b` is 2 in the one, \"x\" in the other"
        );
        assert_eq!(
            of(json!({"a": [1]}), json!({"a": [1, 2]})).unwrap(),
            "`settings.a[1]` is absent in the one, 2 in the other"
        );
        assert_eq!(
            of(json!({"a": null}), json!({"a": "y".repeat(100)})).unwrap(),
            format!("`settings.a` is null in the one, \"{}… in the other", "y".repeat(59))
        );
        assert_eq!(
            of(json!({}), json!({"z": 1})).unwrap(),
            "`settings.z` is absent in the one, 1 in the other"
        );
    }

    #[test]
    fn settings_differ_where_they_do() {
        let (one, mut other) = (Settings::default(), Settings::default());
        other.checks.attempts_max = 3;
        assert_eq!(
            settings_difference(&one, &other),
            "`settings.checks.attempts_max` is 10 in the one, 3 in the other"
        );
        assert!(settings_difference(&one, &one.clone()).contains("different ids"));
    }
}
