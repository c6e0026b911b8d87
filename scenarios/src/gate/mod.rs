//! The two files of the gate: known failures, and the boundaries of a fault-free trial. Both are written by killpoint,
//! read by people in a review, and edited by hand where entries are taken out.

mod boundaries;
mod known;

pub use boundaries::{boundaries_toml, load_boundaries};
pub use known::{known_toml, load_known};

use crate::code::Code;
use crate::log::{Loaded, Log};
use crate::table::Table;

/// The version of both files.
const VERSION: i64 = 1;

/// Reads one of the files: its version first, then what `read` takes, then whether anything is left over.
fn load<T>(text: &str, file: &str, read: impl FnOnce(&mut Table, &mut Log) -> T) -> Loaded<T> {
    let mut log = Log::new(file);
    let (document, errors) = toml::de::DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        log.syntax(text, &errors);
        return log.finish(None);
    }
    let mut root = Table::root(document.get_ref());
    read_version(&mut root, &mut log);
    let value = read(&mut root, &mut log);
    root.close(&mut log);
    log.finish(Some(value))
}

/// Reads the version. A file of another one is an error: it may say what is not understood here.
fn read_version(root: &mut Table, log: &mut Log) {
    let Some(item) = root.required("version", "write `version = 1` at the top of the file", log) else {
        return;
    };
    let Some(version) = item.number(1..=i64::MAX, log) else { return };
    if version != VERSION {
        let message = format!("`version` is {version}");
        let help = format!("this killpoint reads version {VERSION}; use the killpoint that wrote the file");
        log.error(Code::OutOfRange, item.span, message, help);
    }
}
