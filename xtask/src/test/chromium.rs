//! The browser in which the HTML report is tried.

use super::environment::Prepared;
use super::tools::find;

/// Names under which systems install it.
const NAMES: &[&str] = &["chromium", "chromium-browser", "google-chrome"];

pub(super) fn prepare() -> Prepared {
    match NAMES.iter().find_map(|name| find(name)) {
        Some(program) => Prepared::Ready(vec![("KILLPOINT_TEST_CHROMIUM", program.into())]),
        None => Prepared::Missing { tests: "Chromium", why: "no `chromium` on the PATH".to_owned() },
    }
}
