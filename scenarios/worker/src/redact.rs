//! Credentials stay in memory: what is kept or printed goes through here.

/// Shortest text that is taken for a secret; shorter ones would black out ordinary words.
const SECRET_CHARS_MIN: usize = 4;

/// Texts that must not be written anywhere.
#[derive(Debug, Clone, Default)]
pub(crate) struct Secrets(Vec<String>);

impl Secrets {
    /// Of a bearer token and of the user information in an address.
    pub(crate) fn new(token: Option<&str>, user_info: Option<&str>) -> Self {
        let parts = user_info.into_iter().flat_map(|text| text.split(':').chain([text]));
        let secrets = token.into_iter().chain(parts).filter(|text| text.len() >= SECRET_CHARS_MIN);
        let mut secrets: Vec<String> = secrets.map(str::to_owned).collect();
        // The longest first, so that no part of it is left beside a mask.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self(secrets)
    }

    /// The text without them.
    pub(crate) fn redact(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, secret| text.replace(secret, "***"))
    }
}

/// Takes an address apart into one without user information, and that.
pub(crate) fn without_user_info(url: &str) -> (String, Option<String>) {
    let Some((scheme, rest)) = url.split_once("://") else { return (url.to_owned(), None) };
    let end = rest.find('/').unwrap_or(rest.len());
    match rest[..end].rsplit_once('@') {
        Some((user_info, host)) => (format!("{scheme}://{host}{}", &rest[end..]), Some(user_info.to_owned())),
        None => (url.to_owned(), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_taken_apart() {
        assert_eq!(
            without_user_info("http://user:pa@ss@127.0.0.1:1/x@y"),
            ("http://127.0.0.1:1/x@y".into(), Some("user:pa@ss".into()))
        );
        assert_eq!(without_user_info("http://127.0.0.1:1"), ("http://127.0.0.1:1".into(), None));
        assert_eq!(without_user_info("nonsense"), ("nonsense".into(), None));
    }

    #[test]
    fn no_part_of_a_secret_is_left() {
        let secrets = Secrets::new(Some("tok-12345"), Some("user:s3cret"));
        assert_eq!(secrets.redact("user:s3cret, s3cret, tok-12345, use"), "***, ***, ***, use");
        assert_eq!(Secrets::new(None, None).redact("as it is"), "as it is");
    }
}
