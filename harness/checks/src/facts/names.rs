//! A set of texts of which there is mostly one.

use std::collections::{BTreeSet, btree_set};

/// Texts in order, each once. The first one needs no set.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names {
    first: Option<String>,
    /// All of them are above the first.
    more: BTreeSet<String>,
}

impl Names {
    /// One more text, unless it is there.
    pub(crate) fn add(&mut self, text: &str) {
        if !self.contains(text) {
            self.insert(text.to_owned());
        }
    }

    /// One more text, unless it is there.
    pub(crate) fn insert(&mut self, text: String) {
        match &mut self.first {
            None => self.first = Some(text),
            Some(first) if text < *first => {
                self.more.insert(std::mem::replace(first, text));
            }
            Some(first) if text > *first => {
                self.more.insert(text);
            }
            Some(_) => {}
        }
    }

    /// Whether a text is there.
    pub(crate) fn contains(&self, text: &str) -> bool {
        self.first.as_deref() == Some(text) || self.more.contains(text)
    }

    /// All of them, in order.
    pub(crate) fn iter(
        &self,
    ) -> std::iter::Chain<std::option::Iter<'_, String>, btree_set::Iter<'_, String>> {
        self.first.iter().chain(&self.more)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.more.len()
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// The first in order.
    pub(crate) fn first(&self) -> Option<&String> {
        self.first.as_ref()
    }

    /// Whether some text is in both.
    pub(crate) fn meet(&self, other: &Self) -> bool {
        self.iter().any(|text| other.contains(text))
    }

    /// Takes all of another's.
    pub(crate) fn absorb(&mut self, other: Self) {
        other.first.into_iter().chain(other.more).for_each(|text| self.insert(text));
    }
}

impl<'a> IntoIterator for &'a Names {
    type Item = &'a String;
    type IntoIter = std::iter::Chain<std::option::Iter<'a, String>, btree_set::Iter<'a, String>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl From<&str> for Names {
    fn from(text: &str) -> Self {
        Self { first: Some(text.to_owned()), more: BTreeSet::new() }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::Names;

    proptest! {
        #[test]
        fn it_is_a_set_in_order(texts in proptest::collection::vec("[a-c]{0,2}", 0..12)) {
            let mut names = Names::default();
            for text in &texts {
                names.add(text);
            }
            let set: BTreeSet<&String> = texts.iter().collect();
            prop_assert_eq!(names.iter().collect::<Vec<_>>(), set.iter().copied().collect::<Vec<_>>());
            prop_assert_eq!((names.len(), names.is_empty()), (set.len(), set.is_empty()));
            prop_assert!(texts.iter().all(|text| names.contains(text)) && !names.contains("d"));
        }
    }
}
