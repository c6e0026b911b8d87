//! The last words of a trial's commands and workers, for messages.

use std::path::Path;

/// Lines that are shown.
const LINES_MAX: usize = 5;

/// The last lines that the worker or a command of a trial printed, the newest output file first; empty where
/// nothing was printed.
pub fn output_tail(folder: &Path) -> String {
    let Ok(entries) = std::fs::read_dir(folder) else { return String::new() };
    let mut files: Vec<_> = entries
        .flatten()
        .filter(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            name.ends_with(".stdout") || name.ends_with(".stderr")
        })
        .filter_map(|entry| {
            Some((entry.metadata().ok().filter(|meta| meta.len() > 0)?.modified().ok()?, entry.path()))
        })
        .collect();
    files.sort();
    let Some((_, newest)) = files.pop() else { return String::new() };
    let bytes = std::fs::read(&newest).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    format!("; its last output: {}", lines[lines.len().saturating_sub(LINES_MAX)..].join(" | "))
}
