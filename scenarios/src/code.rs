//! The codes of diagnostics, a closed list: tests show that each of them can be met.

macro_rules! codes {
    ($($(#[$meta:meta])* $variant:ident = $word:literal),+ $(,)?) => {
        /// What kind of problem a diagnostic of this crate is about.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Code { $($(#[$meta])* $variant),+ }

        impl Code {
            /// Every code, in declaration order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The stable kebab-case word that a diagnostic carries.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }
    };
}

codes! {
    /// The file is no TOML.
    Syntax = "syntax",
    /// A key that nobody reads.
    UnknownKey = "unknown-key",
    /// A key that must be there is not.
    MissingKey = "missing-key",
    /// A value of another type than is needed.
    WrongType = "wrong-type",
    /// A word that is not in a closed list.
    UnknownWord = "unknown-word",
    /// A text or a list that may not be empty is.
    EmptyValue = "empty-value",
    /// A text with characters that may not be there.
    BadText = "bad-text",
    /// A text that is no duration.
    BadDuration = "bad-duration",
    /// A number or a duration beyond its limits.
    OutOfRange = "out-of-range",
    /// A text that is no JSON pointer.
    BadPointer = "bad-pointer",
    /// A text that is no boundary, or a boundary that nobody knows.
    BadBoundary = "bad-boundary",
    /// A value that is no value of a provider plan's axis.
    BadPlan = "bad-plan",
    /// A name of an environment variable that can't be set.
    BadEnvironment = "bad-environment",
    /// A template that nobody fills in.
    UnknownTemplate = "unknown-template",
    /// Something that must be unique is there twice.
    Duplicate = "duplicate",
    /// Keys that exclude each other.
    Conflict = "conflict",
    /// A trial could never be at rest.
    NeverSettles = "never-settles",
    /// A scenario that does nothing.
    NothingInjected = "nothing-injected",
    /// A key that has no meaning beside the others (warning).
    UnusedKey = "unused-key",
    /// The ledger is not part of a trial's fresh state (warning).
    LedgerOutsideState = "ledger-outside-state",
    /// A command names a database file outside of a trial's state.
    StateOutside = "state-outside",
    /// Actions are handed over, and there are none (warning).
    NoActions = "no-actions",
    /// A scenario needs what is not configured (warning).
    NotConfigured = "not-configured",
    /// A boundary that was asked for and that the baseline did not reach (warning).
    BoundaryNotReached = "boundary-not-reached",
    /// A boundary that came only when no worker was alive (warning).
    BoundaryAfterExit = "boundary-after-exit",
    /// Hits beyond the limit per series (warning).
    HitsLeftOut = "hits-left-out",
}
