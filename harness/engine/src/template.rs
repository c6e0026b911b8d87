//! Fills in `{state}`, `{provider.rest}`, `{actions}` and their like.

use std::collections::BTreeMap;

/// Values by template name, without braces.
#[derive(Debug, Clone, Default)]
pub struct Templates {
    values: BTreeMap<String, String>,
}

impl Templates {
    /// Sets one value.
    pub fn set(&mut self, name: &str, value: impl Into<String>) {
        self.values.insert(name.to_owned(), value.into());
    }

    /// Fills in every known `{name}`; other braces stay as they are, because workers' arguments may well
    /// be JSON. Names that are templates by form but unknown were refused when the configuration was read.
    pub fn fill(&self, text: &str) -> String {
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(open) = rest.find('{') {
            filled.push_str(&rest[..open]);
            let after = &rest[open + 1..];
            let known = after.find('}').and_then(|close| Some((close, self.values.get(&after[..close])?)));
            if let Some((close, value)) = known {
                filled.push_str(value);
                rest = &after[close + 1..];
            } else {
                filled.push('{');
                rest = after;
            }
        }
        filled.push_str(rest);
        filled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_names_are_filled_and_other_braces_stay() {
        let mut templates = Templates::default();
        templates.set("state", "/s");
        templates.set("provider.rest", "http://127.0.0.1:1");
        assert_eq!(templates.fill("{state}/db {provider.rest}"), "/s/db http://127.0.0.1:1");
        assert_eq!(templates.fill(r#"{"a":{state}} {x {"#), r#"{"a":/s} {x {"#);
    }
}
