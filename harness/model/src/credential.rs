//! What looks like a credential, or like the address of a real provider: by names and by well-known forms alone.
//!
//! Used to warn before anything is started, and to keep secrets out of whatever is written down or shown. It can
//! only know what is well known: a password without a form, in a variable without a name that tells, passes.

/// Parts of a variable's name that mark its value as one that is never shown.
const SECRET_WORDS: &[&str] = &["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "AUTH"];

/// Ends of a name that by themselves say that a live credential is in it.
const CREDENTIAL_ENDS: &[&str] = &[
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "API_KEY",
    "APIKEY",
    "ACCESS_KEY",
    "ACCESS_KEY_ID",
    "SECRET_KEY",
    "PRIVATE_KEY",
    "CREDENTIALS",
];

/// How a credential begins, what it is, and whether it opens something real rather than a test account.
///
/// Sources: the providers' own documentation of their token formats, and the patterns of GitHub's secret scanning.
const FORMS: &[(&str, &str, bool)] = &[
    ("sk_live_", "a live key of Stripe", true),
    ("rk_live_", "a live key of Stripe", true),
    ("sk_test_", "a test key of Stripe", false),
    ("whsec_", "a webhook secret", true),
    ("xoxb-", "a bot token of Slack", true),
    ("xoxp-", "a user token of Slack", true),
    ("xoxa-", "a token of Slack", true),
    ("xapp-", "an app token of Slack", true),
    ("github_pat_", "a token of GitHub", true),
    ("ghp_", "a token of GitHub", true),
    ("gho_", "a token of GitHub", true),
    ("ghu_", "a token of GitHub", true),
    ("ghs_", "a token of GitHub", true),
    ("glpat-", "a token of GitLab", true),
    ("AKIA", "an access key of AWS", true),
    ("ASIA", "an access key of AWS", true),
    ("SG.", "a key of SendGrid", true),
    ("key-", "a key of Mailgun", true),
    ("sk-ant-", "a key of Anthropic", true),
    ("sk-proj-", "a key of OpenAI", true),
    ("AIza", "a key of Google", true),
    ("npm_", "a token of npm", true),
    ("pypi-", "a token of PyPI", true),
    ("hf_", "a token of Hugging Face", true),
    ("shpat_", "a token of Shopify", true),
];

/// Hosts of real providers: these, and all below them.
const LIVE_HOSTS: &[&str] = &[
    "stripe.com",
    "slack.com",
    "github.com",
    "githubusercontent.com",
    "gitlab.com",
    "sendgrid.com",
    "sendgrid.net",
    "mailgun.net",
    "mailgun.org",
    "twilio.com",
    "postmarkapp.com",
    "mailchimp.com",
    "mandrillapp.com",
    "resend.com",
    "sparkpost.com",
    "amazonaws.com",
    "googleapis.com",
    "discord.com",
    "telegram.org",
    "atlassian.net",
    "linear.app",
    "notion.com",
    "pagerduty.com",
    "opsgenie.com",
    "zendesk.com",
    "paypal.com",
    "adyen.com",
    "squareup.com",
    "openai.com",
    "anthropic.com",
    "smtp.gmail.com",
    "office365.com",
];

/// What stands in the place of a secret.
pub const MASK: &str = "***";

/// Characters of a credential after its beginning, at least: less is a word that happens to begin so.
const TAIL_CHARS_MIN: usize = 8;

/// Whether a variable's value is never shown, by its name.
pub fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    SECRET_WORDS.iter().any(|word| name.contains(word))
}

/// Whether a name says that a live credential is in it: `STRIPE_API_KEY`, `--token`. Narrower than
/// [`is_secret_name`]: `SSH_AUTH_SOCK` is a secret name and holds none.
pub fn is_credential_name(name: &str) -> bool {
    let name = name.trim_start_matches('-').replace('-', "_").to_ascii_uppercase();
    CREDENTIAL_ENDS.iter().any(|end| {
        name.strip_suffix(end)
            .is_some_and(|head| head.is_empty() || head.ends_with('_') || *end == "PASSWORD")
    })
}

/// What live credential a text holds, by its well-known form: `a live key of Stripe`.
pub fn live_credential(text: &str) -> Option<&'static str> {
    if text.contains("-----BEGIN") && text.contains("PRIVATE KEY") {
        return Some("a private key");
    }
    tokens(text).find_map(|token| form(token).filter(|(_, _, live)| *live).map(|(_, what, _)| what))
}

