//! The command line of a program: words that choose what it does, and options that hold places.

use super::super::finding::{Amount, Findings, Holds, LongOption, Role, Word};
use super::super::pattern::{Match, Pattern, lines_from};
use super::super::project::{Language, Place, Project, SourceFile};
use super::super::vocabulary::{ENQUEUERS, NameKind, name_kind, role_of};
use super::Detector;

pub(super) const DETECTOR: Detector = Detector {
    name: "command-line",
    summary: "subcommands such as `run` and `enqueue`, and options such as `--db`",
    look,
};

/// How many lines belong to a subcommand.
const BRANCH_LINES: usize = 25;

/// Patterns whose last group is a subcommand.
const WORDS: &[&str] = &[
    r#"\b\w+\s*\[\s*\d\s*\]\s*===?\s*["'`]([\w-]+)["'`]"#,
    r#"\b(?:cmd|command|mode|verb|subcommand|action)\s*===?\s*["'`]([\w-]+)["'`]"#,
    r#"strcmp\(\s*\w+(?:\[\d\])?\s*,\s*"([\w-]+)""#,
    r#"\b(?:case|when)\s+["']([\w-]+)["']"#,
    r#""([\w-]+)"\)?\s*=>"#,
    r#"add_parser\(\s*["']([\w-]+)["']"#,
    r#"\.command\(\s*(?:name\s*=\s*)?["']([\w-]+)"#,
    DECORATED,
    r#"\bUse:\s*"([\w-]+)"#,
];
/// A function that is a subcommand, with its decorators.
const DECORATED: &str = r"@\w+\.command\([^)\n]*\)\s*\n(?:\s*@[^\n]*\n)*\s*(?:async\s+)?def\s+(\w+)";
/// The same where only a shell has it.
const SHELL_WORDS: &[&str] =
    &[r#"(?m)^\s*\(?["']?([a-z][\w-]*)["']?\s*\)"#, r#"\[\s*"?\$\{?1[^\]\s]*\s*==?\s*"?([\w-]+)"#];
/// Variants of an enumeration that is a command line.
const VARIANTS: &str = r"(?m)^\s{2,}([A-Z][A-Za-z]+)\s*(?:,|\{|\()";
/// Programs that fail without a subcommand: they index, or say so.
const DEMANDS: &[&str] =
    &[r"sys\.argv\[1\]", r"os\.Args\[1\]", r"add_subparsers\(", r"\.group\(", r"\bSubcommand\b"];
const GUARDS: &str = r"len\((?:sys\.argv|os\.Args)\)";

const COUNTS: &[&str] = &[
    r"(?:int|Number|parseInt|atoi|Atoi|strtol|Integer)\s*\(\s*(?:\w+\.)?\w+\s*\[\s*\d\s*\]",
    r"\+\s*process\.argv\[\d\]",
    r"ARGV\[\d\]\.to_i",
    r"\bargs\b[^;\n]{0,60}\.parse",
    r"seq\b[^\n]*\$\{?2",
    r#"-l[te]\s+"?\$\{?2"#,
];
const FILES: &[&str] = &[
    r"(?:open|fopen|readFileSync|readFile|createReadStream|ReadFile|read_to_string|Path|foreach)\s*\(\s*(?:\w+\.)?(?:argv|Args|ARGV|args)\s*\[\s*\d\s*\]",
    r#"(?:<|cat)\s*"?\$\{?2"#,
];
/// The same in a function that has the subcommand's name, where the words are arguments.
const FUNCTION: &str =
    r"(?m)^\s*(?:(?:pub|export|async|static|void|def|function|fn|func)\s+)*NAME\s*\([^)\n]*\)[^;\n]*[:{]\s*$";
const FUNCTION_COUNTS: &[&str] = &[
    r"\brange\(|\bseq\b|\.\.\s*=?\s*\w*(?:count|number)\b|\bint\(|\bNumber\(",
    r#"-l[te]\s+"?\$\{?1"#,
    r"\bfor\s*\([^;\n]*;[^;\n]*<=?\s*\w+\s*;",
];
const FUNCTION_FILES: &[&str] = &[
    r"\b(?:open|fopen|readFileSync|readFile|ReadFile|read_to_string|read_text|foreach)\(",
    r#"<\s*"?\$\{?1"#,
];
const COUNT_OPTION: &str = r#"(?:argument|option)\(\s*["'](-{0,2}[\w-]+)["'][^)]*type\s*=\s*int"#;
const FILE_OPTION: &str = r#"(?:argument|option)\(\s*["'](-{0,2}(?:actions|file|path|input|jobs)[\w-]*)["']"#;

const LONG: &[&str] = &[
    r#"["'`](--[a-z][a-z0-9-]+)"#,
    r#"flag\.\w+\(\s*(?:&\w+,\s*)?"([a-z][\w-]*)""#,
    r"#\[(?:arg|clap)\([^\]]*\blong\b[^\]]*\)\]\s*(?:pub\s+)?(\w+)\s*:",
];
const PARSER_OF_OPTION: &str = r"(\w+)\.add_argument\(\s*$";
const PARSER_OF_WORD: &str = r#"(\w+)\s*=\s*\w+\.add_parser\(\s*["']([\w-]+)["']"#;
const PARSER_OF_WORDS: &str = r"(\w+)\.add_subparsers\(";

#[cfg(test)]
pub(super) fn patterns() -> Vec<&'static str> {
    let single = [
        VARIANTS,
        GUARDS,
        FUNCTION,
        COUNT_OPTION,
        FILE_OPTION,
        PARSER_OF_OPTION,
        PARSER_OF_WORD,
        PARSER_OF_WORDS,
    ];
    [WORDS, SHELL_WORDS, DEMANDS, COUNTS, FILES, FUNCTION_COUNTS, FUNCTION_FILES, LONG, &single].concat()
}

