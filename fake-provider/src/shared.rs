//! What the tasks of one server share: the core behind a short lock, never held across a wait.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use killpoint_model::Clock;
use killpoint_model::plan::Reply;
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;

use crate::core::Core;
use crate::dialects::Dialect;
use crate::observer::Observer;
use crate::sightings::Lookout;

/// After this long a connection that was told to end is no longer waited for.
const ABANDON_LIMIT: Duration = Duration::from_secs(1);

/// Why a parked exchange is not released.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReleaseError {
    /// Nothing of that number is parked.
    #[error("attempt {0} is not parked; GET /v1/holds lists those that are")]
    NotParked(u32),
    /// `hang` or `hold`.
    #[error("`{0}` is no way to end a hold; one of: ok, status(CODE), fin, rst, cut(…)")]
    NoEnd(Reply),
}

/// Core, watchers and signals of one server.
pub(crate) struct Shared {
    core: Mutex<Core>,
    observer: Arc<dyn Observer>,
    clock: Arc<dyn Clock>,
    dialect: &'static dyn Dialect,
    hang_limit: Duration,
    lookout: Lookout,
    changed: watch::Sender<u64>,
    abandoned: watch::Sender<u64>,
    open: watch::Sender<usize>,
    parked: Mutex<BTreeMap<u32, oneshot::Sender<Reply>>>,
    barriers: Mutex<BTreeMap<SocketAddr, oneshot::Sender<()>>>,
}

/// Tells a connection that everything open at its time is to end; once told, it stays so.
pub(crate) struct Abandonment {
    epochs: watch::Receiver<u64>,
    born: u64,
}

impl Abandonment {
    /// Waits until it is so.
    pub(crate) async fn wait(&mut self) {
        let born = self.born;
        // An error means that the server itself is gone, which is an end as well.
        let _ = self.epochs.wait_for(|epoch| *epoch != born).await;
    }

    /// Whether it is so.
    pub(crate) fn has_come(&self) -> bool {
        *self.epochs.borrow() != self.born
    }
}

/// Counts a connection as open while it lives.
pub(crate) struct OpenGuard(Arc<Shared>);

impl Drop for OpenGuard {
    fn drop(&mut self) {
        self.0.open.send_modify(|open| *open -= 1);
    }
}

/// Keeps an attempt releasable while it lives.
pub(crate) struct ParkGuard<'a>(&'a Shared, u32);

impl Drop for ParkGuard<'_> {
    fn drop(&mut self) {
        lock(&self.0.parked).remove(&self.1);
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("dialect", &self.dialect).finish_non_exhaustive()
    }
}

impl Shared {
    pub(crate) fn new(
        core: Core,
        observer: Arc<dyn Observer>,
        clock: Arc<dyn Clock>,
        dialect: &'static dyn Dialect,
        lookout: Lookout,
    ) -> Self {
        Self {
            hang_limit: Duration::from_millis(core.settings().hang_ms),
            core: Mutex::new(core),
            observer,
            clock,
            dialect,
            lookout,
            changed: watch::Sender::new(0),
            abandoned: watch::Sender::new(0),
            open: watch::Sender::new(0),
            parked: Mutex::default(),
            barriers: Mutex::default(),
        }
    }