/// The words of a text that could be credentials.
fn tokens(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !is_token_char(c)).filter(|token| !token.is_empty())
}

fn is_token_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_-.".contains(c)
}

fn form(token: &str) -> Option<(&'static str, &'static str, bool)> {
    let has_form = |prefix: &str| {
        let Some(tail) = token.strip_prefix(prefix) else { return false };
        match prefix {
            // 16 more capitals and digits.
            "AKIA" | "ASIA" => {
                tail.len() == 16 && tail.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit())
            }
            // Two parts after the first full stop.
            "SG." => tail.len() >= 2 * TAIL_CHARS_MIN && tail.contains('.'),
            // 32 hexadecimal digits: `key-per-attempt` is none.
            "key-" => tail.len() == 32 && tail.chars().all(|c| c.is_ascii_hexdigit()),
            "npm_" | "pypi-" | "hf_" | "AIza" => tail.len() >= 3 * TAIL_CHARS_MIN,
            _ => tail.len() >= TAIL_CHARS_MIN,
        }
    };
    FORMS.iter().copied().find(|(prefix, _, _)| has_form(prefix))
}

/// The same text with what has the form of a credential, and passwords in addresses, masked. Other text stays.
pub fn masked_text(text: &str) -> String {
    if text.contains("-----BEGIN") && text.contains("PRIVATE KEY") {
        return MASK.to_owned();
    }
    let mut masked = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !is_token_char(c)).unwrap_or(rest.len());
        let (token, after) = rest.split_at(end);
        match form(token) {
            Some((prefix, _, _)) => {
                masked.push_str(prefix);
                masked.push_str(MASK);
            }
            None => masked.push_str(token),
        }
        let next = after.chars().next().map_or(0, char::len_utf8);
        masked.push_str(&after[..next]);
        rest = &after[next..];
    }
    without_password(&masked)
}

/// `scheme://user:password@host` with the password masked.
fn without_password(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (head, after) = rest.split_at(at + 3);
        shown.push_str(head);
        let authority = after.find(['/', '?', '#', ' ', '\'', '"']).unwrap_or(after.len());
        let user_info = after[..authority].rfind('@');
        match user_info.and_then(|end| Some((end, after[..end].find(':')?))) {
            // A template in its place is filled in later, by us.
            Some((end, colon)) if !after[colon..end].contains('{') => {
                shown.push_str(&after[..=colon]);
                shown.push_str(MASK);
                rest = &after[end..];
            }
            _ => rest = after,
        }
    }
    shown.push_str(rest);
    shown
}

/// Words of a command line with secrets masked: what has the form of one, `--token=…`, and the word after `--token`.
pub fn masked_words(words: &[String]) -> Vec<String> {
    let mut is_value = false;
    let mut shown = Vec::with_capacity(words.len());
    for word in words {
        let named =
            word.split_once('=').filter(|(name, value)| is_credential_name(name) && !value.is_empty());
        shown.push(match named {
            _ if is_value && !word.starts_with('-') && !word.contains('{') => MASK.to_owned(),
            Some((name, value)) if !value.contains('{') => format!("{name}={MASK}"),
            _ => masked_text(word),
        });
        is_value = word.starts_with("--") && !word.contains('=') && is_credential_name(word);
    }
    shown
}

/// The value of a variable as it may be shown.
pub fn masked_value(name: &str, value: &str) -> String {
    if is_secret_name(name) { MASK.to_owned() } else { masked_text(value) }
}

/// The hosts of the addresses in a text: what follows `://` and user information.
fn hosts(text: &str) -> impl Iterator<Item = &str> {
    text.split("://").skip(1).map(|after| {
        let authority = after.split(['/', '?', '#', ' ', '\'', '"', ',']).next().unwrap_or_default();
        let host = authority.rsplit('@').next().unwrap_or_default();
        match host.strip_prefix('[') {
            Some(ipv6) => ipv6.split(']').next().unwrap_or_default(),
            None => host.split(':').next().unwrap_or_default(),
        }
    })
}

/// The host of a real provider that a text names, as an address or by itself.
pub fn live_host(text: &str) -> Option<String> {
    let bare = text.split(':').next().unwrap_or_default();
    hosts(text).chain([bare]).map(str::to_ascii_lowercase).find(|host| {
        LIVE_HOSTS
            .iter()
            .any(|live| host.strip_suffix(live).is_some_and(|head| head.is_empty() || head.ends_with('.')))
    })
}

