//! What can be told from a project's files. A detector is one file in this folder plus one line in [`DETECTORS`].
//!
//! Detectors note facts with their places and decide nothing: [`propose`](super::propose()) weighs them.

mod manifests;
mod requests;
mod rhythm;
mod scripts;
mod states;
mod stores;
mod tables;
mod variables;
mod words;

use super::finding::Findings;
use super::project::Project;

pub(super) use scripts::start;

/// One way to look at a project.
#[derive(Debug)]
pub struct Detector {
    /// Unique kebab-case name.
    pub name: &'static str,
    /// What it looks for, one line without a full stop.
    pub summary: &'static str,
    look: fn(&Project, &mut Findings),
}

/// Every detector, in the order in which they look.
pub static DETECTORS: &[Detector] = &[
    manifests::DETECTOR,
    scripts::DETECTOR,
    words::DETECTOR,
    variables::DETECTOR,
    stores::DETECTOR,
    tables::DETECTOR,
    states::DETECTOR,
    requests::DETECTOR,
    rhythm::DETECTOR,
];

/// Lets every detector look.
pub fn find(project: &Project) -> Findings {
    let mut findings = Findings::default();
    for detector in DETECTORS {
        (detector.look)(project, &mut findings);
    }
    findings
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::pattern::Pattern;
    use super::*;

    #[test]
    fn the_slice_is_well_formed_and_every_pattern_compiles() {
        let names: BTreeSet<&str> = DETECTORS.iter().map(|detector| detector.name).collect();
        assert_eq!(names.len(), DETECTORS.len());
        assert!(DETECTORS.iter().all(|one| !one.summary.is_empty() && !one.summary.ends_with('.')));
        let patterns = [
            words::patterns(),
            variables::patterns(),
            stores::patterns(),
            tables::patterns(),
            states::patterns(),
            requests::patterns(),
            rhythm::patterns(),
        ];
        for text in patterns.concat() {
            assert!(Pattern::compiles(text), "{text}");
        }
    }
}
