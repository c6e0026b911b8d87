//! Programs that manifests name: `Procfile`, `package.json`, `pyproject.toml`, `Cargo.toml`, `go.mod`.

use serde_json::Value;

use super::super::finding::{Findings, Program, Sure};
use super::super::project::{Language, Place, Project, SourceFile};
use super::super::vocabulary::{ENQUEUERS, OTHERS, WORKERS};
use super::Detector;

pub(super) const DETECTOR: Detector =
    Detector { name: "manifests", summary: "programs that a Procfile or a package's manifest names", look };

/// What a line of a manifest is worth beside a script's name.
const MANIFEST_SCORE: i32 = 40;

fn look(project: &Project, findings: &mut Findings) {
    for file in project.files.iter().filter(|file| !file.is_test()) {
        // The commands of these count from their own folder, and ours are run in the project's.
        let is_at_the_top = file.folder().is_empty();
        let programs = match file.name() {
            "Procfile" if is_at_the_top => procfile(file),
            "package.json" if is_at_the_top => package_json(file),
            "pyproject.toml" if is_at_the_top => pyproject(file),
            "Cargo.toml" => cargo(project, file),
            "go.mod" => go(project, file),
            _ => Vec::new(),
        };
        findings.programs.extend(programs);
    }
}

/// How much a name looks like the worker's: parts between `:`, `-` and `_` count.
pub(super) fn name_score(name: &str) -> i32 {
    let plain = name.to_ascii_lowercase();
    let has = |words: &[&str]| plain.split([':', '-', '_', '.']).position(|part| words.contains(&part));
    if has(ENQUEUERS).is_some() || has(OTHERS).is_some() || plain.split([':', '-', '_']).any(is_test) {
        return -50;
    }
    WORKERS
        .iter()
        .position(|word| plain.split([':', '-', '_']).any(|part| part == *word))
        .map_or(0, |rank| 40 - rank as i32)
}

fn is_test(part: &str) -> bool {
    matches!(part, "test" | "tests" | "spec" | "lint" | "build" | "format" | "bench" | "example" | "docs")
}

/// The words of a command line; through a shell where it needs one.
fn words(line: &str) -> Vec<String> {
    if line.contains(['$', '|', '&', ';', '>', '<', '"', '\'', '`', '*', '\\', '(']) {
        return vec!["sh".into(), "-c".into(), line.trim().to_owned()];
    }
    line.split_whitespace().map(str::to_owned).collect()
}

/// The source file that a command line names.
pub(super) fn script_in(argv: &[String]) -> Option<String> {
    let is_script = |word: &&String| {
        let ends = [".py", ".js", ".mjs", ".cjs", ".ts", ".rb", ".sh"];
        ends.iter().any(|end| word.ends_with(end))
    };
    argv.iter().find(is_script).map(|word| word.trim_start_matches("./").to_owned())
}

fn procfile(file: &SourceFile) -> Vec<Program> {
    let lines = file.text.lines().enumerate().filter_map(|(index, line)| {
        let (name, command) = line.split_once(':')?;
        let (name, argv) = (name.trim(), words(command));
        let place = Place::line(&file.path, index as u32 + 1);
        let score = if name == "web" || name == "release" { -50 } else { name_score(name) };
        (!argv.is_empty() && !name.contains(' ')).then(|| Program {
            file: script_in(&argv),
            argv,
            score: score + MANIFEST_SCORE,
            sure: if score > 0 { Sure::Certain } else { Sure::Guess },
            place,
            why: format!("the process type `{name}`"),
            build: None,
        })
    });
    lines.collect()
}

