//! `action.yml` and the gates in `deploy/ci`: their shell is run as the engines would run it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use killpoint::model::ExitCode;
use yaml_rust2::{Yaml, YamlLoader};

use crate::bench::{Bench, Said, end_of, started};

const PROGRAM: &str = env!("CARGO_BIN_EXE_killpoint");
const RIGHT: &str = "if once('sent') or not lookup():\n    post()";
const WRONG: &str = "post()";
const ONE_KILL: &str = "[sweep]\nplans = []\nboundaries = [\"provider:committed#1\"]\n";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The only document of a file.
fn yaml(name: &str) -> Yaml {
    let text = fs::read_to_string(root().join(name)).unwrap();
    let mut documents = YamlLoader::load_from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(documents.len(), 1, "{name}");
    documents.remove(0)
}

fn text(value: &Yaml) -> &str {
    value.as_str().unwrap_or_else(|| panic!("no text: {value:?}"))
}

/// The names and texts of a mapping; of nothing, where it is not there.
fn texts(value: &Yaml) -> BTreeMap<String, String> {
    let pairs = value.as_hash().into_iter().flatten();
    pairs.map(|(name, value)| (text(name).to_owned(), text(value).to_owned())).collect()
}

fn keys(value: &Yaml) -> Vec<&str> {
    value.as_hash().into_iter().flatten().map(|(name, _)| text(name)).collect()
}

/// A job that uses the action, on a machine of its own.
struct Job {
    bench: Bench,
    inputs: BTreeMap<String, String>,
    /// Folders that go before the PATH.
    path: Vec<PathBuf>,
}

impl Job {
    fn new(bench: Bench, with: &[(&str, &str)]) -> Self {
        for folder in ["temp", "files"] {
            fs::create_dir(bench.path(folder)).unwrap();
        }
        for file in ["path", "output", "summary"] {
            bench.file(&format!("files/{file}"), "");
        }
        let action = yaml("action.yml");
        let declared = action["inputs"].as_hash().unwrap().iter();
        let mut inputs: BTreeMap<String, String> = declared
            .map(|(name, input)| (text(name).to_owned(), text(&input["default"]).to_owned()))
            .collect();
        for (name, value) in with {
            assert!(inputs.insert((*name).to_owned(), (*value).to_owned()).is_some(), "no input `{name}`");
        }
        Self { bench, inputs, path: Vec::new() }
    }

    /// Expressions of inputs filled in, and no other ones.
    fn filled(&self, value: &str) -> String {
        let mut filled = value.to_owned();
        for (name, value) in &self.inputs {
            filled = filled.replace(&format!("${{{{ inputs.{name} }}}}"), value);
        }
        assert!(!filled.contains("${{"), "{filled}");
        filled
    }

    /// Does the action's steps until one fails, and gives what the last one said.
    fn carried_out(&mut self) -> Said {
        let action = yaml("action.yml");
        assert_eq!(action["runs"]["using"].as_str(), Some("composite"));
        let mut said = None;
        for step in action["runs"]["steps"].as_vec().unwrap() {
            let ended = self.step(step);
            let failed = ended.code != Some(0);
            said = Some(ended);
            if failed {
                break;
            }
        }
        said.unwrap()
    }

    fn step(&mut self, step: &Yaml) -> Said {
        let file = |name: &str| self.bench.path(&format!("files/{name}"));
        assert_eq!(step["shell"].as_str(), Some("bash"));
        let script = text(&step["run"]);
        assert!(!script.contains("${{"), "an input in a script is run as shell: hand it over as a variable");
        fs::write(file("script"), script).unwrap();
        let folder =
            step["working-directory"].as_str().map_or_else(|| ".".to_owned(), |path| self.filled(path));
        let added = fs::read_to_string(file("path")).unwrap();
        let before = self.path.iter().cloned().chain(added.lines().map(PathBuf::from));
        let own = std::env::var_os("PATH").unwrap();
        let path = std::env::join_paths(before.chain(std::env::split_paths(&own))).unwrap();
        let mut command = Command::new("bash");
        command.args(["--noprofile", "--norc", "-eo", "pipefail"]).arg(file("script"));
        command.current_dir(self.bench.path(&folder)).env("PATH", path).env("GITHUB_ACTIONS", "true");
        command.env("GITHUB_PATH", file("path")).env("GITHUB_OUTPUT", file("output"));
        command.env("GITHUB_STEP_SUMMARY", file("summary")).env("GITHUB_ACTION_PATH", root());
        command.env("RUNNER_TEMP", self.bench.path("temp"));
        command.envs(texts(&step["env"]).into_iter().map(|(name, value)| (name, self.filled(&value))));
        end_of(started(&mut command)).never_panics()
    }

