//! The codes of what is said about a run as a whole. What is said about files has codes of `killpoint_scenarios`.

killpoint_model::diagnostic_codes! {
    /// Why a run, or a look at a stored one, gives no verdict.
    pub enum Code {
        UnknownBoundary = "unknown-boundary" {
            summary: "a text that is no boundary was given as one",
            explanation: "A boundary is `source:point#ordinal`, such as `provider:committed#1`, or a canonical name, such as \
                `item-claimed`. The ordinal counts from 1 over the whole process tree of a trial and is 1 where it is left \
                out. `killpoint list boundaries` shows the sources; a run's report shows the hits that the worker reached.",
            example: "killpoint run --boundary provider:committed#1",
        }
        UnknownScenario = "unknown-scenario" {
            summary: "neither a scenario of the library nor a file",
            explanation: "What was given is no name that `killpoint list scenarios` shows, and there is no file of that name. \
                A path is taken from the current folder.",
            example: "killpoint run --scenario late-accept",
        }
        BadDepth = "bad-depth" {
            summary: "depth 2 does not go with the other choices",
            explanation: "Depth 2 kills once more in the recovery from each kill of a sweep. So it needs a sweep in one \
                process, and it has a time limit of its own, which means nothing at depth 1. Leave out what the message \
                names.",
            example: "killpoint run --depth 2 --time 10m",
        }
        BadBaseline = "bad-baseline" {
            summary: "a part of a run can't write the file of known failures",
            explanation: "A shard sees only a part of the violations, so that what it took for stale or for new would depend \
                on how the run was divided. Shards can be held against the file; a run in one process updates it.",
            example: "killpoint run --baseline known.toml --update-baseline",
        }
        BadParameter = "bad-parameter" {
            summary: "a fault can't do anything with its parameters",
            explanation: "A fault of a scenario has parameters under `with`. One of them is unknown to the fault, is missing, \
                or has a value that makes no sense. `killpoint explain FAULT` shows what it takes.",
            example: "killpoint explain stop",
        }
        TooManyRegressions = "too-many-regressions" {
            summary: "more stored counterexamples than a sweep tries first",
            explanation: "Counterexamples that exploring kept are tried before anything else, and there are so many that the \
                sweep would hardly begin. Run them as scenarios by themselves, or remove those that show the same bug.",
            example: "killpoint run --scenario killpoint/regressions/explored-0123456789ab.toml",
        }
        SetupFailed = "setup-failed" {
            summary: "the worker could not be started, or the machine did not let a trial begin",
            explanation: "Something that has to work before anything can be killed did not: the worker's program was not \
                found, a command of `[state]` failed, or the system refused what a trial needs. Nothing is said about the \
                worker's correctness. Run the command of the message by hand in the worker's folder.",
            example: "killpoint run -- python3 worker.py",
        }
        UnusableFile = "unusable-file" {
            summary: "a file or folder of a run can't be made, written or read",
            explanation: "The system refused an operation on this path: no permission, no space, a folder where a file should \
                be, or a run's folder that is not empty. A run never writes over another one: name a new folder with \
                `--run-dir`, or make room.",
            example: "killpoint run --run-dir /tmp/run-1",
        }
        ShardsApart = "shards-apart" {
            summary: "stored runs are no parts of one run",
            explanation: "Shards are merged where they were asked for the same trials of the same worker in the same number \
                of parts. These two differ, as the message says; put together they would give a verdict on neither.",
            example: "killpoint merge shard-1 shard-2 --out whole",
        }
        BadRun = "bad-run" {
            summary: "a stored run can't be understood",
            explanation: "The folder holds no run, or one that was cut short, changed by hand, or written by a newer \
                killpoint. A run's folder has a `run.json` and a folder per trial; copy it whole, and read it with the \
                killpoint that wrote it.",
            example: "killpoint report killpoint-runs/1764446400000-4711",
        }
        UnreadableFile = "unreadable-file" {
            summary: "a file that was named can't be read",
            explanation: "There is no such file, it is a folder, or reading it is not allowed. Paths are taken from the current \
                folder. A configuration is looked for as `killpoint.toml` where none is named.",
            example: "killpoint run --config service/killpoint.toml",
        }
        NotUtf8 = "not-utf-8" {
            summary: "a file is not in UTF-8",
            explanation: "TOML files are UTF-8. The mark shows the first bytes that are not; such files come from editors and \
                shells that write UTF-16 or Latin-1. Save the file as UTF-8; a byte order mark does no harm.",
            example: "iconv -f utf-16 -t utf-8 killpoint.toml",
        }
        FileTooLarge = "file-too-large" {
            summary: "a file is larger than any configuration or scenario should be",
            explanation: "Reading stops at a limit, so that a path that was mistaken for a configuration, such as a database \
                or a log, gives an error at once. Actions that are generated need no tables: `actions = 1000`.",
            example: "actions = 1000",
        }
    }
}
