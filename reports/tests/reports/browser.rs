//! The page in a real browser: what `tests/browser/page.test.mjs` finds.

use std::path::{Path, PathBuf};
use std::process::Command;

use killpoint_reports::View;

use crate::flood::flood;
use crate::golden::golden;
use crate::html::{page, poisoned};
use crate::stored::stored;

/// Text of a worker that tries to be more.
const HOSTILE: &str = "<script>window.ran='script'</script>\"><img src=x onerror=\"window.ran='image'\">\
                       </script></style></noscript>'\u{202e}\u{2066}\0{{7*7}}<!--&lt;b&gt;\u{2028}";

/// What `cargo xtask test` prepares; `None` where it could not.
fn prepared() -> Option<[PathBuf; 3]> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let [node, modules, chromium] =
        ["KILLPOINT_TEST_NODE", "KILLPOINT_TEST_NODE_MODULES", "KILLPOINT_TEST_CHROMIUM"].map(variable);
    Some([node?, modules?.join("browser"), chromium?])
}

#[test]
#[expect(clippy::print_stdout, reason = "a test that skips says so")]
fn in_chromium() {
    let Some([node, modules, chromium]) = prepared() else {
        let all = std::env::var_os("KILLPOINT_REQUIRE_ALL").is_some_and(|value| value == "1");
        assert!(
            !all,
            "Node or Chromium is missing; run `cargo xtask test`, which prepares what can be prepared"
        );
        println!("skipped: the page in Chromium: Node or Chromium is missing; run `cargo xtask test`");
        return;
    };
    let pages = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pages");
    std::fs::create_dir_all(&pages).unwrap();
    let (stored, golden) = (stored(), golden());
    for (name, view) in [
        ("stored", View::new(&stored.record, &stored.histories)),
        ("profile", View::new(&golden.record, &golden.histories)),
        ("hostile", poisoned(HOSTILE)),
        ("flood", flood(10_000)),
    ] {
        std::fs::write(pages.join(name).with_extension("html"), page(&view)).unwrap();
    }
    let test = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser/page.test.mjs");
    let output = Command::new(node)
        .arg("--test")
        .arg(test)
        .env("PAGES", &pages)
        .env("MODULES", modules)
        .env("CHROMIUM", chromium)
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].map(|said| String::from_utf8_lossy(&said).into_owned());
    assert!(output.status.success(), "{}\n{}", said[0], said[1]);
}
