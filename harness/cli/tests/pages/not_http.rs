//! The stand-in for sendmail that a page shows, under a worker.

use std::fs;

use crate::commands::Fixture;
use crate::page::{Block, Step, blocks_of, is_there, root, skip};

const PAGE: &str = "docs/how-to/not-http.md";

/// Sends one mail unless it has, and trusts the exit code; a death in between is sent again.
const WORKER: &str = "#!/bin/sh\n\
    [ ! -e \"$STATE_DIR/sent\" ] || exit 0\n\
    printf 'To: ann@example.com\\nSubject: hello\\nMessage-ID: <m-1@example.com>\\n\\nTo: nobody\\n' | \"$SENDMAIL\" -t || exit 75\n\
    : > \"$STATE_DIR/sent\"\n";

#[test]
fn the_stand_in_for_sendmail_hands_mail_to_the_provider() {
    let blocks = blocks_of(&root().join(PAGE));
    let block = |language: &str| -> &Block {
        blocks.iter().find(|block| block.language == language).unwrap_or_else(|| panic!("no {language}"))
    };
    let step = |plan: &str, exit_code, shown: &[&str]| Step {
        place: block("bash").place.clone(),
        command: format!("killpoint run {plan}"),
        exit_code,
        shown: shown.iter().map(|line| (*line).to_owned()).collect(),
    };
    let killed = step(
        "--boundary provider:committed#1",
        1,
        &[
            "…",
            "✓ holds         baseline-again        ok                            1        1      1    302ms",
            "✗ violated      provider:committed#1  ok                            2        2      1    302ms",
            "…",
        ],
    );
    if !is_there("curl") {
        return skip("curl", &killed);
    }
    let fixture = Fixture::new();
    fixture.program("worker", WORKER);
    fs::create_dir(fixture.path("stand-ins")).unwrap();
    fixture.program("stand-ins/sendmail", &block("bash").text);
    fs::write(fixture.path("killpoint.toml"), &block("toml").text).unwrap();
    fixture.run(&killed, &killed.command, &[]);
}
