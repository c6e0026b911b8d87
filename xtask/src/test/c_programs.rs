//! The examples in C, compiled.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use super::environment::{Folders, Prepared, files_of_examples};
use super::tools::{find, fingerprint, link, once, run, version};

pub(super) fn prepare(folders: &Folders) -> Result<Prepared> {
    let missing = |why: &str| Ok(Prepared::Missing { tests: "C", why: why.to_owned() });
    let Some(compiler) = find("cc") else { return missing("no `cc` on the PATH") };
    if !has_sqlite(&compiler) {
        return missing("`cc` finds no `sqlite3.h`");
    }
    let programs = folders.prepared.join("bin");
    let is_c = |file: &Path| file.extension().is_some_and(|extension| extension == "c");
    for source in files_of_examples(folders, is_c)? {
        compile(&compiler, &source, &programs)?;
    }
    Ok(Prepared::Ready(vec![("KILLPOINT_TEST_BIN", programs.into())]))
}

fn compile(compiler: &Path, source: &Path, programs: &Path) -> Result<()> {
    let text = std::fs::read_to_string(source).with_context(|| format!("reading {}", source.display()))?;
    let example = source.parent().and_then(Path::file_name).context("a source lies in a folder")?;
    let name = source.file_stem().context("a source has a name")?;
    let programs = programs.join(example);
    std::fs::create_dir_all(&programs).with_context(|| format!("creating {}", programs.display()))?;
    let program = programs.join(name);
    once(&program.with_extension("stamp"), &fingerprint([&*version(compiler)?, &*text]), || {
        run(Command::new(compiler).arg("-O1").arg("-o").arg(&program).arg(source).arg("-lsqlite3"))
    })?;
    link(&source.with_extension(""), &program)
}

fn has_sqlite(compiler: &Path) -> bool {
    let mut command = Command::new(compiler);
    command.args(["-E", "-x", "c", "-include", "sqlite3.h", "/dev/null"]);
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}
