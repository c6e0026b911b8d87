//! The codes of what is said about the command line and about the program's own streams.

use killpoint::model::Entry;

killpoint::model::diagnostic_codes! {
    /// What is wrong with what was typed, or around the program.
    pub(crate) enum Code {
        Usage = "usage" {
            summary: "the command line can't be understood",
            explanation: "A subcommand or flag is unknown, a value is missing or impossible, or two flags exclude each other. \
                The nearest name is suggested where one is near. `killpoint --help` lists the subcommands, \
                `killpoint SUBCOMMAND --help` the flags of one.",
            example: "killpoint run --help",
        }
        UnknownName = "unknown-name" {
            summary: "there is nothing to explain under this name",
            explanation: "`killpoint explain` knows every name that `killpoint list` shows, ids of kinds of fault, boundaries, \
                exit codes and codes of diagnostics. Names are written as they are listed, in small letters with dashes.",
            example: "killpoint explain no-lost-action",
        }
        UnknownKind = "unknown-kind" {
            summary: "nothing of this kind can be listed",
            explanation: "`killpoint list` without a word lists everything, with the names of the kinds as headings.",
            example: "killpoint list faults",
        }
        UnknownBug = "unknown-bug" {
            summary: "the built-in worker has no such bug",
            explanation: "Bugs are seeded into the demo's worker to show that the alarm works. `killpoint selftest` lists them \
                and shows that each one turns red.",
            example: "killpoint demo --bug blind-resend",
        }
        UnknownProfile = "unknown-profile" {
            summary: "there is no such ready-made selection of trials",
            explanation: "A profile chooses the trials itself: `restart-safe` is the sweep and every scenario that the \
                configuration can stage, `pre-hosting` answers a checklist as well. `killpoint list profiles` shows them.",
            example: "killpoint run --profile restart-safe",
        }
        UnknownFormat = "unknown-format" {
            summary: "there is no such report format",
            explanation: "A report is asked for by its format and a path. `killpoint list formats` shows the formats. It is \
                checked before the run, so that a misspelt format does not cost one.",
            example: "killpoint run --report json=report.json",
        }
        BadReport = "bad-report" {
            summary: "a report without a format or without a path",
            explanation: "A report is FORMAT=PATH: the format decides what is written, the path where to. The flag may be \
                given several times.",
            example: "killpoint run --report json=report.json",
        }
        BadToken = "bad-token" {
            summary: "a text that is neither a replay token nor a file",
            explanation: "A token holds a whole plan and begins with `kp1:`. It has a check sum, so that one that was cut by \
                a terminal or lost a letter on the way is noticed; copy it whole, from the report that printed it.",
            example: "killpoint replay killpoint/regressions/explored-0123456789ab.toml",
        }
        RealSurroundings = "real-surroundings" {
            summary: "something around the worker looks like the real world",
            explanation: "A warning: the environment that the worker is given holds what looks like a credential that works, or \
                the address of a real provider. A worker that is killed and started again would use it again and again. \
                Point it at `{provider.rest}`, or pass on only what is needed with `--clean-env`.",
            example: "killpoint run --clean-env --keep-env SERVICE_NAME",
        }
        NoBaseline = "no-baseline" {
            summary: "the file of known failures is not there",
            explanation: "A run was to be held against a list of known failures, and there is none yet. Nothing is known \
                then, and nobody can tell whether that was meant or the path is wrong. The same command with \
                `--update-baseline` writes the file with what is violated today.",
            example: "killpoint run --baseline known.toml --update-baseline",
        }
        FileExists = "file-exists" {
            summary: "a configuration is there already",
            explanation: "`killpoint init` never overwrites what somebody wrote. Look at its proposal beside the file that is \
                there, and take over what is missing; or let it be overwritten.",
            example: "killpoint init --print",
        }
        NobodyToAsk = "nobody-to-ask" {
            summary: "there is no terminal on which a question could be answered",
            explanation: "`killpoint init` asks before it writes, and standard input is no terminal, as in a CI job. Say in \
                advance what is wanted.",
            example: "killpoint init --yes",
        }
        NoProject = "no-project" {
            summary: "the project's folder can't be read",
            explanation: "There is no such folder, it is a file, or it may not be read. A path is taken from the current \
                folder.",
            example: "killpoint init service",
        }
        NoWorker = "no-worker" {
            summary: "nothing in the folder looks like a worker",
            explanation: "No program was found that speaks to a provider, so that a configuration would be a guess about \
                nothing. Name the folder in which the worker lies, write `killpoint.toml` by hand, or run a command without \
                one.",
            example: "killpoint run -- ./worker",
        }
        TwoWorkers = "two-workers" {
            summary: "two workers were named",
            explanation: "A configuration, a command after `--` and a token of the built-in worker each name the worker. Which \
                of them was meant is not guessed: give one.",
            example: "killpoint run -- python3 worker.py",
        }
        TwoStrategies = "two-strategies" {
            summary: "two ways to choose the trials were asked for",
            explanation: "Scenarios, a sweep and a profile each choose the trials of a run. They don't mix, because a verdict \
                is on one selection. Run them one by one.",
            example: "killpoint run --scenario late-accept",
        }
        NoProgram = "no-program" {
            summary: "this program can't find itself",
            explanation: "The demo's worker is this program, started again. The system does not say where its file is, often \
                because it was replaced or removed while it ran.",
            example: "killpoint demo",
        }
        NoFolder = "no-folder" {
            summary: "the current folder can't be read",
            explanation: "A worker without a configuration is started in the current folder, which was removed or may not be \
                entered. Change into a folder that is there.",
            example: "killpoint run -- ./worker",
        }
        NoThreads = "no-threads" {
            summary: "the system lets this program start no threads",
            explanation: "Trials run on threads. A limit on processes, threads or memory is reached: see `ulimit -u`, or the \
                limits of the container.",
            example: "killpoint run --jobs 1",
        }
        MarkFailed = "mark-failed" {
            summary: "a mark was not taken",
            explanation: "`killpoint mark` inside a trial speaks to the harness over a socket, and waits for its answer. The \
                name can't be one, or the harness did not answer: the trial may be over. Outside a trial a mark does \
                nothing, and does not fail.",
            example: "killpoint mark item-claimed",
        }
        ProviderFailed = "provider-failed" {
            summary: "the fake provider can't be started",
            explanation: "A port is taken, or the script is no JSON array of rules. Leave the port out for any free one; it is \
                told on standard output.",
            example: "killpoint provider --dedupe",
        }
        ReportUnwritten = "report-unwritten" {
            summary: "a report can't be written to its path",
            explanation: "The folder is not there, is not writable, or has no space. The run itself is kept: \
                `killpoint report` writes the report again, without running anything.",
            example: "killpoint report RUN --report json=report.json",
        }
        FileUnwritten = "file-unwritten" {
            summary: "a configuration or manual pages can't be written",
            explanation: "The folder can't be made, is not writable, or has no space. `killpoint init --print` and \
                `killpoint man` print the same to standard output.",
            example: "killpoint man --out share/man/man1",
        }
        OutputUnwritten = "output-unwritten" {
            summary: "standard output can't be written",
            explanation: "The file or device that standard output goes to refuses: most often it is full. A closed pipe is no \
                error.",
            example: "killpoint report RUN",
        }
        Internal = "internal" {
            summary: "a bug in killpoint",
            explanation: "Something that killpoint itself made does not hold. Nothing was written on the strength of it. Please \
                report it, with the command and what it printed.",
            example: "killpoint --version",
        }
        Interrupted = "interrupted" {
            summary: "the run was interrupted",
            explanation: "Ctrl-C or a termination signal ended the run. Its workers are dead, what was recorded is kept, and \
                its verdict is inconclusive unless a violation was found. `killpoint report` shows it.",
            example: "killpoint report RUN",
        }
    }
}

/// Every code of every part of the program.
pub(crate) fn entries() -> impl Iterator<Item = &'static Entry> {
    [killpoint::scenarios::Code::ENTRIES, killpoint::Code::ENTRIES, Code::ENTRIES].into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use killpoint::model::catalog::slice_problems;

    #[test]
    fn codes_are_unique_over_all_parts_and_each_is_explained() {
        let all: Vec<Entry> = entries().copied().collect();
        assert_eq!(slice_problems(&all), [""; 0]);
    }
}
