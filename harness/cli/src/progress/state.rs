//! What there is to say while a run is under way. Pure: facts and the time since the beginning go in, lines come out.

use std::collections::BTreeMap;
use std::time::Duration;

use killpoint::Running;
use killpoint::model::run::TrialRole;
use killpoint::model::{Plan, TrialRecord, Verdict};
use killpoint::reports::clean;

/// Trials after which a log gets a line.
const LINE_EVERY_TRIALS: usize = 25;
/// Time after which a log gets a line whatever happened.
const LINE_EVERY: Duration = Duration::from_secs(30);
/// Time after which a trial is named as one that still runs, and again each time it has passed.
const SLOW: Duration = Duration::from_secs(10);
/// A trial is slow only if it takes so many times longer than the slowest fault-free one.
const SLOW_TIMES: u32 = 3;
/// Columns of a row's name at most.
const NAME_COLUMNS_MAX: usize = 28;
/// A frame is never narrower.
const WIDTH_MIN: usize = 20;
/// Trials under way that are named in a frame.
const NAMED_MAX: usize = 4;

/// What became of one planned trial so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cell {
    Waiting,
    Running,
    Done(Option<Verdict>),
}

impl Cell {
    /// The symbols of the report.
    const fn symbol(self) -> char {
        match self {
            Self::Waiting => '·',
            Self::Running => '▸',
            Self::Done(Some(Verdict::Holds)) => '✓',
            Self::Done(Some(Verdict::Violated)) => '✗',
            Self::Done(Some(Verdict::Vacuous)) => '○',
            Self::Done(Some(Verdict::Inconclusive)) => '?',
            Self::Done(None) => '–',
        }
    }

    const fn is_done(self) -> bool {
        matches!(self, Self::Done(_))
    }
}

/// The trials at one boundary.
#[derive(Debug)]
struct Row {
    name: String,
    cells: Vec<Cell>,
}

/// Everything that is known of a run under way.
#[derive(Debug, Default)]
pub(super) struct State {
    planned: usize,
    done: usize,
    verdicts: BTreeMap<Verdict, usize>,
    rows: Vec<Row>,
    /// Where a trial's cell is, by its place in the run.
    cells: BTreeMap<usize, (usize, usize)>,
    running: Vec<Running>,
    slowest_fault_free: Duration,
    /// When trials were scheduled last, and how many had ended then: what came before does not say how long the rest
    /// takes.
    scheduled: (Duration, usize),
    /// When a log got its last line, and how many trials had ended then.
    said: (Duration, usize),
    /// How often a trial was named as slow, by its place.
    named: BTreeMap<usize, u32>,
}

/// What a trial does, in few words: where, and under which provider plan.
pub(super) fn label(plan: &Plan) -> String {
    let hits: Vec<String> = plan.faults.iter().map(|fault| fault.at.to_string()).collect();
    let provider = if plan.provider_plan.is_empty() { "ok" } else { &plan.provider_plan };
    let place = match (&plan.scenario, hits.is_empty()) {
        (Some(scenario), _) => scenario.clone(),
        (None, true) => "no fault".to_owned(),
        (None, false) => hits.join(" and "),
    };
    clean(&format!("{place} × {provider}"))
}

/// The row of a trial: the series of its first boundary, so that a long run has few rows.
fn row_name(plan: &Plan) -> String {
    let first = plan.faults.first().map(|fault| fault.at.series());
    clean(&first.or_else(|| plan.scenario.clone()).unwrap_or_else(|| "no fault".to_owned()))
}

impl State {
    /// So many trials are known to be needed.
    pub(super) fn planned(&mut self, trials: usize) {
        self.planned = trials;
    }