    pub(crate) fn dialect(&self) -> &'static dyn Dialect {
        self.dialect
    }

    /// How long a hang lasts where nothing else ends it.
    pub(crate) fn hang_limit(&self) -> Duration {
        self.hang_limit
    }

    /// Who looks for planted credentials.
    pub(crate) fn lookout(&self) -> &Lookout {
        &self.lookout
    }

    pub(crate) fn observer(&self) -> &dyn Observer {
        &*self.observer
    }

    /// Changes the core: does what is due first, then `act`, and records every new event before anything
    /// else can follow from it.
    pub(crate) fn step<T>(&self, act: impl FnOnce(&mut Core, u64) -> T) -> T {
        let mut core = lock(&self.core);
        let now_ms = self.now_ms(&core);
        let known = core.log().len();
        core.land_due(now_ms);
        let result = act(&mut core, now_ms);
        for event in core.log().get(known..).unwrap_or_default() {
            self.observer.record(event);
        }
        drop(core);
        self.changed.send_modify(|count| *count = count.wrapping_add(1));
        result
    }

    /// Looks at the core; what is due but not done yet does not show.
    pub(crate) fn look<T>(&self, see: impl FnOnce(&Core, u64) -> T) -> T {
        let core = lock(&self.core);
        let now_ms = self.now_ms(&core);
        see(&core, now_ms)
    }

    fn now_ms(&self, core: &Core) -> u64 {
        self.clock.now_ms().saturating_add(core.state().stepped_ms)
    }

    pub(crate) fn step_clock(&self, by: Duration) {
        self.step(|core, _| core.step_clock(by.as_millis() as u64));
        // What became due is done before anybody looks.
        self.step(|_, _| ());
    }

    pub(crate) async fn reset(&self) {
        self.abandon_all().await;
        self.step(|core, _| core.reset());
    }

    /// Tells when the core was changed.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Does what is due, when it is due; runs until it is aborted.
    pub(crate) async fn keep_time(&self) {
        let mut news = self.changes();
        loop {
            news.borrow_and_update();
            let due_in = self.look(|core, now_ms| core.next_due().map(|at_ms| at_ms.saturating_sub(now_ms)));
            let changed = match due_in {
                Some(0) => {
                    self.step(|_, _| ());
                    continue;
                }
                Some(ms) => timeout(Duration::from_millis(ms), news.changed()).await.unwrap_or(Ok(())),
                None => news.changed().await,
            };
            if changed.is_err() {
                return;
            }
        }
    }

    pub(crate) fn open_connection(self: &Arc<Self>) -> OpenGuard {
        self.open.send_modify(|open| *open += 1);
        OpenGuard(Arc::clone(self))
    }

    pub(crate) fn open_connections(&self) -> usize {
        *self.open.borrow()
    }

    /// Waits until no connection is open.
    pub(crate) async fn no_connection(&self) {
        // The sender lives in `self`, so the wait can't fail.
        let _ = self.open.subscribe().wait_for(|open| *open == 0).await;
    }

    /// Tells a connection when it is to end.
    pub(crate) fn abandonment(&self) -> Abandonment {
        let epochs = self.abandoned.subscribe();
        let born = *epochs.borrow();
        Abandonment { epochs, born }
    }

    /// Ends every connection that is open now.
    pub(crate) async fn abandon_all(&self) {
        self.abandoned.send_modify(|epoch| *epoch += 1);
        let _ = timeout(ABANDON_LIMIT, self.no_connection()).await;
    }

    /// Makes an attempt releasable until the guard is dropped.
    pub(crate) fn park(&self, attempt: u32) -> (ParkGuard<'_>, oneshot::Receiver<Reply>) {
        let (sender, receiver) = oneshot::channel();
        lock(&self.parked).insert(attempt, sender);
        (ParkGuard(self, attempt), receiver)
    }

    pub(crate) fn parked(&self) -> Vec<u32> {
        lock(&self.parked).keys().copied().collect()
    }

    pub(crate) fn release(&self, attempt: u32, how: Reply) -> Result<(), ReleaseError> {
        if matches!(how, Reply::Hang | Reply::Hold) {
            return Err(ReleaseError::NoEnd(how));
        }
        lock(&self.parked)
            .remove(&attempt)
            .and_then(|sender| sender.send(how).ok())
            .ok_or(ReleaseError::NotParked(attempt))
    }

    /// Expects a connection of our own from `address`, which proves that all earlier ones were accepted.
    pub(crate) fn expect_barrier(&self, address: SocketAddr) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        lock(&self.barriers).insert(address, sender);
        receiver
    }

    /// Whether a connection from `address` is a barrier, which is then passed.
    pub(crate) fn is_barrier(&self, address: SocketAddr) -> bool {
        let sender = lock(&self.barriers).remove(&address);
        // A waiter that gave up needs no answer.
        sender.map(|sender| sender.send(())).is_some()
    }

    pub(crate) fn forget_barrier(&self, address: SocketAddr) {
        lock(&self.barriers).remove(&address);
    }
}

/// The state behind the lock is changed by whole steps, so a panic elsewhere leaves it usable.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
