//! A line of a file as a location.

use std::fmt::Write as _;

use killpoint_model::SourceLine;
use serde_json::{Value, json};

/// The location of a line.
pub(super) fn location(source: &SourceLine) -> Value {
    json!({
        "physicalLocation": {
            "artifactLocation": { "uri": uri(&source.file) },
            "region": { "startLine": source.line.max(1) },
        },
    })
}

/// A path as a URI reference; a relative one stays relative.
fn uri(path: &str) -> String {
    let mut uri = if path.starts_with('/') { "file://".to_owned() } else { String::new() };
    for byte in path.strip_prefix("./").unwrap_or(path).bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            let _ = write!(uri, "%{byte:02X}");
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_uri_references() {
        assert_eq!(uri("killpoint.toml"), "killpoint.toml");
        assert_eq!(uri("./a b/ü:c.toml"), "a%20b/%C3%BC%3Ac.toml");
        assert_eq!(uri("/srv/a.toml"), "file:///srv/a.toml");
    }
}