fn compiled(texts: &[&str]) -> Vec<Pattern> {
    texts.iter().map(|text| Pattern::new(text)).collect()
}

fn look(project: &Project, findings: &mut Findings) {
    let (words, shell) = (compiled(WORDS), compiled(SHELL_WORDS));
    let variants = [Pattern::new(VARIANTS)];
    let long = compiled(LONG);
    for (file, language) in project.sources().filter(|(_, language)| *language != Language::Sql) {
        let mut patterns: Vec<&Pattern> = words.iter().collect();
        if language == Language::Shell {
            patterns.extend(&shell);
        }
        if file.text.contains("Subcommand") {
            patterns.extend(&variants);
        }
        let found = patterns.into_iter().flat_map(|pattern| pattern.matches(&file.text)).collect();
        findings.words.extend(subcommands(file, found));
        let stem = file.name().split('.').next().unwrap_or_default();
        if ENQUEUERS.contains(&stem) {
            findings.words.push(Word {
                file: file.path.clone(),
                word: String::new(),
                role: Role::Enqueue,
                place: Place::whole(&file.path),
                amount: amount("", &file.text, &file.text),
                demanded: false,
            });
        }
        options(file, &long, findings);
    }
}

fn subcommands(file: &SourceFile, mut found: Vec<Match<'_>>) -> Vec<Word> {
    found.sort_by_key(|one| one.start);
    let guarded = Pattern::new(GUARDS).is_in(&file.text);
    let demanded = !guarded && compiled(DEMANDS).iter().any(|pattern| pattern.is_in(&file.text));
    let mut words: Vec<Word> = Vec::new();
    for one in &found {
        let word = kebab(one.groups.last().copied().unwrap_or_default());
        let Some((role, _)) = role_of(&word) else { continue };
        if words.iter().any(|known| known.word == word) {
            continue;
        }
        let next =
            found.iter().find(|other| other.start >= one.end).map_or(file.text.len(), |other| other.start);
        let branch = lines_from(&file.text[..next], one.start, BRANCH_LINES);
        words.push(Word {
            file: file.path.clone(),
            role,
            place: file.place(one.end),
            amount: if role == Role::Enqueue { amount(&word, branch, &file.text) } else { Amount::Unknown },
            demanded,
            word,
        });
    }
    words
}

/// A variant's or a function's name as it is typed.
fn kebab(name: &str) -> String {
    let mut made = String::new();
    for character in name.chars() {
        if character.is_ascii_uppercase() && !made.is_empty() {
            made.push('-');
        }
        made.push(if character == '_' { '-' } else { character.to_ascii_lowercase() });
    }
    made
}

