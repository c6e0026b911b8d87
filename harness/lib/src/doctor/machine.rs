//! Each thing that trials need of a machine, as something that is really tried, with a limit.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use killpoint_engine::{machine, os};
use killpoint_model::event::{Containment, ProcessLimit};
use serde::Serialize;

use super::State;

/// How long one try may take.
const LIMIT: Duration = Duration::from_secs(10);
/// Free space with which a run of some hundred trials fits.
const ROOMY_BYTES: u64 = 1 << 30;
/// Free space without which not even a few trials fit.
const TIGHT_BYTES: u64 = 64 << 20;

/// One thing to try.
#[derive(Debug)]
pub struct Probe {
    /// Unique kebab-case name.
    pub name: &'static str,
    /// What it is for, one line without a full stop.
    pub summary: &'static str,
    /// Faults that can't be staged without it.
    pub faults: &'static [&'static str],
    /// Whether no trial can run without it.
    pub vital: bool,
    way: Way,
}

/// How it is tried.
#[derive(Debug)]
enum Way {
    /// By a call; the folder is an empty one of its own.
    Call(fn(&Path) -> Outcome),
    /// By asking a program for its version.
    Program(&'static str),
    /// Not at all: it is named because people look for it.
    Said(&'static str),
}

/// What came of a try.
#[derive(Debug)]
struct Outcome {
    state: State,
    said: String,
    to_do: Option<String>,
}

/// One thing that was tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tried {
    /// The probe's name.
    pub name: &'static str,
    /// What it is for.
    pub summary: &'static str,
    /// What came of it.
    pub state: State,
    /// Whether no trial can run without it.
    pub vital: bool,
    /// What was seen, a fragment.
    pub said: String,
    /// What to do, where it does not work.
    pub to_do: Option<String>,
    /// Faults that can't be staged without it.
    pub faults: &'static [&'static str],
}

/// Every probe, in the order of the page.
pub static PROBES: &[Probe] = &[
    Probe {
        name: "containment",
        summary: "holding a worker's whole process tree together, so that all of it can be killed",
        faults: &[],
        vital: true,
        way: Way::Call(containment),
    },
    Probe {
        name: "process-limit",
        summary: "keeping a worker from filling the machine with processes",
        faults: &[],
        vital: false,
        way: Way::Call(process_limit),
    },
    Probe {
        name: "loopback",
        summary: "the fake provider's address",
        faults: &[],
        vital: true,
        way: Way::Call(loopback),
    },
    Probe {
        name: "mark-socket",
        summary: "a Unix socket for marks, whose path must be short",
        faults: &[],
        vital: true,
        way: Way::Call(mark_socket),
    },
    Probe {
        name: "disk",
        summary: "room for histories and copies of the state",
        faults: &[],
        vital: true,
        way: Way::Call(disk),
    },
    Probe {
        name: "worker-clock",
        summary: "moving a worker's wall clock: tracing it, and patching its vDSO",
        faults: &["worker-clock"],
        vital: false,
        way: Way::Call(clock),
    },
    Probe {
        name: "small-file-system",
        summary: "a state directory that runs out of space: a mount of its own",
        faults: &["store-no-space"],
        vital: false,
        way: Way::Call(|folder| plain(machine::small_file_system(folder))),
    },
    Probe {
        name: "read-only-store",
        summary: "a store that can't be written for a time",
        faults: &["store-read-only"],
        vital: false,
        way: Way::Call(|folder| plain(machine::read_only_store(folder))),
    },
    Probe {
        name: "unsynced-pages",
        summary: "which writes a power cut would take",
        faults: &["power-cut"],
        vital: false,
        way: Way::Call(|folder| plain(machine::unsynced_pages(folder))),
    },
    Probe {
        name: "python3",
        summary: "the Python client for marks, and the pytest plugin",
        faults: &[],
        vital: false,
        way: Way::Program("python3"),
    },
    Probe {
        name: "node",
        summary: "the Node client for marks, and the node:test package",
        faults: &[],
        vital: false,
        way: Way::Program("node"),
    },
    Probe {
        name: "libfaketime",
        summary: "another way to move clocks",
        faults: &[],
        vital: false,
        way: Way::Said("clocks are moved through the vDSO, so that it is not needed, and not looked for"),
    },
];

