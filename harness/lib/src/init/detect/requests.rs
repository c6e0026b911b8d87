//! What the requests of the worker carry: fields of their bodies, and the header with the key.

use super::super::finding::{Findings, Literal};
use super::super::pattern::Pattern;
use super::super::project::{Language, Project, SourceFile};
use super::super::vocabulary::{ACTION_FIELDS, RECIPIENT_FIELDS};
use super::Detector;

pub(super) const DETECTOR: Detector =
    Detector { name: "requests", summary: "fields of request bodies, and headers with keys", look };

/// Where a field is given: `"to": …`, `to: …`, `"to" => …`.
const FIELD: &str = r#"[\{,\s(]["'`]?(\w+)["'`]?\s*(?::|=>)\s*[^:=\s]"#;
/// Where a request's body is made.
const BODY: &str = r#"\bjson\s*=|JSON\.stringify|json\.dumps|json!|json\.Marshal|to_json|\\?"\w+\\?"\s*:\s*"#;
const KEY_HEADER: &str =
    r#"(?i)["'`](?:-H\s*)?((?:x-)?(?:idempotency|idempotent|dedupe|request)-?(?:key|id))\b"#;

/// Fields that the provider finds by itself.
const KNOWN: &[&str] = &["to", "recipient", "destination", "channel", "email", "user", "customer"];
/// How much of a source belongs to a body.
const BODY_BYTES: usize = 400;

#[cfg(test)]
pub(super) fn patterns() -> Vec<&'static str> {
    vec![FIELD, BODY, KEY_HEADER]
}

fn look(project: &Project, findings: &mut Findings) {
    let (field, body, header) = (Pattern::new(FIELD), Pattern::new(BODY), Pattern::new(KEY_HEADER));
    for (file, _) in project.sources().filter(|(_, language)| *language != Language::Sql) {
        for begin in body.matches(&file.text) {
            let text = part(file, begin.start);
            for found in field.matches(text) {
                let name = found.groups.concat();
                let is_of_interest = [ACTION_FIELDS, RECIPIENT_FIELDS, KNOWN]
                    .iter()
                    .any(|names| names.contains(&name.as_str()));
                if is_of_interest && findings.fields.iter().all(|known| known.text != name) {
                    let place = file.place(begin.start + found.start);
                    findings.fields.push(Literal { text: name, place });
                }
            }
        }
        for found in header.matches(&file.text) {
            let text = found.groups.concat();
            if findings.key_headers.iter().all(|known| !known.text.eq_ignore_ascii_case(&text)) {
                findings.key_headers.push(Literal { text, place: found.place(file) });
            }
        }
    }
}

fn part(file: &SourceFile, from: usize) -> &str {
    let end = (from + BODY_BYTES).min(file.text.len());
    let end = (from..=end).rev().find(|end| file.text.is_char_boundary(*end)).unwrap_or(from);
    &file.text[from..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> (Vec<String>, Vec<String>) {
        let files = vec![SourceFile::new(path, text, false)];
        let mut findings = Findings::default();
        look(&Project { files, ..Project::default() }, &mut findings);
        let texts = |found: Vec<Literal>| found.into_iter().map(|one| one.text).collect();
        (texts(findings.fields), texts(findings.key_headers))
    }

    #[test]
    fn fields_and_headers_are_found() {
        let text = "requests.post(url, json={\"to\": to, \"ref\": ref, \"x\": 1},\n  headers={\"Idempotency-Key\": k})";
        assert_eq!(found("w.py", text), (vec!["to".into(), "ref".into()], vec!["Idempotency-Key".into()]));
        let text = "fetch(u, { headers: { 'X-Request-Id': id }, body: JSON.stringify({ chatId: row.chat, reference: row.id }) })";
        assert_eq!(
            found("w.mjs", text),
            (vec!["chatId".into(), "reference".into()], vec!["X-Request-Id".into()])
        );
        assert_eq!(found("w.py", "x = {}"), (vec![], vec![]));
    }
}
