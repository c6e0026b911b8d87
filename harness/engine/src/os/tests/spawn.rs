//! What a worker gets, and what happens when it can't start.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use nix::errno::Errno;

use super::Fixture;
use crate::os::{OsError, SlotEvent};

#[test]
fn a_worker_inherits_nothing_but_its_three_descriptors() {
    // Open in the harness, and in the inits of other slots.
    let _others: Vec<_> = Fixture::each().collect();
    let _file = std::fs::File::open("/etc/passwd").unwrap();
    for f in Fixture::each() {
        assert_eq!(
            f.output_of("ls /proc/self/fd").split_whitespace().collect::<Vec<_>>(),
            ["0", "1", "2", "3"]
        );
        assert_eq!(f.output_of("readlink /proc/self/fd/0").trim(), "/dev/null");
    }
}

#[test]
fn a_worker_starts_with_clean_signals_and_its_own_session() {
    for f in Fixture::each() {
        let status = f.output_of("exec cat /proc/self/status /proc/self/limits");
        for line in ["SigBlk:\t0000000000000000", "SigIgn:\t0000000000000000", "SigCgt:\t0000000000000000"] {
            assert!(status.contains(line), "{status}");
        }
        let core = status.lines().find(|line| line.starts_with("Max core file size")).unwrap();
        assert_eq!(core.split_whitespace().nth(4), Some("0"), "{core}");
        let stat = f.output_of("exec cat /proc/self/stat");
        let fields: Vec<&str> = stat.split_whitespace().collect();
        // Process, group and session are the same number.
        assert!(fields[0] == fields[4] && fields[0] == fields[5], "{stat}");
    }
}

#[test]
fn environment_and_directory_are_as_given() {
    for f in Fixture::each() {
        let env = f.output_of("exec env");
        let mut names: Vec<&str> = env.lines().filter_map(|line| line.split('=').next()).collect();
        names.retain(|name| !["PWD", "OLDPWD", "_", "SHLVL"].contains(name));
        names.sort_unstable();
        assert_eq!(names, ["MARKED", "PATH"]);
        let here = std::fs::canonicalize(f.dir.path()).unwrap();
        assert_eq!(Path::new(f.output_of("pwd -P").trim()), here);
    }
}

#[test]
fn a_command_that_cannot_start_is_named_and_the_slot_goes_on() {
    for f in Fixture::each() {
        let write = |name: &str, text: &str, mode| {
            std::fs::write(f.path(name), text).unwrap();
            std::fs::set_permissions(f.path(name), std::fs::Permissions::from_mode(mode)).unwrap();
        };
        write("plain", "hello", 0o644);
        write("no-interpreter", "#!/nowhere/interpreter\n", 0o755);
        write("no-first-line", "echo hello\n", 0o755);

        assert!(matches!(f.spawn(&["no-such-tool"]), Err(OsError::CommandNotFound { .. })));
        let not_executable = |argv: &str| match f.spawn(&[argv]) {
            Err(OsError::NotExecutable { errno, .. }) => errno,
            other => panic!("{other:?}"),
        };
        assert_eq!(not_executable("./plain"), Errno::EACCES);
        assert_eq!(not_executable("./no-interpreter"), Errno::ENOENT);
        assert_eq!(not_executable("./no-first-line"), Errno::ENOEXEC);
        assert!(matches!(f.spawn(&[]), Err(OsError::InvalidCommand { .. })));
        assert!(matches!(f.spawn(&["sh", "a\0b"]), Err(OsError::InvalidCommand { .. })));

        assert_eq!(f.output_of("echo fine").trim(), "fine");
        assert_eq!(f.slot.kill_all().unwrap().reaped, 1);
    }
}

#[test]
fn a_directory_that_is_gone_is_named() {
    for f in Fixture::each() {
        let gone = f.path("gone");
        let null = || std::fs::File::create("/dev/null").unwrap().into();
        let outcome = f.slot.spawn(crate::os::SpawnSpec {
            argv: &["/bin/sh".to_owned()],
            env: &std::collections::BTreeMap::new(),
            cwd: &gone,
            clock_offset_ms: f.clock_offset_ms,
            stdout: null(),
            stderr: null(),
        });
        assert!(
            matches!(&outcome, Err(OsError::WorkingDirectory { path, errno: Errno::ENOENT }) if *path == gone),
            "{outcome:?}"
        );
    }
}

#[test]
fn a_large_command_and_a_short_life_lose_nothing() {
    for f in Fixture::each() {
        let long = "x".repeat(100_000);
        let words: Vec<&str> =
            ["sh", "-c", "echo $#", "name"].into_iter().chain([long.as_str(); 12]).collect();
        let pid = f.spawn(&words).unwrap();
        assert_eq!(f.event(), SlotEvent::RootExited { pid, code: Some(0), signal: None });
        assert_eq!(f.out().trim(), "12");
        assert_eq!(f.event(), SlotEvent::Emptied);
        for _ in 0..50 {
            let pid = f.spawn(&["true"]).unwrap();
            assert!(pid > 1);
            assert_eq!(f.event(), SlotEvent::RootExited { pid, code: Some(0), signal: None });
            assert_eq!(f.event(), SlotEvent::Emptied);
        }
    }
}
