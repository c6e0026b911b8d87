//! The program `outbox-worker`; all of it is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> =
        std::env::args_os().skip(1).map(|arg| arg.to_string_lossy().into_owned()).collect();
    ExitCode::from(u8::try_from(outbox_worker::main(&args)).unwrap_or(1))
}
