//! Texts of the page's data, each of them once: thousands of trials say the same.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::sanitise::{clean, shorten};

/// Longest text of the page's data, in characters.
const TEXT_CHARS_MAX: usize = 1000;

/// A piece of a text that many trials have in common but for what they do and where they are.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(untagged)]
pub(super) enum Piece {
    /// As it is.
    Text(String),
    /// 0 stands for the boundary, 1 for the folder.
    Own(u8),
}

/// Texts by their place.
#[derive(Debug, Default)]
pub(super) struct Texts {
    said: Vec<String>,
    places: BTreeMap<String, usize>,
    wordings: Vec<Vec<Piece>>,
    wording_places: BTreeMap<Vec<Piece>, usize>,
    bytes: usize,
}

impl Texts {
    /// The place of a text, harmless and shortened.
    pub(super) fn place(&mut self, text: &str) -> usize {
        let text = clean(&shorten(text, TEXT_CHARS_MAX));
        if let Some(place) = self.places.get(&text) {
            return *place;
        }
        self.bytes += text.len() + 3;
        self.said.push(text.clone());
        self.places.insert(text, self.said.len() - 1);
        self.said.len() - 1
    }

    /// The place of a wording: a text in which the boundary and the folder are left open. It is not shortened
    /// where it can be copied into a shell.
    pub(super) fn wording(&mut self, text: &str, boundary: &str, folder: &str) -> usize {
        let (text, boundary, folder) = (clean(text), clean(boundary), clean(folder));
        let mut pieces = vec![Piece::Text(text)];
        for (own, word) in [(0, &boundary), (1, &folder)] {
            pieces = pieces.into_iter().flat_map(|piece| open(piece, word, own)).collect();
        }
        if let Some(place) = self.wording_places.get(&pieces) {
            return *place;
        }
        self.wordings.push(pieces.clone());
        self.wording_places.insert(pieces, self.wordings.len() - 1);
        self.wordings.len() - 1
    }

    /// About how many bytes the texts take in the page.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// The texts and the wordings in order of their places.
    pub(super) fn into_parts(self) -> (Vec<String>, Vec<Vec<Piece>>) {
        (self.said, self.wordings)
    }
}

/// Splits a text where a word stands.
fn open(piece: Piece, word: &str, own: u8) -> Vec<Piece> {
    let Piece::Text(text) = piece else { return vec![piece] };
    if word.is_empty() {
        return vec![Piece::Text(text)];
    }
    let mut pieces = Vec::new();
    for (index, part) in text.split(word).enumerate() {
        if index > 0 {
            pieces.push(Piece::Own(own));
        }
        if !part.is_empty() {
            pieces.push(Piece::Text(part.to_owned()));
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_kept_once_and_harmless() {
        let mut texts = Texts::default();
        let places = ["a", "b\u{202e}", "a"].map(|text| texts.place(text));
        assert_eq!(places, [0, 1, 0]);
        assert_eq!(texts.into_parts().0, ["a", "b\\u{202e}"]);
    }

    #[test]
    fn texts_that_differ_by_their_own_words_share_a_wording() {
        let mut texts = Texts::default();
        let one = texts.wording("killpoint replay run/001-a --boundary 'x:y#1'", "x:y#1", "001-a");
        let two = texts.wording("killpoint replay run/002-b --boundary 'x:z#2'", "x:z#2", "002-b");
        assert_eq!(one, two);
        let (_, wordings) = texts.into_parts();
        let json = serde_json::to_string(&wordings[one]).unwrap();
        assert_eq!(json, r#"["killpoint replay run/",1," --boundary '",0,"'"]"#);
    }
}
