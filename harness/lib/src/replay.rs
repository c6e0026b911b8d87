//! The words around a replay command's selection: those with which it begins, and those with which it ends.

use std::path::Path;

use killpoint_model::credential::masked_words;

/// For a worker that is described by a configuration.
pub fn replay_of_config(path: &Path) -> (String, String) {
    (format!("killpoint run --config '{}'", path.display()), String::new())
}

/// For a worker that is a command without a configuration.
pub fn replay_of_command(words: &[String]) -> (String, String) {
    let words: Vec<String> = masked_words(words).iter().map(|word| quoted(word)).collect();
    ("killpoint run".to_owned(), format!("-- {}", words.join(" ")))
}

/// A word as a shell reads it back.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_survive_a_shell() {
        assert_eq!(quoted("python3"), "python3");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's"), "'it'\\''s'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn a_command_comes_last() {
        let words = ["./worker".to_owned(), "a b".to_owned()];
        assert_eq!(replay_of_command(&words), ("killpoint run".to_owned(), "-- ./worker 'a b'".to_owned()));
    }
}