    fn outputs(&self) -> BTreeMap<String, String> {
        let text = self.read("files/output");
        text.lines()
            .map(|line| line.split_once('=').unwrap())
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .collect()
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.bench.path(name)).unwrap()
    }

    /// What the outputs say of the verdict, after the promised ones were found.
    fn verdict(&self) -> (String, String) {
        let outputs = self.outputs();
        let promised = yaml("action.yml");
        assert_eq!(outputs.keys().map(String::as_str).collect::<Vec<_>>(), {
            let mut names = keys(&promised["outputs"]);
            names.sort_unstable();
            names
        });
        assert!(Path::new(&outputs["reports"]).is_absolute());
        (outputs["verdict"].clone(), outputs["exit-code"].clone())
    }
}

fn gate(worker: &str) -> Bench {
    Bench::configured(worker, ONE_KILL)
}

#[test]
fn the_action_passes_a_right_worker_and_leaves_its_reports() {
    let mut job = Job::new(gate(RIGHT), &[("binary", PROGRAM)]);
    let said = job.carried_out().exits(ExitCode::Holds);
    assert_eq!(job.verdict(), ("holds".to_owned(), "0".to_owned()));
    assert!(!said.out.contains("::error"), "{}", said.out);
    assert!(job.read("files/summary").contains("holds"), "{}", job.read("files/summary"));
    assert!(job.read("killpoint-reports/junit.xml").contains("<testsuites"));
    assert!(job.read("killpoint-reports/report.html").contains("</html>"));
    assert!(!job.bench.path("killpoint-reports/run.tar.gz").exists());
}

#[test]
fn the_action_fails_a_wrong_worker_with_the_evidence() {
    let mut job = Job::new(gate(WRONG), &[("binary", PROGRAM), ("reports", "out/reports")]);
    let said = job.carried_out().exits(ExitCode::Violated);
    assert_eq!(job.verdict(), ("violated".to_owned(), "1".to_owned()));
    assert!(said.out.lines().any(|line| line.starts_with("::error")), "{}", said.out);
    let summary = job.read("files/summary");
    for part in ["violated", "no-duplicate-effect", "provider:committed#1"] {
        assert!(summary.contains(part), "{part}: {summary}");
    }
    assert!(job.read("out/reports/junit.xml").contains("<failure"));
    let listed =
        end_of(started(Command::new("tar").arg("-tzf").arg(job.bench.path("out/reports/run.tar.gz"))));
    assert!(listed.exits(ExitCode::Holds).out.contains("/run.json"));
}

#[test]
fn the_action_says_when_there_is_no_verdict_and_takes_more_words() {
    let words = "--boundary provider:nowhere#1\n--repeat 1";
    let mut job = Job::new(gate(RIGHT), &[("binary", PROGRAM), ("args", words)]);
    let said = job.carried_out();
    assert_eq!(job.verdict().1, said.code.unwrap().to_string());
    assert_ne!(said.code, Some(0), "{said:?}");

    let mut job = Job::new(gate(RIGHT), &[("binary", PROGRAM), ("config", "nowhere.toml")]);
    fs::create_dir(job.bench.path("killpoint-reports")).unwrap();
    job.bench.file("killpoint-reports/summary.md", "all holds, a week ago\n");
    job.carried_out().exits(ExitCode::InvalidConfig).says(&["nowhere.toml"]);
    assert_eq!(job.verdict(), ("none".to_owned(), "3".to_owned()));
    let summary = job.read("files/summary");
    assert!(summary.contains("exit code 3") && !summary.contains("a week ago"), "{summary}");
}

