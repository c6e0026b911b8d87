//! The scenarios that come with killpoint.

/// One scenario file of the library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LibraryScenario {
    /// Its name: the file's without `.toml`.
    pub name: &'static str,
    /// The file's text.
    pub text: &'static str,
}

macro_rules! library {
    ($($name:literal),+ $(,)?) => {
        /// Every scenario of the library, in the order in which `list` shows them.
        pub static LIBRARY: &[LibraryScenario] = &[$(LibraryScenario {
            name: $name,
            text: include_str!(concat!("../library/", $name, ".toml")),
        }),+];
    };
}

library![
    "deploy-42-notify-drop-after-accept",
    "deploy-42-notify-drop-before-accept",
    "jobs-after-result-committed",
    "jobs-before-delivery",
    "jobs-after-delivery-before-sent",
    "jobs-during-delivery-timeout",
    "run-before-result-committed",
    "run-after-result-before-item",
    "run-after-item-before-claim",
    "run-after-acceptance-before-ack",
    "run-after-ack-before-cleanup",
    "run-two-workers-one-item",
    "recipients-recomputed",
    "late-accept",
    "lookup-lags",
    "three-crashes-in-a-row",
    "reset-after-accept",
    "cut-body-after-accept",
    "server-error-after-accept",
    "rejected",
];
