//! A proposal for a person: what was assumed, where it was seen, and what is left to do.

use std::collections::BTreeSet;

use super::project::Project;
use super::propose::{Assumed, Proposal};
use crate::layout::Page;

/// The proposal as text for a terminal of so many columns.
pub fn show(project: &Project, proposal: &Proposal, width: usize) -> String {
    let mut page = Page::new(width);
    page.heading(&read_line(project));
    if !proposal.assumed.is_empty() {
        page.heading("Assumed:");
    }
    for assumed in &proposal.assumed {
        let section =
            if assumed.section.is_empty() { String::new() } else { format!("{}.", assumed.section) };
        page.put(2, &format!("{section}{} = {}", assumed.key, assumed.value));
        page.put(6, &source(assumed));
    }
    if !proposal.gaps.is_empty() {
        page.heading("Could not guess:");
    }
    for gap in &proposal.gaps {
        page.put(2, &format!("{}: {}", gap.what, gap.why));
        page.put(6, &gap.to_do);
    }
    if !project.left_out.is_empty() {
        page.heading("Not read:");
    }
    for line in &project.left_out {
        page.put(2, line);
    }
    page.text()
}

fn read_line(project: &Project) -> String {
    let languages: BTreeSet<&str> = project.sources().map(|(_, language)| language.as_str()).collect();
    let files = format!("{} files read", project.files.len());
    let languages = languages.into_iter().collect::<Vec<_>>().join(", ");
    let databases = match project.databases.len() {
        0 => String::new(),
        1 => ", 1 database".to_owned(),
        count => format!(", {count} databases"),
    };
    if languages.is_empty() {
        format!("{files}{databases}")
    } else {
        format!("{files} ({languages}){databases}")
    }
}

fn source(assumed: &Assumed) -> String {
    match &assumed.place {
        Some(place) => format!("{}, {place}: {}", assumed.sure, assumed.why),
        None => format!("{}: {}", assumed.sure, assumed.why),
    }
}
