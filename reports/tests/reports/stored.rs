//! The run in `tests/golden`, made by the program itself: trials that are violated, hold, prove nothing, and one
//! whose history is cut short.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;

use killpoint_model::{History, RunRecord};

/// A stored run.
pub(crate) struct Stored {
    pub(crate) record: RunRecord,
    pub(crate) histories: BTreeMap<String, History>,
}

pub(crate) fn stored() -> Stored {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let record = fs::read_to_string(folder.join("run.json")).unwrap();
    let record: RunRecord = serde_json::from_str(&record).unwrap();
    let history = |name: &String| {
        let file = File::open(folder.join(name).join("history.jsonl")).unwrap();
        History::read(BufReader::new(file)).unwrap()
    };
    let histories =
        record.trials.iter().map(|trial| (trial.folder.clone(), history(&trial.folder))).collect();
    Stored { record, histories }
}
