//! What a run will start, with which environment, and what of that should make its owner stop and look. Names and
//! masked texts only: no value of an inherited variable is kept, and none that is a secret.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use killpoint_model::Settings;
use killpoint_model::credential::{
    is_credential_name, is_secret_name, live_credential, live_host, masked_value, masked_words, remote_host,
};
use killpoint_model::settings::CommandSettings;

/// Variables that are named at most in one warning.
const NAMED_MAX: usize = 8;

/// Ends of the names of variables that hold the address of a service or of a store.
const ADDRESS_ENDS: &[&str] = &["BASE_URL", "API_URL", "API_BASE", "ENDPOINT", "WEBHOOK_URL", "SMTP_HOST"];
const STORE_ENDS: &[&str] =
    &["DATABASE_URL", "DB_URL", "DSN", "REDIS_URL", "BROKER_URL", "PGHOST", "MONGODB_URI"];

/// Values that are no credentials: what people write into test environments.
const PLACEHOLDERS: &[&str] = &["test", "dummy", "fake", "example", "changeme", "placeholder", "none", "xxx"];

/// A command as it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandShown {
    /// What it is for.
    pub role: &'static str,
    /// Its words, secrets masked, templates as they are.
    pub words: Vec<String>,
    /// Where it runs.
    pub folder: PathBuf,
}

/// What a run will start, and with what.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// The worker first.
    pub commands: Vec<CommandShown>,
    /// The variables that the configuration sets for the worker: name, and value with secrets masked.
    pub sets: Vec<(String, String)>,
    /// Whether every variable of killpoint's own environment is inherited.
    pub inherits_all: bool,
    /// The names of the inherited variables.
    pub inherits: Vec<String>,
    /// The dialect that the fake provider speaks.
    pub dialect: String,
    /// The names of the variables that hold the fake provider's address.
    pub provider_variables: Vec<String>,
    /// Whether any word or variable hands over the fake provider's address.
    pub names_provider: bool,
    /// The names of the variables that lead to the state directory.
    pub state_variables: Vec<String>,
    /// Whether any word or variable of any command leads to the state directory.
    pub names_state: bool,
    /// What should make one stop and look; names only.
    pub warnings: Vec<String>,
}

/// Looks at what is configured, and at the environment of this process, which is given by name and value.
pub fn surroundings(settings: &Settings, environment: &BTreeMap<String, String>) -> Surroundings {
    let worker = &settings.worker.command;
    let is_wanted = |name: &&String| worker.inherit.as_ref().is_none_or(|names| names.contains(*name));
    // What the configuration sets, and what is planted, takes the place of what was inherited.
    let is_covered = |name: &String| worker.env.contains_key(name) || settings.secrets.env.contains(name);
    let inherited: BTreeMap<&str, &str> = environment
        .iter()
        .filter(|(name, _)| is_wanted(name) && !is_covered(name))
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    let provider = format!("{{provider.{}}}", settings.provider.dialect);
    let with = |part: &str| -> Vec<String> {
        let own = worker.env.iter().filter(|(_, value)| value.contains(part));
        own.map(|(name, _)| name.clone()).collect()
    };
    let names = |part: &str| {
        let texts = settings.commands().flat_map(|command| command.argv.iter().chain(command.env.values()));
        texts.into_iter().any(|text| text.contains(part))
    };
    let (names_provider, names_state) = (names(&provider), names("{state}"));
    let mut warnings = warnings(settings, &inherited);
    if !names_provider {
        warnings.push(format!(
            "no command is handed `{provider}`: the worker speaks to whatever provider it finds by itself"
        ));
    }
    // Who prepares a state elsewhere, such as in a database server, has thought of it.
    if !names_state && settings.state.prepare.is_empty() {
        warnings.push(
            "no command is handed `{state}`: what the worker keeps is not below the run's folder, and not fresh in each \
             trial"
                .to_owned(),
        );
    }
    Surroundings {
        commands: commands(settings),
        sets: worker.env.iter().map(|(name, value)| (name.clone(), masked_value(name, value))).collect(),
        inherits_all: worker.inherit.is_none(),
        inherits: inherited.keys().map(|name| (*name).to_owned()).collect(),
        dialect: settings.provider.dialect.clone(),
        provider_variables: with(&provider),
        names_provider,
        state_variables: with("{state}"),
        names_state,
        warnings,
    }
}

