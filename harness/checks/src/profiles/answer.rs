//! The answer to one line.

use killpoint_model::checklist::{AnswerWord, Answered, Proof};

use super::Item;
use super::exhibit::Exhibit;

/// Trials that are shown as evidence of one answer.
const PROOFS_MAX: usize = 3;
/// Events that are shown of one trial.
const EVENTS_MAX: usize = 8;

/// The answer to one line of a checklist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The answer.
    pub word: AnswerWord,
    /// Why.
    pub because: String,
    /// Where it can be looked up.
    pub proofs: Vec<Proof>,
    /// What to do, unless it is `yes`.
    pub to_do: Option<String>,
}

impl Answer {
    /// It is shown. Without a single event that shows it, it is not.
    pub(super) fn yes(because: impl Into<String>, proofs: Vec<Proof>) -> Self {
        if proofs.is_empty() {
            return Self::not_shown("no event shows it", "report this with the run's folder");
        }
        Self { word: AnswerWord::Yes, because: because.into(), proofs, to_do: None }
    }

    /// There is a counterexample.
    pub(super) fn no(because: impl Into<String>, proofs: Vec<Proof>, to_do: impl Into<String>) -> Self {
        Self { word: AnswerWord::No, because: because.into(), proofs, to_do: Some(to_do.into()) }
    }

    /// Nothing shows it.
    pub(super) fn not_shown(because: impl Into<String>, to_do: impl Into<String>) -> Self {
        Self {
            word: AnswerWord::NotShown,
            because: because.into(),
            proofs: Vec::new(),
            to_do: Some(to_do.into()),
        }
    }

    /// The first answer that is worst: `no`, then `not shown`. All `yes`: their reasons and evidence together.
    pub(super) fn all(answers: impl IntoIterator<Item = Self>) -> Self {
        let answers: Vec<Self> = answers.into_iter().collect();
        let worst = |word| answers.iter().find(|answer| answer.word == word).cloned();
        worst(AnswerWord::No).or_else(|| worst(AnswerWord::NotShown)).unwrap_or_else(|| {
            let because: Vec<&str> = answers.iter().map(|answer| answer.because.as_str()).collect();
            Self::yes(because.join("; "), first_of_each(&answers))
        })
    }

    /// The same with another word on why.
    pub(super) fn and(mut self, more: &str) -> Self {
        if self.word == AnswerWord::Yes {
            self.because = format!("{}; {more}", self.because);
        }
        self
    }

    pub(super) fn to(self, item: &Item) -> Answered {
        Answered {
            id: item.id.to_owned(),
            article: item.article.to_owned(),
            question: item.question.to_owned(),
            answer: self.word,
            because: self.because,
            proofs: self.proofs,
            to_do: self.to_do,
        }
    }
}

/// The first evidence of each answer; what is about one trial is one piece.
fn first_of_each(answers: &[Answer]) -> Vec<Proof> {
    let mut merged: Vec<Proof> = Vec::new();
    for proof in answers.iter().filter_map(|answer| answer.proofs.first()) {
        match merged.iter_mut().find(|known| known.trial == proof.trial) {
            Some(known) => known.events.extend(&proof.events),
            None => merged.push(proof.clone()),
        }
    }
    for proof in &mut merged {
        proof.events.sort_unstable();
        proof.events.dedup();
    }
    merged
}

/// The first trials with their events, in order.
pub(super) fn proofs<'e>(found: impl IntoIterator<Item = (&'e Exhibit<'e>, Vec<u64>)>) -> Vec<Proof> {
    let some = found.into_iter().filter(|(_, events)| !events.is_empty());
    some.take(PROOFS_MAX)
        .map(|(exhibit, mut events)| {
            events.sort_unstable();
            events.dedup();
            events.truncate(EVENTS_MAX);
            Proof { trial: exhibit.folder.to_owned(), events }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proof() -> Vec<Proof> {
        vec![Proof { trial: "0001-a".into(), events: vec![3] }]
    }

    #[test]
    fn a_yes_without_an_event_is_not_shown() {
        assert_eq!(Answer::yes("it seems so", Vec::new()).word, AnswerWord::NotShown);
        assert_eq!(Answer::yes("it is", proof()).word, AnswerWord::Yes);
        assert_eq!(Answer::all([]).word, AnswerWord::NotShown);
    }

    #[test]
    fn several_answers_are_as_good_as_the_worst() {
        let (yes, not) = (Answer::yes("a", proof()), Answer::not_shown("b", "do c"));
        let no = Answer::no("d", proof(), "do e");
        assert_eq!(Answer::all([yes.clone(), not.clone(), no.clone()]), no);
        assert_eq!(Answer::all([yes.clone(), not.clone()]), not);
        assert_eq!(Answer::all([yes.clone(), yes.clone()]).because, "a; a");
        assert_eq!(yes.and("more").because, "a; more");
        assert_eq!(not.clone().and("more"), not);
    }
}
