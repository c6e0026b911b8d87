//! A diagnosis for a person.

use super::{Diagnosis, Kind, LeftOut, Reach, State};
use crate::layout::Page;

/// The diagnosis as text for a terminal of so many columns.
pub fn show(diagnosis: &Diagnosis, width: usize) -> String {
    let mut page = Page::new(width);
    page.heading("This machine:");
    for tried in &diagnosis.machine {
        page.put(2, &format!("{} {}: {}", mark(tried.state), tried.name, tried.said));
        if let Some(to_do) = tried.to_do.as_ref().filter(|_| tried.state != State::Works) {
            page.put(6, to_do);
        }
    }
    match &diagnosis.config {
        Some(file) => page.heading(&format!("What {file} reaches:")),
        None => page.heading("No configuration was read: `killpoint init` proposes one."),
    }
    for reached in &diagnosis.reached {
        page.put(2, &format!("{} {}: {}", reach_mark(reached.state), reached.name, reached.said));
        if let Some(to_do) = &reached.to_do {
            page.put(6, to_do);
        }
    }
    left_out(&mut page, &diagnosis.left_out);
    page.heading(last_line(diagnosis));
    page.text()
}

/// A word for each state, all of one width: nothing is said by colour.
const fn mark(state: State) -> &'static str {
    match state {
        State::Works => "[works]  ",
        State::Limited => "[limited]",
        State::Missing => "[missing]",
        State::NotUsed => "[unused] ",
    }
}

const fn reach_mark(state: Reach) -> &'static str {
    match state {
        Reach::Configured => "[set]    ",
        Reach::Absent => "[absent] ",
        Reach::Broken => "[broken] ",
    }
}

/// Things with the same reason and the same remedy are named together.
fn left_out(page: &mut Page, all: &[LeftOut]) {
    let kinds = [
        (Kind::Fault, "Faults that nothing stages:"),
        (Kind::Scenario, "Scenarios that can't be staged:"),
        (Kind::Invariant, "Invariants with nothing to look at:"),
        (Kind::Checklist, "Lines of the checklists that can't be shown:"),
    ];
    for (kind, heading) in kinds {
        let mut groups: Vec<(Vec<&str>, &LeftOut)> = Vec::new();
        for one in all.iter().filter(|one| one.kind == kind) {
            let same = |known: &&mut (Vec<&str>, &LeftOut)| {
                short(known.1) == short(one) && known.1.to_do == one.to_do
            };
            match groups.iter_mut().find(same) {
                Some((names, _)) => names.push(&one.name),
                None => groups.push((vec![&one.name], one)),
            }
        }
        if !groups.is_empty() {
            page.heading(heading);
        }
        for (names, one) in groups {
            page.put(2, &format!("{}: {}", names.join(", "), short(one)));
            page.put(6, &one.to_do);
        }
    }
}

/// Why, without the name of the scenario that lacks it, which stands before it.
fn short(one: &LeftOut) -> &str {
    let prefix = format!("`{}` needs what is not configured: ", one.name);
    one.why.strip_prefix(&prefix).unwrap_or(&one.why)
}

fn last_line(diagnosis: &Diagnosis) -> &'static str {
    let machine = diagnosis.machine.iter().any(|tried| tried.vital && tried.state == State::Missing);
    match (diagnosis.can_run, machine) {
        (true, _) => "The gate can run.",
        (false, true) => "No trial can run on this machine.",
        (false, false) => "The gate can't run: a command of the configuration is broken.",
    }
}

#[cfg(test)]
mod tests {
    use super::super::{DOCTOR_VERSION, Reached, Tried};
    use super::*;

    fn diagnosis() -> Diagnosis {
        let tried = |name, state, vital, said: &str, to_do: Option<&str>| Tried {
            name,
            summary: "what it is for",
            state,
            vital,
            said: said.into(),
            to_do: to_do.map(str::to_owned),
            faults: &[],
        };
        let left = |kind, name: &str, why: &str| LeftOut {
            kind,
            name: name.into(),
            why: why.into(),
            to_do: "add `[metrics]`".into(),
        };
        Diagnosis {
            format: "killpoint-doctor",
            version: DOCTOR_VERSION,
            can_run: true,
            machine: vec![
                tried("loopback", State::Works, true, "a byte went through 127.0.0.1", None),
                tried(
                    "worker-clock",
                    State::Missing,
                    false,
                    "tracing a process: EPERM",
                    Some("allow ptrace"),
                ),
            ],
            config: Some("killpoint.toml".into()),
            reached: vec![Reached {
                name: "metrics",
                state: Reach::Absent,
                vital: false,
                said: "not configured".into(),
                to_do: Some("write `[metrics]`".into()),
            }],
            left_out: vec![
                left(Kind::Scenario, "one", "`one` needs what is not configured: the worker's own metrics"),
                left(Kind::Scenario, "two", "`two` needs what is not configured: the worker's own metrics"),
            ],
        }
    }

    #[test]
    fn a_page_of_forty_columns() {
        let expected = "\
This machine:
  [works] loopback: a byte went through
    127.0.0.1
  [missing] worker-clock: tracing a
    process: EPERM
      allow ptrace

What killpoint.toml reaches:
  [absent] metrics: not configured
      write `[metrics]`

Scenarios that can't be staged:
  one, two: the worker's own metrics
      add `[metrics]`

The gate can run.";
        assert_eq!(show(&diagnosis(), 40), expected);
    }

    #[test]
    fn the_json_form_is_versioned() {
        let json = serde_json::to_value(diagnosis()).unwrap();
        assert_eq!((json["format"].as_str(), json["version"].as_u64()), (Some("killpoint-doctor"), Some(1)));
        assert_eq!(json["machine"][1]["state"], "missing");
        assert_eq!(json["left_out"][0]["kind"], "scenario");
    }
}
