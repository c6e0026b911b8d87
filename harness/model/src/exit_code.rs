//! Exit codes of the program `killpoint`: a documented public type.

use crate::verdict::Verdict;

/// What the process tells its caller. The numbers never change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitCode {
    /// 0: every check holds.
    Holds,
    /// 1: at least one violation, with evidence.
    Violated,
    /// 2: inconclusive or vacuous: nothing was proven.
    Unproven,
    /// 3: the configuration, a scenario or the command line is invalid.
    InvalidConfig,
    /// 4: set-up failed: the worker could not start, or the fault-free baseline fails.
    SetupFailed,
    /// 70: a bug in killpoint itself (`EX_SOFTWARE` of sysexits.h).
    Internal,
    /// 130: interrupted by Ctrl-C; what was recorded is kept.
    Interrupted,
}

impl ExitCode {
    /// Every code, in ascending order.
    pub const ALL: &'static [Self] = &[
        Self::Holds,
        Self::Violated,
        Self::Unproven,
        Self::InvalidConfig,
        Self::SetupFailed,
        Self::Internal,
        Self::Interrupted,
    ];

    /// The number given to the operating system.
    pub const fn code(self) -> u8 {
        match self {
            Self::Holds => 0,
            Self::Violated => 1,
            Self::Unproven => 2,
            Self::InvalidConfig => 3,
            Self::SetupFailed => 4,
            Self::Internal => 70,
            Self::Interrupted => 130,
        }
    }

    /// One line for help and documentation.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Holds => "every check holds",
            Self::Violated => "at least one violation, with evidence",
            Self::Unproven => "inconclusive or vacuous: nothing was proven",
            Self::InvalidConfig => "invalid configuration, scenario or command line",
            Self::SetupFailed => "set-up failed: the worker could not start, or the baseline fails",
            Self::Internal => "a bug in killpoint",
            Self::Interrupted => "interrupted; what was recorded is kept",
        }
    }
}

impl From<Verdict> for ExitCode {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Holds => Self::Holds,
            Verdict::Violated => Self::Violated,
            Verdict::Inconclusive | Verdict::Vacuous => Self::Unproven,
        }
    }
}
