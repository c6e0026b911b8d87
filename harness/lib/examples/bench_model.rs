//! A model check of the checker: schedules on modelled workers, right and wrong ones in turn, each judged and
//! compared with the truth. Prints schedules per second, every disagreement's plan for the first few, and a table
//! of workers and verdicts. Ends with 1 where there is any disagreement.
//!
//! `--schedules N` (1,000,000), `--seed S` (1), `--threads N` (2), `--show N` (5); `--case N` shows one case with its history.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark for a developer's terminal")]

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::process::ExitCode;
use std::time::Instant;

use killpoint::model::{InvariantOutcome, InvariantStatus, Plan, Verdict};
use killpoint::simulate::{MODEL_WORKERS, Scene, SceneKind, Tried, Unsupported, plan_for};

/// What the command line asks for.
#[derive(Debug, Clone, Copy)]
struct Options {
    schedules: u64,
    seed: u64,
    threads: u64,
    /// Disagreements that are shown whole, at most.
    show: u64,
    case: Option<u64>,
}

/// What came of some schedules.
#[derive(Debug, Default)]
struct Tally {
    verdicts: BTreeMap<(usize, Verdict), u64>,
    unsupported: u64,
    disagreements: u64,
    shown: Vec<String>,
    caught: BTreeMap<usize, u64>,
    /// Seconds on a processor, where the system tells.
    busy_seconds: f64,
}

impl Tally {
    fn absorb(&mut self, other: Self) {
        for (place, count) in other.verdicts {
            *self.verdicts.entry(place).or_default() += count;
        }
        for (worker, count) in other.caught {
            *self.caught.entry(worker).or_default() += count;
        }
        self.unsupported += other.unsupported;
        self.disagreements += other.disagreements;
        self.shown.extend(other.shown);
        self.busy_seconds += other.busy_seconds;
    }
}

fn options() -> Result<Options, String> {
    let mut options = Options { schedules: 1_050_000, seed: 1, threads: 2, show: 5, case: None };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let place = match word.as_str() {
            "--schedules" => &mut options.schedules,
            "--seed" => &mut options.seed,
            "--threads" => &mut options.threads,
            "--show" => &mut options.show,
            "--case" => options.case.insert(0),
            other => {
                return Err(format!(
                    "`{other}`: one of --schedules N, --seed S, --threads N, --show N, --case N"
                ));
            }
        };
        let number = words.next().and_then(|number| number.replace('_', "").parse().ok());
        *place = number.ok_or_else(|| format!("`{word}` wants a number"))?;
    }
    if options.threads == 0 {
        return Err("`--threads` wants 1 at least".into());
    }
    Ok(options)
}

/// Time that this thread has had a processor, where the system tells: other programs' load is not in it.
fn on_processor() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse::<u64>().ok().map(|ns| ns as f64 / 1e9)
}

/// Which worker a case is for: every other one is for the right one.
fn worker_of(case: u64) -> usize {
    let wrong = MODEL_WORKERS.len() as u64 - 1;
    if case.is_multiple_of(2) { 0 } else { 1 + (case / 2 % wrong) as usize }
}

/// What can be seen of the worker of a case: histories with marks are three times as long, so fewer of them.
fn kind_of(case: u64) -> SceneKind {
    match case / 2 / (MODEL_WORKERS.len() as u64 - 1) % 8 {
        0 => SceneKind::Marked,
        1 | 2 => SceneKind::Deduping,
        3..=5 => SceneKind::Mapped,
        _ => SceneKind::Bare,
    }
}

/// The scenes so far.
type Scenes = BTreeMap<(usize, SceneKind), Scene>;

/// Tries one case.
fn try_case(scenes: &mut Scenes, options: Options, case: u64) -> Result<(Plan, Tried), Unsupported> {
    let (worker, kind) = (worker_of(case), kind_of(case));
    let scene = match scenes.entry((worker, kind)) {
        Entry::Occupied(known) => known.into_mut(),
        Entry::Vacant(place) => place.insert(Scene::new(kind, &MODEL_WORKERS[worker])?),
    };
    let plan = plan_for(scene, options.seed, case);
    let tried = scene.try_plan(&plan, options.seed ^ case)?;
    Ok((plan, tried))
}

