//! Form encoding: query strings and `application/x-www-form-urlencoded` bodies.

/// Undoes percent-encoding and `+`. A `%` without two hex digits stays as it is; bytes that are no UTF-8
/// become replacement characters.
pub fn percent_decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = |offset: usize| bytes.get(at + offset).and_then(|byte| char::from(*byte).to_digit(16));
        match (bytes[at], hex(1), hex(2)) {
            (b'%', Some(high), Some(low)) => {
                out.push((high * 16 + low) as u8);
                at += 3;
            }
            (b'+', ..) => {
                out.push(b' ');
                at += 1;
            }
            (byte, ..) => {
                out.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// The pairs of a form, in order; a name without `=` has an empty value.
pub fn read_form(text: &str) -> Vec<(String, String)> {
    text.split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (percent_decoded(name), percent_decoded(value))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_read_and_odd_percents_kept() {
        let pairs = read_form("to=a%40b.example&text=two+words&flag&x=100%&y=%zz&&z=%C3%A9");
        let expected = [
            ("to", "a@b.example"),
            ("text", "two words"),
            ("flag", ""),
            ("x", "100%"),
            ("y", "%zz"),
            ("z", "é"),
        ];
        assert_eq!(pairs, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }
}