    /// These trials are about to be done.
    pub(super) fn scheduled<'p>(&mut self, jobs: impl Iterator<Item = (usize, &'p Plan)>, now: Duration) {
        for (place, plan) in jobs {
            let name = row_name(plan);
            let index = self.rows.iter().position(|row| row.name == name).unwrap_or_else(|| {
                self.rows.push(Row { name, cells: Vec::new() });
                self.rows.len() - 1
            });
            self.rows[index].cells.push(Cell::Waiting);
            self.cells.insert(place, (index, self.rows[index].cells.len() - 1));
        }
        self.planned = self.planned.max(self.cells.len());
        self.scheduled = (now, self.done);
    }

    /// These are under way.
    pub(super) fn running(&mut self, trials: &[Running]) {
        self.running = trials.to_vec();
        let places: Vec<usize> = trials.iter().map(|trial| trial.place).collect();
        for place in places {
            if let Some(cell) = self.cell(place).filter(|cell| !cell.is_done()) {
                *cell = Cell::Running;
            }
        }
    }

    fn cell(&mut self, place: usize) -> Option<&mut Cell> {
        let (row, cell) = *self.cells.get(&place)?;
        self.rows.get_mut(row)?.cells.get_mut(cell)
    }

    /// One ended.
    pub(super) fn finished(&mut self, trial: &TrialRecord) {
        let verdict = trial.verdict.as_ref().map(|judged| judged.verdict);
        self.done += 1;
        *self.verdicts.entry(verdict.unwrap_or(Verdict::Inconclusive)).or_default() += 1;
        if trial.role != TrialRole::Faulted {
            let took = Duration::from_millis(trial.duration_ms);
            self.slowest_fault_free = self.slowest_fault_free.max(took);
        }
        let place = trial.folder.split_once('-').and_then(|(number, _)| number.parse().ok());
        let Some(place) = place else { return };
        self.running.retain(|running| running.place != place);
        if let Some(cell) = self.cell(place) {
            *cell = Cell::Done(verdict);
        }
    }

    /// About how long the rest takes, once anything of it was done.
    fn left(&self, now: Duration) -> Option<Duration> {
        let (since, before) = self.scheduled;
        let done = u32::try_from(self.done.checked_sub(before)?).ok().filter(|done| *done > 0)?;
        let rest = u32::try_from(self.planned.checked_sub(self.done)?).ok().filter(|rest| *rest > 0)?;
        Some(now.saturating_sub(since) / done * rest)
    }

    /// `14/40 trials: 12 holds, 1 violated; about 25 s left`.
    fn summary(&self, now: Duration) -> String {
        let worst_first = self.verdicts.iter().rev();
        let words: Vec<String> = worst_first.map(|(verdict, count)| format!("{count} {verdict}")).collect();
        let verdicts = if words.is_empty() { String::new() } else { format!(": {}", words.join(", ")) };
        let left = self.left(now).map(|left| format!("; about {} left", time(left))).unwrap_or_default();
        format!("{}/{} trials{verdicts}{left}", self.done, self.planned.max(self.done))
    }

    /// From when on a trial is named as one that still runs.
    fn slow(&self) -> Duration {
        SLOW.max(self.slowest_fault_free * SLOW_TIMES)
    }

    /// The lines that a log gets now.
    pub(super) fn lines(&mut self, now: Duration) -> Vec<String> {
        let slow = self.slow();
        let mut lines = Vec::new();
        for trial in &self.running {
            let named = self.named.entry(trial.place).or_default();
            if trial.elapsed >= slow * (*named + 1) {
                *named =
                    u32::try_from(trial.elapsed.as_millis() / slow.as_millis().max(1)).unwrap_or(u32::MAX);
                lines.push(format!("still running: {}", under_way(trial)));
            }
        }
        let (last, before) = self.said;
        if self.done >= before + LINE_EVERY_TRIALS || (now >= last + LINE_EVERY && self.planned > 0) {
            self.said = (now, self.done);
            let current = self.running.iter().max_by_key(|trial| trial.elapsed);
            let current = current.map(|trial| format!("; now {}", label(&trial.plan))).unwrap_or_default();
            lines.push(self.summary(now) + &current);
        }
        lines
    }

    /// The lines of a terminal of this size, none longer than it is wide.
    pub(super) fn frame(&self, now: Duration, width: usize, height: usize) -> Vec<String> {
        // The last column stays free: some terminals break the line there.
        let width = width.saturating_sub(1).max(WIDTH_MIN);
        let mut lines = wrapped(&self.summary(now), width);
        let mut running: Vec<&Running> = self.running.iter().collect();
        running.sort_by_key(|trial| (std::cmp::Reverse(trial.elapsed), trial.place));
        let named = running.len().min(NAMED_MAX);
        // Room for the summary, the two lines that count the rest, and long texts.
        let rows_max = height.saturating_sub(named + 6).max(1);
        let (open, whole): (Vec<&Row>, Vec<&Row>) = self.rows.iter().partition(|row| !row.all_hold());
        let shown = &open[..open.len().min(rows_max)];
        let columns = shown.iter().map(|row| row.name.chars().count()).max().unwrap_or(0);
        let columns = columns.min(NAME_COLUMNS_MAX).min(width / 2);
        lines.extend(shown.iter().map(|row| row.drawn(columns, width)));
        for (count, one, many) in [
            (open.len() - shown.len(), "more boundary", "more boundaries"),
            (whole.len(), "boundary where all trials hold", "boundaries where all trials hold"),
        ] {
            if count > 0 {
                lines.push(format!("  and {count} {}", if count == 1 { one } else { many }));
            }
        }
        let slow = self.slow();
        for trial in running.iter().take(named) {
            if trial.elapsed >= slow {
                lines.extend(wrapped(&format!("still running: {}", under_way(trial)), width));
            } else {
                lines.push(format!("now: {}", in_short(trial)));
            }
        }
        if running.len() > named {
            lines.push(format!("and {} more under way", running.len() - named));
        }
        lines.iter().map(|line| cut(line, width)).collect()
    }
}

