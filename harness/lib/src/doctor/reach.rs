//! What a configuration reaches. No program of it is started: it is only looked for.

use std::collections::BTreeMap;

use killpoint_engine::os::find_program;
use killpoint_model::Settings;
use killpoint_model::event::ClockMethod;
use killpoint_model::settings::{CommandSettings, LedgerSettings};
use killpoint_scenarios::PRESETS;
use serde::Serialize;

/// How far a part of the configuration goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reach {
    /// It is there.
    Configured,
    /// It is not there.
    Absent,
    /// It is there and can't work.
    Broken,
}

impl Reach {
    /// The word of the JSON form.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Configured => "configured",
            Self::Absent => "absent",
            Self::Broken => "broken",
        }
    }
}

/// One part of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reached {
    /// As it is written in the file.
    pub name: &'static str,
    /// How far it goes.
    pub state: Reach,
    /// Whether no trial can run where it is broken.
    pub vital: bool,
    /// What was seen.
    pub said: String,
    /// What to write, where something is to be gained.
    pub to_do: Option<String>,
}

/// Columns of a mapping beside those that must be there.
const COLUMNS: &[&str] =
    &["destination", "key", "attempts", "provider_id", "execution", "evidence", "text", "owner"];

/// Looks at each part.
pub(super) fn reach(settings: &Settings) -> Vec<Reached> {
    let mut all = vec![command("worker.command", Some(&settings.worker.command), "")];
    for prepare in &settings.state.prepare {
        all.push(command("state.prepare", Some(prepare), ""));
    }
    let enqueue = "write `enqueue = [\"…\", \"{actions}\"]` under `[state]`: then a kill can't hit the making of the work";
    all.push(command("state.enqueue", settings.state.enqueue.as_ref(), enqueue));
    all.push(ledger(settings.ledger.as_ref()));
    if let Some(reads) = settings.ledger.as_ref().and_then(|ledger| ledger.command.as_ref()) {
        all.push(command("ledger.command", Some(reads), ""));
    }
    all.push(second_worker(settings));
    all.push(clock(settings));
    let cleanup = "write `[cleanup]` with its `command`, where the worker has one";
    all.push(optional(command("cleanup", settings.cleanup.as_ref(), cleanup)));
    let producer =
        "write `[producer]` with a `command` that makes the mark `producer-open` inside its transaction";
    all.push(optional(command("producer", settings.producer.as_ref(), producer)));
    all.extend(sections(settings));
    all
}

fn part(name: &'static str, present: bool, said: &str, to_do: &str) -> Reached {
    Reached {
        name,
        state: if present { Reach::Configured } else { Reach::Absent },
        vital: false,
        said: if present { said.to_owned() } else { "not configured".to_owned() },
        to_do: (!present).then(|| to_do.to_owned()),
    }
}

fn sections(settings: &Settings) -> [Reached; 4] {
    let alarm = &settings.alarm;
    let has_alarm = alarm.output.is_some() || !alarm.exit_codes.is_empty() || alarm.metric.is_some();
    let secrets = !settings.secrets.env.is_empty() || settings.secrets.url;
    [
        part(
            "metrics",
            settings.metrics.is_some(),
            "the worker's counters are compared",
            "write `[metrics]` with its `url`, `file` or `query`",
        ),
        part(
            "alarm",
            has_alarm,
            "the worker's own alarm is reported",
            "write `[alarm]` with its `output`, `exit-codes` or `metric`",
        ),
        part(
            "secrets",
            secrets,
            "credentials are planted and looked for",
            "name the variables that hold credentials: `env = [\"API_TOKEN\"]` under `[secrets]`",
        ),
        part(
            "inbound",
            settings.inbound.is_some(),
            "the fake provider serves a feed",
            "write `[inbound]` with `items = 3`, for a worker that polls one",
        ),
    ]
}

/// The same, where a broken one costs only its own scenarios.
fn optional(reached: Reached) -> Reached {
    Reached { vital: false, ..reached }
}

fn command(name: &'static str, command: Option<&CommandSettings>, to_do: &str) -> Reached {
    let Some(command) = command else { return part(name, false, "", to_do) };
    let (state, said, to_do) = match resolve(command) {
        Ok(said) => (Reach::Configured, said, None),
        Err(why) => {
            (Reach::Broken, why, Some("correct the command, or build or install what it names".to_owned()))
        }
    };
    Reached { name, state, vital: true, said, to_do }
}

