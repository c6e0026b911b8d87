//! One line that holds a plan, so that a trial can be handed on and done again.

use std::io::{Read, Write};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use killpoint_model::{Plan, json_words};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// What a token begins with; another number is another format.
const PREFIX: &str = "kp1:";
/// Bytes of a token, and of what is in it, at most.
const BYTES_MAX: usize = 64 * 1024;
/// Bytes of the checksum.
const CHECKSUM: usize = 4;
/// Workers that a scenario may start at once.
const WORKERS_MAX: u32 = 16;

/// A plan and the worker that it is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Token {
    /// What is done.
    pub plan: Plan,
    /// The worker.
    pub target: Target,
    /// What the worker's settings were, where that was noted: another one may explain another outcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings_id: Option<String>,
}

/// Which worker a plan is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Target {
    /// The one that the configuration names.
    Config,
    /// The built-in one.
    Demo {
        /// With this bug.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bug: Option<String>,
    },
}

/// Why a text is no token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// It has another beginning.
    #[error("this is no replay token; one begins with `kp1:`")]
    NoToken,
    /// It is of another version.
    #[error(
        "this replay token is of version {0}, and this killpoint reads version 1; replay it with the killpoint that \
         made it, or replay the scenario file that was written beside it"
    )]
    Version(String),
    /// It is too long, or holds too much.
    #[error("this replay token is longer than 64 KiB; write the plan as a scenario file and replay that")]
    TooLong,
    /// Part of it is missing or changed.
    #[error("this replay token is damaged: {0}; copy the whole line again")]
    Damaged(&'static str),
    /// It holds something that this program can't do.
    #[error("this replay token holds what this killpoint can't do: {0}; was it made by a newer one?")]
    Content(String),
}

impl Token {
    /// The token's text: `kp1:` and letters, digits, `-` and `_`. A plan of more than 64 KiB has a text that can't
    /// be read back.
    pub fn encode(&self) -> String {
        // A plan has only text keys, so this can't fail; nor can writing to memory.
        let json = serde_json::to_vec(self).unwrap_or_default();
        let mut encoder = DeflateEncoder::new(checksum(&json).to_vec(), Compression::best());
        let written = encoder.write_all(&json).and_then(|()| encoder.finish());
        format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(written.unwrap_or_default()))
    }

    /// Reads a token. White space in it, as mail and terminals put there, does not matter.
    pub fn decode(text: &str) -> Result<Self, TokenError> {
        if text.len() > BYTES_MAX {
            return Err(TokenError::TooLong);
        }
        let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        let Some(body) = text.strip_prefix(PREFIX) else { return Err(foreign(&text)) };
        let bytes = URL_SAFE_NO_PAD.decode(body).map_err(|_| {
            TokenError::Damaged("it holds a character that no token has, or its end is missing")
        })?;
        let Some((sum, packed)) = bytes.split_at_checked(CHECKSUM) else {
            return Err(TokenError::Damaged("its end is missing"));
        };
        let json = inflate(packed)?;
        if checksum(&json) != sum {
            return Err(TokenError::Damaged("its checksum does not fit"));
        }
        let token: Self =
            serde_json::from_slice(&json).map_err(|error| TokenError::Content(json_words(&error)))?;
        check(&token.plan).map_err(|what| TokenError::Content(what.to_owned()))?;
        Ok(token)
    }
}

fn foreign(text: &str) -> TokenError {
    let version = text.strip_prefix("kp").and_then(|rest| rest.split_once(':')).map(|(version, _)| version);
    let is_number = |version: &&str| {
        (1..=9).contains(&version.len()) && version.bytes().all(|digit| digit.is_ascii_digit())
    };
    version.filter(is_number).map_or(TokenError::NoToken, |version| TokenError::Version(version.to_owned()))
}

fn checksum(json: &[u8]) -> [u8; CHECKSUM] {
    let digest = Sha256::digest(json);
    [digest[0], digest[1], digest[2], digest[3]]
}