impl Row {
    fn all_hold(&self) -> bool {
        self.cells.iter().all(|cell| *cell == Cell::Done(Some(Verdict::Holds)))
    }

    fn drawn(&self, columns: usize, width: usize) -> String {
        let name = cut(&self.name, columns);
        let cells: String = self.cells.iter().map(|cell| cell.symbol()).collect();
        if columns + 4 + self.cells.len() <= width {
            return format!("  {name:<columns$}  {cells}");
        }
        let mut counts: BTreeMap<char, usize> = BTreeMap::new();
        for cell in &self.cells {
            *counts.entry(cell.symbol()).or_default() += 1;
        }
        let counts: Vec<String> =
            counts.into_iter().map(|(symbol, count)| format!("{count} {symbol}")).collect();
        format!("  {name:<columns$}  {}", counts.join(" "))
    }
}

fn in_short(trial: &Running) -> String {
    format!("{}, {}", label(&trial.plan), time(trial.elapsed))
}

/// `provider:committed#1 × ok, 34 s of at most 60 s, waiting for the worker to exit`.
fn under_way(trial: &Running) -> String {
    let at_most = trial.at_most.map(|most| format!(" of at most {}", time(most))).unwrap_or_default();
    let waits = if trial.waits_for.is_empty() {
        String::new()
    } else {
        format!(", waiting for {}", clean(&trial.waits_for))
    };
    format!("{}{at_most}{waits}", in_short(trial))
}

/// `34 s`, `2 min 5 s`, `3 h 0 min`.
fn time(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7200 => format!("{} min {} s", seconds / 60, seconds % 60),
        seconds => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// A text in lines of so many columns; all but the first are indented.
fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.last_mut().filter(|line| {
            line.trim().is_empty() || line.chars().count() + 1 + word.chars().count() <= columns
        });
        match last {
            Some(line) if line.trim().is_empty() => line.push_str(word),
            Some(line) => {
                line.push(' ');
                line.push_str(word);
            }
            None => lines.push(format!("  {word}")),
        }
    }
    lines
}

fn cut(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.to_owned();
    }
    let kept: String = text.chars().take(columns.saturating_sub(1)).collect();
    kept + "…"
}

#[cfg(test)]
mod tests {
    use super::*;
    use killpoint::model::Fault;
    use killpoint::model::plan::FaultAt;
    use killpoint::model::provider::Counters;
    use killpoint::model::verdict::{TrialEvidence, TrialVerdict};

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn kill(at: &str) -> Plan {
        let at: killpoint::model::HitName = at.parse().unwrap();
        Plan {
            name: format!("kill at {at}"),
            provider_plan: "ok".into(),
            faults: vec![FaultAt { at, fault: Fault::named("kill") }],
            ..Plan::default()
        }
    }

    fn alone(provider_plan: &str) -> Plan {
        Plan { provider_plan: provider_plan.into(), ..Plan::default() }
    }

    fn ended(place: usize, role: TrialRole, verdict: Option<Verdict>, took: Duration) -> TrialRecord {
        TrialRecord {
            folder: format!("{place:04}-a-trial"),
            role,
            plan: Plan::default(),
            repetition: 1,
            verdict: verdict.map(|verdict| TrialVerdict {
                verdict,
                evidence: TrialEvidence::default(),
                outcomes: Vec::new(),
                actions: Vec::new(),
                counters: Counters::default(),
            }),
            replay: String::new(),
            duration_ms: took.as_millis() as u64,
            drawn: false,
            shard: None,
            source: None,
        }
    }

    fn under_way_at(place: usize, plan: Plan, elapsed: Duration) -> Running {
        Running { place, plan, elapsed, at_most: Some(seconds(60)), waits_for: "the worker to exit".into() }
    }

