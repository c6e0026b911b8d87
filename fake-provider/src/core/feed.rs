//! The inbound feed: items that a worker polls and acknowledges. Which of them a poll gives follows from the
//! log and the settings alone.

use std::collections::BTreeSet;

use killpoint_model::provider::ProviderEvent;
use killpoint_model::settings::InboundSettings;

use super::Core;

/// One item, as a poll gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedItem {
    /// Such as `in-1`.
    pub id: String,
    /// Where what follows from it goes.
    pub to: String,
    /// Its text.
    pub body: String,
}

/// What a poll gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedPage {
    /// In the order of the feed; what is given again comes first.
    pub items: Vec<FeedItem>,
    /// Where the next poll goes on. Never before the cursor that the poll came with.
    pub cursor: String,
}

/// What the log says about the feed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Feed {
    polls: u32,
    acknowledgements: u32,
    given: BTreeSet<String>,
    acknowledged: BTreeSet<String>,
    /// Ids that the last poll gave.
    last: Vec<String>,
}

impl Feed {
    pub(super) fn fed(&mut self, poll: u32, items: &[String]) {
        self.polls = self.polls.max(poll);
        self.given.extend(items.iter().cloned());
        self.last = items.to_vec();
    }

    pub(super) fn acknowledged(&mut self, items: &[String]) {
        self.acknowledgements += 1;
        self.acknowledged.extend(items.iter().cloned());
    }

    /// Numbers of the items that a poll gives: first those of a poll that is given again, whatever was
    /// acknowledged, then those after the cursor that nobody acknowledged.
    fn choose(&self, inbound: &InboundSettings, after: u32, limit: usize) -> Vec<u32> {
        let again = self.last.iter().filter(|_| inbound.redeliver.contains(&self.polls));
        let again: Vec<u32> = again.filter_map(|id| number(id)).collect();
        let open = (after.saturating_add(1)..=inbound.items)
            .filter(|number| !again.contains(number) && !self.acknowledged.contains(&id(*number)));
        again.iter().copied().chain(open).take(limit).collect()
    }
}

fn id(number: u32) -> String {
    format!("in-{number}")
}

fn number(id: &str) -> Option<u32> {
    id.strip_prefix("in-")?.parse().ok()
}

impl Core {
    /// Serves an inbound feed from now on, or none. What was polled before stays known.
    pub fn serve_feed(&mut self, inbound: Option<InboundSettings>) {
        self.inbound = inbound;
    }

    /// Whether there is a feed.
    pub fn has_feed(&self) -> bool {
        self.inbound.is_some()
    }

    /// Answers a poll; `limit` is what the worker asks for at most. A cursor that the feed did not give is
    /// one before its first item. A poll that gives nothing leaves no event and counts as none.
    pub fn poll_feed(&mut self, cursor: &str, limit: Option<usize>) -> FeedPage {
        let Some(inbound) = &self.inbound else {
            return FeedPage { items: Vec::new(), cursor: cursor.to_owned() };
        };
        let page = usize::try_from(inbound.page).unwrap_or(usize::MAX).max(1);
        let after = cursor.parse().unwrap_or(0).min(inbound.items);
        let numbers = self.state.feed.choose(inbound, after, limit.map_or(page, |limit| limit.min(page)));
        let next = numbers.iter().copied().max().unwrap_or(0).max(after);
        let ids: Vec<String> = numbers.iter().map(|number| id(*number)).collect();
        if !ids.is_empty() {
            let again = ids.iter().filter(|id| self.state.feed.given.contains(*id)).cloned().collect();
            let poll = self.state.feed.polls + 1;
            self.append(ProviderEvent::Fed { poll, cursor: cursor.to_owned(), items: ids, again }, None);
        }
        let item = |number: &u32| FeedItem {
            id: id(*number),
            to: format!("user{number}@example.com"),
            body: format!("inbound {number}"),
        };
        FeedPage { items: numbers.iter().map(item).collect(), cursor: next.to_string() }
    }

