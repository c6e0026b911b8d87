//! Commands and configurations in `README.md` and below `docs` do what the pages say.
//!
//! A TOML block is read without a diagnostic; one that is only a part of a file is completed. Commands in `sh` and
//! `console` blocks are run in a folder with a worker; those of the tutorial in a copy of its example. A comment
//! `# exit code N` says how a command ends, and output below a `$ command` is compared, where `…` stands for lines
//! that are left out and times may differ.

mod commands;
mod configurations;
mod not_http;
mod page;
mod printed;
mod tutorial;