fn commands(settings: &Settings) -> Vec<CommandShown> {
    let shown = |role, command: &CommandSettings| CommandShown {
        role,
        words: masked_words(&command.argv),
        folder: command.cwd.clone(),
    };
    let ledger = settings.ledger.as_ref().and_then(|ledger| ledger.command.as_ref());
    let mut commands = vec![shown("worker", &settings.worker.command)];
    commands.extend(settings.state.prepare.iter().map(|command| shown("prepare", command)));
    let others = [
        ("enqueue", settings.state.enqueue.as_ref()),
        ("producer", settings.producer.as_ref()),
        ("cleanup", settings.cleanup.as_ref()),
        ("ledger", ledger),
    ];
    commands.extend(others.into_iter().filter_map(|(role, command)| Some(shown(role, command?))));
    commands
}

fn warnings(settings: &Settings, inherited: &BTreeMap<&str, &str>) -> Vec<String> {
    let mut warnings = Vec::new();
    let leave_out = "run with --clean-env, or unset it";
    let mut named: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (name, value) in inherited {
        if let Some(why) = inherited_risk(name, value) {
            named.entry(why).or_default().push(name);
        }
    }
    for (why, names) in named {
        let named =
            names.iter().take(NAMED_MAX).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let more = match names.len().saturating_sub(NAMED_MAX) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        warnings.push(format!("the worker inherits {named}{more}: {why}; {leave_out}"));
    }
    let mut seen = BTreeSet::new();
    for command in settings.commands() {
        for (name, value) in &command.env {
            let risk = configured_risk(value).filter(|_| !settings.secrets.env.contains(name));
            warnings.extend(risk.map(|why| format!("the configuration sets `{name}` to {why}")));
        }
        let mut words = command.argv.iter().skip(1);
        let risk = words.find_map(|word| configured_risk(word));
        warnings.extend(risk.map(|why| {
            let program = masked_words(&command.argv[..1]).join(" ");
            format!("a word of the command `{program}` is {why}")
        }));
    }
    warnings.retain(|warning| seen.insert(warning.clone()));
    warnings
}

/// Why an inherited variable should not reach a worker that is killed and restarted hundreds of times.
fn inherited_risk(name: &str, value: &str) -> Option<String> {
    if value.trim().is_empty() {
        return None;
    }
    if let Some(what) = live_credential(value) {
        return Some(format!("its value has the form of {what}"));
    }
    if let Some(host) = live_host(value).filter(|_| !is_secret_name(name)) {
        return Some(format!("it names a real provider, {host}"));
    }
    let upper = name.to_ascii_uppercase();
    let ends = |list: &[&str]| list.iter().any(|end| upper.ends_with(end));
    if ends(STORE_ENDS) {
        return Some("it may lead to a store that is not of this run".to_owned());
    }
    if ends(ADDRESS_ENDS) && remote_host(value).is_some() {
        return Some("it is the address of a service that is not on this machine".to_owned());
    }
    let lower = value.to_ascii_lowercase();
    let is_placeholder = PLACEHOLDERS.iter().any(|word| lower.contains(word)) || value.len() < 8;
    (is_credential_name(name) && !is_placeholder).then(|| "by its name it holds a live credential".to_owned())
}

