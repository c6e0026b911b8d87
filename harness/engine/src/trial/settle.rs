//! When a trial is at rest. Pure: facts in, answer out, so that it is tested without processes.

use std::time::Duration;

use killpoint_model::event::SettledBy;
use killpoint_model::ledger::LedgerView;
use killpoint_model::settings::{Lifecycle, SettleBy, SettleSettings};

/// A query's answer must stand this long, or the whole quiet time where that is shorter.
const QUERY_WINDOW: Duration = Duration::from_millis(300);

/// How many quiet times must pass while something is known to be still to come: silence may be a retry's
/// waiting time or a busy machine, and only then is it the worker's last word.
const PATIENCE: u32 = 4;

/// What is known about a trial at one moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rest<'a> {
    pub(super) settings: &'a SettleSettings,
    /// Every worker that was started ended by itself and needs no more starts.
    pub(super) all_done: bool,
    /// A worker is dead and about to be started again.
    pub(super) restart_due: bool,
    /// Exchanges are under way, or commits are still to land.
    pub(super) provider_busy: bool,
    /// A fault of the plan has not come yet, though the baseline reached its place.
    pub(super) plan_pending: bool,
    /// Time since anything happened.
    pub(super) idle: Duration,
    /// The least that counts as quiet, because the life that runs may still be starting up.
    pub(super) start_up: Duration,
    pub(super) view: &'a LedgerView,
    pub(super) settle_value: Option<&'a str>,
}

impl Rest<'_> {
    /// How the trial came to rest, if it did.
    pub(super) fn settled(&self) -> Option<SettledBy> {
        if self.provider_busy {
            return None;
        }
        if self.all_done {
            return Some(SettledBy::Exit);
        }
        if self.restart_due {
            return None;
        }
        let quiet = Duration::from_millis(self.settings.quiet_ms);
        match self.settings.by {
            SettleBy::Exit => None,
            SettleBy::Quiet => {
                let owed = self.plan_pending || self.has_open_rows();
                let quiet = if owed { quiet * PATIENCE } else { quiet };
                (self.idle >= quiet.max(self.start_up)).then_some(SettledBy::Quiet)
            }
            SettleBy::Query => {
                (self.query_says_so() && self.idle >= quiet.min(QUERY_WINDOW)).then_some(SettledBy::Query)
            }
        }
    }

    fn has_open_rows(&self) -> bool {
        self.view.rows.iter().flatten().any(|row| !row.state.is_terminal())
    }

    fn query_says_so(&self) -> bool {
        match (self.settings.query.is_some(), self.settle_value, &self.view.rows) {
            (true, value, _) => value.is_some_and(|value| value == "0" || value.is_empty()),
            (false, _, Some(rows)) => !rows.is_empty() && rows.iter().all(|row| row.state.is_terminal()),
            (false, _, None) => false,
        }
    }
}

/// What follows from a worker's own exit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AfterExit {
    /// It has done what it had to.
    Done,
    /// A scheduler would start it again; that is its way of working.
    Again,
    /// A service manager would start it again; it should not have ended.
    Restart,
    /// The tree goes on without its first process.
    Nothing,
}