    /// A run in its middle: two fault-free trials, six others of which four ended.
    fn middle() -> State {
        let mut state = State::default();
        state.planned(2);
        let baselines = [alone("ok"), alone("ok")];
        state.scheduled(baselines.iter().enumerate(), seconds(0));
        state.finished(&ended(0, TrialRole::Baseline, Some(Verdict::Holds), seconds(1)));
        state.finished(&ended(1, TrialRole::BaselineAgain, Some(Verdict::Holds), seconds(1)));
        let plans = [
            kill("provider:received#1"),
            kill("provider:received#2"),
            kill("provider:committed#1"),
            kill("mark:a-very-long-name-that-somebody-gave-a-mark#1"),
            alone("drop-after-accept"),
            alone("timeout-after-accept"),
        ];
        state.planned(8);
        state.scheduled(plans.iter().enumerate().map(|(index, plan)| (index + 2, plan)), seconds(2));
        for (place, verdict) in
            [(2, Verdict::Holds), (3, Verdict::Vacuous), (4, Verdict::Violated), (6, Verdict::Inconclusive)]
        {
            state.finished(&ended(place, TrialRole::Faulted, Some(verdict), seconds(1)));
        }
        state.running(&[
            under_way_at(5, plans[3].clone(), seconds(3)),
            under_way_at(7, plans[5].clone(), seconds(34)),
        ]);
        state
    }

    #[test]
    fn a_frame_shows_each_boundary_what_runs_and_how_long_the_rest_takes() {
        insta::assert_snapshot!(middle().frame(seconds(42), 100, 24).join("\n"));
    }

    #[test]
    fn a_frame_fits_any_terminal() {
        for (width, height) in [(0, 0), (10, 3), (40, 10), (80, 24), (500, 200)] {
            let frame = middle().frame(seconds(42), width, height);
            let widest = frame.iter().map(|line| line.chars().count()).max().unwrap();
            assert!(widest <= width.max(WIDTH_MIN + 1), "{width}: {frame:?}");
        }
        insta::assert_snapshot!(middle().frame(seconds(42), 40, 24).join("\n"));
    }

    #[test]
    fn many_trials_at_one_boundary_are_counted() {
        let mut state = State::default();
        let plan = kill("provider:committed#1");
        state.scheduled((0..500).map(|place| (place, &plan)), seconds(0));
        state.finished(&ended(7, TrialRole::Faulted, Some(Verdict::Holds), seconds(1)));
        let frame = state.frame(seconds(1), 40, 24);
        assert!(frame.contains(&"  provider:committed  499 · 1 ✓".to_owned()), "{frame:?}");
    }

    #[test]
    fn a_trial_that_hangs_is_named_while_it_does_and_again_and_again() {
        let mut state = middle();
        state.said = (seconds(42), 6);
        let lines = |state: &mut State, elapsed: u64| {
            state.running(&[under_way_at(7, alone("timeout-after-accept"), seconds(elapsed))]);
            state.lines(seconds(43))
        };
        assert_eq!(lines(&mut state, 9), Vec::<String>::new());
        assert_eq!(
            lines(&mut state, 10),
            [
                "still running: no fault × timeout-after-accept, 10 s of at most 60 s, waiting for the worker to exit"
            ]
        );
        assert_eq!(lines(&mut state, 11), Vec::<String>::new(), "it was named");
        assert_eq!(lines(&mut state, 34).len(), 1);
        assert_eq!(lines(&mut state, 39), Vec::<String>::new());
        assert_eq!(lines(&mut state, 40).len(), 1);
    }

    #[test]
    fn what_a_slow_worker_always_takes_is_not_slow() {
        let mut state = State::default();
        state.finished(&ended(0, TrialRole::Baseline, Some(Verdict::Holds), seconds(20)));
        state.running(&[under_way_at(1, alone("ok"), seconds(59))]);
        assert_eq!(state.lines(seconds(1)), Vec::<String>::new());
        state.running(&[under_way_at(1, alone("ok"), seconds(60))]);
        assert_eq!(state.lines(seconds(1)).len(), 1);
    }

    #[test]
    fn a_log_gets_a_line_after_many_trials_or_a_long_time() {
        let mut state = State::default();
        let plans = vec![kill("provider:committed#1"); 60];
        state.planned(60);
        state.scheduled(plans.iter().enumerate(), seconds(0));
        state.running(&[under_way_at(59, kill("provider:committed#1"), seconds(1))]);
        let mut said = Vec::new();
        for place in 0..50 {
            state.finished(&ended(place, TrialRole::Faulted, Some(Verdict::Holds), seconds(1)));
            said.extend(state.lines(seconds(10)));
        }
        assert_eq!(
            said,
            [
                "25/60 trials: 25 holds; about 14 s left; now provider:committed#1 × ok",
                "50/60 trials: 50 holds; about 2 s left; now provider:committed#1 × ok",
            ]
        );
        assert_eq!(state.lines(seconds(39)), Vec::<String>::new());
        assert_eq!(state.lines(seconds(40)).len(), 1);
    }

    #[test]
    fn times_read_well() {
        let texts = [0, 119, 120, 7199, 7200].map(|time| super::time(seconds(time)));
        assert_eq!(texts, ["0 s", "119 s", "2 min 0 s", "119 min 59 s", "2 h 0 min"]);
    }
}
