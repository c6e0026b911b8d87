//! A port that is taken, and a disk that is full.

use std::io::{BufRead, BufReader};
use std::process::Command;

use killpoint::model::ExitCode::SetupFailed;

use crate::bench::{Bench, end_of, started};

#[test]
fn a_port_that_is_taken_is_named() {
    let bench = Bench::new();
    let mut first = bench.start(&["provider"]);
    let mut line = String::new();
    // Ends with the program at the latest.
    BufReader::new(first.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let ready: serde_json::Value = serde_json::from_str(&line).unwrap();
    let port = ready["rest"].as_str().unwrap().rsplit(':').next().unwrap().to_owned();
    bench.killpoint(&["provider", "--port", &port]).exits(SetupFailed).complains(&[&port, "in use"]);
    first.kill().unwrap();
    end_of(first);
}

#[test]
#[expect(clippy::print_stdout, reason = "a skipped test must be seen in its output")]
fn a_full_disk_is_never_green_and_says_so() {
    let bench = Bench::with_worker("post(padding='x' * 30000)");
    std::fs::create_dir(bench.path("small")).unwrap();
    for size in ["4k", "16k", "64k", "128k"] {
        let script = format!(
            "mount -t tmpfs -o size={size} tmpfs small || exit 77; exec \"$0\" run --run-dir small/run \
             --boundary provider:committed#1 -- python3 worker.py"
        );
        let program = env!("CARGO_BIN_EXE_killpoint");
        let said = end_of(started(
            Command::new("unshare").args(["-Urm", "sh", "-c", &script, program]).current_dir(bench.path("")),
        ));
        if said.code == Some(77) || said.err.contains("unshare: ") {
            println!("skipped: no small disk can be mounted here: {}", said.err);
            return;
        }
        let said = said.never_panics();
        assert!(matches!(said.code, Some(2 | 4)), "{size}: {said:?}");
        said.says(&["No space left on device"]);
    }
}
