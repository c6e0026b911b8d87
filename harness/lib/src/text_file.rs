//! Reads what a user wrote: a configuration or a scenario. Whatever is at the path, the answer is a text or one
//! problem with what to do about it.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use killpoint_model::diagnostic::nearest;
use killpoint_model::{Diagnostic, Span};

use crate::code::Code;

/// Bytes of a file at most.
const BYTES_MAX: u64 = 4 << 20;
/// Entries of a folder that are looked through for a name that was meant.
const NEIGHBOURS_MAX: usize = 1000;
/// Stands at the beginning of files from Windows. TOML allows it, and columns don't count it.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// A file that gives no text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// What is wrong, and what to do.
    pub problem: Diagnostic,
    /// What the problem points into, made readable; empty where there is nothing.
    pub text: String,
}

/// Reads a file of UTF-8, without its byte order mark. No more than 4 MiB is read, whatever the path is.
///
/// # Errors
/// The file is not there, is no file, is too large, or is no UTF-8.
pub fn read_text(path: &Path) -> Result<String, Box<Unreadable>> {
    let bytes = bytes(path).map_err(|error| plain(unreadable(path, &error)))?;
    if bytes.len() as u64 > BYTES_MAX {
        let what = format!("{} is larger than {} MiB", path.display(), BYTES_MAX >> 20);
        let help = "name a configuration or a scenario; `actions = 1000` generates actions without tables";
        return Err(plain(Diagnostic::error(Code::FileTooLarge, what).with_help(help)));
    }
    String::from_utf8(bytes)
        .map(|text| text.strip_prefix(BYTE_ORDER_MARK).map(str::to_owned).unwrap_or(text))
        .map_err(|error| not_utf8(path, error.utf8_error().valid_up_to(), error.as_bytes()))
}

fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn plain(problem: Diagnostic) -> Box<Unreadable> {
    Box::new(Unreadable { problem, text: String::new() })
}

fn unreadable(path: &Path, error: &io::Error) -> Diagnostic {
    let file = path.display();
    let problem = |what: String| Diagnostic::error(Code::UnreadableFile, what);
    match error.kind() {
        io::ErrorKind::IsADirectory => {
            let help = format!("name a file in it, such as `{}`", path.join("killpoint.toml").display());
            problem(format!("{file} is a folder, and a file is needed")).with_help(help)
        }
        io::ErrorKind::NotFound => {
            let missing = problem(format!("{file}: {}", os_words(error)));
            match neighbour(path) {
                Some(near) => missing.with_help(format!("did you mean `{near}`?")),
                None => missing,
            }
        }
        _ => problem(format!("{file}: {}", os_words(error))),
    }
}

/// What the operating system says, without the number that only it knows.
pub(crate) fn os_words(error: &io::Error) -> String {
    let text = error.to_string();
    match text.rfind(" (os error ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

/// The file that was probably meant: one in the same folder with the same extension and nearly the same name.
fn neighbour(path: &Path) -> Option<String> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let entries = std::fs::read_dir(folder.unwrap_or(Path::new("."))).ok()?;
    let alike = |name: &String| Path::new(name).extension() == path.extension();
    let names = entries.take(NEIGHBOURS_MAX).filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut stems: Vec<String> =
        names.filter(alike).filter_map(|name| stem(Path::new(&name)).map(str::to_owned)).collect();
    stems.sort();
    let near = nearest(stem(path)?, stems.iter().map(String::as_str))?;
    let extension = path.extension().and_then(|extension| extension.to_str());
    let name = extension.map_or(near.clone(), |extension| format!("{near}.{extension}"));
    Some(folder.map_or(name.clone(), |folder| folder.join(&name).display().to_string()))
}

fn stem(path: &Path) -> Option<&str> {
    path.file_stem()?.to_str()
}

fn not_utf8(path: &Path, valid_up_to: usize, bytes: &[u8]) -> Box<Unreadable> {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let help = if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        "it looks like UTF-16; save it as UTF-8"
    } else {
        "save it as UTF-8"
    };
    // What can't be read is one replacement character in the lossy text, and all before it is the same.
    let span = Span { start: valid_up_to, end: valid_up_to + char::REPLACEMENT_CHARACTER.len_utf8() };
    let problem = Diagnostic::error(Code::NotUtf8, format!("{} is not in UTF-8", path.display()))
        .with_help(help)
        .at(&path.display().to_string(), Some(span));
    Box::new(Unreadable { problem, text })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What reading a file with these bytes gives.
    fn read(bytes: &[u8]) -> Result<String, Box<Unreadable>> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.toml");
        std::fs::write(&path, bytes).unwrap();
        read_text(&path)
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_text() {
        assert_eq!(read("\u{feff}actions = 1\r\n".as_bytes()).unwrap(), "actions = 1\r\n");
        assert_eq!(read(b"").unwrap(), "");
    }

    #[test]
    fn the_first_bad_byte_is_pointed_at() {
        let wrong = read(b"a = 1\nb = \"caf\xe9\"\n").unwrap_err();
        let span = wrong.problem.span.unwrap();
        assert_eq!((wrong.problem.code.as_str(), span.start), ("not-utf-8", 14));
        assert_eq!(&wrong.text[span.start..span.end], "\u{fffd}");
        let wide = read(b"\xff\xfea\x00=\x001\x00").unwrap_err();
        assert!(wide.problem.help.unwrap().contains("UTF-16"));
    }

    #[test]
    fn no_more_than_the_limit_is_read() {
        let most = vec![b'#'; BYTES_MAX as usize];
        assert!(read(&most).is_ok());
        let wrong = read(&[most.as_slice(), b"#"].concat()).unwrap_err();
        assert_eq!((wrong.problem.code.as_str(), wrong.text.as_str()), ("file-too-large", ""));
        let endless = read_text(Path::new("/dev/zero")).unwrap_err();
        assert_eq!(endless.problem.code, "file-too-large");
    }

    #[test]
    fn what_is_not_there_is_said_with_what_was_meant() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kilpoint.toml");
        let missing = read_text(&path).unwrap_err().problem;
        assert_eq!(missing.message, format!("{}: No such file or directory", path.display()));
        assert_eq!(missing.help, None);
        std::fs::write(folder.path().join("killpoint.toml"), "").unwrap();
        std::fs::write(folder.path().join("kilpoint.json"), "").unwrap();
        let help = read_text(&path).unwrap_err().problem.help.unwrap();
        assert_eq!(help, format!("did you mean `{}`?", folder.path().join("killpoint.toml").display()));
        let there = read_text(folder.path()).unwrap_err().problem;
        assert!(there.message.ends_with("is a folder, and a file is needed"), "{}", there.message);
    }
}
