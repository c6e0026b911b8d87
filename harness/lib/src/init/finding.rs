//! What the detectors found: facts of the sources with their places, no decisions yet.

use std::fmt;

use super::project::Place;
use super::sql::Table;

/// How sure an assumption is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sure {
    /// It may well be wrong: look at it.
    Guess,
    /// The usual meaning of what was seen.
    Likely,
    /// Written in the project, in so many words.
    Certain,
}

impl fmt::Display for Sure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Guess => "guess",
            Self::Likely => "likely",
            Self::Certain => "certain",
        })
    }
}

/// A program that could be the worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// How it is started.
    pub argv: Vec<String>,
    /// The source file behind it, where that is known.
    pub file: Option<String>,
    /// The higher, the more it looks like the worker.
    pub score: i32,
    /// How sure it is.
    pub sure: Sure,
    /// Where it is named.
    pub place: Place,
    /// Why it is thought of, a fragment.
    pub why: String,
    /// What must be built first, as a command.
    pub build: Option<String>,
}

/// What a subcommand is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// It does the work.
    Run,
    /// It commits actions.
    Enqueue,
    /// It makes the state ready.
    Setup,
    /// It removes old rows.
    Cleanup,
    /// It shows the state.
    Status,
}

/// How an enqueuer is told what to enqueue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Amount {
    /// How many, as a word, after these words.
    Count(Vec<String>),
    /// A file of actions, after these words.
    File(Vec<String>),
    /// Not seen.
    Unknown,
}

/// A word of the command line that chooses what a program does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// The file that compares it.
    pub file: String,
    /// The word.
    pub word: String,
    /// What it is for.
    pub role: Role,
    /// Where.
    pub place: Place,
    /// For an enqueuer: what it takes.
    pub amount: Amount,
    /// Whether the program can't do without such a word.
    pub demanded: bool,
}

/// What a variable, an option or a literal holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holds {
    /// The provider's base address; what follows it, such as `/v1`.
    Provider(String),
    /// A database file or a directory; the value with `{state}`.
    Store(String),
    /// A database on a server, which a trial can't have for itself.
    Server,
    /// A credential.
    Secret,
    /// Something else.
    Other,
}

/// A variable of the environment that a source reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// What it holds.
    pub holds: Holds,
    /// Whether the worker fails without it.
    pub required: bool,
    /// Where it is read first.
    pub place: Place,
    /// How sure the meaning is.
    pub sure: Sure,
}

/// An option of the command line, such as `--db`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LongOption {
    /// The file that reads it.
    pub file: String,
    /// With its dashes.
    pub flag: String,
    /// What it holds.
    pub holds: Holds,
    /// The subcommand that it belongs to; `None` for any.
    pub word: Option<String>,
    /// Whether it stands before the subcommand.
    pub global: bool,
    /// Where.
    pub place: Place,
}

/// Something that the sources name outright.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Literal {
    /// The text.
    pub text: String,
    /// Where.
    pub place: Place,
}

/// A word that stands beside a status column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateWord {
    /// The column that it was seen beside.
    pub column: String,
    /// The table, where it is known.
    pub table: Option<String>,
    /// The word.
    pub word: String,
    /// Whether rows in this state are looked for to be worked on.
    pub sought: bool,
    /// Where.
    pub place: Place,
}

/// A table with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenTable {
    /// The table.
    pub table: Table,
    /// Files that name it.
    pub named_in: Vec<String>,
    /// Where.
    pub place: Place,
}

/// Everything that was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    /// Programs that could be the worker, or its enqueuer.
    pub programs: Vec<Program>,
    /// Subcommands.
    pub words: Vec<Word>,
    /// Options.
    pub options: Vec<LongOption>,
    /// Variables.
    pub variables: Vec<Variable>,
    /// Names of variables in `.env` files.
    pub env_files: Vec<Literal>,
    /// SQLite files that a source opens by name.
    pub fixed_stores: Vec<Literal>,
    /// Addresses of other hosts in the sources.
    pub fixed_addresses: Vec<Literal>,
    /// Tables of the project.
    pub tables: Vec<SeenTable>,
    /// Words of states.
    pub states: Vec<StateWord>,
    /// Words in quotes, anywhere, that could be states.
    pub spoken: Vec<Literal>,
    /// Names of fields in the bodies of requests.
    pub fields: Vec<Literal>,
    /// Headers that carry a key.
    pub key_headers: Vec<Literal>,
    /// Loops without an end, and calls that run for ever.
    pub endless: Vec<Literal>,
    /// Loops that end when nothing is left.
    pub draining: Vec<Literal>,
    /// Waits of the sources in milliseconds.
    pub waits: Vec<(u64, Place)>,
}
