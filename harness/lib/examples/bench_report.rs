//! How much memory a report of a long history takes: makes a run whose one violated trial has a history of so many
//! megabytes, reads it, writes every report format, and prints seconds and the peak of memory.
#![expect(clippy::print_stdout, reason = "a program for a developer's terminal")]

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use killpoint::model::history::line_of;
use killpoint::model::{Event, EventKind, History};
use killpoint::reports::{FORMATS, Options};
use killpoint::{RunError, RunFolder};

/// Megabytes unless told otherwise.
const MEGABYTES_DEFAULT: u64 = 200;
/// The trial of the stored run whose history is repeated.
const TRIAL: &str = "0006-kill-at-provider-committed-1";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let megabytes = std::env::args().nth(1).map_or(Ok(MEGABYTES_DEFAULT), |text| text.parse())?;
    let folder = tempfile::tempdir()?;
    let events = lengthen(folder.path(), megabytes << 20)?;
    println!("a history of {megabytes} MB, {events} events; memory before: {}", peak());
    let begun = Instant::now();
    let (run, record) = RunFolder::open(folder.path())?;
    let view = run.view(&record)?;
    println!("read in {:.1} s; peak of memory: {}", begun.elapsed().as_secs_f64(), peak());
    for format in FORMATS {
        format.write(&view, &Options::default(), &mut std::io::sink())?;
    }
    println!("every format written; peak of memory: {}", peak());
    Ok(())
}

/// Copies the stored run, one trial's history repeated until it has so many bytes. Gives its number of events.
fn lengthen(to: &Path, bytes_min: u64) -> Result<u64, Box<dyn std::error::Error>> {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../reports/tests/golden");
    fs::copy(from.join("run.json"), to.join("run.json"))?;
    for entry in fs::read_dir(&from)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            fs::create_dir(to.join(entry.file_name()))?;
            let name = Path::new(&entry.file_name()).join("history.jsonl");
            fs::copy(from.join(&name), to.join(&name))?;
        }
    }
    let stored = RunFolder::open(&from)?.0.history(TRIAL)?;
    repeat(&stored, &to.join(TRIAL).join("history.jsonl"), bytes_min)
        .map_err(|error| RunError::File { path: to.to_owned(), error }.into())
}

fn repeat(stored: &History, path: &Path, bytes_min: u64) -> std::io::Result<u64> {
    let mut out = BufWriter::new(File::create(path)?);
    out.write_all(line_of(&stored.header).as_bytes())?;
    let (mut bytes, mut seq, mut at_us) = (0, 0, 0);
    let mut write = |event: &Event, generation: u32| {
        seq += 1;
        at_us += 100;
        let line = line_of(&Event { seq, at_us, generation, ..event.clone() });
        bytes += line.len() as u64;
        out.write_all(line.as_bytes()).map(|()| (bytes, seq))
    };
    let (last, rest) = stored.events.split_last().ok_or_else(|| std::io::Error::other("no events"))?;
    let mut first = true;
    loop {
        let mut written = 0;
        for event in
            rest.iter().filter(|event| first || !matches!(event.event, EventKind::TrialStarted { .. }))
        {
            written = write(event, if first { event.generation } else { 2 })?.0;
        }
        first = false;
        if written >= bytes_min {
            break;
        }
    }
    let events = write(last, 2)?.1;
    out.flush()?;
    Ok(events)
}

/// The most memory that this process has had.
fn peak() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.map_or_else(|| "unknown".to_owned(), |line| line.trim().to_owned())
}
