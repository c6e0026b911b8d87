//! Puts the parts of a divided run together to one run, which is shown and judged like any other.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use killpoint_model::checklist::{HostFacts, RunProfile};
use killpoint_model::run::TrialRole;
use killpoint_model::{RunRecord, TrialRecord};

use crate::agree::{Part, parts};
use crate::arrange::{Arranged, Place, arrange};
use crate::carry::carry;
use crate::check::run_verdict;
use crate::error::RunError;
use crate::folder::RunFolder;
use crate::run::unfired_warning;
use crate::{host, profile};

/// Merges the parts in the folders `runs` to a new run in the folder `out`, which is new or empty. `command_line` is
/// for the record: the words after `killpoint`.
///
/// Every trial keeps the judgement of its part, and the baselines of its part with which it was compared. A part that
/// is not there, or that ended early, is no error: it and its trials are named in the record, and the verdict is
/// `inconclusive` at best. The checklist of a profile is answered from all trials.
///
/// # Errors
/// Something in `runs` is no part of a run, or of another run than the rest; a file can't be read or written.
pub fn merge(
    runs: &[PathBuf],
    out: &Path,
    command_line: Vec<String>,
) -> Result<(RunFolder, RunRecord), RunError> {
    let (parts, absent) = parts(runs)?;
    let records: Vec<_> = parts.iter().map(|part| (&part.record, &part.shard)).collect();
    let arranged = arrange(&records);
    let folder = RunFolder::create(out)?;
    let mut warnings = warnings(&parts, &absent, &arranged);
    let mut trials = Vec::new();
    for place in &arranged.places {
        let part = &parts[place.part];
        let trial = moved(&part.record.trials[place.trial], *place, part.shard.index, &folder);
        let from = part.folder.trial(&part.record.trials[place.trial].folder);
        let lost = carry(&from, &folder.trial(&trial.folder))?;
        warnings.extend(lost.iter().map(|path| format!("{} could not be copied", path.display())));
        trials.push(trial);
    }
    let mut record = RunRecord {
        killpoint: parts[0].record.killpoint.clone(),
        started_at_ms: parts.iter().map(|part| part.record.started_at_ms).min().unwrap_or_default(),
        command_line,
        trials,
        warnings,
        // They ran side by side.
        duration_ms: parts.iter().map(|part| part.record.duration_ms).max().unwrap_or_default(),
        profile: parts[0]
            .record
            .profile
            .as_ref()
            .map(|profile| RunProfile { answers: Vec::new(), ..profile.clone() }),
        host: agreed_host(&parts),
        merged: Some(arranged.merged),
        baseline: crate::known::merged(&parts),
        changed: crate::changed::merged(&parts),
        ..RunRecord::new(parts[0].record.settings.clone())
    };
    if record.profile.is_some() {
        let histories = folder.histories(&record)?;
        host::read_logs(&mut record, &folder, &histories);
        profile::set_aside(&mut record, &histories);
        profile::answer(&mut record, &histories);
    }
    record.verdict = run_verdict(&record);
    folder.write(&record)?;
    Ok((folder, record))
}

/// A trial in its new folder.
fn moved(trial: &TrialRecord, place: Place, shard: u32, run: &RunFolder) -> TrialRecord {
    let words = trial.folder.split_once('-').map_or(trial.folder.as_str(), |(_, words)| words);
    // Each part has baselines of its own, with the same numbers.
    let suffix = if trial.role == TrialRole::Faulted { String::new() } else { format!("-shard{shard}") };
    let folder = format!("{:04}-{words}{suffix}", place.number);
    let replay = replay(&trial.replay, &trial.folder, &run.trial(&folder));
    TrialRecord { folder, replay, shard: Some(shard), ..trial.clone() }
}

/// A replay command whose scenario file lies in the trial's new folder.
fn replay(command: &str, old_folder: &str, new: &Path) -> String {
    const BEGIN: &str = " --scenario '";
    let end = format!("/{old_folder}/scenario.toml'");
    let Some((begin, rest)) = command.rsplit_once(&end) else { return command.to_owned() };
    let Some((begin, _)) = begin.rsplit_once(BEGIN) else { return command.to_owned() };
    format!("{begin}{BEGIN}{}'{rest}", new.join("scenario.toml").display())
}

/// The warnings of all parts, each once. A rule that did not fire in one part may have fired in another.
fn warnings(parts: &[Part], absent: &[PathBuf], arranged: &Arranged) -> Vec<String> {
    let has = |part: &Part, warning: &String| part.record.warnings.contains(warning);
    let rules = parts[0].record.settings.provider.rules.iter().map(|rule| unfired_warning(&rule.id));
    let fired: BTreeSet<String> =
        rules.filter(|warning| !parts.iter().all(|part| has(part, warning))).collect();
    let mut warnings: Vec<String> =
        absent.iter().map(|path| format!("{} is not there", path.display())).collect();
    if arranged.disputed > 0 {
        warnings.push(format!(
            "the shards did not plan the same: {} trials are not in every list; their fault-free trials reached different \
             boundaries, or they were asked for different trials",
            arranged.disputed
        ));
    }
    for warning in parts.iter().flat_map(|part| &part.record.warnings) {
        if !fired.contains(warning) && !warnings.contains(warning) {
            warnings.push(warning.clone());
        }
    }
    warnings
}

/// What was seen of the machines, as far as it was the same on all of them.
fn agreed_host(parts: &[Part]) -> Option<HostFacts> {
    let mut hosts = parts.iter().filter_map(|part| part.record.host.as_ref());
    let mut agreed = HostFacts { log: None, ..hosts.next()?.clone() };
    for host in hosts {
        agreed.file_system = agreed.file_system.filter(|kind| Some(kind) == host.file_system.as_ref());
        agreed.journal_mode = agreed.journal_mode.filter(|mode| Some(mode) == host.journal_mode.as_ref());
        agreed.schema_version = agreed.schema_version.filter(|version| Some(*version) == host.schema_version);
    }
    Some(agreed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replay_command_names_the_scenario_file_where_it_is_now() {
        let new = Path::new("/out/0007-a");
        assert_eq!(
            replay("killpoint demo --scenario '/old/run/0003-a/scenario.toml' -- ./w", "0003-a", new),
            "killpoint demo --scenario '/out/0007-a/scenario.toml' -- ./w"
        );
        for other in ["killpoint demo --boundary 'provider:committed#1'", "killpoint demo"] {
            assert_eq!(replay(other, "0003-a", new), other);
        }
    }
}
