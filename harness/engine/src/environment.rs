//! What a command gets from killpoint's own environment.

use std::collections::BTreeMap;

use killpoint_model::settings::CommandSettings;

/// The variables that a command inherits: all that are text, or those that its settings name.
pub fn inherited(command: &CommandSettings) -> BTreeMap<String, String> {
    let own = std::env::vars_os();
    let text = own.filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    chosen(command, text)
}

fn chosen(
    command: &CommandSettings,
    variables: impl Iterator<Item = (String, String)>,
) -> BTreeMap<String, String> {
    let is_wanted = |name: &String| command.inherit.as_ref().is_none_or(|names| names.contains(name));
    variables.filter(|(name, _)| is_wanted(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_gets_what_its_settings_name_or_everything() {
        let variables = || [("A", "1"), ("B", "2")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        let names = |inherit: Option<&[&str]>| {
            let inherit = inherit.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
            let command = CommandSettings { inherit, ..CommandSettings::default() };
            chosen(&command, variables().into_iter()).into_keys().collect::<Vec<_>>()
        };
        assert_eq!(names(None), ["A", "B"]);
        assert_eq!(names(Some(&["B", "C"])), ["B"]);
        assert_eq!(names(Some(&[])), Vec::<String>::new());
    }
}
