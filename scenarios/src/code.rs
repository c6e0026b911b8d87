//! The codes of what is said about configurations, scenario files and the trials that follow from them. A closed
//! list: tests show that each of them can be met.

killpoint_model::diagnostic_codes! {
    /// What kind of problem a diagnostic of this crate is about.
    pub enum Code {
        Syntax = "syntax" {
            summary: "the file is no TOML",
            explanation: "The text could not be read as TOML, so nothing in it was looked at. The mark shows where reading \
                stopped; the slip is there or just before it, often a quote or a bracket that is not closed. A list of \
                words stands in brackets, every text in quotes.",
            example: "command = [\"python3\", \"worker.py\"]",
        }
        UnknownKey = "unknown-key" {
            summary: "a key that nobody reads",
            explanation: "The key has no meaning in this section. It is an error, not a warning, because a setting that is \
                silently ignored would give a verdict on another worker than the one that was meant. Correct the spelling, \
                move the key to the section where it belongs, or remove it.",
            example: "[worker]\ncommand = [\"python3\", \"worker.py\"]",
        }
        MissingKey = "missing-key" {
            summary: "a key that must be there is not",
            explanation: "Without this key nobody can tell what is meant, and no default would be right for most workers. \
                The mark shows the section that lacks it; the beginning of the file stands for the file as a whole.",
            example: "[worker]\ncommand = [\"python3\", \"worker.py\"]",
        }
        WrongType = "wrong-type" {
            summary: "a value of another type than is needed",
            explanation: "TOML tells texts, numbers, true and false, lists and tables apart: `\"3\"` is a text and `3` a number, \
                `\"a\"` is a text and `[\"a\"]` a list. Nothing is converted, because a guess may be wrong. Write the value \
                in the form that the message names.",
            example: "[worker]\nrestarts-max = 3",
        }
        UnknownWord = "unknown-word" {
            summary: "a word that is not in a closed list",
            explanation: "Only certain words can stand here: names of dialects, faults, plans, states and the like. The \
                nearest one is suggested, or all of them are shown. `killpoint list` shows every name there is, and \
                `killpoint explain NAME` what one means.",
            example: "[provider]\ndialect = \"rest\"",
        }
        EmptyValue = "empty-value" {
            summary: "a text or a list that may not be empty is",
            explanation: "An empty text or list would mean that nothing is run, sent or looked for. Where that is meant, \
                leave the key out.",
            example: "[worker]\ncommand = [\"python3\", \"worker.py\"]",
        }
        BadText = "bad-text" {
            summary: "a text with characters that may not be there",
            explanation: "The text is used as a name, an address or a word of a command, and something in it can't be part \
                of one: a zero byte, a space in a name, an address that is not on this machine. Trials never leave loopback.",
            example: "[metrics]\nurl = \"http://127.0.0.1:9100/metrics\"",
        }
        BadDuration = "bad-duration" {
            summary: "a text that is no duration",
            explanation: "A duration is a whole number and a unit without a space: ms, s, m or h. A bare number is refused, \
                because seconds and milliseconds are a thousand times apart.",
            example: "[settle]\ndeadline = \"30s\"",
        }
        OutOfRange = "out-of-range" {
            summary: "a number or a duration beyond its limits",
            explanation: "The value is understood, and too small or too large to make sense: every wait of a trial has a \
                limit, and a limit of 0 would let nothing happen. The message names the smallest and the largest value.",
            example: "[checks]\nattempts-max = 10",
        }
        BadPointer = "bad-pointer" {
            summary: "a text that is no JSON pointer",
            explanation: "A place in a JSON body is written as a JSON pointer (RFC 6901): each step begins with a slash, and \
                numbers count the elements of a list from 0. Dots are parts of names.",
            example: "[provider]\nrecipient = \"/message/to\"",
        }
        BadBoundary = "bad-boundary" {
            summary: "a text that is no boundary, or a boundary that nobody knows",
            explanation: "A boundary is `source:point#ordinal`, such as `provider:committed#1`, or a canonical name, such as \
                `item-claimed`. The ordinal counts from 1 and is 1 where it is left out. Points of the source `ledger` need \
                a configured ledger. `killpoint list boundaries` shows the sources.",
            example: "[sweep]\nboundaries = [\"provider:committed#1\", \"mark:claimed#2\"]",
        }
        BadPlan = "bad-plan" {
            summary: "a value that is no value of a provider plan's axis",
            explanation: "What the provider does is a name that `killpoint list plans` shows, or four axes: when it commits, \
                how it replies, from when lookups see the commit, and what comes afterwards. Each axis has its own values.",
            example: "[[provider.rule]]\nplan = { commit = \"now\", reply = \"fin\" }",
        }
        BadEnvironment = "bad-environment" {
            summary: "a name of an environment variable that can't be set",
            explanation: "A variable's name has letters, digits and `_`, and no digit first. Names that begin with \
                `KILLPOINT_` belong to the harness: with them the worker is told of its trial.",
            example: "[worker.env]\nAPI_URL = \"{provider.rest}\"",
        }
        UnknownTemplate = "unknown-template" {
            summary: "a template that nobody fills in",
            explanation: "Small letters in braces stand for something that only the trial knows, such as `{state}`, the \
                folder that is fresh for each trial. This one has no value here, so that the worker would be given the \
                braces as they are. Braces that are meant as such may hold a space.",
            example: "[worker]\ncommand = [\"python3\", \"worker.py\", \"--db\", \"{state}/ledger.db\"]",
        }
        Duplicate = "duplicate" {
            summary: "something that must be unique is there twice",
            explanation: "Ids of actions and rules, destinations, variables and names of boundaries must be unique: evidence \
                names them, and could not say which of the two it means. TOML itself forbids a key that is there twice.",
            example: "[[action]]\nid = \"job-1\"\nto = \"ann@example.com\"\nbody = \"hello\"",
        }
        Conflict = "conflict" {
            summary: "keys that exclude each other",
            explanation: "Both keys say the same thing in different ways, or the one has no place beside the other. Which of \
                them should win is not guessed: keep one.",
            example: "[ledger]\npath = \"{state}/ledger.db\"\npreset = \"jobs\"",
        }
        NeverSettles = "never-settles" {
            summary: "a trial could never be at rest",
            explanation: "A trial ends when the worker is at rest, and `[settle]` says how that is seen. What is written \
                there could never become true, so that every trial would run into its deadline and prove nothing.",
            example: "[settle]\nby = \"query\"\nquery = \"select count(*) from jobs where state = 'queued'\"",
        }
        NothingInjected = "nothing-injected" {
            summary: "a scenario that does nothing",
            explanation: "A scenario stages a fault, a rule of the provider or a second worker. This one has none of them, so \
                that it would be the fault-free trial again, and its green would mean nothing.",
            example: "[[fault]]\nat = \"provider:committed#1\"\ndo = \"kill\"",
        }
        UnusedKey = "unused-key" {
            summary: "a key that has no meaning beside the others",
            explanation: "A warning: the key is known, but what the other keys say leaves nothing for it to do. Often the one \
                key that would give it a meaning was forgotten; the help names it.",
            example: "[worker]\ncommand = [\"./worker\"]\nlifecycle = \"one-shot\"\nagain-codes = [75]",
        }
        LedgerOutsideState = "ledger-outside-state" {
            summary: "the ledger is not part of a trial's fresh state",
            explanation: "A warning: every trial begins with a fresh state folder. A ledger outside it is shared by all \
                trials, so that one finds the rows of another, and trials at the same time disturb each other. Let the \
                worker keep it below `{state}`.",
            example: "[ledger]\npath = \"{state}/ledger.db\"\npreset = \"jobs\"",
        }
        StateOutside = "state-outside" {
            summary: "a command names a database file outside of a trial's state",
            explanation: "A word or a variable of a command ends like the name of a database file and does not begin with \
                `{state}`. All trials would share that file, so that none begins afresh, and it may be one that somebody \
                needs. Where it is meant, such as a file that is only read, name it under `outside` in `[state]`.",
            example: "[state]\noutside = [\"fixtures/geo.db\"]",
        }
        NoActions = "no-actions" {
            summary: "actions are handed over, and there are none",
            explanation: "A warning: the command that hands over the work names `{actions}`, and the file has none. The \
                fault-free trial would send nothing, and a trial in which nothing is sent proves nothing.",
            example: "actions = 2",
        }
        NotConfigured = "not-configured" {
            summary: "a scenario needs what is not configured",
            explanation: "The scenario looks at something that the configuration does not name, such as the worker's own rows \
                or its metrics. A profile leaves it out and lists it, neither green nor red. Asked for by name it is run all \
                the same, and is vacuous. The help says which section to add.",
            example: "[ledger]\npath = \"{state}/ledger.db\"\npreset = \"jobs\"",
        }
        BoundaryNotReached = "boundary-not-reached" {
            summary: "a boundary that was asked for and that the fault-free trial did not reach",
            explanation: "A warning: nothing happened under this name while the worker ran undisturbed, so that there may be \
                nothing to kill at. Its trial is vacuous unless the moment comes in recovery. Correct the name, say under \
                `[boundaries]` what it means for this worker, or make the mark in the worker.",
            example: "[boundaries]\nitem-claimed = \"mark:claimed\"",
        }
        BoundaryAfterExit = "boundary-after-exit" {
            summary: "a boundary that came only when no worker was alive",
            explanation: "A warning: the change was seen after the worker had ended, so that a kill would kill nothing. This \
                is how a short worker's last writes look from outside. Choose a boundary inside the worker's life, such as a \
                mark before its last step.",
            example: "[sweep]\nboundaries = [\"mark:before-commit#1\"]",
        }
        HitsLeftOut = "hits-left-out" {
            summary: "hits beyond the limit per series",
            explanation: "A warning: a boundary came more often than a sweep tries by default, and the later hits are left \
                out. Most bugs show at the first ones; raise the limit where the later ones differ.",
            example: "[sweep]\nhits-per-series = 20",
        }
    }
}
