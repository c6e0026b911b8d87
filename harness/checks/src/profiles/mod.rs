//! Profiles: ready-made selections of trials, and the checklists that one of them answers.
//!
//! A checklist is a file of lines with a function each; [`CHECKLISTS`] has them in order. An answer is a pure
//! function of the [`Dossier`]: the settings, the judged trials with their histories, and what was seen of the
//! host. `yes` must be earned: by a trial in which the thing was really staged, with all of its evidence, and
//! in which the invariants that speak of it looked at something. Whatever is not earned is `not shown`.

mod answer;
mod article1;
mod article2;
mod article3;
mod claim;
mod dossier;
mod exhibit;
#[cfg(test)]
mod fixture;
mod hosting;

use std::panic::{AssertUnwindSafe, catch_unwind};

use killpoint_model::Entry;
use killpoint_model::checklist::{Answered, ProfileName};

pub use answer::Answer;
pub use dossier::Dossier;
pub use exhibit::Exhibit;

/// One line of a checklist.
#[derive(Debug)]
pub struct Item {
    /// Unique within all checklists, such as `a1-3`.
    pub id: &'static str,
    /// Where the line comes from.
    pub article: &'static str,
    /// The line.
    pub question: &'static str,
    /// Answers it.
    pub answer: fn(&Dossier<'_>) -> Answer,
}

/// Every checklist, in the order of reports: those of the three articles, then their words on hosting.
pub static CHECKLISTS: &[&[Item]] = &[article1::ITEMS, article2::ITEMS, article3::ITEMS, hosting::ITEMS];

/// Every profile, by the name in [`ProfileName`].
pub static PROFILES: &[Entry] = &[
    Entry {
        name: ProfileName::RestartSafe.as_str(),
        summary: "the sweep, and every scenario of the library that the settings allow",
        explanation: "\
Every boundary that the fault-free trial reaches is killed at once, every provider plan is tried, and every \
scenario of the library is staged whose needs are configured. Scenarios that need more are listed with what to \
configure. Judged as any run.

For a pull request: it says whether the worker survives a restart at any moment that is known.",
        example: "killpoint run --profile restart-safe",
    },
    Entry {
        name: ProfileName::PreHosting.as_str(),
        summary: "restart-safe, and an answer to every line of the hosting checklists",
        explanation: "\
The trials of restart-safe; then each line of the three articles' checklists, and of what they ask of a host, is \
answered: yes with the trials and events that show it, no with the counterexample, or not shown with what to \
configure, or why this machine can't show it. It is never yes by default.

A no is a violation (exit code 1). A line that is not shown leaves something unproven (exit code 2). The run \
holds when every line is yes.",
        example: "killpoint run --profile pre-hosting",
    },
];

/// The entries of every profile, for help, `list` and `explain`.
pub fn entries() -> Vec<Entry> {
    PROFILES.to_vec()
}

/// Answers every line. A function that crashes gives `not shown`, never `yes`.
pub fn answers(dossier: &Dossier<'_>) -> Vec<Answered> {
    let items = CHECKLISTS.iter().flat_map(|items| items.iter());
    items
        .map(|item| {
            let answer = catch_unwind(AssertUnwindSafe(|| (item.answer)(dossier))).unwrap_or_else(|_| {
                Answer::not_shown("the check of this line crashed", "report it with the run's folder")
            });
            answer.to(item)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use killpoint_model::catalog::slice_problems;
    use killpoint_model::checklist::AnswerWord;

    use super::*;

    #[test]
    fn the_slices_are_sound() {
        assert_eq!(slice_problems(PROFILES), Vec::<String>::new());
        assert_eq!(PROFILES.len(), ProfileName::ALL.len());
        let items: Vec<&Item> = CHECKLISTS.iter().flat_map(|items| items.iter()).collect();
        let ids: BTreeSet<&str> = items.iter().map(|item| item.id).collect();
        assert_eq!(ids.len(), items.len());
        assert!(items.iter().all(|item| !item.article.is_empty() && !item.question.is_empty()));
    }

    #[test]
    fn a_dossier_without_trials_shows_nothing_and_says_what_to_do() {
        let settings = killpoint_model::Settings::default();
        for answered in
            answers(&Dossier { settings: &settings, exhibits: Vec::new(), skipped: &[], host: None })
        {
            assert_eq!(answered.answer, AnswerWord::NotShown, "{}", answered.id);
            assert!(answered.to_do.is_some_and(|what| what.len() > 10), "{}", answered.id);
        }
    }
}
