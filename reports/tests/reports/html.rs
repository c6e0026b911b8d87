//! The page that is forwarded.

use std::sync::LazyLock;

use base64::Engine as _;
use killpoint_model::{History, Verdict};
use killpoint_reports::{Options, View};
use proptest::prelude::*;
use sha2::{Digest, Sha256};

use crate::every::known;
use crate::flood::flood;
use crate::golden::{Golden, HOSTILE, golden};
use crate::report;
use crate::stored::stored;

/// Limit of a page of ten thousand trials, in bytes.
const PAGE_BYTES_MAX: usize = 3_000_000;

pub(crate) fn page(view: &View) -> String {
    let options = Options { run_dir: Some("killpoint-runs/golden".into()), ..Options::default() };
    report("html", view, &options)
}

/// The golden run, in which each text that a worker can reach is this one.
pub(crate) fn poisoned(text: &str) -> View {
    let Golden { mut record, mut histories } = golden();
    for (index, trial) in record.trials.iter_mut().enumerate() {
        let history = histories.remove(&trial.folder).map(|history| poisoned_history(history, text));
        trial.folder = format!("{index}{text}");
        histories.extend(history.map(|history| (trial.folder.clone(), history)));
        trial.plan.name = format!("{index}{text}");
        trial.plan.scenario = Some(text.to_owned());
        text.clone_into(&mut trial.plan.provider_plan);
        text.clone_into(&mut trial.replay);
        let Some(judgement) = &mut trial.verdict else { continue };
        judgement.evidence.missing.push(text.to_owned());
        for outcome in &mut judgement.outcomes {
            text.clone_into(&mut outcome.invariant);
            outcome.reason = outcome.reason.as_ref().map(|_| text.to_owned());
            for finding in outcome.findings.iter_mut().chain(&mut outcome.notes) {
                text.clone_into(&mut finding.invariant);
                text.clone_into(&mut finding.message);
                text.clone_into(&mut finding.subject);
            }
        }
        for action in &mut judgement.actions {
            (action.action, action.recipient) = (text.to_owned(), text.to_owned());
            action.state = Some(text.to_owned());
        }
    }
    for answered in record.profile.iter_mut().flat_map(|profile| &mut profile.answers) {
        (answered.because, answered.question) = (text.to_owned(), text.to_owned());
        answered.to_do = Some(text.to_owned());
    }
    record.warnings = vec![text.to_owned()];
    record.command_line = vec![text.to_owned()];
    View::new(&record, &histories)
}

fn poisoned_history(history: History, text: &str) -> History {
    let poisoned = serde_json::to_string(text).unwrap();
    let hostile = serde_json::to_string(HOSTILE).unwrap();
    let inside = |json: &str| json[1..json.len() - 1].to_owned();
    let written = history.to_text().replace(&inside(&hostile), &inside(&poisoned));
    History { truncated: history.truncated, ..History::parse(&written).unwrap() }
}

fn between<'t>(page: &'t str, before: &str, after: &str) -> &'t str {
    let (_, rest) = page.split_once(before).unwrap();
    rest.split_once(after).unwrap().0
}

#[test]
fn the_first_violation_is_one_that_is_not_known_yet() {
    let mut golden = known();
    let told = |golden: &Golden| {
        let page = page(&View::new(&golden.record, &golden.histories));
        let button = between(&page, "id=\"jump\"", "</button>").to_owned();
        (between(&button, "data-trial=\"", "\"").to_owned(), button.split_once('>').unwrap().1.to_owned())
    };
    let (listed, words) = told(&golden);
    assert_eq!(words, "Jump to first known violation");
    let other = golden.record.trials.iter_mut().find(|trial| trial.folder == "006-late-accept").unwrap();
    other.plan.faults[0].at.ordinal += 1;
    assert_ne!(listed, other.folder);
    assert_eq!(told(&golden), ("006-late-accept".to_owned(), "Jump to first new violation".to_owned()));
}

#[test]
fn it_says_everything_that_the_view_says() {
    let golden = golden();
    let view = View::new(&golden.record, &golden.histories);
    let page = page(&view);
    for said in [
        "1 violated, 1 vacuous, 2 holds of 4 trials.",
        "Jump to first violation",
        "exactly-once",
        "at least one violation, with evidence",
        "2023-11-14 22:13 UTC",
        "mark:before-cleanup#1 was asked for, and no baseline reached it",
        "job-1 was sent twice under one key",
        "power loss and torn disk writes",
        "the ledger mapping has no column `executions`",
        "Is execution completion separate",
        "To do: add `[metrics]`",
        "needs the worker&#39;s own cleanup command",
        "ledger:created#1–2",
        "killpoint run --config killpoint.toml",
        "killpoint replay .killpoint/runs/0001/003-kill",
    ] {
        assert!(page.contains(said), "{said}");
    }
    assert!(!page.contains("Left out of this file"), "nothing is left out of a small run");
}

