//! A command without a configuration.

use std::path::PathBuf;

use killpoint_model::Settings;

/// The settings of `killpoint run -- CMD …`: the command makes its own work, exits when it is done, and
/// finds the provider and its state through three variables. There is no ledger, so that the baseline's
/// effects are the oracle.
pub fn bare_settings(argv: Vec<String>, cwd: PathBuf) -> Settings {
    let mut settings = Settings::default();
    settings.worker.command.argv = argv;
    settings.worker.command.cwd = cwd;
    settings.worker.command.env =
        [("PROVIDER_URL", "{provider.rest}"), ("STATE_DIR", "{state}"), ("WORKER_DB", "{state}/ledger.db")]
            .into_iter()
            .map(|(name, text)| (name.to_owned(), text.to_owned()))
            .collect();
    settings
}

#[cfg(test)]
mod tests {
    use super::*;
    use killpoint_model::settings::{Lifecycle, Promise, SettleBy};

    #[test]
    fn a_bare_command_gets_the_provider_and_a_state_directory() {
        let settings = bare_settings(vec!["./worker".into()], "/project".into());
        let command = &settings.worker.command;
        assert_eq!(
            (command.argv.as_slice(), command.cwd.to_str()),
            (["./worker".to_owned()].as_slice(), Some("/project"))
        );
        assert_eq!(command.env.get("PROVIDER_URL").map(String::as_str), Some("{provider.rest}"));
        assert_eq!(command.env.len(), 3);
        assert_eq!(settings.worker.lifecycle, Lifecycle::Drains);
        assert_eq!((settings.promise, settings.settle.by), (Promise::ExactlyOnce, SettleBy::Exit));
        assert!(settings.ledger.is_none() && settings.actions.is_empty());
    }
}
