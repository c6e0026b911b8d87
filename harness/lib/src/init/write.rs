//! A proposal as the text of `killpoint.toml`.

use super::propose::{Assumed, Proposal};

/// How wide the comments are.
const WIDTH: usize = 100;

impl Proposal {
    /// The file, with a comment for each assumption, and what could not be guessed at its end.
    pub fn to_toml(&self) -> String {
        let mut lines = vec![
            "# Proposed by `killpoint init`. Each line says how sure it is, and where it was seen."
                .to_owned(),
        ];
        let mut section = "";
        for assumed in &self.assumed {
            if assumed.section != section {
                section = assumed.section;
                lines.push(String::new());
                lines.push(format!("[{section}]"));
            } else if section.is_empty() {
                lines.push(String::new());
            }
            lines.extend(comment(&reason(assumed)));
            lines.push(format!("{} = {}", assumed.key, assumed.value));
        }
        for (index, gap) in self.gaps.iter().enumerate() {
            lines.push(String::new());
            if index == 0 {
                lines.extend(["# Not guessed:".to_owned(), "#".to_owned()]);
            }
            lines.extend(comment(&format!("{}: {}; {}", gap.what, gap.why, gap.to_do)));
        }
        lines.push(String::new());
        lines.join("\n")
    }
}

fn reason(assumed: &Assumed) -> String {
    match &assumed.place {
        Some(place) => format!("{} ({place}): {}", assumed.sure, assumed.why),
        None => format!("{}: {}", assumed.sure, assumed.why),
    }
}

/// Comment lines; what a file's name or a source could break them with is made harmless.
fn comment(text: &str) -> Vec<String> {
    let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let mut lines: Vec<String> = Vec::new();
    let mut line = "#".to_owned();
    for word in plain.split_whitespace() {
        if line.len() > 1 && line.chars().count() + 1 + word.chars().count() > WIDTH {
            lines.push(std::mem::replace(&mut line, "#".to_owned()));
        }
        line.push(' ');
        line.push_str(word);
    }
    lines.push(line);
    lines
}