/// The program of a command and the script that it names, as a trial would find them.
fn resolve(command: &CommandSettings) -> Result<String, String> {
    if !command.cwd.is_dir() {
        return Err(format!("the working directory {} is not there", command.cwd.display()));
    }
    let word = command.argv.first().map(String::as_str).unwrap_or_default();
    if word.contains('{') {
        return Ok(format!("`{word}` is known only in a trial"));
    }
    let mut env: BTreeMap<String, String> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    env.extend(command.env.iter().map(|(name, value)| (name.clone(), value.clone())));
    let program = find_program(word, &env, &command.cwd).map_err(|error| error.to_string())?;
    let ends = [".py", ".js", ".mjs", ".cjs", ".rb", ".sh"];
    let script = command.argv.iter().skip(1).find(|word| ends.iter().any(|end| word.ends_with(end)));
    if let Some(script) = script.filter(|script| !script.contains('{') && !command.cwd.join(script).is_file())
    {
        return Err(format!("`{script}` is not in {}", command.cwd.display()));
    }
    Ok(format!("`{}` is {}", command.argv.join(" "), program.display()))
}

fn ledger(ledger: Option<&LedgerSettings>) -> Reached {
    let to_do = "write `[ledger]` with a `query`, a `preset` or a `command`: then what the worker believes is \
                 compared with what recipients got";
    let Some(ledger) = ledger else { return part("ledger", false, "", to_do) };
    if ledger.kind == "command" {
        return part("ledger", true, "rows come from a command; its columns show in the first trial", to_do);
    }
    let Some(query) = &ledger.query else {
        return Reached {
            said: "boundaries only: no rows are mapped".into(),
            to_do: Some(to_do.to_owned()),
            ..part("ledger", true, "", to_do)
        };
    };
    let preset = PRESETS.iter().find(|preset| preset.query == query);
    let source = preset.map_or("a query".to_owned(), |preset| format!("the preset `{}`", preset.name));
    let (has, lacks): (Vec<&str>, Vec<&str>) = COLUMNS.iter().partition(|column| maps(query, column));
    let has = if has.is_empty() { "no further columns".to_owned() } else { has.join(", ") };
    Reached {
        to_do: (!lacks.is_empty())
            .then(|| format!("each column more lets more invariants look: {}", lacks.join(", "))),
        ..part("ledger", true, &format!("rows come from {source}, with {has}"), "")
    }
}

/// Whether a query gives a column.
pub(super) fn maps(query: &str, column: &str) -> bool {
    query.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word.eq_ignore_ascii_case(column))
}

fn second_worker(settings: &Settings) -> Reached {
    let command = &settings.worker.command;
    let named = command.argv.iter().chain(command.env.values()).any(|text| text.contains("{worker}"));
    if named {
        return part("second worker", true, "each worker is told which one it is", "");
    }
    Reached {
        name: "second worker",
        state: Reach::Configured,
        vital: false,
        said: "a second one is started by the same command, and is not told that it is the second".into(),
        to_do: Some(
            "where workers need names of their own, give them `{worker}` in the command or a variable".into(),
        ),
    }
}

fn clock(settings: &Settings) -> Reached {
    let said = match settings.worker.clock {
        ClockMethod::Vdso => "the harness moves the worker's clock",
        ClockMethod::Environment => "the worker reads KILLPOINT_CLOCK_OFFSET_MS itself",
    };
    part("worker.clock", true, said, "")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn find<'r>(all: &'r [Reached], name: &str) -> &'r Reached {
        all.iter().find(|one| one.name == name).unwrap()
    }

    #[test]
    fn what_is_not_there_is_said_with_what_to_write() {
        let all = reach(&Settings::default());
        assert_eq!(find(&all, "worker.command").state, Reach::Broken);
        for name in
            ["state.enqueue", "ledger", "cleanup", "producer", "metrics", "alarm", "secrets", "inbound"]
        {
            let one = find(&all, name);
            assert_eq!(one.state, Reach::Absent, "{name}");
            assert!(one.to_do.as_ref().is_some_and(|to_do| to_do.len() > 10), "{name}");
        }
    }

    #[test]
    fn commands_are_looked_for_as_a_trial_would() {
        let folder = tempfile::tempdir().unwrap();
        let mut settings = Settings::default();
        settings.worker.command.cwd = folder.path().to_owned();
        settings.worker.command.argv = vec!["sh".into(), "worker.sh".into()];
        let one = || find(&reach(&settings), "worker.command").clone();
        assert!(one().said.contains("`worker.sh` is not in"), "{:?}", one());
        std::fs::write(folder.path().join("worker.sh"), "").unwrap();
        assert_eq!(one().state, Reach::Configured, "{:?}", one());
        settings.worker.command.argv = vec!["no-such-program".into()];
        let one = find(&reach(&settings), "worker.command").clone();
        assert!(one.vital && one.said.contains("not found"), "{one:?}");
    }

    #[test]
    fn a_mapping_says_what_it_has() {
        let text = "[worker]\ncommand = [\"sh\"]\n[ledger]\npath = \"{state}/a.db\"\npreset = \"jobs\"\n";
        let loaded = killpoint_scenarios::load_config(text, "k.toml", Path::new("/"), &crate::catalog());
        let all = reach(&loaded.value.unwrap());
        let ledger = find(&all, "ledger");
        assert_eq!(ledger.said, "rows come from the preset `jobs`, with attempts, execution");
        assert!(ledger.to_do.as_ref().is_some_and(|to_do| to_do.contains("key")));
    }
}
