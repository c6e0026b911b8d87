//! What a page shows, compared with what was printed.

/// The first line of a page that the program did not print, at its place.
pub(crate) fn first_missing<'s>(shown: &'s [String], printed: &str) -> Option<&'s str> {
    let printed: Vec<String> = printed.lines().filter(|line| !line.is_empty()).map(steady).collect();
    let mut rest = printed.iter();
    let mut gap = false;
    for line in shown {
        if line == "…" {
            gap = true;
            continue;
        }
        let wanted = steady(line);
        let found = if gap { rest.any(|next| *next == wanted) } else { rest.next() == Some(&wanted) };
        if !found {
            return Some(line);
        }
        gap = false;
    }
    None
}

/// A line without what differs from run to run: times, and numbers of events.
fn steady(line: &str) -> String {
    let mut words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    let is_timeline = words.iter().any(|word| word.starts_with('+') && is_time(&word[1..]));
    let events_from = words.iter().position(|word| word == "events").unwrap_or(words.len());
    for (index, word) in words.iter_mut().enumerate() {
        let bare = word.trim_start_matches('+').trim_end_matches(['.', ',', ';']).to_owned();
        let is_event = index > events_from || (is_timeline && index < 2);
        if is_time(&bare) || (is_event && bare.chars().all(|c| c.is_ascii_digit())) {
            "N".clone_into(word);
        }
    }
    words.join(" ")
}

fn is_time(word: &str) -> bool {
    let number = word.strip_suffix("ms").or_else(|| word.strip_suffix('s'));
    number.is_some_and(|number| number.parse::<f64>().is_ok())
}

#[test]
fn a_page_that_shows_what_is_not_printed_is_found() {
    let shown = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
    let printed = "verdict  time\nholds  473ms\n\nend, events 3, 4\n";
    assert_eq!(first_missing(&shown(&["verdict time", "…", "end, events 7, 9"]), printed), None);
    assert_eq!(first_missing(&shown(&["verdict time", "holds 2.5s"]), printed), None);
    assert_eq!(
        first_missing(&shown(&["verdict time", "end, events 3, 4"]), printed),
        Some("end, events 3, 4")
    );
    assert_eq!(first_missing(&shown(&["…", "holds 1s", "…", "verdict time"]), printed), Some("verdict time"));
    assert_ne!(steady("2 effects"), steady("3 effects"));
}
