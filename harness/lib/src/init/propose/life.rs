//! How the worker lives, and when a trial is at rest.

use super::super::finding::{Findings, Literal, Program, Sure};
use super::super::project::Place;
use super::{Proposal, text};

/// Shorter than this a library's own polling may still be waiting, or an interpreter starting on a busy machine.
const QUIET_MS_MIN: u64 = 8_000;
/// Longer than this nobody waits after each trial.
const QUIET_MS_MAX: u64 = 30_000;
/// The deadline unless waits are longer.
const DEADLINE_MS: u64 = 30_000;

/// What was seen of the worker's end.
enum End {
    Never(Option<Place>),
    WhenNothingIsLeft(Place),
    NotSeen,
}

pub(super) fn propose(findings: &Findings, worker: &Program, mapped: bool, proposal: &mut Proposal) {
    let longest = findings
        .waits
        .iter()
        .filter(|(wait_ms, _)| *wait_ms <= QUIET_MS_MAX)
        .max_by_key(|(wait_ms, _)| wait_ms);
    let lifecycle = |value: &str, sure, place: Option<&Place>, why: &str, proposal: &mut Proposal| {
        proposal.add(("worker", "lifecycle"), text(value), sure, (place, why));
    };
    match end(findings, worker) {
        End::WhenNothingIsLeft(place) => {
            let why = "a loop that ends when nothing is left";
            lifecycle("drains", Sure::Guess, Some(&place), why, proposal);
        }
        End::Never(place) => {
            lifecycle("runs-forever", Sure::Likely, place.as_ref(), "it does not end by itself", proposal);
            if mapped {
                let why = "at rest once every row is decided";
                proposal.add(("settle", "by"), text("query"), Sure::Likely, (None, why));
                deadline(longest, proposal);
            } else {
                quiet(longest, proposal);
            }
        }
        End::NotSeen => {
            let why = "whether it ends was not seen; this word fits both where silence ends a trial";
            lifecycle("drains", Sure::Guess, None, why, proposal);
            quiet(longest, proposal);
        }
    }
}

/// What the worker's own file shows; else what another one does.
fn end(findings: &Findings, worker: &Program) -> End {
    let own = |found: &[Literal]| {
        found.iter().find(|one| Some(&one.text) == worker.file.as_ref()).map(|one| one.place.clone())
    };
    match (own(&findings.endless), own(&findings.draining)) {
        (Some(place), _) => return End::Never(Some(place)),
        (None, Some(place)) => return End::WhenNothingIsLeft(place),
        (None, None) => {}
    }
    match (findings.endless.first(), findings.draining.first()) {
        (Some(one), None) => End::Never(Some(one.place.clone())),
        (None, Some(one)) => End::WhenNothingIsLeft(one.place.clone()),
        _ => End::NotSeen,
    }
}

fn quiet(longest: Option<&(u64, Place)>, proposal: &mut Proposal) {
    let quiet_ms = longest.map_or(0, |(wait_ms, _)| 2 * wait_ms + 2000).clamp(QUIET_MS_MIN, QUIET_MS_MAX);
    let (place, why) = match longest {
        Some((_, place)) => {
            (Some(place), "longer than the worker's start, and than twice the longest wait that was seen")
        }
        None => (None, "no wait was seen; it must be longer than the worker's start and its own retries"),
    };
    proposal.add(
        ("settle", "by"),
        text("quiet"),
        Sure::Likely,
        (None, "at rest when nothing happens any more"),
    );
    proposal.add(("settle", "quiet"), text(&duration(quiet_ms)), Sure::Guess, (place, why));
    if 3 * quiet_ms > DEADLINE_MS {
        let why = "time for several such waits";
        proposal.add(("settle", "deadline"), text(&duration(3 * quiet_ms)), Sure::Guess, (place, why));
    }
}

fn deadline(longest: Option<&(u64, Place)>, proposal: &mut Proposal) {
    if let Some((wait_ms, place)) = longest.filter(|(wait_ms, _)| 3 * wait_ms > DEADLINE_MS) {
        let why = "time for several of the longest waits";
        let value = text(&duration(3 * wait_ms));
        proposal.add(("settle", "deadline"), value, Sure::Guess, (Some(place), why));
    }
}

fn duration(ms: u64) -> String {
    if ms.is_multiple_of(1000) { format!("{}s", ms / 1000) } else { format!("{ms}ms") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settled(waits: &[u64]) -> Vec<(String, String)> {
        let place = || Place::whole("w.py");
        let waits = waits.iter().map(|wait_ms| (*wait_ms, place())).collect();
        let endless = vec![Literal { text: "w.py".into(), place: place() }];
        let worker = Program {
            argv: vec!["w".into()],
            file: Some("w.py".into()),
            score: 1,
            sure: Sure::Likely,
            place: place(),
            why: String::new(),
            build: None,
        };
        let mut proposal = Proposal::default();
        propose(&Findings { endless, waits, ..Findings::default() }, &worker, false, &mut proposal);
        let settle = proposal.assumed.into_iter().filter(|one| one.section == "settle");
        settle.map(|one| (one.key, one.value)).collect()
    }

    fn lines(of: &[(&str, &str)]) -> Vec<(String, String)> {
        of.iter().map(|(key, value)| ((*key).to_owned(), format!("\"{value}\""))).collect()
    }

    #[test]
    fn silence_is_longer_than_what_the_worker_waits() {
        assert_eq!(settled(&[]), lines(&[("by", "quiet"), ("quiet", "8s")]));
        assert_eq!(settled(&[500, 4000]), lines(&[("by", "quiet"), ("quiet", "10s")]));
        let long = lines(&[("by", "quiet"), ("quiet", "30s"), ("deadline", "90s")]);
        assert_eq!(settled(&[25_500, 3_000_000]), long, "nobody waits for an hour");
    }
}
