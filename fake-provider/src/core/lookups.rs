//! Reads by which a worker reconciles: an effect is seen only from the time at which it is visible.

use killpoint_model::plan::ProviderPlan;
use killpoint_model::provider::{Effect, Lookup, ProviderEvent, Unanswered};
use serde_json::Value;

use super::Core;
use super::rules::Facts;

/// Effects that one listing gives at most.
pub const LIST_MAX: usize = 100;

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Query {
    /// One effect by the provider's id.
    Id(String),
    /// The effects that came with a key.
    Key(String),
    /// All effects in the order of their commits.
    List {
        /// How many at most; never more than [`LIST_MAX`].
        limit: usize,
        /// Only those after this id.
        after: Option<String>,
    },
}

impl Query {
    /// The operation's name in rules and events.
    pub fn operation(&self) -> &'static str {
        match self {
            Self::Id(_) => "get",
            Self::Key(_) => "lookup",
            Self::List { .. } => "list",
        }
    }

    fn subject(&self) -> &str {
        match self {
            Self::Id(subject) | Self::Key(subject) => subject,
            Self::List { .. } => "",
        }
    }
}

/// What a lookup found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Looked {
    /// Its number.
    pub lookup: u32,
    /// What happens to its answer; the commit axis does not apply.
    pub plan: ProviderPlan,
    /// What it may see.
    pub found: Vec<Effect>,
    /// Whether a listing was cut at its limit.
    pub has_more: bool,
    /// When it was evaluated, in milliseconds on the provider's clock.
    pub at_ms: u64,
}

impl Core {
    /// Evaluates a lookup and records it.
    pub fn look_up(
        &mut self,
        connection: u32,
        target: &str,
        headers: &[(String, String)],
        query: &Query,
        now_ms: u64,
    ) -> Looked {
        let (found, has_more) = self.find(query, now_ms);
        let id = self.state.next_lookup();
        let lookup = Lookup {
            id,
            connection,
            operation: query.operation().to_owned(),
            target: target.to_owned(),
            subject: query.subject().to_owned(),
            found: found.iter().map(|effect| effect.id.clone()).collect(),
            at_ms: now_ms,
        };
        let facts = Facts {
            dialect: self.settings.dialect.clone(),
            operation: lookup.operation.clone(),
            write: false,
            key: match query {
                Query::Key(key) => Some(key.clone()),
                Query::Id(_) | Query::List { .. } => None,
            },
            headers: headers.to_vec(),
            body: Value::Null,
        };
        self.append(ProviderEvent::LookedUp(lookup), Some(&facts));
        let plan = self.fire_rule(&facts, id, true).unwrap_or_default();
        Looked { lookup: id, plan, found, has_more, at_ms: now_ms }
    }

    fn find(&self, query: &Query, now_ms: u64) -> (Vec<Effect>, bool) {
        let seen = self
            .state
            .effects
            .iter()
            .filter(|effect| effect.visible_at_ms.is_some_and(|visible_at_ms| visible_at_ms <= now_ms));
        match query {
            Query::Id(id) => (seen.filter(|effect| effect.id == *id).cloned().collect(), false),
            Query::Key(key) => {
                let mut found: Vec<Effect> = seen
                    .filter(|effect| effect.key.as_ref() == Some(key))
                    .take(LIST_MAX + 1)
                    .cloned()
                    .collect();
                let has_more = found.len() > LIST_MAX;
                found.truncate(LIST_MAX);
                (found, has_more)
            }
            Query::List { limit, after } => {
                let limit = (*limit).min(LIST_MAX);
                let mut rest: Vec<&Effect> = seen.collect();
                if let Some(after) = after {
                    let start = rest.iter().position(|effect| effect.id == *after);
                    // An unknown cursor gives nothing: never a page that looks like the whole.
                    rest = start.map_or_else(Vec::new, |start| rest.split_off(start + 1));
                }
                (rest.iter().take(limit).map(|effect| (*effect).clone()).collect(), rest.len() > limit)
            }
        }
    }

    /// The whole answer to a lookup was written.
    pub fn lookup_replied(&mut self, lookup: u32, status: u16) {
        self.append(ProviderEvent::LookupReplied { lookup, status }, None);
    }

    /// A lookup ended without a whole answer.
    pub fn lookup_unanswered(&mut self, lookup: u32, how: Unanswered) {
        self.append(ProviderEvent::LookupUnanswered { lookup, how }, None);
    }
}
