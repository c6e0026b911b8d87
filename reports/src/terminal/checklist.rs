//! The answers to a profile's checklist, and what it could not stage.

use std::io;

use killpoint_model::checklist::{AnswerWord, Answered, RunProfile, Skipped};

use super::events_text;
use super::page::{Page, Tone, span};

pub(super) fn write(page: &mut Page, profile: &RunProfile) -> io::Result<()> {
    if !profile.answers.is_empty() {
        answers(page, profile)?;
    }
    skipped(page, profile)
}

fn answers(page: &mut Page, profile: &RunProfile) -> io::Result<()> {
    page.blank()?;
    page.rule()?;
    let counts = AnswerWord::ALL
        .iter()
        .map(|word| format!("{} {}", profile.count(*word), word.as_str().replace('-', " ")));
    let counts: Vec<String> = counts.collect();
    let heading = format!("{} checklist: {}", profile.name, counts.join(", "));
    page.text(0, &[span(Tone::Strong, heading)])?;
    let mut article = "";
    for answered in &profile.answers {
        if answered.article != article {
            article = &answered.article;
            page.text(0, &[span(Tone::Strong, article)])?;
        }
        answer(page, answered)?;
    }
    Ok(())
}

fn answer(page: &mut Page, answered: &Answered) -> io::Result<()> {
    let (tone, mark) = match answered.answer {
        AnswerWord::Yes => (Tone::Good, "✓ yes"),
        AnswerWord::No => (Tone::Bad, "✗ no"),
        AnswerWord::NotShown => (Tone::Doubt, "○ not shown"),
    };
    let question = format!(" {} {}", answered.id, answered.question);
    page.text(0, &[span(tone, mark), span(Tone::Plain, question)])?;
    page.text(2, &[span(Tone::Plain, &answered.because)])?;
    for proof in &answered.proofs {
        let place = format!("trial {}, {}", proof.trial, events_text(&proof.events));
        page.text(2, &[span(Tone::Dim, place)])?;
    }
    match &answered.to_do {
        Some(to_do) => page.headed(2, &[span(Tone::Strong, "to do: ")], &[span(Tone::Plain, to_do)]),
        None => Ok(()),
    }
}

fn skipped(page: &mut Page, profile: &RunProfile) -> io::Result<()> {
    if profile.skipped.is_empty() {
        return Ok(());
    }
    page.blank()?;
    let heading = format!("scenarios that {} could not stage", profile.name);
    page.text(0, &[span(Tone::Strong, heading)])?;
    for Skipped { why, to_do, .. } in &profile.skipped {
        page.headed(2, &[span(Tone::Plain, "- ")], &[span(Tone::Plain, format!("{why}; {to_do}"))])?;
    }
    Ok(())
}
