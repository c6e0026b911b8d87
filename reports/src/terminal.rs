//! The `terminal` format: what a person reads after a run.

mod block;
mod checklist;
mod closing;
mod exploration;
mod gate;
mod page;
mod table;

use std::io::{self, Write};

use killpoint_model::{Entry, Verdict};

pub(crate) use self::block::quoted;
pub(crate) use self::closing::folded;
pub(crate) use self::gate::quoted_gate;
use self::page::{Page, Tone, span};
use crate::{Format, Options, Tally, View};

/// Most event numbers behind one sentence.
const EVENTS_MAX: usize = 12;

/// The format.
#[derive(Debug)]
pub(crate) struct Terminal;

static ENTRY: Entry = Entry {
    name: "terminal",
    summary: "the result for a person at a terminal",
    explanation: "The verdict first, then one line per boundary and provider plan, then a block for each \
                  trial that does not hold: findings, counters, actions, a timeline by generation in which \
                  `*` marks the evidence, and the command that replays it. Then the answers to the \
                  checklist, where a profile has one, what was not shown, and \
                  what the exit code means. Nothing is said by colour alone, and control characters in \
                  the worker's texts are shown as text.",
    example: "killpoint run --report terminal=report.txt",
};

impl Format for Terminal {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn write(&self, view: &View, options: &Options, out: &mut dyn Write) -> io::Result<()> {
        let mut page = Page::new(out, options.width, options.color);
        header(&mut page, view)?;
        table::write(&mut page, &view.rows)?;
        block::write_all(&mut page, &view.details)?;
        if let Some(exploration) = &view.exploration {
            exploration::write(&mut page, exploration)?;
        }
        if let Some(profile) = &view.profile {
            checklist::write(&mut page, profile)?;
        }
        closing::write(&mut page, view, options.run_dir.as_deref())
    }
}

fn header(page: &mut Page, view: &View) -> io::Result<()> {
    let facts = format!(
        " · {}{} in {} · promise {} · killpoint {}",
        parts(view),
        counted(view.tally.trials, "trial"),
        duration(view.duration_ms),
        view.promise,
        view.killpoint
    );
    page.text(
        0,
        &[span(tone_of(Some(view.verdict)), mark_and_word(Some(view.verdict))), span(Tone::Plain, facts)],
    )?;
    page.text(2, &[span(Tone::Dim, format!("killpoint {}", view.command_line.join(" ")))])
}

/// Whether this is a part of a run, or was put together from parts, and what of it does not count or was not done.
fn parts(view: &View) -> String {
    let known = view.baseline.as_ref().map_or(0, |baseline| baseline.known.len() as u32);
    let count = |number, noun, end| match number {
        0 => String::new(),
        number => format!("{}{end} · ", counted(number, noun)),
    };
    [divided(view), count(known, "known violation", ""), count(view.skipped(), "trial", " left out")].concat()
}

fn divided(view: &View) -> String {
    match (&view.shard, &view.merged) {
        (Some(shard), _) => format!("shard {}/{} alone · ", shard.index, shard.count),
        (None, Some(merged)) => {
            let whole = merged.count as usize - merged.lacking.len().min(merged.count as usize);
            format!("{whole} of {} merged · ", counted(merged.count, "shard"))
        }
        (None, None) => String::new(),
    }
}

fn summary(page: &mut Page, view: &View) -> io::Result<()> {
    let result = format!(
        "{}: {}{} · exit code {}: {}",
        mark_and_word(Some(view.verdict)),
        shares(view.tally),
        missing(view),
        view.exit_code().code(),
        view.exit_meaning()
    );
    page.text(0, &[span(tone_of(Some(view.verdict)), result)])
}

/// `2 violated, 1 holds of 3 trials`.
pub(crate) fn shares(tally: Tally) -> String {
    let parts: Vec<String> = tally.parts().iter().map(|(trials, word)| format!("{trials} {word}")).collect();
    if parts.is_empty() {
        return "no trials".to_owned();
    }
    format!("{} of {}", parts.join(", "), counted(tally.trials, "trial"))
}

/// `, 3 missing` where a merged run is not whole, and `, 40 left out` where a run was narrowed.
fn missing(view: &View) -> String {
    let missing = view.merged.as_ref().map_or(0, |merged| merged.missing.len());
    let missing = if missing == 0 { String::new() } else { format!(", {missing} missing") };
    let skipped = view.skipped();
    if skipped == 0 { missing } else { format!("{missing}, {skipped} left out") }
}

/// The symbol and the word of a verdict; `None` is a trial that was not judged.
pub(crate) const fn mark_and_word(verdict: Option<Verdict>) -> &'static str {
    match verdict {
        Some(Verdict::Holds) => "✓ holds",
        Some(Verdict::Vacuous) => "○ vacuous",
        Some(Verdict::Inconclusive) => "? inconclusive",
        Some(Verdict::Violated) => "✗ violated",
        None => "– not judged",
    }
}

const fn tone_of(verdict: Option<Verdict>) -> Tone {
    match verdict {
        Some(Verdict::Holds) => Tone::Good,
        Some(Verdict::Violated) => Tone::Bad,
        Some(Verdict::Vacuous | Verdict::Inconclusive) | None => Tone::Doubt,
    }
}

/// Says how many of a list are not shown.
fn more(page: &mut Page, indent: usize, all: usize, shown_max: usize) -> io::Result<()> {
    match all.saturating_sub(shown_max) {
        0 => Ok(()),
        more => page.text(indent, &[span(Tone::Dim, format!("… {more} more"))]),
    }
}

/// `event 8`, `events 8, 15`, `events 1, 2, … 30 more`.
pub(crate) fn events_text(events: &[u64]) -> String {
    let named: Vec<String> = events.iter().take(EVENTS_MAX).map(u64::to_string).collect();
    let more = match events.len().saturating_sub(EVENTS_MAX) {
        0 => String::new(),
        more => format!(", … {more} more"),
    };
    match named.as_slice() {
        [] => "no event".to_owned(),
        [one] => format!("event {one}"),
        _ => format!("events {}{more}", named.join(", ")),
    }
}

/// `1 trial`, `2 trials`.
pub(crate) fn counted(number: u32, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// `210ms`, `2.31s`, `4m07s`.
pub(crate) fn duration(ms: u64) -> String {
    match ms {
        0..1000 => format!("{ms}ms"),
        1000..60_000 => format!("{}.{:02}s", ms / 1000, ms % 1000 / 10),
        _ => format!("{}m{:02}s", ms / 60_000, ms / 1000 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_numbers_read_well() {
        let texts = [0, 999, 1000, 2319, 59_999, 60_000, 247_000].map(duration);
        assert_eq!(texts, ["0ms", "999ms", "1.00s", "2.31s", "59.99s", "1m00s", "4m07s"]);
        assert_eq!([0, 1, 2].map(|n| counted(n, "trial")), ["0 trials", "1 trial", "2 trials"]);
    }
}