fn package_json(file: &SourceFile) -> Vec<Program> {
    let Ok(package) = serde_json::from_str::<Value>(&file.text) else { return Vec::new() };
    let Some(scripts) = package["scripts"].as_object() else { return Vec::new() };
    let made = scripts.iter().filter_map(|(name, command)| {
        let mut argv = words(command.as_str()?);
        // `start` is what a package calls its program.
        let score = if name == "start" { 30 } else { name_score(name) };
        let direct = ["node", "python", "python3", "sh", "bash", "deno", "bun"];
        let source = script_in(&argv);
        if !direct.contains(&argv.first()?.as_str()) {
            argv = ["npm", "run", "--silent", name].map(str::to_owned).to_vec();
        }
        let line = file.text.lines().position(|line| line.contains(&format!("\"{name}\"")))?;
        Some(Program {
            argv,
            file: source,
            score: score + MANIFEST_SCORE,
            sure: if score > 0 { Sure::Likely } else { Sure::Guess },
            place: Place::line(&file.path, line as u32 + 1),
            why: format!("the script `{name}`"),
            build: None,
        })
    });
    made.filter(|program| program.score > MANIFEST_SCORE).collect()
}

fn pyproject(file: &SourceFile) -> Vec<Program> {
    let Ok(table) = file.text.parse::<toml::Table>() else { return Vec::new() };
    let scripts = |table: &toml::Table, path: &[&str]| {
        let mut value = table.get(path[0])?;
        for key in &path[1..] {
            value = value.get(key)?;
        }
        value.as_table().cloned()
    };
    let tables = [scripts(&table, &["project", "scripts"]), scripts(&table, &["tool", "poetry", "scripts"])];
    let made = tables.into_iter().flatten().flatten().filter_map(|(name, target)| {
        let module = target.as_str()?.split(':').next()?.to_owned();
        let line = file.text.lines().position(|line| line.trim_start().starts_with(&name))?;
        Some(Program {
            argv: vec![name.clone()],
            file: Some(format!("{}.py", module.replace('.', "/"))),
            score: name_score(&name).max(name_score(&module)) + MANIFEST_SCORE - 10,
            sure: Sure::Guess,
            place: Place::line(&file.path, line as u32 + 1),
            why: format!("the script `{name}` of the package"),
            build: Some("pip install -e .".into()),
        })
    });
    made.collect()
}

fn cargo(project: &Project, file: &SourceFile) -> Vec<Program> {
    let Ok(table) = file.text.parse::<toml::Table>() else { return Vec::new() };
    let folder = file.folder();
    let inside = |path: &str| if folder.is_empty() { path.to_owned() } else { format!("{folder}/{path}") };
    let mut bins: Vec<(String, String)> = Vec::new();
    for bin in table.get("bin").and_then(toml::Value::as_array).into_iter().flatten() {
        let Some(name) = bin.get("name").and_then(toml::Value::as_str) else { continue };
        let default = format!("src/bin/{name}.rs");
        let path = bin.get("path").and_then(toml::Value::as_str).unwrap_or(&default);
        bins.push((name.to_owned(), inside(path)));
    }
    let package = table.get("package").and_then(|package| package.get("name")).and_then(toml::Value::as_str);
    if let Some(name) = package.filter(|_| project.file(&inside("src/main.rs")).is_some()) {
        let main = inside("src/main.rs");
        if bins.iter().all(|(_, path)| *path != main) {
            bins.push((name.to_owned(), main));
        }
    }
    let folder = inside("src/bin/");
    for source in project.files.iter().filter(|source| source.path.starts_with(&folder)) {
        let name = source.name().trim_end_matches(".rs").to_owned();
        if bins.iter().all(|(_, path)| *path != source.path) && !source.path[folder.len()..].contains('/') {
            bins.push((name, source.path.clone()));
        }
    }
    let made = bins.into_iter().map(|(name, source)| {
        let place = |profile: &str| inside(&format!("target/{profile}/{name}"));
        let has = |path: &String| project.built.contains(path);
        let (argv, build) = match [place("release"), place("debug")].into_iter().find(has) {
            Some(there) => (there, None),
            None => (place("release"), Some(format!("cargo build --release --bin {name}"))),
        };
        Program {
            argv: vec![argv],
            score: name_score(&name).max(1) + MANIFEST_SCORE,
            file: Some(source),
            sure: Sure::Likely,
            place: Place::whole(&file.path),
            why: format!("the program `{name}` of the package"),
            build,
        }
    });
    made.collect()
}