/// Decides by the worker's lifecycle what its own exit means.
pub(super) fn after_exit(
    lifecycle: Lifecycle,
    settle: SettleBy,
    again: &[i32],
    code: Option<i32>,
    tree_is_empty: bool,
) -> AfterExit {
    let asked_again = code.is_some_and(|code| again.contains(&code));
    match lifecycle {
        Lifecycle::Drains if code == Some(0) => AfterExit::Done,
        Lifecycle::OneShot if asked_again => AfterExit::Again,
        Lifecycle::OneShot if code == Some(0) && settle == SettleBy::Exit => AfterExit::Done,
        Lifecycle::OneShot if code == Some(0) => AfterExit::Again,
        Lifecycle::Daemonises if !tree_is_empty => AfterExit::Nothing,
        Lifecycle::Drains | Lifecycle::OneShot | Lifecycle::RunsForever | Lifecycle::Daemonises => {
            AfterExit::Restart
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use killpoint_model::{LedgerRow, RowState};

    fn settings(by: SettleBy) -> SettleSettings {
        SettleSettings { by, quiet_ms: 1000, query: None, deadline_ms: 30_000 }
    }

    fn view_of(state: RowState) -> LedgerView {
        let rows = Some(vec![LedgerRow::new("a", state)]);
        LedgerView { exact: true, rows, values: std::collections::BTreeMap::new(), error: None }
    }

    #[test]
    fn an_exchange_under_way_is_never_rest() {
        let (settings, view) = (settings(SettleBy::Quiet), view_of(RowState::Confirmed));
        let rest = Rest {
            settings: &settings,
            all_done: false,
            restart_due: false,
            provider_busy: true,
            idle: Duration::from_secs(60),
            plan_pending: false,
            start_up: Duration::ZERO,
            view: &view,
            settle_value: None,
        };
        assert_eq!(rest.settled(), None);
        assert_eq!(Rest { provider_busy: false, ..rest }.settled(), Some(SettledBy::Quiet));
        let starting = Rest { provider_busy: false, start_up: Duration::from_secs(61), ..rest };
        assert_eq!(starting.settled(), None, "silence while a worker starts up is no rest");
        let short = Rest { provider_busy: false, idle: Duration::from_millis(1100), ..rest };
        assert_eq!(short.settled(), Some(SettledBy::Quiet));
        assert_eq!(Rest { plan_pending: true, ..short }.settled(), None);
        let open = view_of(RowState::Dispatching);
        assert_eq!(Rest { view: &open, ..short }.settled(), None, "work is owed");
        let late = Rest { view: &open, idle: Duration::from_secs(4), ..short };
        assert_eq!(late.settled(), Some(SettledBy::Quiet), "and nobody comes for it");
        assert_eq!(Rest { provider_busy: false, restart_due: true, ..rest }.settled(), None);
    }

    #[test]
    fn a_query_or_terminal_rows_settle() {
        let (settings, open, done) =
            (settings(SettleBy::Query), view_of(RowState::Created), view_of(RowState::Unknown));
        let rest = Rest {
            settings: &settings,
            all_done: false,
            restart_due: false,
            provider_busy: false,
            idle: Duration::from_millis(400),
            plan_pending: false,
            start_up: Duration::ZERO,
            view: &open,
            settle_value: None,
        };
        assert_eq!(rest.settled(), None);
        assert_eq!(Rest { view: &done, ..rest }.settled(), Some(SettledBy::Query));
        let with_query = SettleSettings { query: Some("select …".into()), ..settings.clone() };
        let rest = Rest { settings: &with_query, ..rest };
        assert_eq!(Rest { settle_value: Some("2"), ..rest }.settled(), None);
        assert_eq!(Rest { settle_value: Some("0"), ..rest }.settled(), Some(SettledBy::Query));
    }

    #[test]
    fn exits_mean_what_the_lifecycle_says() {
        let exit = |lifecycle, code| after_exit(lifecycle, SettleBy::Exit, &[75], code, true);
        assert_eq!(exit(Lifecycle::Drains, Some(0)), AfterExit::Done);
        assert_eq!(exit(Lifecycle::Drains, Some(1)), AfterExit::Restart);
        assert_eq!(exit(Lifecycle::Drains, None), AfterExit::Restart);
        assert_eq!(exit(Lifecycle::OneShot, Some(75)), AfterExit::Again);
        assert_eq!(exit(Lifecycle::OneShot, Some(0)), AfterExit::Done);
        assert_eq!(exit(Lifecycle::RunsForever, Some(0)), AfterExit::Restart);
        assert_eq!(
            after_exit(Lifecycle::Daemonises, SettleBy::Quiet, &[], Some(0), false),
            AfterExit::Nothing
        );
        assert_eq!(after_exit(Lifecycle::OneShot, SettleBy::Quiet, &[], Some(0), true), AfterExit::Again);
    }
}
