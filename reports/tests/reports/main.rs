//! Reports of a hand-made run, in every format.

mod annotations;
mod browser;
mod every;
mod flood;
mod gate;
mod golden;
mod html;
mod json;
mod junit;
mod markdown;
mod sarif;
mod stored;
mod terminal;
mod view;

use killpoint_reports::{Options, View, find};

/// The report of the golden run or another view, as text.
fn report(format: &str, view: &View, options: &Options) -> String {
    let mut out = Vec::new();
    find(format).unwrap().write(view, options, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}