/// Tries each of them below `folder`, which is made where it is not there.
pub(super) async fn try_all(folder: &Path) -> Vec<Tried> {
    let mut all = Vec::new();
    for probe in PROBES {
        let outcome = match probe.way {
            Way::Call(call) => called(call, folder.to_owned()).await,
            Way::Program(name) => program(name).await,
            Way::Said(text) => Outcome { state: State::NotUsed, said: text.into(), to_do: None },
        };
        all.push(Tried {
            name: probe.name,
            summary: probe.summary,
            state: outcome.state,
            vital: probe.vital,
            said: outcome.said,
            to_do: outcome.to_do,
            faults: probe.faults,
        });
    }
    all
}

/// Calls it on a thread that nobody waits for beyond the limit.
async fn called(call: fn(&Path) -> Outcome, folder: PathBuf) -> Outcome {
    let work = tokio::task::spawn_blocking(move || {
        let scratch = match scratch(&folder) {
            Ok(scratch) => scratch,
            Err(error) => {
                let said = format!("nothing can be written in {}: {error}", folder.display());
                return missing(said, "go to a folder that can be written, or name one with --run-dir");
            }
        };
        call(scratch.path())
    });
    match tokio::time::timeout(LIMIT, work).await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(error)) => missing(format!("trying it failed: {error}"), "report this"),
        Err(_) => missing(format!("no answer within {} s", LIMIT.as_secs()), "look for what blocks it"),
    }
}

/// An empty folder where a run would have its files: in `folder`, or in the nearest one above that is there.
fn scratch(folder: &Path) -> std::io::Result<tempfile::TempDir> {
    let absolute = std::path::absolute(folder)?;
    let there = absolute.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("/"));
    tempfile::Builder::new().prefix(".killpoint-doctor-").tempdir_in(there)
}

fn works(said: impl Into<String>) -> Outcome {
    Outcome { state: State::Works, said: said.into(), to_do: None }
}

fn missing(said: impl Into<String>, to_do: &str) -> Outcome {
    Outcome { state: State::Missing, said: said.into(), to_do: Some(to_do.to_owned()) }
}

/// What a try says; the part behind the semicolon is what to do.
fn plain(tried: Result<(), String>) -> Outcome {
    match tried {
        Ok(()) => works("tried, and it works"),
        Err(why) => match why.split_once("; ") {
            Some((why, to_do)) => missing(why, to_do),
            None => Outcome { state: State::Missing, said: why, to_do: None },
        },
    }
}

fn containment(_: &Path) -> Outcome {
    match os::probe() {
        Ok(can) => match (can.containment, can.containment_reason) {
            (Containment::PidNamespace, None) => works("a PID namespace of its own: the kernel empties it"),
            (Containment::PidNamespace, Some(lacks)) => Outcome {
                state: State::Limited,
                said: format!("a PID namespace of its own, but: {lacks}"),
                to_do: None,
            },
            (Containment::Subreaper, reason) => Outcome {
                state: State::Limited,
                said: format!(
                    "a child subreaper that is swept until nothing is left; a PID namespace can't be had: {}",
                    reason.unwrap_or_default()
                ),
                to_do: Some(
                    "nothing has to be done; with user namespaces a kill is surer and quicker".into(),
                ),
            },
        },
        Err(error) => missing(error.to_string(), "run where /proc is there and processes may be made"),
    }
}

fn process_limit(_: &Path) -> Outcome {
    match os::probe() {
        Ok(can) if can.process_limit == ProcessLimit::Watch => Outcome {
            state: State::Limited,
            said: "the harness counts and kills: no limit of the kernel binds here".into(),
            to_do: Some("run as an ordinary user, or on Linux 6.14 with PID namespaces".into()),
        },
        Ok(can) => works(format!("by the kernel: {}", can.process_limit)),
        Err(error) => Outcome { state: State::Missing, said: error.to_string(), to_do: None },
    }
}

fn loopback(_: &Path) -> Outcome {
    let exchange = || -> std::io::Result<()> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let mut client = TcpStream::connect_timeout(&address, LIMIT)?;
        let (mut served, _) = listener.accept()?;
        client.set_read_timeout(Some(LIMIT))?;
        served.write_all(b"x")?;
        client.read_exact(&mut [0])
    };
    match exchange() {
        Ok(()) => works("a byte went through 127.0.0.1"),
        Err(error) => missing(format!("127.0.0.1 can't be used: {error}"), "bring up the interface `lo`"),
    }
}