/// What an enqueuer takes: as its own branch says, else a function of its name, else the whole file.
fn amount(word: &str, branch: &str, whole: &str) -> Amount {
    let after = |found: &Match<'_>| match found.groups.first() {
        Some(name) if name.starts_with("--") => vec![(*name).to_owned()],
        _ => Vec::new(),
    };
    let function = Pattern::new(&FUNCTION.replace("NAME", &word.replace('-', "_")));
    let body = function
        .first(whole)
        .filter(|_| !word.is_empty())
        .map(|found| lines_from(whole, found.end, BRANCH_LINES));
    let in_body =
        |patterns| compiled(patterns).iter().any(|pattern| body.is_some_and(|body| pattern.is_in(body)));
    for text in [branch, whole] {
        if let Some(found) = Pattern::new(FILE_OPTION).first(text) {
            return Amount::File(after(&found));
        }
        if let Some(found) = Pattern::new(COUNT_OPTION).first(text) {
            return Amount::Count(after(&found));
        }
        if compiled(FILES).iter().any(|pattern| pattern.is_in(text)) {
            return Amount::File(Vec::new());
        }
        if compiled(COUNTS).iter().any(|pattern| pattern.is_in(text)) {
            return Amount::Count(Vec::new());
        }
        // Before the rest of the file has its say.
        if in_body(FUNCTION_FILES) {
            return Amount::File(Vec::new());
        }
        if in_body(FUNCTION_COUNTS) {
            return Amount::Count(Vec::new());
        }
    }
    Amount::Unknown
}

fn options(file: &SourceFile, long: &[Pattern], findings: &mut Findings) {
    let main = Pattern::new(PARSER_OF_WORDS).first(&file.text).map(|found| found.groups.concat());
    let words = word_places(file);
    for (index, pattern) in long.iter().enumerate() {
        for found in pattern.matches(&file.text) {
            let name = found.groups.concat().replace('_', "-");
            // Go's options have one dash by convention and take two.
            let flag = if index == 0 { name.clone() } else { format!("--{name}") };
            let plain = name.trim_start_matches('-');
            let holds = match name_kind(plain) {
                NameKind::Address => Holds::Provider(String::new()),
                NameKind::Store if plain == "db" => Holds::Store("{state}/worker.db".into()),
                NameKind::Store => Holds::Store(format!("{{state}}/{plain}.db")),
                _ if plain == "provider" => Holds::Provider(String::new()),
                _ => continue,
            };
            let owner = owner_of(&file.text[..found.start]);
            let word = words.iter().find(|place| {
                (place.from..place.to).contains(&found.start)
                    || (place.parser.is_some() && place.parser == owner)
            });
            let word = word.map(|place| place.word.clone());
            let is_same =
                |known: &LongOption| known.file == file.path && known.flag == flag && known.word == word;
            if !findings.options.iter().any(is_same) {
                let (file_path, place) = (file.path.clone(), found.place(file));
                let global = main.is_some() && owner == main;
                findings.options.push(LongOption { file: file_path, flag, holds, word, global, place });
            }
        }
    }
}

/// Where a subcommand takes its own options: through its parser, or between its decorators.
struct WordPlace {
    word: String,
    parser: Option<String>,
    from: usize,
    to: usize,
}

fn word_places(file: &SourceFile) -> Vec<WordPlace> {
    let parsers = Pattern::new(PARSER_OF_WORD).matches(&file.text).into_iter().filter_map(|found| {
        let [parser, word] = found.groups[..] else { return None };
        Some(WordPlace { word: kebab(word), parser: Some(parser.to_owned()), from: 0, to: 0 })
    });
    let decorated = Pattern::new(DECORATED).matches(&file.text).into_iter().map(|found| WordPlace {
        word: kebab(&found.groups.concat()),
        parser: None,
        from: found.start,
        to: found.end,
    });
    parsers.chain(decorated).collect()
}

