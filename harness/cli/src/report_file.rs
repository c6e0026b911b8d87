//! Reports in files: a reader finds a whole one or none, never the beginning of one.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use killpoint::RunFolder;
use killpoint::model::ExitCode;
use killpoint::reports::{Format, Options, View};

use crate::code::Code;
use crate::diagnostics::Diagnosed;
use crate::invocation::Targets;
use crate::show;

/// The path that means standard output.
pub(crate) const STDOUT: &str = "-";

/// How a report is written to a file, or printed as one.
pub(crate) fn options(folder: &Path) -> Options {
    Options {
        run_dir: Some(folder.display().to_string()),
        invariants: killpoint::catalog().invariants,
        ..Options::default()
    }
}

/// Complains of reports that can't be written, before anything is run for them.
pub(crate) fn reachable(targets: &Targets, run_folder: &Path) -> Result<(), ExitCode> {
    let mut found = Ok(());
    for (_, path) in targets {
        if let Err(error) = probe(path, run_folder) {
            let path = path.display();
            let what = format!("the report {path} can't be written: {error}; nothing was run");
            Diagnosed::one(Code::ReportUnwritten, &what).complain();
            found = Err(ExitCode::SetupFailed);
        }
    }
    found
}

/// Reports of a run whose set-up failed: whoever reads only them must not find none, or those of an earlier run.
pub(crate) fn write_what_there_is(folder: &Path, targets: &Targets) {
    let stored = RunFolder::open(folder).and_then(|(folder, record)| folder.view(&record));
    let Ok(view) = stored else { return };
    for (format, path) in targets {
        // The exit code is that of the set-up, which was told already.
        let _ = deliver(*format, &view, folder, path);
    }
}

/// Writes one report to where it was asked for.
pub(crate) fn deliver(format: &dyn Format, view: &View, folder: &Path, path: &Path) -> Result<(), ExitCode> {
    let options = options(folder);
    if path == Path::new(STDOUT) {
        return show::write_stdout(format, view, &options);
    }
    write(format, view, &options, path).map_err(|error| {
        let what = format!("the report {} can't be written: {error}", path.display());
        Diagnosed::one(Code::ReportUnwritten, &what).complain();
        ExitCode::SetupFailed
    })
}

/// Writes a report, without colour. A file that was there is replaced in one step. A pipe or a device is written to.
fn write(format: &dyn Format, view: &View, options: &Options, path: &Path) -> io::Result<()> {
    let put = |file: File| {
        let mut out = BufWriter::new(file);
        format.write(view, options, &mut out)?;
        out.flush()
    };
    let known = fs::metadata(path);
    match &known {
        Ok(known) if known.is_dir() => return Err(is_a_folder()),
        Ok(known) if !known.is_file() => return put(OpenOptions::new().write(true).open(path)?),
        _ => {}
    }
    // What a link points at is replaced, not the link.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let new = beside(&path);
    let made = OpenOptions::new().write(true).create_new(true).open(&new);
    let in_place = known.is_ok();
    match made {
        // A folder that takes no new file may hold one that can be written.
        Err(_) if in_place => put(File::create(&path)?),
        Err(error) => Err(error),
        Ok(new_file) => {
            let written = put(new_file).and_then(|()| {
                known.ok().map_or(Ok(()), |known| fs::set_permissions(&new, known.permissions()))
            });
            let replaced = written.and_then(|()| fs::rename(&new, &path));
            if replaced.is_err() {
                // It may be gone with its folder.
                let _ = fs::remove_file(&new);
            }
            replaced
        }
    }
}

/// Whether a report can be written, as far as that can be told before there is one. The run's folder and what is in
/// it is made by the run.
fn probe(path: &Path, run_folder: &Path) -> io::Result<()> {
    if path == Path::new(STDOUT) {
        return Ok(());
    }
    match fs::metadata(path) {
        Ok(known) if known.is_dir() => Err(is_a_folder()),
        Ok(known) if known.is_file() => OpenOptions::new().append(true).open(path).map(drop),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            if std::path::absolute(path)?.starts_with(std::path::absolute(run_folder)?) {
                return Ok(());
            }
            let new = beside(path);
            OpenOptions::new().write(true).create_new(true).open(&new).map(drop)?;
            fs::remove_file(&new)
        }
        Err(error) => Err(error),
    }
}

/// A name of our own in the same folder.
fn beside(path: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}.new", std::process::id()));
    path.with_file_name(name)
}

fn is_a_folder() -> io::Error {
    io::Error::new(ErrorKind::IsADirectory, "it is a folder; name a file in it")
}