#[test]
fn the_action_builds_from_its_own_source_and_knows_its_version() {
    let mut job = Job::new(gate(RIGHT), &[("version", env!("CARGO_PKG_VERSION"))]);
    fs::create_dir(job.bench.path("fake")).unwrap();
    // In place of minutes of compiling: notes the words, and puts the program where cargo would.
    let cargo = "#!/bin/sh\necho \"$@\" > \"$RUNNER_TEMP/words\"\nmkdir -p \"$6/bin\"\n";
    job.bench.file("fake/cargo", &format!("{cargo}cp '{PROGRAM}' \"$6/bin/killpoint\"\n"));
    fs::set_permissions(job.bench.path("fake/cargo"), fs::Permissions::from_mode(0o755)).unwrap();
    job.path.push(job.bench.path("fake"));
    job.carried_out().exits(ExitCode::Holds);
    let words = job.read("temp/words");
    let path = words.split_whitespace().nth(3).unwrap();
    assert!(words.starts_with("install --locked --path "), "{words}");
    assert!(Path::new(path).join("Cargo.toml").is_file(), "{path}");

    let mut job = Job::new(gate(RIGHT), &[("binary", PROGRAM), ("version", "99.0.0")]);
    job.carried_out().exits(ExitCode::InvalidConfig).says(&["::error::", "99.0.0"]);
}

#[test]
fn the_workflow_uses_what_the_action_has() {
    let (workflow, action) = (yaml("deploy/ci/github.yml"), yaml("action.yml"));
    let steps = workflow["jobs"]["killpoint"]["steps"].as_vec().unwrap();
    let used =
        steps.iter().find(|step| step["uses"].as_str().is_some_and(|name| name.contains("/killpoint@")));
    let used = used.expect("the workflow uses the action");
    for name in keys(&used["with"]) {
        assert!(!action["inputs"][name].is_badvalue(), "no input `{name}`");
    }
    let uploaded = text(&steps.last().unwrap()["with"]["path"]);
    let output =
        uploaded.strip_prefix("${{ steps.killpoint.outputs.").and_then(|rest| rest.strip_suffix(" }}"));
    assert!(!action["outputs"][output.unwrap()].is_badvalue(), "{uploaded}");
    assert_eq!(text(&used["id"]), "killpoint");
}

/// The script of the GitLab job, in a shell that ends at the first failure, as its runner does it.
fn gitlab(bench: &Bench, variables: &[(&str, &str)]) -> Said {
    let pipeline = yaml("deploy/ci/gitlab.yml");
    let job = &pipeline["killpoint"];
    let lines: Vec<&str> = job["script"].as_vec().unwrap().iter().map(text).collect();
    let own = std::env::var_os("PATH").unwrap();
    let program = Path::new(PROGRAM).parent().unwrap().to_owned();
    let path = std::env::join_paths(std::iter::once(program).chain(std::env::split_paths(&own))).unwrap();
    let mut command = Command::new("bash");
    command.args(["-eo", "pipefail", "-c", &lines.join("\n")]).current_dir(bench.path("")).env("PATH", path);
    command.env("GITLAB_CI", "true").envs(texts(&job["variables"])).envs(variables.iter().copied());
    end_of(started(&mut command)).never_panics()
}

#[test]
fn the_gitlab_job_passes_and_fails_and_leaves_what_its_artifacts_name() {
    let pipeline = yaml("deploy/ci/gitlab.yml");
    let artifacts = &pipeline["killpoint"]["artifacts"];
    assert_eq!(artifacts["when"].as_str(), Some("always"));
    let (folder, junit) = (text(&artifacts["paths"][0]), text(&artifacts["reports"]["junit"]));
    for (worker, code, part) in [(RIGHT, ExitCode::Holds, "holds"), (WRONG, ExitCode::Violated, "violated")] {
        let bench = gate(worker);
        gitlab(&bench, &[]).exits(code).says(&[part]);
        assert!(fs::read_to_string(bench.path(junit)).unwrap().contains("<testsuites"));
        let summary = fs::read_to_string(bench.path(folder).join("summary.md")).unwrap();
        assert!(summary.contains(part), "{summary}");
        assert_eq!(bench.path(folder).join("run.tar.gz").is_file(), code == ExitCode::Violated);
    }
    let bench = gate(RIGHT);
    gitlab(&bench, &[("KILLPOINT_ARGS", "--config nowhere.toml")]).exits(ExitCode::InvalidConfig);
}