/// The parser to which the option that follows is added.
fn owner_of(before: &str) -> Option<String> {
    let line = before.lines().last()?;
    Pattern::new(PARSER_OF_OPTION).first(line).map(|found| found.groups.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Findings {
        let files = vec![SourceFile::new(path, text, false)];
        let mut findings = Findings::default();
        look(&Project { files, ..Project::default() }, &mut findings);
        findings
    }

    fn words(path: &str, text: &str) -> Vec<(String, Role, Amount)> {
        found(path, text).words.into_iter().map(|word| (word.word, word.role, word.amount)).collect()
    }

    fn one(word: &str, role: Role, amount: Amount) -> (String, Role, Amount) {
        (word.into(), role, amount)
    }

    #[test]
    fn words_are_found_in_each_language() {
        let count = || Amount::Count(Vec::new());
        let text =
            "if sys.argv[1] == 'enqueue':\n    for i in range(int(sys.argv[2])): pass\nelse:\n    pass\n";
        assert_eq!(words("w.py", text), [one("enqueue", Role::Enqueue, count())]);
        assert!(found("w.py", text).words[0].demanded);
        let text = "if (process.argv[2] === \"enqueue\") { const n = Number(process.argv[3]); }";
        assert_eq!(words("w.mjs", text), [one("enqueue", Role::Enqueue, count())]);
        assert!(!found("w.mjs", text).words[0].demanded);
        let text =
            "switch os.Args[1] {\ncase \"migrate\":\ncase \"submit\":\n\tb, _ := os.ReadFile(os.Args[2])\n}";
        assert_eq!(
            words("main.go", text),
            [
                one("migrate", Role::Setup, Amount::Unknown),
                one("submit", Role::Enqueue, Amount::File(Vec::new()))
            ]
        );
        let text = "match args[1].as_str() {\n  \"enqueue\" => { let n: u32 = args[2].parse().unwrap(); }\n  \"run\" => {}\n}";
        assert_eq!(
            words("src/main.rs", text),
            [one("enqueue", Role::Enqueue, count()), one("run", Role::Run, Amount::Unknown)]
        );
        let text =
            "case \"$1\" in\n  enqueue)\n    for i in $(seq 1 \"$2\"); do :; done ;;\n  run) : ;;\nesac\n";
        assert_eq!(
            words("w.sh", text),
            [one("enqueue", Role::Enqueue, count()), one("run", Role::Run, Amount::Unknown)]
        );
    }

    #[test]
    fn argparse_click_and_clap_are_read() {
        let text = "\
sub = parser.add_subparsers(required=True)
parser.add_argument('--db', required=True)
a = sub.add_parser('submit')
a.add_argument('--count', type=int)
b = sub.add_parser('work')
b.add_argument('--base-url')
";
        let findings = found("cli.py", text);
        assert_eq!(findings.words[0].amount, Amount::Count(vec!["--count".into()]));
        assert!(findings.words.iter().all(|word| word.demanded));
        let options: Vec<_> = findings
            .options
            .iter()
            .map(|one| (one.flag.as_str(), one.global, one.word.as_deref(), one.holds.clone()))
            .collect();
        let expected = [
            ("--db", true, None, Holds::Store("{state}/worker.db".into())),
            ("--base-url", false, Some("work"), Holds::Provider(String::new())),
        ];
        assert_eq!(options, expected);
        let text = "@cli.command()\n@click.argument('file')\ndef enqueue(file):\n    pass\n";
        assert_eq!(words("cli.py", text), [one("enqueue", Role::Enqueue, Amount::File(Vec::new()))]);
        let text = "@cli.command()\n@click.option('--db')\ndef run(db):\n    pass\n";
        assert_eq!(found("cli.py", text).options[0].word.as_deref(), Some("run"));
        let text = "#[derive(Subcommand)]\nenum C {\n    Enqueue { count: u32 },\n    InitDb,\n}\n";
        assert_eq!(words("src/main.rs", text).len(), 2);
    }

    #[test]
    fn a_function_of_the_words_name_says_what_it_takes() {
        let text = "function enqueue(journal, path) {\n  readFileSync(path);\n}\nif (verb === \"enqueue\") enqueue(journal, argument);\n";
        assert_eq!(words("w.mjs", text), [one("enqueue", Role::Enqueue, Amount::File(Vec::new()))]);
        let text = "enqueue() {\n  while [ \"$n\" -le \"$1\" ]; do :; done\n}\ncase ${1:-} in\nenqueue) enqueue \"$2\" ;;\nesac\n";
        assert_eq!(words("w.sh", text), [one("enqueue", Role::Enqueue, Amount::Count(Vec::new()))]);
        let text = "int main(int c, char **words) {\n  if (strcmp(words[1], \"enqueue\") == 0) enqueue(atoi(words[2]));\n}\n";
        assert_eq!(words("w.c", text), [one("enqueue", Role::Enqueue, Amount::Count(Vec::new()))]);
    }

    #[test]
    fn states_are_no_subcommands() {
        assert_eq!(words("w.py", "if status == 'sent': pass\nmatch s:\n  case 'pending': pass\n"), []);
    }

    #[test]
    fn a_program_that_only_enqueues_needs_no_word() {
        let text = "import sys\nfor i in range(int(sys.argv[1])): pass\n";
        assert_eq!(words("enqueue.py", text), [one("", Role::Enqueue, Amount::Count(Vec::new()))]);
    }
}