/// The host of an address in a text that is neither on this machine nor filled in by a template.
pub fn remote_host(text: &str) -> Option<String> {
    let is_here = |host: &str| {
        host.is_empty()
            || host.contains('{')
            || host.contains('$')
            || host == "localhost"
            || host.ends_with(".localhost")
            || ["::1", "::", "0.0.0.0"].contains(&host)
            || (host.starts_with("127.") && host.chars().all(|c| c == '.' || c.is_ascii_digit()))
    };
    hosts(text).find(|host| !is_here(host)).map(str::to_ascii_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn credentials_are_known_by_their_forms_and_words_are_not() {
        for (text, what) in [
            ("sk_live_4eC39HqLyjWDarjtT1", "a live key of Stripe"),
            ("token: xoxb-1234567890-abcdef", "a bot token of Slack"),
            ("Bearer ghp_0123456789abcdefghij", "a token of GitHub"),
            ("AKIAIOSFODNN7EXAMPLE", "an access key of AWS"),
            ("SG.abcdefghij0123.klmnopqrst4567", "a key of SendGrid"),
            ("-----BEGIN RSA PRIVATE KEY-----\nMII", "a private key"),
        ] {
            assert_eq!(live_credential(text), Some(what), "{text}");
        }
        for text in [
            "sk_test_4eC39HqLyjWDarjtT1",
            "key-per-attempt",
            "AKIAIOS",
            "hf_cache",
            "npm_config_prefix",
            "ghp_",
            "SG.txt",
            "",
        ] {
            assert_eq!(live_credential(text), None, "{text}");
        }
    }

    #[test]
    fn names_tell_which_values_are_never_shown_and_which_are_live() {
        for name in ["STRIPE_API_KEY", "SLACK_BOT_TOKEN", "DB_PASSWORD", "PGPASSWORD", "--api-key", "token"] {
            assert!(is_credential_name(name), "{name}");
        }
        for name in ["SSH_AUTH_SOCK", "KEYBOARD", "MAX_TOKENS", "KEY_PER_ATTEMPT", "PATH", "BROKEN"] {
            assert!(!is_credential_name(name), "{name}");
        }
        assert!(is_secret_name("SSH_AUTH_SOCK") && !is_secret_name("PATH"));
    }

    #[test]
    fn what_is_masked_is_the_secret_alone() {
        assert_eq!(masked_text("a=sk_live_4eC39HqLyjWD b"), "a=sk_live_*** b");
        assert_eq!(masked_text("sk_test_4eC39HqLyjWD"), "sk_test_***", "not live, and not shown either");
        assert_eq!(masked_text("postgres://me:hunter2@db/x?y"), "postgres://me:***@db/x?y");
        assert_eq!(masked_text("a://u:p@h b://v:q@i"), "a://u:***@h b://v:***@i");
        for plain in ["{provider.rest}/v1", "http://127.0.0.1:80/a@b:c", "ünï cödé ✓", "http://user:{key}@h"]
        {
            assert_eq!(masked_text(plain), plain);
        }
        let shown = masked_words(&words(&[
            "w",
            "--token",
            "abc",
            "--api-key=abc",
            "--password",
            "--next",
            "{x}",
            "b",
        ]));
        assert_eq!(
            shown,
            words(&["w", "--token", "***", "--api-key=***", "--password", "--next", "{x}", "b"])
        );
        assert_eq!(masked_value("API_KEY", "abc"), "***");
        assert_eq!(masked_value("URL", "http://h"), "http://h");
    }

    #[test]
    fn hosts_are_told_from_this_machine() {
        assert_eq!(live_host("https://api.stripe.com/v1"), Some("api.stripe.com".into()));
        assert_eq!(live_host("smtp.SendGrid.net:587"), Some("smtp.sendgrid.net".into()));
        assert_eq!(live_host("https://u:p@hooks.slack.com/x"), Some("hooks.slack.com".into()));
        for here in ["https://notstripe.com", "http://127.0.0.1:1", "{provider.rest}", "stripe", ""] {
            assert_eq!(live_host(here), None, "{here}");
        }
        assert_eq!(remote_host("https://mail.example.com/x"), Some("mail.example.com".into()));
        assert_eq!(remote_host("http://127.example.com"), Some("127.example.com".into()));
        for here in [
            "http://localhost:1",
            "http://[::1]:2/",
            "http://127.0.0.1",
            "{provider.rest}",
            "http://{host}/",
            "x",
        ] {
            assert_eq!(remote_host(here), None, "{here}");
        }
    }
}
