//! Another configuration for the next life.

use killpoint_model::Entry;

use super::{Applying, Fault, Landing, Parameters};
use crate::parameters::known_only;
use crate::trial::Trial;

/// The `change` fault.
#[derive(Debug)]
pub(super) struct Change;

static ENTRY: Entry = Entry {
    name: "change",
    summary: "kills the worker and starts it again with another environment",
    explanation: "A roster, a routing rule, an account or a worker id changes between the commit of an action and its delivery. \
        What was committed must be delivered as it was committed: to the same destinations, with the same bytes.",
    example: "[[fault]]\nat = \"provider:committed#1\"\ndo = \"change\"\nwith = { env = { ROSTER = \"new@example.com\" } }",
};

impl Fault for Change {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn check(&self, with: &Parameters) -> Result<(), String> {
        known_only(with, &["env"])?;
        match with.get("env").map(|env| env.as_object()) {
            None => Ok(()),
            Some(Some(env)) if env.values().all(serde_json::Value::is_string) => Ok(()),
            Some(_) => Err("`env`: a table of names and texts is needed".into()),
        }
    }

    fn apply<'t>(&'t self, trial: &'t mut Trial, worker: u32, with: &'t Parameters) -> Applying<'t> {
        Box::pin(async move {
            let env = with.get("env").and_then(serde_json::Value::as_object);
            for (name, value) in env.into_iter().flatten() {
                trial.change_env(name, value.as_str().unwrap_or_default());
            }
            let landed = trial.kill(worker).await?;
            Ok(Landing { landed, note: "killed; the next life has another environment".into() })
        })
    }
}
