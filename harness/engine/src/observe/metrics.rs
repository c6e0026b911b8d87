//! The worker's own metrics: a Prometheus text page, a file in that format, or a query on a copy of the ledger.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use killpoint_model::settings::MetricsSettings;

use crate::template::Templates;

/// How long the page may take.
const LIMIT: Duration = Duration::from_secs(5);
/// Bytes of a page.
const BYTES_MAX: u64 = 4 << 20;

/// Samples of a Prometheus text page: `name` or `name{labels}` as written, to value. Lines that are no samples
/// (comments, time stamps alone, nonsense) are passed over.
///
/// Source: the text-based exposition format of the Prometheus documentation, version 0.0.4.
pub(crate) fn samples(page: &str) -> BTreeMap<String, f64> {
    page.lines().filter_map(sample).collect()
}

fn sample(line: &str) -> Option<(String, f64)> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return None;
    }
    // A label's value may hold blanks and braces; the name ends at the last closing brace.
    let end = line.rfind('}').map(|brace| brace + 1).or_else(|| line.find(char::is_whitespace))?;
    let (name, rest) = line.split_at_checked(end)?;
    let value = rest.split_whitespace().next()?.parse().ok()?;
    (!name.is_empty()).then(|| (name.to_owned(), value))
}

/// The canonical metrics among some samples. A name without labels stands for the sum over its labels.
pub(crate) fn canonical(
    samples: &BTreeMap<String, f64>,
    names: &BTreeMap<String, String>,
) -> BTreeMap<String, u64> {
    let mut values = BTreeMap::new();
    for (own, canonical) in names {
        let labelled = format!("{own}{{");
        let matching = samples.iter().filter(|(name, _)| *name == own || name.starts_with(&labelled));
        let found: Vec<f64> = matching.map(|(_, value)| *value).collect();
        if !found.is_empty() {
            *values.entry(canonical.clone()).or_insert(0) += found.iter().sum::<f64>().max(0.0) as u64;
        }
    }
    values
}

/// Reads the configured page or file.
///
/// # Errors
/// Why it can't be read, in one line.
pub(crate) fn read(
    settings: &MetricsSettings,
    templates: &Templates,
) -> Result<BTreeMap<String, u64>, String> {
    let page = match (&settings.url, &settings.file) {
        (Some(url), _) => fetch(&templates.fill(url))?,
        (None, Some(file)) => {
            let file = templates.fill(file);
            std::fs::read_to_string(Path::new(&file)).map_err(|error| format!("{file}: {error}"))?
        }
        (None, None) => return Err("neither an address nor a file is configured".into()),
    };
    Ok(canonical(&samples(&page), &settings.names))
}

/// One GET to a loopback address.
fn fetch(url: &str) -> Result<String, String> {
    let rest =
        url.strip_prefix("http://").ok_or_else(|| format!("{url}: only http:// on loopback is read"))?;
    let (host, path) =
        rest.split_once('/').map_or((rest, String::from("/")), |(host, path)| (host, format!("/{path}")));
    let address: SocketAddr = host
        .replace("localhost", "127.0.0.1")
        .parse()
        .map_err(|_| format!("{url}: no address with a port"))?;
    if !address.ip().is_loopback() {
        return Err(format!("{url}: only loopback addresses are read"));
    }
    let fail = |error: std::io::Error| format!("{url}: {error}");
    let mut stream = TcpStream::connect_timeout(&address, LIMIT).map_err(fail)?;
    stream.set_read_timeout(Some(LIMIT)).map_err(fail)?;
    stream
        .write_all(format!("GET {path} HTTP/1.0\r\nHost: {host}\r\nConnection: close\r\n\r\n").as_bytes())
        .map_err(fail)?;
    let mut bytes = Vec::new();
    stream.take(BYTES_MAX).read_to_end(&mut bytes).map_err(fail)?;
    let text = String::from_utf8_lossy(&bytes);
    let (head, body) = text.split_once("\r\n\r\n").ok_or_else(|| format!("{url}: no HTTP answer"))?;
    let status = head.split_whitespace().nth(1).unwrap_or_default();
    if status == "200" { Ok(body.to_owned()) } else { Err(format!("{url}: answered {status}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# HELP sent_total x\n# TYPE sent_total counter\nsent_total{to=\"a b}\"} 2\nsent_total{to=\"c\"} 3 1700\n\
                        unknown_records 1e0\nnonsense\n{} \n";

    #[test]
    fn samples_keep_their_labels_and_sum_up_by_name() {
        let samples = samples(PAGE);
        assert_eq!(samples.get("sent_total{to=\"c\"}"), Some(&3.0));
        let names = [("sent_total", "attempts"), ("unknown_records", "unknown"), ("absent", "created")];
        let names = names.map(|(own, canonical)| (own.to_owned(), canonical.to_owned())).into();
        let values = canonical(&samples, &names);
        assert_eq!(values, [("attempts".to_owned(), 5), ("unknown".to_owned(), 1)].into());
    }

    #[test]
    fn only_loopback_is_read() {
        for url in ["http://192.0.2.1:80/metrics", "https://127.0.0.1:1/", "http://nowhere/"] {
            assert!(fetch(url).is_err(), "{url}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_page_is_too_strange(page in ".{0,200}") {
            let _ = samples(&page);
        }
    }
}
