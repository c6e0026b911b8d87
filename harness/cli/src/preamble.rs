//! What is said before the first trial: what will be started, where, and with which environment.

use std::collections::BTreeMap;
use std::path::Path;

use clap::Args;
use killpoint::model::Settings;
use killpoint::model::settings::INHERITED_ALWAYS;
use killpoint::reports::clean;
use killpoint::{Surroundings, surroundings};

/// Which of the environment the worker gets.
#[derive(Debug, Args)]
pub(crate) struct Environment {
    /// Give the worker, and every other command, of this environment only PATH, HOME, LANG, TZ and their like, and
    /// what `worker.inherit` names
    #[arg(long)]
    clean_env: bool,
    /// With --clean-env: this variable, too; may be given again
    #[arg(long, value_name = "NAME", requires = "clean_env")]
    keep_env: Vec<String>,
}

impl Environment {
    /// The settings with what of the environment is passed on.
    pub(crate) fn of(&self, settings: Settings) -> Settings {
        if self.clean_env { settings.inheriting(&self.keep_env) } else { settings }
    }

    /// The flags again, for a replay command.
    pub(crate) fn words(&self) -> String {
        let keep = self.keep_env.iter().map(|name| format!(" --keep-env '{name}'"));
        if self.clean_env { format!(" --clean-env{}", keep.collect::<String>()) } else { String::new() }
    }
}

/// What there is around a run with these settings.
pub(crate) fn look(settings: &Settings) -> Surroundings {
    let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.to_string_lossy().into_owned()))
    };
    let environment: BTreeMap<String, String> = std::env::vars_os().filter_map(text).collect();
    surroundings(settings, &environment)
}

/// The lines before the first trial, without the warnings.
pub(crate) fn lines(around: &Surroundings, run: &Path) -> Vec<String> {
    let mut lines = Vec::new();
    let mut folder = None;
    for command in &around.commands {
        lines.push(format!("{:<9} {}", command.role, command.words.join(" ")));
        if folder != Some(&command.folder) {
            lines.push(format!("{:<9} in {}", "", command.folder.display()));
        }
        folder = Some(&command.folder);
    }
    let sets: Vec<String> = around.sets.iter().map(|(name, value)| format!("{name}={value}")).collect();
    if !sets.is_empty() {
        lines.push(format!("{:<9} {}", "sets", sets.join(" ")));
    }
    lines.push(format!("{:<9} {}", "inherits", inherits(around)));
    let provider = match around.provider_variables.as_slice() {
        [] if around.names_provider => String::new(),
        [] => "; nobody is told its address".to_owned(),
        names => format!("; its address is in {}", names.join(", ")),
    };
    lines.push(format!(
        "{:<9} a fake one on this machine that speaks {}{provider}",
        "provider", around.dialect
    ));
    let state = match around.state_variables.as_slice() {
        [] if around.names_state => String::new(),
        [] => "; no command is told where".to_owned(),
        [name] => format!("; {name} leads there"),
        names => format!("; {} lead there", names.join(", ")),
    };
    lines.push(format!("{:<9} a fresh folder for each trial below {}{state}", "state", run.display()));
    lines.iter().map(|line| clean(line)).collect()
}

fn inherits(around: &Surroundings) -> String {
    if around.inherits_all {
        let count = around.inherits.len();
        let always = INHERITED_ALWAYS.join(", ");
        return format!("all {count} other variables of this environment; with --clean-env at most {always}");
    }
    match around.inherits.as_slice() {
        [] => "nothing".to_owned(),
        names => format!("{} and nothing else", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use killpoint::CommandShown;

    fn around() -> Surroundings {
        let command = |role, words: &[&str]| CommandShown {
            role,
            words: words.iter().map(|word| (*word).to_owned()).collect(),
            folder: "/project".into(),
        };
        Surroundings {
            commands: vec![
                command("worker", &["python3", "worker.py"]),
                command("enqueue", &["put", "\x1b[2J"]),
            ],
            sets: vec![("API_KEY".into(), "***".into()), ("URL".into(), "{provider.rest}".into())],
            inherits_all: true,
            inherits: vec!["PATH".into(), "EDITOR".into()],
            dialect: "rest".into(),
            provider_variables: vec!["URL".into()],
            names_provider: true,
            ..Surroundings::default()
        }
    }

    #[test]
    fn what_will_be_started_is_said_before_it_is() {
        insta::assert_snapshot!(lines(&around(), Path::new("runs/1")).join("\n"));
        let clean = Surroundings { inherits_all: false, names_state: true, ..around() };
        insta::assert_snapshot!(lines(&clean, Path::new("runs/1")).join("\n"));
    }
}
