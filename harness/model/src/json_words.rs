//! What is wrong with JSON that somebody else wrote, in words that need no knowledge of this program's types.

use serde_json::error::Category;

/// Characters of a quoted value at most.
const QUOTED_MAX: usize = 80;

/// What a JSON parser found, with its place where there is one: a lower-case fragment.
pub fn json_words(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let what = text.strip_suffix(&place).unwrap_or(&text);
    let what = match error.classify() {
        Category::Data => data(what),
        Category::Eof => "the JSON ends too early".to_owned(),
        Category::Syntax | Category::Io => format!("this is no JSON: {what}"),
    };
    match (error.line(), error.column()) {
        (0, _) => what,
        // What stands at the very beginning of a line.
        (line, 0) => format!("{what} (line {line})"),
        (line, column) => format!("{what} (line {line}, column {column})"),
    }
}

/// JSON that is no such value as is needed.
fn data(what: &str) -> String {
    if let Some(name) = what.strip_prefix("missing field ") {
        return format!("{name} is missing");
    }
    if let Some(name) = what.strip_prefix("duplicate field ") {
        return format!("{name} is there twice");
    }
    for (start, named) in [("unknown field ", "unknown key"), ("unknown variant ", "unknown word")] {
        if let Some(rest) = what.strip_prefix(start) {
            let (name, known) = rest.split_once(", ").unwrap_or((rest, ""));
            let known = known.trim_start_matches("expected ").trim_start_matches("one of ");
            let known = if known.starts_with('`') { format!("; known are {known}") } else { String::new() };
            return format!("{named} {name}{known}");
        }
    }
    for start in ["invalid type: ", "invalid value: ", "invalid length "] {
        if let Some((found, needed)) =
            what.strip_prefix(start).and_then(|rest| rest.rsplit_once(", expected "))
        {
            let found =
                if start == "invalid length " { format!("length {found}") } else { found_words(found) };
            return format!("{found} is there, and {} is needed", needed_words(needed));
        }
    }
    what.to_owned()
}

fn found_words(found: &str) -> String {
    let (kind, value) = found.split_once(' ').map_or((found, ""), |(kind, value)| (kind, value));
    match kind {
        "map" => "an object".to_owned(),
        "sequence" => "a list".to_owned(),
        "null" | "unit" => "null".to_owned(),
        "string" => format!("the text {}", shortened(value)),
        "boolean" => value.trim_matches('`').to_owned(),
        "integer" => format!("the number {}", value.trim_matches('`')),
        "floating" => format!("the number {}", value.trim_start_matches("point ").trim_matches('`')),
        _ => "another value".to_owned(),
    }
}

fn shortened(value: &str) -> String {
    match value.char_indices().nth(QUOTED_MAX) {
        Some((end, _)) => format!("{}…", &value[..end]),
        None => value.to_owned(),
    }
}

fn needed_words(needed: &str) -> &'static str {
    let first = needed.trim_start_matches("a ").split(' ').next().unwrap_or_default();
    match (first, needed) {
        (_, "a sequence") | ("tuple" | "array", _) => "a list",
        (_, "a map") | ("struct", _) => "an object",
        (_, "a string" | "a borrowed string" | "string or map") => "a text",
        (_, "a boolean") => "true or false",
        ("enum" | "variant" | "internally", _) => "a word",
        ("f32" | "f64", _) => "a number",
        _ if is_integer(first) => "a whole number in its range",
        _ => "a value of another form",
    }
}

fn is_integer(name: &str) -> bool {
    let digits = name.strip_prefix(['u', 'i']).unwrap_or(name);
    name != digits && (digits == "size" || digits.parse::<u8>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Rule;
    use crate::{Plan, RunRecord};

    fn said<T: serde::de::DeserializeOwned + std::fmt::Debug>(text: &str) -> String {
        json_words(&serde_json::from_str::<T>(text).unwrap_err())
    }

    #[test]
    fn what_is_wrong_is_said_in_words_of_json() {
        for (said, expected) in [
            (said::<Vec<Rule>>("{}"), "an object is there, and a list is needed (line 1)"),
            (
                said::<Vec<Rule>>("[\"a\"]"),
                "the text \"a\" is there, and an object is needed (line 1, column 4)",
            ),
            (said::<Vec<Rule>>("[{}]"), "`id` is missing (line 1, column 3)"),
            (
                said::<Vec<u32>>("[-1]"),
                "the number -1 is there, and a whole number in its range is needed (line 1, column 3)",
            ),
            (
                said::<Vec<u32>>("[1.5]"),
                "the number 1.5 is there, and a whole number in its range is needed (line 1, column 4)",
            ),
            (said::<Vec<bool>>("[null]"), "null is there, and true or false is needed (line 1, column 5)"),
            (said::<Vec<String>>("[true]"), "true is there, and a text is needed (line 1, column 5)"),
            (said::<(u32, u32)>("[1]"), "length 1 is there, and a list is needed (line 1, column 3)"),
            (said::<Vec<u32>>("[1"), "the JSON ends too early (line 1, column 2)"),
            (said::<Vec<u32>>("{]"), "an object is there, and a list is needed (line 1)"),
            (said::<Vec<u32>>("[1 2]"), "this is no JSON: expected `,` or `]` (line 1, column 4)"),
            (
                said::<Plan>("{\"a\": 1}").split("; known are `name`").next().unwrap().to_owned(),
                "unknown key `a`",
            ),
            (
                said::<crate::verdict::Verdict>("\"good\""),
                "unknown word `good`; known are `holds`, `vacuous`, `inconclusive`, `violated` (line 1, column 6)",
            ),
        ] {
            assert_eq!(said, expected);
        }
    }

    #[test]
    fn no_message_shows_a_type_of_this_program() {
        let value = serde_json::json!({ "format": [], "version": "x", "trials": {} });
        let text = json_words(&serde_json::from_value::<RunRecord>(value).unwrap_err());
        assert_eq!(text, "a list is there, and a text is needed");
        let long = format!("[\"{}\"]", "x".repeat(1_000_000));
        assert!(said::<Vec<u32>>(&long).len() < 200);
    }
}