fn go(project: &Project, file: &SourceFile) -> Vec<Program> {
    let module = file.text.lines().find_map(|line| line.strip_prefix("module "));
    let name = module.and_then(|module| module.trim().rsplit('/').next()).unwrap_or("worker").to_owned();
    let is_main = |source: &&SourceFile| {
        source.language == Some(Language::Go) && source.text.lines().any(|line| line.trim() == "package main")
    };
    let has_main = |source: &&SourceFile| source.text.contains("func main()");
    let mains = project.files.iter().filter(is_main).filter(has_main);
    let made = mains.map(|source| {
        let (folder, name) = match source.folder() {
            "" => (".".to_owned(), name.clone()),
            folder => (format!("./{folder}"), folder.rsplit('/').next().unwrap_or(folder).to_owned()),
        };
        let argv = format!("./{name}");
        let build = (!project.built.contains(&name)).then(|| format!("go build -o {name} {folder}"));
        Program {
            argv: vec![argv],
            score: name_score(&name).max(1) + MANIFEST_SCORE,
            file: Some(source.path.clone()),
            sure: Sure::Likely,
            place: Place::whole(&file.path),
            why: format!("the program `{name}` of the module"),
            build,
        }
    });
    made.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn best(files: &[(&str, &str)]) -> Program {
        let files = files.iter().map(|(path, text)| SourceFile::new(*path, text, false)).collect();
        let project = Project { files, ..Project::default() };
        let mut findings = Findings::default();
        look(&project, &mut findings);
        findings.programs.into_iter().max_by_key(|program| program.score).unwrap()
    }

    #[test]
    fn manifests_name_their_programs() {
        let program = best(&[("Procfile", "web: gunicorn app\nworker: python worker.py run\n")]);
        assert_eq!((program.argv.join(" "), program.place.line), ("python worker.py run".into(), Some(2)));
        let package = r#"{"scripts": {"test": "node --test",
            "worker": "node src/worker.mjs run"}}"#;
        let program = best(&[("package.json", package)]);
        assert_eq!(program.argv.join(" "), "node src/worker.mjs run");
        assert_eq!(program.file.as_deref(), Some("src/worker.mjs"));
        let program = best(&[("pyproject.toml", "[project.scripts]\nmail-worker = \"mail.cli:main\"\n")]);
        assert_eq!(
            (program.argv.join(" "), program.file.as_deref()),
            ("mail-worker".into(), Some("mail/cli.py"))
        );
        let program =
            best(&[("Cargo.toml", "[package]\nname = \"relay\"\n"), ("src/main.rs", "fn main() {}")]);
        assert_eq!(program.argv.join(" "), "target/release/relay");
        assert_eq!(program.build.as_deref(), Some("cargo build --release --bin relay"));
        let go =
            [("go.mod", "module example.org/x/mailer\n"), ("main.go", "package main\n\nfunc main() {}\n")];
        let program = best(&go);
        assert_eq!(
            (program.argv.join(" "), program.build),
            ("./mailer".into(), Some("go build -o mailer .".into()))
        );
    }

    #[test]
    fn a_line_for_a_shell_goes_through_one() {
        assert_eq!(words("A=$B python x.py")[..2], ["sh", "-c"]);
        assert_eq!(words(" node x.mjs  run"), ["node", "x.mjs", "run"]);
    }

    #[test]
    fn broken_manifests_name_nothing() {
        for file in ["package.json", "pyproject.toml", "Cargo.toml"] {
            let project = Project { files: vec![SourceFile::new(file, "{[", false)], ..Project::default() };
            let mut findings = Findings::default();
            look(&project, &mut findings);
            assert_eq!(findings.programs, []);
        }
    }
}
