//! A worker's texts in a page are text: neither markup nor script nor a direction of reading.

use std::fmt;

use askama::filters::{Escaper, Html};

use crate::sanitise::clean;

/// Shows what is invisible as text, and escapes what is markup. Every value of a template goes through it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hostile;

impl Escaper for Hostile {
    fn write_escaped_str<W: fmt::Write>(&self, dest: W, text: &str) -> fmt::Result {
        Html.write_escaped_str(dest, &clean(text))
    }
}

/// JSON as it may stand inside of a `script` element: no character of it can end the element or begin a comment.
/// All of these characters occur in strings only, where an escape reads back as the same character.
pub(super) fn json_in_script(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' => escaped.push_str("\\u003c"),
            '>' => escaped.push_str("\\u003e"),
            '&' => escaped.push_str("\\u0026"),
            '\u{2028}' => escaped.push_str("\\u2028"),
            '\u{2029}' => escaped.push_str("\\u2029"),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_json_ends_the_element_that_holds_it() {
        let text = "</script><!--&amp;\u{2028}\u{2029}\"\\";
        let json = json_in_script(&serde_json::to_string(text).unwrap());
        assert!(!json.contains(['<', '>', '&', '\u{2028}', '\u{2029}']), "{json}");
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
    }

    #[test]
    fn values_are_cleaned_and_escaped() {
        let mut written = String::new();
        Hostile.write_escaped_str(&mut written, "<b>\"\u{202e}\0'&\n").unwrap();
        assert_eq!(written, "&#60;b&#62;&#34;\\u{202e}\\x00&#39;&#38;\\n");
    }
}