fn mark_socket(_: &Path) -> Outcome {
    match machine::mark_socket() {
        Ok(length) => works(format!("opened; its path has {length} bytes of 107")),
        Err(why) => missing(why, "set TMPDIR to a short path that can be written, such as /tmp"),
    }
}

fn disk(folder: &Path) -> Outcome {
    match machine::free_bytes(folder) {
        Ok(free) if free >= ROOMY_BYTES => works(format!("{} GiB are free where runs are put", free >> 30)),
        Ok(free) if free >= TIGHT_BYTES => Outcome {
            state: State::Limited,
            said: format!("{} MiB are free where runs are put", free >> 20),
            to_do: Some("remove old runs, or name a roomier folder with --run-dir".into()),
        },
        Ok(free) => missing(
            format!("only {} MiB are free where runs are put", free >> 20),
            "remove old runs, or name a roomier folder with --run-dir",
        ),
        Err(why) => missing(why, "name a folder that can be written with --run-dir"),
    }
}

fn clock(_: &Path) -> Outcome {
    match os::probe_clock() {
        Ok(()) => works("a process was traced, and its clock moved"),
        Err(why) => missing(
            why,
            "needs x86-64 and ptrace (in a container: --cap-add SYS_PTRACE); or let the worker add \
             KILLPOINT_CLOCK_OFFSET_MS to its clock, and write `clock = \"environment\"` under `[worker]`",
        ),
    }
}

async fn program(name: &'static str) -> Outcome {
    let lacking = || {
        let to_do =
            format!("install {name} where workers or tests are written for it; else nothing has to be done");
        move |said: String| Outcome { state: State::Missing, said, to_do: Some(to_do) }
    };
    let env: BTreeMap<String, String> =
        std::env::var("PATH").map(|path| ("PATH".into(), path)).into_iter().collect();
    let Ok(path) = os::find_program(name, &env, Path::new("/")) else {
        return lacking()(format!("`{name}` is not on the PATH"));
    };
    let asked = tokio::process::Command::new(path)
        .arg("--version")
        .stdin(std::process::Stdio::null())
        .kill_on_drop(true)
        .output();
    match tokio::time::timeout(LIMIT, asked).await {
        Ok(Ok(output)) if output.status.success() => {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let first: String = text.lines().next().unwrap_or_default().chars().take(60).collect();
            works(if first.is_empty() { "it runs".to_owned() } else { first })
        }
        Ok(Ok(output)) => lacking()(format!("`{name} --version` failed: {}", output.status)),
        Ok(Err(error)) => lacking()(format!("`{name}` can't be started: {error}")),
        Err(_) => lacking()(format!("`{name} --version` gave no answer within {} s", LIMIT.as_secs())),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_slice_is_well_formed() {
        let names: BTreeSet<&str> = PROBES.iter().map(|probe| probe.name).collect();
        assert_eq!(names.len(), PROBES.len());
        let known: Vec<&str> = crate::catalog().faults.iter().map(|entry| entry.name).collect();
        for probe in PROBES {
            assert!(!probe.summary.is_empty() && !probe.summary.ends_with('.'), "{}", probe.name);
            assert!(probe.faults.iter().all(|fault| known.contains(fault)), "{}", probe.name);
        }
    }

    #[tokio::test]
    async fn everything_is_tried_and_nothing_is_left_behind() {
        let folder = tempfile::tempdir().unwrap();
        let tried = try_all(&folder.path().join("not/there")).await;
        assert_eq!(tried.len(), PROBES.len());
        for one in &tried {
            assert!(!one.said.is_empty(), "{one:?}");
            // What trials can't do without is there, or no test of this repository runs.
            assert!(!one.vital || one.state != State::Missing, "{one:?}");
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[tokio::test]
    async fn a_folder_that_can_not_be_written_is_said() {
        let outcome = called(disk, "/proc/1".into()).await;
        assert_eq!(outcome.state, State::Missing);
        assert!(outcome.said.contains("nothing can be written in /proc/1"), "{}", outcome.said);
    }

    #[test]
    fn what_to_do_is_told_from_why() {
        let outcome = plain(Err("no mount (EPERM); run as root".into()));
        assert_eq!(
            (outcome.said.as_str(), outcome.to_do.as_deref()),
            ("no mount (EPERM)", Some("run as root"))
        );
    }
}