/// Every case of one thread.
fn share(options: Options, thread: u64) -> Tally {
    let mut tally = Tally::default();
    let mut scenes = Scenes::new();
    for case in (thread..options.schedules).step_by(options.threads as usize) {
        match try_case(&mut scenes, options, case) {
            Ok((plan, tried)) => tally.take(options, case, &plan, &tried),
            Err(_) => tally.unsupported += 1,
        }
    }
    tally.busy_seconds = on_processor().unwrap_or_default();
    tally
}

impl Tally {
    fn take(&mut self, options: Options, case: u64, plan: &Plan, tried: &Tried) {
        let worker = worker_of(case);
        *self.verdicts.entry((worker, tried.judged.verdict)).or_default() += 1;
        let red = |outcome: &InvariantOutcome| {
            outcome.invariant == MODEL_WORKERS[worker].invariant
                && outcome.status == InvariantStatus::Violated
        };
        *self.caught.entry(worker).or_default() += u64::from(tried.judged.outcomes.iter().any(red));
        if !tried.disagreements.is_empty() {
            self.disagreements += 1;
            if (self.shown.len() as u64) < options.show {
                self.shown.push(described(case, plan, tried));
            }
        }
    }
}

fn described(case: u64, plan: &Plan, tried: &Tried) -> String {
    let (name, kind) = (MODEL_WORKERS[worker_of(case)].name, kind_of(case));
    let what = tried.disagreements.join("\n  ");
    // A plan has only text keys, so this can't fail.
    let plan = serde_json::to_string(plan).unwrap_or_default();
    format!("case {case}, {name}, {kind:?}:\n  {what}\n  plan {plan}")
}

/// One case with all that happened in it.
fn show_case(options: Options, case: u64) -> Result<(), Unsupported> {
    let (plan, tried) = try_case(&mut Scenes::new(), options, case)?;
    print!("{}", tried.simulated.history.to_text());
    println!("{:#?}\n{:#?}", tried.simulated.truth, tried.judged.actions);
    for outcome in tried.judged.outcomes.iter().filter(|it| it.status == InvariantStatus::Violated) {
        println!("{outcome:#?}");
    }
    println!("{}", described(case, &plan, &tried));
    Ok(())
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(why) => {
            eprintln!("error: {why}");
            return ExitCode::from(3);
        }
    };
    if let Some(case) = options.case {
        return match show_case(options, case) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("error: {error}");
                ExitCode::from(3)
            }
        };
    }
    let begun = Instant::now();
    let mut tally = Tally::default();
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..options.threads).map(|thread| scope.spawn(move || share(options, thread))).collect();
        for thread in threads {
            if let Ok(share) = thread.join() {
                tally.absorb(share);
            }
        }
    });
    let seconds = begun.elapsed().as_secs_f64();
    println!(
        "{:24} {:>9} {:>9} {:>12} {:>9}  named invariant red",
        "worker", "holds", "vacuous", "inconclusive", "violated"
    );
    let mut judged = 0;
    for (index, worker) in MODEL_WORKERS.iter().enumerate() {
        let count = |verdict| tally.verdicts.get(&(index, verdict)).copied().unwrap_or(0);
        let row = [Verdict::Holds, Verdict::Vacuous, Verdict::Inconclusive, Verdict::Violated].map(count);
        judged += row.iter().sum::<u64>();
        let caught = tally.caught.get(&index).copied().unwrap_or(0);
        let named = if worker.is_right() { String::new() } else { format!("{caught} {}", worker.invariant) };
        println!("{:24} {:>9} {:>9} {:>12} {:>9}  {named}", worker.name, row[0], row[1], row[2], row[3]);
    }
    for text in tally.shown.iter().take(options.show as usize) {
        println!("{text}");
    }
    println!(
        "{judged} schedules in {seconds:.1} s, {:.0} per second on {} threads, {:.0} per second of a processor's time; \
         {} that can't be modelled; {} disagreements",
        judged as f64 / seconds,
        options.threads,
        judged as f64 / tally.busy_seconds,
        tally.unsupported,
        tally.disagreements
    );
    let complete = judged + tally.unsupported == options.schedules;
    if tally.disagreements == 0 && complete { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
