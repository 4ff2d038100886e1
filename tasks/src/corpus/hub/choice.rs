//! Selection of the files of a data set to download and to read.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::error::HubError;
use super::name::{DataSet, is_path};
use crate::data::{Part, endings, is_data, part_of};

/// Number of names in an error message.
const LISTED: usize = 12;

/// Files to download, and the file or folder among them to read; `None`: all of them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) files: Vec<String>,
    pub(super) read: Option<String>,
}

/// Chooses among the listed files by their names.
///
/// - A named file is downloaded alone.
/// - Otherwise all readable files below the named folder, and only the training, validation and test parts if names
///   tell these apart.
/// - Without a validation part, only the training part, which is then divided by number.
/// - Several folders with a training part each are several data sets, one of which must be named.
pub(super) fn choose(set: &DataSet, files: &[String]) -> Result<Choice, HubError> {
    // A name that leads out of the folder is not a file of it.
    let files = files.iter().map(String::as_str).filter(|file| is_path(file));
    let files = files.collect::<BTreeSet<_>>();
    let nothing_readable = |known: &BTreeSet<&str>| HubError::NothingReadable {
        set: set.to_string(),
        expected: endings(),
        known: listed(known.iter().copied()),
    };
    if let Some(file) = set.path().filter(|path| files.contains(path)) {
        if !is_data(Path::new(file)) {
            return Err(nothing_readable(&BTreeSet::from([file])));
        }
        return Ok(Choice { files: vec![file.to_owned()], read: Some(file.to_owned()) });
    }
    let base = set.path().map(|path| format!("{path}/")).unwrap_or_default();
    let below =
        files.iter().copied().filter(|file| file.starts_with(&base)).collect::<BTreeSet<_>>();
    if let (Some(path), true) = (set.path(), below.is_empty()) {
        let (set, path) = (set.to_string(), path.to_owned());
        return Err(HubError::NotThere { set, path, known: listed(files.iter().copied()) });
    }
    let readable = below.iter().copied().filter(|file| is_data(Path::new(file)));
    let readable = readable.collect::<Vec<_>>();
    if readable.is_empty() {
        return Err(nothing_readable(&below));
    }

    let mut parted = BTreeMap::<&str, Vec<(Part, &str)>>::new();
    for file in &readable {
        if let Some((folder, part)) = parted_at(file, base.len()) {
            parted.entry(folder).or_default().push((part, file));
        }
    }
    let has = |parts: &[(Part, &str)], part| parts.iter().any(|(of, _)| *of == part);
    parted.retain(|_, parts| has(parts, Part::Train));
    match parted.iter().collect::<Vec<_>>().as_slice() {
        [] => Ok(Choice { files: readable.into_iter().map(str::to_owned).collect(), read: None }),
        [(folder, parts)] => {
            let is_whole = has(parts, Part::Validation);
            let wanted = parts.iter().filter(|(part, _)| is_whole || *part == Part::Train);
            let files = wanted.map(|(_, file)| (*file).to_owned()).collect();
            Ok(Choice { files, read: is_whole.then(|| (**folder).to_owned()) })
        }
        several => {
            let names = several.iter().map(|(folder, parts)| {
                // Files outside of folders can only be named one by one.
                let first = parts.first().map_or("", |(_, file)| *file);
                set.part(if folder.is_empty() { first } else { folder }).to_string()
            });
            let folders = names.collect::<Vec<_>>().join(", ");
            Err(HubError::Several { set: set.to_string(), folders })
        }
    }
}

/// Returns the part of a file and the folder that contains the parts: for `a/train/0.jsonl` the training part in `a`.
/// Folders before byte `from` are ignored.
fn parted_at(file: &str, from: usize) -> Option<(&str, Part)> {
    let mut start = from;
    for word in file[from..].split('/') {
        if let Some(part) = part_of(word) {
            return Some((file[..start].trim_end_matches('/'), part));
        }
        start += word.len() + 1;
    }
    None
}

