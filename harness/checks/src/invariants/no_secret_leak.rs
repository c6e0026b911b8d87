//! Credentials are where they belong and nowhere else.

use killpoint_model::Entry;
use killpoint_model::event::EventKind;

use super::{Invariant, Looked};
use crate::facts::Facts;

static ENTRY: Entry = Entry {
    name: "no-secret-leak",
    summary: "no planted credential is found outside the declared places",
    explanation: "\
A canary that was planted as a credential was found where it must not be: in a log line, in the error that is kept \
with a row, in a job's arguments, in a metric's label, in the environment of a child. Ledgers and logs are copied, \
shared and kept for years, so whoever reads them can send in the worker's name; and a backup that is restored elsewhere \
brings live credentials with it.

Right is a reference to a secret in the row, and errors without headers, addresses with user information, or \
environment. Places that may hold one are declared in `secrets.declared`. (K35 credential-leak; Your AI Agent \
Finished the Job, But the Message Never Sent: \"Logs include job ID and attempt, but never credentials\".)",
    example: "[secrets]\nenv = [\"PROVIDER_TOKEN\"]\ndeclared = [\"requests:header:authorization\"]",
};

/// See [`ENTRY`].
pub(crate) struct NoSecretLeak;

impl Invariant for NoSecretLeak {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn check(&self, facts: &Facts<'_>) -> Looked {
        let mut looked = Looked::new(
            &ENTRY,
            "no credential was planted, or nothing was scanned for one: name the worker's credentials in `secrets.env`",
        );
        for event in &facts.rare {
            let EventKind::Scanned { places, leaks } = &event.event else { continue };
            looked.look_at(*places);
            for leak in leaks {
                let message = format!("found in `{}`, which is no declared place", leak.place);
                looked.violation(format!("the credential {}", leak.canary), message, vec![event.seq]);
            }
        }
        looked
    }
}

#[cfg(test)]
mod tests {
    use killpoint_model::Settings;
    use killpoint_model::event::{EventKind, Leak};
    use killpoint_model::finding::InvariantStatus::{Holds, NotShown, Violated};

    use crate::sample::{Trial, plain_baseline, status};

    #[test]
    fn a_leak_is_a_leak_and_an_unscanned_trial_shows_nothing() {
        let leak = Leak { canary: "PROVIDER_TOKEN".into(), place: "outbox.db:outbox.last_error".into() };
        for (places, leaks, expected) in
            [(12, vec![leak.clone()], Violated), (12, Vec::new(), Holds), (0, Vec::new(), NotShown)]
        {
            let mut trial = Trial::new();
            trial.push(EventKind::Scanned { places, leaks });
            assert_eq!(status(&Settings::default(), &trial.end(), "no-secret-leak"), expected);
        }
        assert_eq!(status(&Settings::default(), &plain_baseline(), "no-secret-leak"), NotShown);
    }
}
