//! The labels of committed records, compared with questions that are drawn again.
#![allow(clippy::unwrap_used, reason = "tests panic on failure")]

use std::path::{Path, PathBuf};

use analysis::folder::read_dir;
use records::store::LabelledQuestions;
use train::run::evaluate::Relabelled;

/// Folders of the repository with records.
fn committed(folder: &Path) -> Vec<PathBuf> {
    if folder.join("cells").is_dir() || folder.join("records.parquet").is_file() {
        return vec![folder.to_owned()];
    }
    let below = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    below.filter(|path| path.is_dir()).flat_map(|path| committed(&path)).collect()
}

#[test]
fn labels_of_committed_records_are_those_of_their_questions() {
    let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../results");
    let mut labelled = 0;
    for folder in committed(&results) {
        let records = read_dir(&folder).unwrap();
        let Relabelled { labels, .. } = Relabelled::of(&records).unwrap();
        let committed = LabelledQuestions::read(&folder).unwrap();
        let advice = "write them with `pe-bench records pack FOLDER --out ELSEWHERE`";
        assert_eq!(committed, labels, "{}: {advice}", folder.display());
        labelled += usize::from(!labels.evaluations.is_empty());
    }
    assert!(labelled > 5, "{labelled} folders with labels");
}
