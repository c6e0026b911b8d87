//! `killpoint doctor`: what this machine can do, what a configuration reaches, and what is left out.

use std::path::{Path, PathBuf};

use clap::Args;
use killpoint::doctor;
use killpoint::model::diagnostic::nearest;
use killpoint::model::{Diagnostic, ExitCode, Settings};

use super::run::{CONFIG, load_config};
use crate::diagnostics::Diagnosed;
use crate::invocation::Form;
use crate::show;

/// Arguments of `doctor`.
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// The configuration to hold against this machine [default: killpoint.toml, where there is one]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where runs are put: files are tried there
    #[arg(long, value_name = "DIR", default_value = "killpoint-runs")]
    run_dir: PathBuf,
    /// What standard output carries
    #[arg(long, value_enum, default_value = "text")]
    format: Form,
}

impl Doctor {
    pub(crate) fn run(self) -> ExitCode {
        let config = match self.settings() {
            Ok(config) => config,
            Err(problems) => return problems.complain(),
        };
        let named = config.as_ref().map(|(file, settings)| (file.as_str(), settings));
        let diagnosis = match super::block_on(doctor::diagnose(named, &self.run_dir)) {
            Ok(Ok(diagnosis)) => diagnosis,
            Ok(Err(error)) => {
                show::complain(&error.to_string());
                return error.exit_code();
            }
            Err(code) => return code,
        };
        let text = match self.format {
            Form::Text => doctor::show(&diagnosis, show::width()),
            Form::Json => serde_json::to_string_pretty(&diagnosis).unwrap_or_default(),
        };
        let code = if diagnosis.can_run { ExitCode::Holds } else { ExitCode::SetupFailed };
        show::lines_to_stdout(&text).err().unwrap_or(code)
    }

    /// The configuration that was named, or the usual one where it is there.
    fn settings(&self) -> Result<Option<(String, Settings)>, Diagnosed> {
        let path = match &self.config {
            Some(path) if path.exists() => path.clone(),
            Some(path) => return Err(missing(path)),
            None if Path::new(CONFIG).exists() => PathBuf::from(CONFIG),
            None => return Ok(None),
        };
        Ok(Some((path.display().to_string(), load_config(&path)?)))
    }
}

fn missing(path: &Path) -> Diagnosed {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.path().extension().is_some_and(|end| end == "toml"))
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    let wanted = path.file_name().unwrap_or_default().to_string_lossy();
    let help = nearest(&wanted, names.iter().map(String::as_str)).map_or_else(
        || {
            "leave --config out to see the machine alone; `killpoint init` proposes a configuration"
                .to_owned()
        },
        |near| format!("did you mean `{}`?", folder.join(near).display()),
    );
    let what = format!("there is no configuration {}", path.display());
    Diagnosed::plain(vec![Diagnostic::error("unreadable-file", what).with_help(help)])
}
