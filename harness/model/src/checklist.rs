//! Profiles of a run: which trials it makes, and the answers to the checklist that it was judged by.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text_enum::text_enum;
use crate::verdict::Verdict;

text_enum! {
    /// A ready-made selection of trials, with or without a checklist.
    pub enum ProfileName {
        /// The sweep and every scenario that the settings allow.
        RestartSafe = "restart-safe",
        /// The same, and an answer to every line of the checklists.
        PreHosting = "pre-hosting",
    }
}

text_enum! {
    /// The answer to one line of a checklist.
    pub enum AnswerWord {
        /// It was staged, and came out right.
        Yes = "yes",
        /// There is a counterexample.
        No = "no",
        /// Nothing in the run shows it.
        NotShown = "not-shown",
    }
}

/// Where an answer can be looked up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Proof {
    /// Folder of the trial within the run directory.
    pub trial: String,
    /// Sequence numbers of its events, ascending; never empty.
    pub events: Vec<u64>,
}

/// What became of one line of a checklist.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Answered {
    /// The line's id, such as `a1-3`.
    pub id: String,
    /// Where the line comes from.
    pub article: String,
    /// The line.
    pub question: String,
    /// The answer.
    pub answer: AnswerWord,
    /// Why, one lower-case sentence.
    pub because: String,
    /// Evidence of a `yes`, counterexample of a `no`.
    pub proofs: Vec<Proof>,
    /// What to do, unless the answer is `yes`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_do: Option<String>,
}

/// A scenario of the profile that could not be staged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Skipped {
    /// The scenario.
    pub scenario: String,
    /// The faults of its plan, by name.
    pub faults: Vec<String>,
    /// What it needs.
    pub why: String,
    /// What to configure.
    pub to_do: String,
}

/// The profile of a run, with its answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunProfile {
    /// Which profile.
    pub name: ProfileName,
    /// Scenarios that were not staged.
    pub skipped: Vec<Skipped>,
    /// One per line of the checklists, in their order; empty for a profile without them.
    pub answers: Vec<Answered>,
}

impl RunProfile {
    /// A profile before its trials.
    pub const fn new(name: ProfileName, skipped: Vec<Skipped>) -> Self {
        Self { name, skipped, answers: Vec::new() }
    }

    /// What the answers add to the run's verdict: a `no` is a violation, and a line that is not shown leaves
    /// something unproven.
    pub fn verdict(&self) -> Verdict {
        let each = self.answers.iter().map(|answered| match answered.answer {
            AnswerWord::Yes => Verdict::Holds,
            AnswerWord::No => Verdict::Violated,
            AnswerWord::NotShown => Verdict::Vacuous,
        });
        Verdict::worst(each.chain((self.name == ProfileName::RestartSafe).then_some(Verdict::Holds)))
    }

    /// How many lines have an answer.
    pub fn count(&self, word: AnswerWord) -> usize {
        self.answers.iter().filter(|answered| answered.answer == word).count()
    }
}

/// A line of the worker's output that names an action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LogLine {
    /// Folder of the trial.
    pub trial: String,
    /// The captured file within it.
    pub file: String,
    /// Which line, from 1.
    pub line: u32,
    /// Whether the line says which attempt it was.
    pub names_attempt: bool,
}

/// What the harness saw of the machine and of the worker's files, and a history does not hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HostFacts {
    /// Type of the file system on which the trials' state directories lay, such as `ext4`.
    pub file_system: Option<String>,
    /// `wal`, or `rollback` for every other mode: an SQLite file's header says no more.
    pub journal_mode: Option<String>,
    /// The SQLite file's `user_version`.
    pub schema_version: Option<u32>,
    /// The line of the output that says most.
    pub log: Option<LogLine>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(name: ProfileName, words: &[AnswerWord]) -> RunProfile {
        let answered = |answer: &AnswerWord| Answered {
            id: "a1-1".into(),
            article: String::new(),
            question: String::new(),
            answer: *answer,
            because: String::new(),
            proofs: Vec::new(),
            to_do: None,
        };
        RunProfile { answers: words.iter().map(answered).collect(), ..RunProfile::new(name, Vec::new()) }
    }

    #[test]
    fn the_worst_answer_wins_and_no_answer_is_not_green() {
        use AnswerWord::{No, NotShown, Yes};
        let of = |words: &[AnswerWord]| profile(ProfileName::PreHosting, words).verdict();
        assert_eq!(of(&[Yes, Yes]), Verdict::Holds);
        assert_eq!(of(&[Yes, NotShown]), Verdict::Vacuous);
        assert_eq!(of(&[Yes, NotShown, No]), Verdict::Violated);
        assert_eq!(of(&[]), Verdict::Vacuous);
        assert_eq!(profile(ProfileName::RestartSafe, &[]).verdict(), Verdict::Holds);
        assert_eq!(profile(ProfileName::PreHosting, &[Yes, No, Yes]).count(Yes), 2);
    }
}