    /// Takes an acknowledgement. Ids that the feed does not have are passed over. Whether its answer is lost.
    pub fn acknowledge_feed(&mut self, ids: &[String]) -> bool {
        let Some(inbound) = &self.inbound else { return false };
        let known = |wanted: &&String| number(wanted).is_some_and(|it| (1..=inbound.items).contains(&it));
        let items = ids.iter().filter(known).cloned().collect();
        let answer_lost = inbound.lose_answer.contains(&(self.state.feed.acknowledgements + 1));
        self.append(ProviderEvent::FeedAcknowledged { items, answer_lost }, None);
        answer_lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use killpoint_model::settings::ProviderSettings;

    fn core(inbound: InboundSettings) -> Core {
        let mut core = Core::new(ProviderSettings::default(), Vec::new()).unwrap();
        core.serve_feed(Some(inbound));
        core
    }

    fn inbound() -> InboundSettings {
        InboundSettings { items: 3, page: 2, redeliver: Vec::new(), lose_answer: Vec::new() }
    }

    fn polled(core: &mut Core, cursor: &str) -> (Vec<String>, String) {
        let page = core.poll_feed(cursor, None);
        (page.items.into_iter().map(|item| item.id).collect(), page.cursor)
    }

    fn page(ids: &[&str], cursor: &str) -> (Vec<String>, String) {
        (ids.iter().map(|id| (*id).to_owned()).collect(), cursor.to_owned())
    }

    #[test]
    fn a_cursor_pages_through_the_feed_and_an_empty_poll_is_no_event() {
        let mut core = core(inbound());
        assert_eq!(polled(&mut core, ""), page(&["in-1", "in-2"], "2"));
        assert_eq!(polled(&mut core, "2"), page(&["in-3"], "3"));
        assert_eq!(polled(&mut core, "3"), page(&[], "3"));
        assert_eq!(core.log().len(), 2);
        assert_eq!(core.poll_feed("", Some(1)).items.len(), 1, "the worker may ask for less than a page");
        assert_eq!(core.counters(), killpoint_model::provider::Counters::default());
    }

    #[test]
    fn what_is_not_acknowledged_comes_again_where_the_cursor_is_not_past_it() {
        let mut core = core(inbound());
        assert_eq!(polled(&mut core, "").0, ["in-1", "in-2"]);
        assert!(!core.acknowledge_feed(&["in-1".into(), "in-9".into(), "x".into()]));
        assert_eq!(polled(&mut core, "").0, ["in-2", "in-3"]);
        let again = core.log().iter().find_map(|event| match event {
            ProviderEvent::Fed { poll: 2, again, .. } => Some(again.clone()),
            _ => None,
        });
        assert_eq!(again, Some(vec!["in-2".to_owned()]));
        assert!(
            core.log().contains(&ProviderEvent::FeedAcknowledged {
                items: vec!["in-1".into()],
                answer_lost: false
            })
        );
        assert_eq!(polled(&mut core, "2").0, ["in-3"], "a cursor says what its reader has");
    }

    #[test]
    fn a_poll_is_given_again_once_although_it_was_acknowledged_and_lies_behind_the_cursor() {
        let mut core = core(InboundSettings { redeliver: vec![2], ..inbound() });
        assert_eq!(polled(&mut core, ""), page(&["in-1", "in-2"], "2"));
        assert_eq!(polled(&mut core, "2"), page(&["in-3"], "3"));
        core.acknowledge_feed(&["in-3".into()]);
        assert_eq!(polled(&mut core, "3"), page(&["in-3"], "3"));
        assert_eq!(polled(&mut core, "3"), page(&[], "3"));
    }

    #[test]
    fn the_answer_to_a_chosen_acknowledgement_is_lost_and_it_counts_all_the_same() {
        let mut core = core(InboundSettings { lose_answer: vec![1], ..inbound() });
        core.poll_feed("", None);
        assert!(core.acknowledge_feed(&["in-1".into(), "in-2".into()]));
        assert!(!core.acknowledge_feed(&["in-1".into(), "in-2".into()]));
        assert_eq!(polled(&mut core, "").0, ["in-3"]);
    }

    #[test]
    fn the_feed_is_a_fold_over_the_log_and_wild_cursors_are_the_beginning_or_the_end() {
        let settings = InboundSettings { redeliver: vec![1], ..inbound() };
        let mut first = core(settings.clone());
        first.poll_feed("", None);
        first.acknowledge_feed(&["in-2".into()]);
        let mut again = Core::replay(ProviderSettings::default(), Vec::new(), first.log()).unwrap();
        again.serve_feed(Some(settings));
        assert_eq!(again.state(), first.state());
        assert_eq!(polled(&mut again, "1"), polled(&mut first, "1"));
        assert_eq!(polled(&mut again, "99999999999999").0, ["in-1", "in-3"], "no number of this feed");
        assert_eq!(polled(&mut again, "77"), page(&[], "3"));
        again.reset();
        assert_eq!(polled(&mut again, "").0, ["in-1", "in-2"]);
    }
}
