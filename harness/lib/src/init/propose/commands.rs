//! The worker's command, and those that make its state, commit its work and clean up.

use super::super::detect::start;
use super::super::finding::{Amount, Findings, Program, Role, Sure, Word};
use super::super::project::Project;
use super::super::vocabulary::role_of;
use super::places::Places;
use super::{Proposal, list};

/// How many actions are made where the number can be chosen: one alone hides what happens between two.
const ACTIONS: &str = "2";

/// The program that looks most like the worker. Of equals the one that is named first.
pub(super) fn worker(findings: &Findings) -> Option<Program> {
    let mut best: Option<&Program> = None;
    for program in &findings.programs {
        if best.is_none_or(|known| program.score > known.score) {
            best = Some(program);
        }
    }
    best.filter(|program| program.score > 0).cloned()
}

pub(super) fn propose(
    project: &Project,
    findings: &Findings,
    worker: &Program,
    places: &Places,
    proposal: &mut Proposal,
) {
    let base = base_of(worker);
    let own = |role: Role| best_word(findings, worker.file.as_deref(), role);
    let mut argv = worker.argv.clone();
    let mut why = worker.why.clone();
    if base.len() == argv.len() {
        let demanded = words_of(findings, worker.file.as_deref()).any(|word| word.demanded);
        let run = own(Role::Run);
        if let Some(word) = run {
            why = format!("{why}, with its subcommand ({})", word.place);
            argv = command(findings, &base, worker.file.as_deref(), Some(&word.word), places);
        } else if demanded {
            why = format!("{why}; it needs a subcommand, and none is named that works: `run` is a guess");
            argv = command(findings, &base, worker.file.as_deref(), Some("run"), places);
        } else {
            argv = command(findings, &base, worker.file.as_deref(), None, places);
        }
    }
    let sure = if why.contains("is a guess") { Sure::Guess } else { worker.sure };
    proposal.add(("worker", "command"), list(&argv), sure, (Some(&worker.place), &why));
    if let Some(build) = &worker.build {
        proposal.gap(
            "a built worker",
            format!("`{}` is not there yet", argv[0]),
            format!("run `{build}` first"),
        );
    }
    say_others(findings, worker, proposal);
    if let Some(word) = own(Role::Setup) {
        let argv = command(findings, &base, worker.file.as_deref(), Some(&word.word), places);
        let why = "a subcommand that makes the state ready";
        proposal.add(
            ("state", "prepare"),
            format!("[{}]", list(&argv)),
            Sure::Likely,
            (Some(&word.place), why),
        );
    }
    enqueue(project, findings, worker, places, proposal);
    if let Some(word) = own(Role::Cleanup) {
        let argv = command(findings, &base, worker.file.as_deref(), Some(&word.word), places);
        let why = "a subcommand that removes old rows";
        proposal.add(("cleanup", "command"), list(&argv), Sure::Likely, (Some(&word.place), why));
    }
}

/// Programs that were nearly chosen.
fn say_others(findings: &Findings, worker: &Program, proposal: &mut Proposal) {
    let near = |program: &&Program| {
        program.score + 15 >= worker.score && program.argv != worker.argv && program.file != worker.file
    };
    let others: Vec<String> = findings
        .programs
        .iter()
        .filter(near)
        .map(|program| format!("`{}`", program.argv.join(" ")))
        .collect();
    if !others.is_empty() {
        let why = format!("{} could be the worker as well", others.join(", "));
        proposal.gap("which program is the worker", why, "if it is another one, change `worker.command`");
    }
}

fn words_of<'f>(findings: &'f Findings, file: Option<&'f str>) -> impl Iterator<Item = &'f Word> {
    findings.words.iter().filter(move |word| Some(word.file.as_str()) == file)
}

/// The word that is most usual for a role; the program by itself is one, too.
fn best_word<'f>(findings: &'f Findings, file: Option<&'f str>, role: Role) -> Option<&'f Word> {
    let rank = |word: &&Word| role_of(&word.word).map_or(0, |(_, rank)| rank);
    words_of(findings, file).filter(|word| word.role == role).min_by_key(rank)
}

/// The command without a subcommand at its end.
fn base_of(program: &Program) -> Vec<String> {
    let mut base = program.argv.clone();
    let is_word = |word: &String| role_of(word).is_some();
    while base.len() > 2 && base.last().is_some_and(is_word) {
        base.pop();
    }
    base
}

/// A command with its options where they belong.
fn command(
    findings: &Findings,
    base: &[String],
    file: Option<&str>,
    word: Option<&str>,
    places: &Places,
) -> Vec<String> {
    let options = |global: bool| {
        let of_file = findings.options.iter().filter(move |option| Some(option.file.as_str()) == file);
        of_file
            .filter(move |option| option.word.is_none() || option.word.as_deref() == word)
            .filter(move |option| option.global == global)
            .filter_map(|option| places.option(option))
            .flatten()
    };
    let mut argv = base.to_vec();
    argv.extend(options(true));
    argv.extend(word.filter(|word| !word.is_empty()).map(str::to_owned));
    argv.extend(options(false));
    argv
}

fn enqueue(
    project: &Project,
    findings: &Findings,
    worker: &Program,
    places: &Places,
    proposal: &mut Proposal,
) {
    let own = best_word(findings, worker.file.as_deref(), Role::Enqueue);
    let other = || {
        let elsewhere = findings.words.iter().filter(|word| word.role == Role::Enqueue);
        elsewhere.min_by_key(|word| role_of(&word.word).map_or(0, |(_, rank)| rank))
    };
    let found =
        own.or_else(other).and_then(|word| Some((word, start_of(project, findings, worker, &word.file)?)));
    let Some((word, base)) = found else {
        proposal.gap(
            "the enqueuer",
            "no subcommand or script is called enqueue, submit, produce or the like",
            "if work is committed by another command, write it under `[state]`: `enqueue = [\"…\", \"{actions}\"]`; \
             else the worker has to make its own work when it starts",
        );
        return;
    };
    let mut argv = command(findings, &base, Some(&word.file), Some(&word.word), places);
    let (template, why) = match &word.amount {
        Amount::Count(flag) => (Some((flag, "{actions}")), "it takes how many"),
        Amount::File(flag) => (Some((flag, "{actions.file}")), "it takes a file"),
        Amount::Unknown => (None, "what it takes was not seen"),
    };
    if let Some((flag, template)) = template {
        argv.extend(flag.iter().cloned());
        argv.push(template.to_owned());
        let why = "a number that shows what happens between two actions";
        proposal.add(("", "actions"), ACTIONS.into(), Sure::Likely, (None, why));
    } else {
        proposal.gap(
            "what the enqueuer takes",
            format!("`{}` ({}) reads no number and no file that was recognised", argv.join(" "), word.place),
            "where it needs one, add `\"{actions}\"` or `\"{actions.file}\"` to `state.enqueue`",
        );
    }
    let sure = if template.is_some() && own.is_some() { Sure::Likely } else { Sure::Guess };
    proposal.add(("state", "enqueue"), list(&argv), sure, (Some(&word.place), why));
}

/// How the program behind a file is started.
fn start_of(project: &Project, findings: &Findings, worker: &Program, file: &str) -> Option<Vec<String>> {
    if worker.file.as_deref() == Some(file) {
        return Some(base_of(worker));
    }
    let program = findings.programs.iter().find(|program| program.file.as_deref() == Some(file));
    program.map(base_of).or_else(|| start(project.file(file)?))
}
