//! The chunked transfer coding, read from a buffer that may still be growing.

/// What a buffer holds of a chunked body.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Chunked {
    /// More bytes are needed.
    Incomplete,
    /// All of it: the body, and how many bytes of the buffer it took, trailers included.
    Complete {
        /// The body without its framing.
        body: Vec<u8>,
        /// Bytes of the buffer that belong to it.
        consumed: usize,
    },
    /// No chunked body.
    Malformed,
}

/// Reads a chunked body from the front of `bytes`.
pub(super) fn read_chunked(bytes: &[u8]) -> Chunked {
    let mut spans = Vec::new();
    let mut at = 0;
    loop {
        match httparse::parse_chunk_size(&bytes[at..]) {
            Ok(httparse::Status::Complete((line, size))) => {
                let start = at + line;
                let Some(end) = usize::try_from(size).ok().and_then(|size| start.checked_add(size)) else {
                    return Chunked::Malformed;
                };
                if size == 0 {
                    return match trailers_end(bytes, start) {
                        Some(consumed) => Chunked::Complete { body: joined(bytes, &spans), consumed },
                        None => Chunked::Incomplete,
                    };
                }
                match bytes.get(end..) {
                    Some([b'\r', b'\n', ..]) => {}
                    None | Some([] | [b'\r']) => return Chunked::Incomplete,
                    Some(_) => return Chunked::Malformed,
                }
                spans.push((start, end));
                at = end + 2;
            }
            Ok(httparse::Status::Partial) => return Chunked::Incomplete,
            Err(_) => return Chunked::Malformed,
        }
    }
}

fn joined(bytes: &[u8], spans: &[(usize, usize)]) -> Vec<u8> {
    spans.iter().flat_map(|&(start, end)| &bytes[start..end]).copied().collect()
}

/// The end of the trailer section, which an empty line closes.
fn trailers_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start;
    loop {
        let line = bytes[at..].windows(2).position(|pair| pair == b"\r\n")?;
        at += line + 2;
        if line == 0 {
            return Some(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &[u8] = b"4;note=x\r\nwiki\r\n5\r\npedia\r\n0\r\nTrailer: 1\r\n\r\n";

    #[test]
    fn a_whole_body_is_joined_and_every_prefix_is_incomplete() {
        assert_eq!(
            read_chunked(WHOLE),
            Chunked::Complete { body: b"wikipedia".to_vec(), consumed: WHOLE.len() }
        );
        for end in 0..WHOLE.len() {
            assert_eq!(read_chunked(&WHOLE[..end]), Chunked::Incomplete, "{end}");
        }
    }

    #[test]
    fn wrong_framing_is_malformed() {
        for bytes in [&b"zz\r\n"[..], b"1\r\nab\r\n", b"ffffffffffffffff\r\n"] {
            assert_ne!(
                std::mem::discriminant(&read_chunked(bytes)),
                std::mem::discriminant(&Chunked::Complete { body: Vec::new(), consumed: 0 })
            );
        }
        assert_eq!(read_chunked(b"1\r\nab\r\n"), Chunked::Malformed);
    }
}