/// Why what the configuration itself says should be looked at.
fn configured_risk(value: &str) -> Option<String> {
    if let Some(what) = live_credential(value) {
        return Some(format!("what has the form of {what}"));
    }
    if let Some(host) = live_host(value) {
        return Some(format!("an address of a real provider, {host}"));
    }
    remote_host(value).map(|host| format!("an address that is not on this machine, {host}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "sk_live_4eC39HqLyjWDarjtT1zdp7dc";

    fn environment(variables: &[(&str, &str)]) -> BTreeMap<String, String> {
        variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn settings(env: &[(&str, &str)], words: &[&str]) -> Settings {
        let mut settings = Settings::default();
        settings.worker.command.argv = words.iter().map(|word| (*word).to_owned()).collect();
        settings.worker.command.env = environment(env);
        for (name, value) in [("WIRED_IN", "{provider.rest}"), ("KEPT_IN", "{state}")] {
            settings.worker.command.env.insert(name.into(), value.into());
        }
        settings
    }

    fn warned(settings: &Settings, variables: &[(&str, &str)]) -> Vec<String> {
        surroundings(settings, &environment(variables)).warnings
    }

    #[test]
    fn live_things_that_are_inherited_are_named_and_never_shown() {
        let variables = [
            ("STRIPE", SECRET),
            ("SLACK_BOT_TOKEN", "not-a-known-form-1234"),
            ("MAIL_HOST", "smtp.sendgrid.net"),
            ("DATABASE_URL", "postgres://me:hunter22@db.internal/prod"),
            ("CRM_BASE_URL", "https://crm.internal"),
            ("PATH", "/usr/bin"),
            ("SSH_AUTH_SOCK", "/tmp/agent.1234"),
            ("OTHER_BASE_URL", "http://127.0.0.1:8080"),
            ("TEST_API_KEY", "test-key-12345"),
            ("EMPTY_TOKEN", ""),
        ];
        let found = warned(&settings(&[], &["w"]), &variables);
        for name in ["`STRIPE`", "`SLACK_BOT_TOKEN`", "`MAIL_HOST`", "`DATABASE_URL`", "`CRM_BASE_URL`"] {
            assert_eq!(found.iter().filter(|warning| warning.contains(name)).count(), 1, "{name}: {found:?}");
        }
        assert_eq!(found.len(), 5, "{found:?}");
        let said = format!("{:?}", surroundings(&settings(&[], &["w"]), &environment(&variables)));
        for secret in [SECRET, "hunter22", "not-a-known-form"] {
            assert!(!said.contains(secret), "{said}");
        }
    }

    #[test]
    fn what_does_not_reach_the_worker_is_no_risk() {
        let variables = [("STRIPE_API_KEY", SECRET), ("SLACK_TOKEN", "xoxb-123456789012")];
        let clean = settings(&[], &["w"]).inheriting(&["SLACK_TOKEN".to_owned()]);
        let found = warned(&clean, &variables);
        assert!(found.len() == 1 && found[0].contains("SLACK_TOKEN"), "{found:?}");
        let mut planted = settings(&[("STRIPE_API_KEY", "k")], &["w"]);
        planted.secrets.env.push("SLACK_TOKEN".into());
        assert_eq!(warned(&planted, &variables), Vec::<String>::new());
    }

    #[test]
    fn what_the_configuration_says_is_looked_at_too() {
        let settings = settings(
            &[("A", SECRET), ("B", "https://api.github.com"), ("C", "API")],
            &["w", "--url=https://mail.example.com/x", "http://localhost:1"],
        );
        let found = warned(&settings, &[]);
        assert_eq!(
            found,
            [
                "the configuration sets `A` to what has the form of a live key of Stripe",
                "the configuration sets `B` to an address of a real provider, api.github.com",
                "a word of the command `w` is an address that is not on this machine, mail.example.com",
            ]
        );
        let shown = surroundings(&settings, &BTreeMap::new());
        assert_eq!(shown.sets[0], ("A".to_owned(), "sk_live_***".to_owned()));
        assert_eq!(shown.provider_variables, ["WIRED_IN"]);
        assert_eq!(shown.state_variables, ["KEPT_IN"]);
    }

    #[test]
    fn a_worker_that_is_told_nothing_is_warned_of() {
        let mut settings = settings(&[], &["w"]);
        settings.worker.command.env.clear();
        let found = warned(&settings, &[]);
        assert!(found[0].contains("{provider.rest}") && found[1].contains("{state}"), "{found:?}");
        settings.worker.command.argv.push("{provider.rest}".into());
        settings.state.prepare.push(CommandSettings::default());
        assert_eq!(warned(&settings, &[]), Vec::<String>::new());
    }
}
