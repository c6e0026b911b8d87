//! The `html` format: one file that needs nothing else, for people to whom a run is forwarded.

mod data;
mod escape;
mod full;
mod page;
mod texts;

use std::io::{self, Write};

use killpoint_model::Entry;

use self::page::Page;
use crate::{Format, Options, View};

/// The format.
#[derive(Debug)]
pub(crate) struct Html;

static ENTRY: Entry = Entry {
    name: "html",
    summary: "one self-contained page with a picture of each trial, to be forwarded",
    explanation: "The verdict; the map of boundaries and provider plans; of each trial that does not hold, and of \
                  some that do, the timeline with a lane for each life of the worker, the ledger, the provider and \
                  the recipients, in which a kill is a bar across all lanes; filters that are kept in the \
                  address; the checklist, the notes, the warnings and what was not shown. The file loads nothing \
                  from anywhere and runs no script but its own. It can be read without JavaScript, by keyboard, \
                  by a screen reader and on paper. What it leaves out to stay small, it says.",
    example: "killpoint run --report html=killpoint.html",
};

impl Format for Html {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn write(&self, view: &View, options: &Options, out: &mut dyn Write) -> io::Result<()> {
        let page = Page::new(view, options)?;
        page.write_to(out)
    }
}
