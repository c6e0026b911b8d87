//! The codes of diagnostics. Each crate has its own closed list, declared with [`diagnostic_codes!`]: what is in no
//! list can't be written down, and nothing is in a list without its explanation.
//!
//! [`diagnostic_codes!`]: crate::diagnostic_codes

use crate::catalog::Entry;

/// A code that a diagnostic can carry. Implemented by [`diagnostic_codes!`](crate::diagnostic_codes) alone.
pub trait DiagnosticCode: Copy {
    /// Its name, what it means, why it matters and what to do.
    fn entry(self) -> &'static Entry;
}

/// Declares a closed list of codes: an enum whose every variant has an [`Entry`]. A new code is
/// one more block:
///
/// ```
/// killpoint_model::diagnostic_codes! {
///     /// What can be wrong with a cake.
///     pub enum Code {
///         Burnt = "burnt" {
///             summary: "it was in the oven for too long",
///             explanation: "A cake that is black outside is bitter. Take it out sooner, or turn the oven down.",
///             example: "bake --minutes 40",
///         }
///     }
/// }
/// use killpoint_model::{Diagnostic, DiagnosticCode};
/// assert_eq!(Diagnostic::error(Code::Burnt, "the cake is black").code, "burnt");
/// assert_eq!(Code::ENTRIES.len(), 1);
/// assert_eq!(Code::Burnt.entry().example, "bake --minutes 40");
/// ```
#[macro_export]
macro_rules! diagnostic_codes {
    (
        $(#[$meta:meta])*
        $vis:vis enum $codes:ident {
            $($variant:ident = $name:literal {
                summary: $summary:literal,
                explanation: $explanation:literal,
                example: $example:literal $(,)?
            })+
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        $vis enum $codes {
            $(#[doc = $summary] $variant),+
        }

        impl $codes {
            /// Every code with what it means, in the order of their declaration.
            $vis const ENTRIES: &'static [$crate::Entry] = &[
                $($crate::Entry {
                    name: $name,
                    summary: $summary,
                    explanation: $explanation,
                    example: $example,
                }),+
            ];
        }

        impl $crate::DiagnosticCode for $codes {
            fn entry(self) -> &'static $crate::Entry {
                &Self::ENTRIES[self as usize]
            }
        }
    };
}
