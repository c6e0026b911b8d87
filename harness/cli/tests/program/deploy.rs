//! The manifests in `deploy`: they are YAML, and the shell in them does what it is there for.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use killpoint::RunFolder;
use killpoint::model::ExitCode::{self, Holds, Unproven};

use crate::bench::{Bench, Said, end_of, started};

const SHARDS: usize = 4;

fn manifest(name: &str) -> String {
    std::fs::read_to_string(path(name)).unwrap()
}

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(name)
}

/// The block of literal text that has a line with `word`, without its indentation.
fn script(text: &str, word: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let indent = |line: &str| line.len() - line.trim_start().len();
    for (begin, line) in lines.iter().enumerate().filter(|(_, line)| line.ends_with('|')) {
        let Some(first) = lines.get(begin + 1) else { continue };
        let block: Vec<&str> = lines[begin + 1..]
            .iter()
            .copied()
            .take_while(|next| {
                next.is_empty() || (indent(next) >= indent(first) && indent(next) > indent(line))
            })
            .map(|next| next.get(indent(first)..).unwrap_or_default())
            .collect();
        if block.iter().any(|line| line.contains(word)) {
            return block.join("\n").trim_end().to_owned() + "\n";
        }
    }
    panic!("no block has `{word}`:\n{text}");
}

/// A worker with a configuration whose sweep has some trials for each shard.
fn bench() -> Bench {
    let sweep = "[sweep]\nplans = [\"drop-after-accept\", \"error-after-accept\", \"cut-body-after-accept\"]\n\
                 boundaries = [\"provider:connected#1\", \"provider:received#1\", \"provider:committed#1\", \
                 \"provider:replying#1\", \"provider:replied#1\"]\n";
    Bench::configured("if once('sent') or not lookup():\n    post()", sweep)
}

