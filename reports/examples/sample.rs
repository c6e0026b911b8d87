//! Writes every format of the stored run into a folder, the page of ten thousand trials, and the terminal's report as
//! a page, for `cargo xtask report-sample` and `cargo xtask screenshots`.
#![expect(clippy::print_stdout, reason = "a program for a developer's terminal")]

#[path = "../tests/reports/flood.rs"]
mod flood;
#[path = "../tests/reports/stored.rs"]
mod stored;

use std::fs::{self, File};
use std::io::{BufWriter, Error, Result, Write};
use std::path::Path;

use killpoint_reports::{FORMATS, Format, Options, View, find};

/// Trials of the large run.
const FLOOD_TRIALS: usize = 10_000;
/// Lines of the terminal's report that a picture shows.
const TERMINAL_LINES: usize = 50;

fn main() -> Result<()> {
    let out = std::env::args().nth(1).ok_or_else(|| Error::other("name the folder to write to"))?;
    let out = Path::new(&out);
    fs::create_dir_all(out)?;
    let stored = stored::stored();
    let view = View::new(&stored.record, &stored.histories);
    for format in FORMATS {
        let name = format.entry().name;
        let end = match name {
            "html" | "json" | "sarif" => name,
            "junit" => "xml",
            "markdown" => "md",
            _ => "txt",
        };
        write(*format, &view, &out.join(format!("killpoint-{name}.{end}")))?;
    }
    let html = find("html").ok_or_else(|| Error::other("there is no format `html`"))?;
    write(html, &flood::flood(FLOOD_TRIALS), &out.join("ten-thousand-trials.html"))?;
    terminal_page(&view, &out.join("terminal.html"))
}

fn options() -> Options {
    Options { run_dir: Some("killpoint-runs/golden".into()), ..Options::default() }
}

fn write(format: &dyn Format, view: &View, path: &Path) -> Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    format.write(view, &options(), &mut out)?;
    out.flush()?;
    println!("{:>9} bytes  {}", fs::metadata(path)?.len(), path.display());
    Ok(())
}

/// The head of the terminal's report as a terminal shows it.
fn terminal_page(view: &View, path: &Path) -> Result<()> {
    let mut text = Vec::new();
    let terminal = find("terminal").ok_or_else(|| Error::other("there is no format `terminal`"))?;
    terminal.write(view, &Options { color: true, ..options() }, &mut text)?;
    let text = String::from_utf8(text).map_err(Error::other)?;
    let lines: Vec<&str> = text.lines().take(TERMINAL_LINES).collect();
    let page = format!(
        "<!doctype html><meta charset=utf-8><title>terminal</title><style>{}</style><pre>{}</pre>",
        "html{background:#15181c}body{margin:0}pre{margin:0;padding:18px 22px;width:max-content;color:#d9dde1;\
         font:13px/1.38 'DejaVu Sans Mono',monospace}.bold{font-weight:700;color:#fff}.dim{color:#8b949e}\
         .red{color:#ff7b72}.green{color:#7ee2a0}.yellow{color:#f2cc60}.blue{color:#8ab8ff}",
        colored(&lines.join("\n"))
    );
    fs::write(path, page)
}

/// A terminal's colours as markup.
fn colored(text: &str) -> String {
    let escape = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;");
    let mut parts = text.split("\x1b[");
    let mut html = escape(parts.next().unwrap_or_default());
    let mut is_open = false;
    for part in parts {
        let (codes, rest) = part.split_once('m').unwrap_or(("", part));
        if std::mem::take(&mut is_open) {
            html.push_str("</span>");
        }
        let classes: Vec<&str> = codes.split(';').filter_map(class).collect();
        if !classes.is_empty() {
            html.extend(["<span class=\"", &classes.join(" "), "\">"]);
            is_open = true;
        }
        html.push_str(&escape(rest));
    }
    html
}

fn class(code: &str) -> Option<&'static str> {
    Some(match code {
        "1" => "bold",
        "2" => "dim",
        "31" | "91" => "red",
        "32" | "92" => "green",
        "33" | "93" => "yellow",
        "34" | "94" | "36" | "96" => "blue",
        _ => return None,
    })
}
