//! The worker's decisions, in one place: the default is right, and each seeded bug changes one.

/// What the worker does where the outcome of an attempt is unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Doubt {
    /// Right: the row says `unknown`, and the provider is asked.
    #[default]
    Explicit,
    /// It is taken for a success.
    TakenAsDelivered,
    /// It is taken for a failure.
    TakenAsFailed,
    /// The row goes back to `pending` with no next attempt.
    PostponedForever,
}

/// When the claim of another owner counts as ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Recovery {
    /// Right: when it was seen unchanged for as long as it lasts, whatever anybody's wall clock says.
    #[default]
    Observed,
    /// When its end lies before this worker's wall clock.
    ByWallClock,
    /// Only if that is so at the worker's start; later nobody looks.
    AtStartOnly,
    /// Never.
    Never,
}

/// The worker's decisions.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Policy {
    /// What an unknown outcome becomes.
    pub(crate) doubt: Doubt,
    /// When an item is taken over from its owner.
    pub(crate) recovery: Recovery,
    /// An item that may have been accepted is sent again without asking the provider.
    pub(crate) resend_without_lookup: bool,
    /// The first lookup that finds nothing is believed.
    pub(crate) trust_first_lookup: bool,
    /// Where the provider dedupes it is never asked, however old the key is.
    pub(crate) trust_key_for_ever: bool,
    /// The client sends a request again by itself when no answer comes.
    pub(crate) retry_in_client: bool,
    /// Each time that an item is taken up it gets a new key.
    pub(crate) key_per_attempt: bool,
    /// The request's body is made when it is sent, not when the item is committed.
    pub(crate) render_at_send: bool,
    /// `delivered` is written before the request is sent.
    pub(crate) confirm_before_send: bool,
    /// Intent and key are written only after the request was sent.
    pub(crate) intent_after_send: bool,
    /// An item counts as delivered as soon as its execution is done.
    pub(crate) done_with_execution: bool,
    /// Two workers that saw the same free item both get it.
    pub(crate) claim_unconditionally: bool,
    /// A takeover does not compare what it read with what is there now.
    pub(crate) take_over_unconditionally: bool,
    /// A claim lasts less long than the request under it, and an item whose claim has ended counts as new.
    pub(crate) lease_too_short: bool,
    /// An owner that lost its claim sends and writes all the same.
    pub(crate) unfenced: bool,
    /// A start takes everything that is in flight for its own.
    pub(crate) steal_at_start: bool,
    /// Each claim counts as an attempt, and the row fails when the count is reached.
    pub(crate) claims_count: bool,
    /// Error answers are retried at once and almost without end.
    pub(crate) retry_hot: bool,
    /// Refusals are retried like anything else.
    pub(crate) retry_refused: bool,
    /// The time that the provider asks for is not waited.
    pub(crate) ignore_retry_after: bool,
    /// One destination that is refused or postponed makes the whole run due again.
    pub(crate) retry_whole_run: bool,
    /// When the outcome can't be written, the request is sent again.
    pub(crate) resend_unwritten: bool,
    /// SIGTERM cuts the request in flight, and its item goes back as if it had never been sent.
    pub(crate) stop_requeues: bool,
    /// Items are never sent at all.
    pub(crate) skip_delivery: bool,
    /// A worker that is to run for ever only looks alive.
    pub(crate) idle_for_ever: bool,
    /// Result and items are two commits.
    pub(crate) commit_apart: bool,
    /// Starts of an execution are not counted.
    pub(crate) starts_uncounted: bool,
    /// What has been due for long is passed over.
    pub(crate) forget_missed: bool,
    /// Each start registers the schedule anew, from its first occurrence.
    pub(crate) reregister_schedules: bool,
    /// The feed's cursor is moved before the items are in the ledger.
    pub(crate) cursor_first: bool,
    /// The producer enqueues outside its transaction.
    pub(crate) enqueue_outside: bool,
    /// Commits are not flushed to the disk.
    pub(crate) no_flush: bool,
    /// A ledger that was copied or restored is trusted to be up to date.
    pub(crate) trust_copies: bool,
    /// Every outcome that is no refusal counts as an acceptance.
    pub(crate) fold_counters: bool,
    /// Errors are kept with the request's headers.
    pub(crate) keep_headers: bool,
    /// Cleanup deletes delivery rows, not only their queue entries.
    pub(crate) cleanup_deletes_ledger: bool,
    /// A restart resolves the destinations of unfinished runs again.
    pub(crate) recompute_recipients: bool,
    /// A restart executes runs again of which only the delivery is owed.
    pub(crate) re_execute: bool,
    /// A restart builds a second item for each unfinished delivery.
    pub(crate) rebuild_items: bool,
    /// A restart makes failed items pending again.
    pub(crate) reopen_failed: bool,
}