/// Unpacks, up to the limit and not further: a few bytes may hold very many.
fn inflate(packed: &[u8]) -> Result<Vec<u8>, TokenError> {
    let mut json = Vec::new();
    let limit = BYTES_MAX as u64 + 1;
    let read = DeflateDecoder::new(packed).take(limit).read_to_end(&mut json);
    match read {
        Ok(bytes) if bytes > BYTES_MAX => Err(TokenError::TooLong),
        Ok(_) => Ok(json),
        Err(_) => Err(TokenError::Damaged("it can't be unpacked")),
    }
}

/// What no scenario file could hold either.
fn check(plan: &Plan) -> Result<(), &'static str> {
    if plan.workers > WORKERS_MAX {
        return Err("more than 16 workers");
    }
    let zero = |number: Option<u32>| number == Some(0);
    if plan.rules.iter().any(|rule| zero(rule.matches.nth) || zero(rule.times)) {
        return Err("a rule for the request 0, or that never fires");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::fixture;
    use super::*;
    use killpoint_model::plan::Match;
    use killpoint_model::{ProviderPlan, Rule};
    use proptest::prelude::*;

    /// Made by another program: the format does not hang on how this one packs.
    const GOLDEN: &str = "kp1:TDPhHHVQXU_DMAz8K8i8thLroKP9K9OE3MTdouVLqbuCpvx3nBYmXniKLj7fne8O0aKH_g4eHUEP9BltSKSfDkOrdLdv992h\
        G7FpoYKYws1oSh_bDugUYo0jU6pRKYosnDRbmqA_3sFooRRY7-TfIatL8QmRErIJRUAlQiaZepZZk6tHGhWcMywUH5aiStF-CRqN\
        F3QzkxksPaZrBDG4rD-eQITYuJJjl08VjDhb3kJh0fy9o99cmPRzibjS_lRxNdZCztXPlsN07QcapZ1aWTTuiKfn5r-9ChbD68Ge\
        llrcPBuWEzjNlHNJhaq0UGIJWEK6Upq2EhjTmVZFTS6Ud5jPIjxY43WdaCKvSzCYiNn481SvXb_smv3rW3t473BQmkbI3w";

    fn token() -> Token {
        let mut plan = fixture::kills(&["provider:committed#1", "mark:before-claim[a]#2"]);
        plan.faults[1].fault.with.insert("new-identity".into(), true.into());
        let matches = Match { operation: Some("create".into()), nth: Some(2), ..Match::default() };
        let drop = ProviderPlan { reply: killpoint_model::plan::Reply::Fin, ..ProviderPlan::default() };
        plan.rules = vec![Rule { id: "rule-1".into(), matches, plan: drop, times: Some(1) }];
        plan.provider_plan = "drop-after-accept".into();
        plan.workers = 2;
        plan.name = format!("explored {}", plan.content_id());
        let target = Target::Demo { bug: Some("blind-resend".into()) };
        Token { plan, target, settings_id: Some("0123456789abcdef".into()) }
    }

    fn said(text: &str) -> String {
        Token::decode(text).unwrap_err().to_string()
    }

    /// A text with a right checksum over any content.
    fn packed(json: &[u8]) -> String {
        let mut encoder = DeflateEncoder::new(checksum(json).to_vec(), Compression::best());
        encoder.write_all(json).unwrap();
        format!("kp1:{}", URL_SAFE_NO_PAD.encode(encoder.finish().unwrap()))
    }

    #[test]
    fn a_token_that_was_made_long_ago_is_still_read() {
        assert_eq!(Token::decode(GOLDEN), Ok(token()), "now it would be {}", token().encode());
        assert_eq!(Token::decode(&token().encode()), Ok(token()));
        assert_eq!(token().encode(), token().encode());
        let config = Token { target: Target::Config, settings_id: None, ..token() };
        assert_eq!(Token::decode(&config.encode()), Ok(config));
    }

    #[test]
    fn a_token_that_was_wrapped_on_its_way_is_read() {
        let (first, rest) = GOLDEN.split_at(60);
        assert_eq!(Token::decode(&format!("  {first}\r\n\t{rest}\n")), Ok(token()));
    }

    #[test]
    fn other_versions_say_what_to_do() {
        for (text, version) in [("kp2:AAAA", "2"), ("kp10:", "10"), ("kp0:x", "0")] {
            assert_eq!(Token::decode(text), Err(TokenError::Version(version.into())));
            assert!(said(text).contains("replay it with the killpoint that made it"), "{}", said(text));
        }
        for text in
            ["", "kp", "kp:", "kp1", "KP1:AAAA", "kpx:AAAA", "kp99999999999999999999:", "explored.toml"]
        {
            assert_eq!(Token::decode(text), Err(TokenError::NoToken), "{text}");
        }
    }

    #[test]
    fn damage_is_seen_wherever_it_is() {
        for end in PREFIX.len()..GOLDEN.len() {
            let damaged = Token::decode(&GOLDEN[..end]);
            // The last bits only say that nothing follows.
            let whole = end + 2 >= GOLDEN.len() && damaged == Ok(token());
            assert!(whole || matches!(damaged, Err(TokenError::Damaged(_))), "cut at {end}: {damaged:?}");
        }
        for place in PREFIX.len()..GOLDEN.len() {
            let other = if GOLDEN.as_bytes()[place] == b'A' { "B" } else { "A" };
            let text = format!("{}{other}{}", &GOLDEN[..place], &GOLDEN[place + 1..]);
            assert!(
                Token::decode(&text).is_err() || Token::decode(&text) == Ok(token()),
                "changed at {place}"
            );
        }
        assert!(said("kp1:a b+c").contains("a character that no token has"));
        assert!(said("kp1:AA").contains("its end is missing"));
        let mut bytes = URL_SAFE_NO_PAD.decode(&GOLDEN[PREFIX.len()..]).unwrap();
        bytes[0] ^= 1;
        assert!(
            said(&format!("kp1:{}", URL_SAFE_NO_PAD.encode(bytes))).contains("its checksum does not fit")
        );
    }

    #[test]
    fn what_is_too_long_is_refused_before_it_takes_memory() {
        assert_eq!(Token::decode(&format!("kp1:{}", "A".repeat(BYTES_MAX))), Err(TokenError::TooLong));
        let bomb = packed(&vec![b' '; 4_000_000]);
        assert!(bomb.len() < BYTES_MAX + PREFIX.len(), "{}", bomb.len());
        assert_eq!(Token::decode(&bomb), Err(TokenError::TooLong));
        let mut full = serde_json::to_vec(&token()).unwrap();
        full.resize(BYTES_MAX, b' ');
        assert_eq!(Token::decode(&packed(&full)), Ok(token()), "at the limit");
        full.push(b' ');
        assert_eq!(Token::decode(&packed(&full)), Err(TokenError::TooLong));
    }

    #[test]
    fn content_that_means_nothing_here_is_named() {
        for (json, part) in [
            ("{", "ends too early"),
            (r#"{"plan":{"pace":1},"target":"config"}"#, "unknown key `pace`"),
            (r#"{"plan":{},"target":"remote"}"#, "unknown word `remote`"),
            (r#"{"plan":{"workers":17},"target":"config"}"#, "more than 16 workers"),
            (
                r#"{"plan":{"faults":[{"at":"provider:gone#1","fault":{"name":"kill"}}]},"target":"config"}"#,
                "nobody knows `gone`",
            ),
            (
                r#"{"plan":{"rules":[{"id":"a","plan":{},"match":{"nth":0}}]},"target":"config"}"#,
                "a rule for the request 0",
            ),
        ] {
            let said = said(&packed(json.as_bytes()));
            assert!(said.contains(part) && said.contains("made by a newer one?"), "{said}");
        }
        assert!(Token::decode(&packed(br#"{"plan":{},"target":{"demo":{}}}"#)).is_ok());
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(kp1:)?.*", body in "[A-Za-z0-9_-]{0,200}", bytes: Vec<u8>) {
            let _ = Token::decode(&text);
            let unsealed = Token::decode(&format!("kp1:{body}"));
            prop_assert!(unsealed.is_err(), "{unsealed:?}");
            let _ = Token::decode(&packed(&bytes));
        }
    }
}
