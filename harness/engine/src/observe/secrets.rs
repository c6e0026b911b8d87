//! Planted credentials: canaries that are worth nothing, handed to the worker as if they were real, and looked
//! for wherever they must not be. Their values are never recorded.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use killpoint_model::event::Leak;
use killpoint_model::settings::SecretSettings;

/// Bytes of one file that are scanned.
const FILE_BYTES_MAX: u64 = 64 << 20;
/// Files that are scanned.
const FILES_MAX: usize = 20_000;
/// Leaks that are reported.
const LEAKS_MAX: usize = 200;

/// The canaries of one trial: name to value.
#[derive(Clone, Default)]
pub(crate) struct Canaries {
    values: BTreeMap<String, String>,
    declared: Vec<String>,
}

impl std::fmt::Debug for Canaries {
    /// Without the values.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Canaries").field("names", &self.values.keys()).finish_non_exhaustive()
    }
}

impl Canaries {
    /// Makes the canaries that are configured, each with a value that occurs nowhere else.
    ///
    /// # Errors
    /// There are no random bytes.
    pub(crate) fn plant(settings: &SecretSettings) -> std::io::Result<Self> {
        let mut values = BTreeMap::new();
        let url = settings.url.then_some("url");
        for name in settings.env.iter().map(String::as_str).chain(url) {
            let mut random = [0; 16];
            fs::File::open("/dev/urandom")?.read_exact(&mut random)?;
            let number = u128::from_be_bytes(random);
            values.insert(name.to_owned(), format!("kpcanary{number:032x}"));
        }
        Ok(Self { values, declared: settings.declared.clone() })
    }

    /// Whether any is planted.
    pub(crate) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// What goes into the worker's environment.
    pub(crate) fn env(&self) -> impl Iterator<Item = (&String, &String)> {
        self.values.iter().filter(|(name, _)| *name != "url")
    }

    /// The provider's address with the canary in it, where that is configured.
    pub(crate) fn url(&self, base: &str) -> String {
        match self.values.get("url") {
            Some(value) => base.replacen("://", &format!("://user:{value}@"), 1),
            None => base.to_owned(),
        }
    }

    /// Name and value, for whoever watches the wire.
    pub(crate) fn pairs(&self) -> Vec<(String, String)> {
        self.values.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// The canaries in some bytes that are not declared to be there.
    fn in_bytes(&self, place: &str, bytes: &[u8]) -> Vec<Leak> {
        self.values
            .iter()
            .filter(|(_, value)| contains(bytes, value.as_bytes()) && !self.is_declared(place))
            .map(|(name, _)| Leak { canary: name.clone(), place: place.to_owned() })
            .collect()
    }

    /// Whether a place is one where credentials may be.
    pub(crate) fn is_declared(&self, place: &str) -> bool {
        self.declared.iter().any(|pattern| matches(pattern, place))
    }

    /// Scans every file below a folder. Returns how many were looked at, and what was found.
    pub(crate) fn scan_folder(&self, root: &Path) -> (u32, Vec<Leak>) {
        let mut files = Vec::new();
        list(root, &mut files);
        let mut leaks = Vec::new();
        for path in &files {
            let place = path.strip_prefix(root).unwrap_or(path).display().to_string();
            let Ok(file) = fs::File::open(path) else { continue };
            let mut bytes = Vec::new();
            if file.take(FILE_BYTES_MAX).read_to_end(&mut bytes).is_ok() {
                leaks.extend(self.in_bytes(&place, &bytes));
            }
            if leaks.len() >= LEAKS_MAX {
                break;
            }
        }
        (files.len() as u32, leaks)
    }

    /// Scans the environments of processes that the worker started. A process that is gone is passed over.
    pub(crate) fn scan_environments(&self, pids: &[u32]) -> (u32, Vec<Leak>) {
        let mut leaks = Vec::new();
        let mut places = 0;
        for pid in pids {
            let Ok(bytes) = fs::read(format!("/proc/{pid}/environ")) else { continue };
            places += 1;
            leaks.extend(self.in_bytes("child:environment", &bytes));
        }
        leaks.dedup();
        (places, leaks)
    }
}

fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|window| window == wanted)
}

fn list(root: &Path, into: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(root) else { return };
    for entry in entries.flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => list(&entry.path(), into),
            Ok(kind) if kind.is_file() && into.len() < FILES_MAX => into.push(entry.path()),
            _ => {}
        }
    }
}

/// Whether a pattern, in which `*` stands for anything, matches a text.
fn matches(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((head, rest)) => text.strip_prefix(head).is_some_and(|tail| {
            (0..=tail.len()).any(|at| tail.is_char_boundary(at) && matches(rest, &tail[at..]))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_canary_is_found_in_files_unless_it_is_declared_there() -> std::io::Result<()> {
        let settings =
            SecretSettings { env: vec!["API_TOKEN".into()], url: false, declared: vec!["vault/*".into()] };
        let canaries = Canaries::plant(&settings)?;
        let folder = tempfile::tempdir()?;
        let value = canaries.pairs().remove(0).1;
        fs::create_dir(folder.path().join("vault"))?;
        fs::write(folder.path().join("vault/token"), &value)?;
        fs::write(folder.path().join("worker.stderr"), format!("401 for {value}!"))?;
        fs::write(folder.path().join("clean"), "nothing")?;
        let (places, leaks) = canaries.scan_folder(folder.path());
        assert_eq!(places, 3);
        assert_eq!(leaks, [Leak { canary: "API_TOKEN".into(), place: "worker.stderr".into() }]);
        assert!(!format!("{canaries:?}").contains(&value), "values are never shown");
        Ok(())
    }

    #[test]
    fn patterns_match_with_stars() {
        assert!(matches("requests:header:*", "requests:header:authorization"));
        assert!(matches("*.db", "a/b.db") && matches("*", ""));
        assert!(!matches("a*c", "ab") && !matches("x", "xy"));
    }
}