/// Lists some names and the number of others.
fn listed<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    let more = names.len().saturating_sub(LISTED);
    let shown = names.take(LISTED).collect::<Vec<_>>().join(", ");
    match more {
        0 if shown.is_empty() => "nothing".to_owned(),
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(name: &str, files: &[&str]) -> Result<Choice, String> {
        let files = files.iter().map(|file| (*file).to_owned()).collect::<Vec<_>>();
        choose(&name.parse().unwrap(), &files).map_err(|error| error.to_string())
    }

    fn choice(files: &[&str], read: Option<&str>) -> Choice {
        let files = files.iter().map(|file| (*file).to_owned()).collect();
        Choice { files, read: read.map(str::to_owned) }
    }

    const WIKI: [&str; 8] = [
        ".gitattributes",
        "README.md",
        "wikitext-103-raw-v1/test-00000-of-00001.parquet",
        "wikitext-103-raw-v1/train-00001-of-00002.parquet",
        "wikitext-103-raw-v1/train-00000-of-00002.parquet",
        "wikitext-103-raw-v1/validation-00000-of-00001.parquet",
        "wikitext-2-raw-v1/train-00000-of-00001.parquet",
        "wikitext-2-raw-v1/validation-00000-of-00001.parquet",
    ];

    #[test]
    fn parts_are_chosen_and_nothing_else() {
        let of = ["test.jsonl", "train.jsonl", "valid.jsonl"];
        let beside = [&of[..], &["LICENSE.txt", "README.md", "stats.csv"]].concat();
        assert_eq!(chosen("hf:o/n", &beside).unwrap(), choice(&of, Some("")));
        let inner = ["data/train/0.txt", "data/train/1.txt", "data/dev.txt"];
        let sorted = ["data/dev.txt", "data/train/0.txt", "data/train/1.txt"];
        assert_eq!(chosen("hf:o/n", &inner).unwrap(), choice(&sorted, Some("data")));
        assert_eq!(chosen("hf:o/n/data", &inner).unwrap(), choice(&sorted, Some("data")));
    }

    #[test]
    fn one_of_several_data_sets_must_be_named() {
        let said = chosen("hf:o/wikitext", &WIKI).unwrap_err();
        assert!(
            said.contains("hf:o/wikitext/wikitext-103-raw-v1, hf:o/wikitext/wikitext-2"),
            "{said}"
        );
        let files = [WIKI[2], WIKI[4], WIKI[3], WIKI[5]];
        let read = Some("wikitext-103-raw-v1");
        assert_eq!(
            chosen("hf:o/wikitext/wikitext-103-raw-v1", &WIKI).unwrap(),
            choice(&files, read)
        );
    }

    #[test]
    fn without_validation_only_the_training_part_comes() {
        let files =
            ["data/test-0.parquet", "data/train-0.parquet", "data/train-1.parquet", "a.txt"];
        assert_eq!(chosen("hf:o/n", &files).unwrap(), choice(&[files[1], files[2]], None));
    }

    #[test]
    fn without_parts_everything_that_can_be_read_comes() {
        let files = ["b/two.jsonl", "a.txt", "b/c/three.parquet", "b/notes.md", "test/x.txt"];
        let all = ["a.txt", "b/c/three.parquet", "b/two.jsonl", "test/x.txt"];
        assert_eq!(chosen("hf:o/n", &files).unwrap(), choice(&all, None));
        assert_eq!(chosen("hf:o/n/b", &files).unwrap(), choice(&all[1..3], None));
        // Parts are determined by names within the requested folder, not by its own name.
        let inside = ["train/0.txt", "train/1.txt"];
        assert_eq!(chosen("hf:o/n/train", &inside).unwrap(), choice(&inside, None));
    }

    #[test]
    fn a_file_that_is_named_comes_alone() {
        assert_eq!(
            chosen(&format!("hf:o/n/{}", WIKI[4]), &WIKI).unwrap(),
            choice(&[WIKI[4]], Some(WIKI[4]))
        );
        let said = chosen("hf:o/n/README.md", &WIKI).unwrap_err();
        assert!(said.contains(".parquet") && said.contains("README.md"), "{said}");
    }

    #[test]
    fn what_is_not_there_or_cannot_be_read_is_refused_with_what_there_is() {
        let said = chosen("hf:o/n/wikitext-103", &WIKI).unwrap_err();
        assert!(
            said.contains("no `wikitext-103`") && said.contains("wikitext-103-raw-v1/"),
            "{said}"
        );
        let many = (0..30).map(|n| format!("{n:02}.csv")).collect::<Vec<_>>();
        let many = many.iter().map(String::as_str).collect::<Vec<_>>();
        let said = chosen("hf:o/n", &many).unwrap_err();
        assert!(said.contains(".jsonl") && said.contains("11.csv and 18 more"), "{said}");
        assert!(chosen("hf:o/n", &[]).unwrap_err().contains("it has: nothing"));
    }

    #[test]
    fn names_that_lead_elsewhere_are_no_files() {
        let files =
            ["../out.txt", "a/../../b.txt", "/abs.txt", ".hidden.txt", "a\\b.txt", "ok.txt"];
        assert_eq!(chosen("hf:o/n", &files).unwrap(), choice(&["ok.txt"], None));
    }
}