#[test]
fn known_failures_are_said_and_the_verdict_stays() {
    let known = super::every::known();
    let page = page(&super::every::view(&known));
    let section = between(&page, "<h2 id=\"gate\">", "</section>");
    assert!(section.contains("known failures of ") && section.contains("1 known violation"), "{section}");
    assert!(page.contains("violated</h1>"));
    assert!(!self::page(&super::every::view(&super::every::every_verdict())).contains("id=\"gate\""));
}

#[test]
fn its_policy_names_its_own_script_and_style_and_nothing_else() {
    let view = View::new(&stored().record, &stored().histories);
    let page = page(&view);
    let policy = between(&page, "Content-Security-Policy\" content=\"", "\"");
    for (directive, before, after) in
        [("style-src", "<style>", "</style>"), ("script-src", "</script>\n<script>", "</script>")]
    {
        let digest = Sha256::digest(between(&page, before, after));
        let digest = base64::engine::general_purpose::STANDARD.encode(digest);
        assert!(policy.contains(&format!("{directive} 'sha256-{digest}';")), "{directive}: {policy}");
    }
    assert!(policy.starts_with("default-src 'none'; ") && !policy.contains("unsafe"), "{policy}");
    for address in ["http:", "https:", "src=", "@import", "url("] {
        let found = page
            .match_indices(address)
            .find(|(at, _)| !page[*at..].starts_with("http://www.w3.org/2000/svg"));
        assert!(found.is_none(), "{address}: {:?}", found.map(|(at, _)| &page[at..at + 60]));
    }
}

#[test]
fn ten_thousand_trials_stay_small_and_say_what_is_left_out() {
    let view = flood(10_000);
    assert_eq!(view.tally.trials, 10_000);
    let page = page(&view);
    assert!(page.len() < PAGE_BYTES_MAX, "{} bytes", page.len());
    let left_out = between(&page, "Left out of this file to keep it small", "</section>");
    assert!(left_out.contains("more trials that do not hold have a line in the list"), "{left_out}");
    assert!(left_out.contains("more trials that hold have a line in the list"), "{left_out}");
    assert!(left_out.contains("killpoint report killpoint-runs/golden --format json"), "{left_out}");
    let data: serde_json::Value = serde_json::from_str(between(&page, "id=\"data\">", "</script>")).unwrap();
    assert_eq!(data["rows"].as_array().unwrap().len(), view.rows.len());
    let full = data["full"].as_array().unwrap();
    assert!(full.iter().filter(|one| !one["timeline"].is_null()).count() > 200, "{}", full.len());
}

#[test]
fn a_run_of_every_verdict_is_in_the_stored_run() {
    let stored = stored();
    let view = View::new(&stored.record, &stored.histories);
    let tally = view.tally;
    assert!(
        tally.violated > 0 && tally.holds > 0 && tally.vacuous > 0 && tally.inconclusive > 0,
        "{tally:?}"
    );
    assert_eq!(view.verdict, Verdict::Violated);
    let warning = "the history of trial `0014-server-error-after-accept` ends before the trial does";
    assert!(view.warnings.iter().any(|one| one == warning), "{:?}", view.warnings);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_of_a_worker_is_markup(
        text in r#"([<>&"'/!\-]|</script>|<!--|\PC|\p{Cc}|\p{Cf}|\x{2028}|\x{202e}){1,60}"#,
    ) {
        static PLAIN: LazyLock<String> = LazyLock::new(|| page(&poisoned("x")));
        let hostile = page(&poisoned(&text));
        let count = |page: &str, character: char| without_data(page).matches(character).count();
        for character in ['<', '>', '"'] {
            prop_assert_eq!(count(&PLAIN, character), count(&hostile, character));
        }
        let hidden = hostile.chars().find(|c| {
            (c.is_control() && *c != '\n') || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        });
        prop_assert_eq!(hidden, None);
        let data = between(&hostile, "id=\"data\">", "</script>");
        prop_assert!(!data.contains(['<', '>', '&']));
        prop_assert!(serde_json::from_str::<serde_json::Value>(data).is_ok());
    }
}

/// The page but for the script's data, in which nothing is markup.
fn without_data(page: &str) -> String {
    page.replace(between(page, "id=\"data\">", "</script>"), "")
}