fn shell(bench: &Bench, script: &str, variables: &BTreeMap<&str, String>) -> Said {
    let program = Path::new(env!("CARGO_BIN_EXE_killpoint")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("sh");
    command.args(["-euc", script]).current_dir(bench.path("")).env("PATH", path).envs(variables);
    end_of(started(&mut command)).never_panics()
}

/// Runs a manifest's scripts as its engine would: one for each shard, then the merge; and once more without a shard.
fn carried_out(
    (shard, merge): (&str, &str),
    variables: impl Fn(&Bench, usize) -> BTreeMap<&'static str, String>,
    (packed, unpacked): (&str, &str),
    whole: &str,
) {
    let bench = bench();
    for index in 0..SHARDS {
        let said = shell(&bench, shard, &variables(&bench, index));
        assert_eq!(said.code, Some(0), "a verdict on a part is no failure: {said:?}");
        said.says(&[&format!("shard {}/{SHARDS} alone", index + 1)]);
        std::fs::remove_dir_all(bench.path(&unpacked.replace('N', &(index + 1).to_string()))).unwrap();
    }
    let exits = |code: ExitCode| shell(&bench, merge, &variables(&bench, 0)).exits(code);
    exits(Holds).says(&["4 of 4 shards merged"]);
    let (_, record) = RunFolder::open(&bench.path(whole)).unwrap();
    assert_eq!(record.trials.len(), 2 * SHARDS + 8);
    std::fs::remove_dir_all(bench.path(whole)).unwrap();
    for index in 1..=SHARDS {
        std::fs::remove_dir_all(bench.path(&unpacked.replace('N', &index.to_string()))).unwrap();
    }
    std::fs::remove_file(bench.path(&packed.replace('N', "3"))).unwrap();
    exits(Unproven).says(&["shard 3/4: no run of it is there", "3 of 4 shards merged"]);
}

#[test]
fn the_kubernetes_jobs_run_and_merge_all_shards() {
    let (shards, merge) = (manifest("kubernetes/shards.yaml"), manifest("kubernetes/merge.yaml"));
    for line in ["completionMode: Indexed", "completions: 4", "parallelism: 4", "restartPolicy: Never"] {
        assert!(shards.contains(line), "{line}");
    }
    for text in [&shards, &merge] {
        assert!(text.contains("name: SHARDS, value: \"4\""));
        assert!(text.contains("command: [/bin/sh, -euc]"));
    }
    let variables = |bench: &Bench, index: usize| {
        let at = |name: &str| bench.path(name).display().to_string();
        std::fs::create_dir_all(bench.path("scratch")).unwrap();
        BTreeMap::from([
            ("JOB_COMPLETION_INDEX", index.to_string()),
            ("HOSTNAME", format!("killpoint-shards-{index}-abcde")),
            ("SHARDS", SHARDS.to_string()),
            ("RUN", "first".to_owned()),
            ("RUNS", at("runs")),
            ("SCRATCH", at("scratch")),
        ])
    };
    carried_out(
        (&script(&shards, "killpoint run"), &script(&merge, "killpoint merge")),
        variables,
        ("runs/first/shard-N.tar", "scratch/shard-N"),
        "runs/first/whole",
    );
}

#[test]
fn the_github_workflow_runs_and_merges_all_shards() {
    let text = manifest("github-actions.yml");
    for line in ["SHARDS: 4", "shard: [1, 2, 3, 4]", "fail-fast: false", "SHARD: ${{ matrix.shard }}"] {
        assert!(text.contains(line), "{line}");
    }
    let variables = |_: &Bench, index: usize| {
        BTreeMap::from([("SHARD", (index + 1).to_string()), ("SHARDS", SHARDS.to_string())])
    };
    carried_out(
        (&script(&text, "killpoint run"), &script(&text, "killpoint merge")),
        variables,
        ("shard-N.tar", "shard-N"),
        "whole",
    );
}

#[test]
fn the_gitlab_pipeline_runs_and_merges_all_shards() {
    let text = manifest("gitlab-ci.yml");
    for line in ["SHARDS: \"4\"", "parallel: 4", "needs: [killpoint-shard]", "when: always"] {
        assert!(text.contains(line), "{line}");
    }
    let variables = |_: &Bench, index: usize| {
        let (index, all) = ((index + 1).to_string(), SHARDS.to_string());
        BTreeMap::from([("CI_NODE_INDEX", index), ("CI_NODE_TOTAL", all.clone()), ("SHARDS", all)])
    };
    carried_out(
        (&script(&text, "killpoint run"), &script(&text, "killpoint merge")),
        variables,
        ("shard-N.tar", "shard-N"),
        "whole",
    );
}

#[test]
#[expect(clippy::print_stdout, reason = "a skipped test must be seen in its output")]
fn the_manifests_are_yaml_and_hold_the_scripts_that_are_tested() {
    let read =
        "import json, sys, yaml; print(json.dumps(list(yaml.safe_load_all(open(sys.argv[1]))), default=str))";
    for (name, words) in [
        ("kubernetes/shards.yaml", &["killpoint run"][..]),
        ("kubernetes/merge.yaml", &["killpoint merge"]),
        ("github-actions.yml", &["killpoint run", "killpoint merge"]),
        ("gitlab-ci.yml", &["killpoint run", "killpoint merge"]),
    ] {
        let said = end_of(started(Command::new("python3").args(["-c", read]).arg(path(name))));
        if said.err.contains("No module named 'yaml'") {
            println!("skipped: python3 has no module yaml");
            return;
        }
        let said = said.exits(Holds);
        let documents: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        for word in words {
            let wanted = script(&manifest(name), word);
            assert!(holds(&documents, &wanted), "{name}: {wanted}\n{documents:#}");
        }
    }
}

/// Whether a text is somewhere in a document.
fn holds(value: &serde_json::Value, text: &str) -> bool {
    match value {
        serde_json::Value::String(own) => own == text,
        serde_json::Value::Array(items) => items.iter().any(|item| holds(item, text)),
        serde_json::Value::Object(fields) => fields.values().any(|field| holds(field, text)),
        _ => false,
    }
}
