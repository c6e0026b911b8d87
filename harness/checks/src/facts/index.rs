//! Indexes that are looked up and never iterated, so that their order can't show.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// A map for looking up. What is in it is the user's own data, so nobody has to be kept from choosing
/// colliding keys, and a plain multiplicative hash does.
pub(crate) type Index<K, V> = HashMap<K, V, BuildHasherDefault<WordHasher>>;

/// A set to ask whether something is in it.
pub(crate) type Lot<K> = HashSet<K, BuildHasherDefault<WordHasher>>;

/// Hashes eight bytes at a time.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct WordHasher(u64);

impl WordHasher {
    /// An odd number without a pattern, from the golden ratio.
    const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

    fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(Self::FACTOR);
    }
}

impl Hasher for WordHasher {
    fn write(&mut self, bytes: &[u8]) {
        let mut chunks = bytes.chunks_exact(8);
        for chunk in &mut chunks {
            let mut word = [0; 8];
            word.copy_from_slice(chunk);
            self.add(u64::from_le_bytes(word));
        }
        let rest = chunks.remainder();
        if !rest.is_empty() {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            self.add(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, byte: u8) {
        self.add(u64::from(byte));
    }

    fn write_u32(&mut self, word: u32) {
        self.add(u64::from(word));
    }

    fn write_usize(&mut self, word: usize) {
        self.add(word as u64);
    }

    fn finish(&self) -> u64 {
        // The low bits choose the place, and the product has its best ones at the top.
        self.0 ^ (self.0 >> 32)
    }
}

/// A few numbers in order, of which there is mostly one.
#[derive(Debug)]
pub(crate) struct Few {
    first: usize,
    more: Vec<usize>,
}

impl Few {
    /// One number.
    pub(crate) fn one(first: usize) -> Self {
        Self { first, more: Vec::new() }
    }

    /// One more, which is not below those that are there; the last one is not taken again.
    pub(crate) fn add(&mut self, number: usize) {
        if *self.more.last().unwrap_or(&self.first) != number {
            self.more.push(number);
        }
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> {
        [self.first].into_iter().chain(self.more.iter().copied())
    }

    /// The number, where it is one.
    pub(crate) fn only(&self) -> Option<usize> {
        self.more.is_empty().then_some(self.first)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::hash::{BuildHasher, BuildHasherDefault};

    use super::{Few, WordHasher};

    #[test]
    fn names_that_count_up_are_spread() {
        let hasher = BuildHasherDefault::<WordHasher>::default();
        let low_bits = |n: u32| hasher.hash_one(format!("action-{n}").as_str()) % 4096;
        let places: BTreeSet<u64> = (0..4096).map(low_bits).collect();
        assert!(places.len() > 2000, "{} of 4096 places", places.len());
        assert_ne!(hasher.hash_one("ab"), hasher.hash_one("ba"));
    }

    #[test]
    fn a_few_keeps_order_and_takes_nothing_twice() {
        let mut few = Few::one(3);
        few.add(3);
        assert_eq!(few.only(), Some(3));
        few.add(7);
        few.add(7);
        assert_eq!((few.iter().collect::<Vec<_>>(), few.only()), (vec![3, 7], None));
    }
}
