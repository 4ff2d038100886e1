//! Folders and files whose names specify their parts.

use std::path::{Path, PathBuf};

use super::error::DataError;
use super::files::{entries, files_below};
use super::parts::{Borders, Part, Parts, SplitRule, TextDocument};
use super::rows::{self, endings, is_data};

/// Reads a folder by the names of its parts if it has a training part, otherwise all of its files by number.
pub(super) fn read_folder(folder: &Path, field: Option<&str>) -> Result<Parts, DataError> {
    let mut named = Vec::new();
    let mut stray = None;
    for (name, path) in entries(folder)? {
        let below = if path.is_dir() {
            let below = files_below(&path, is_data)?.into_iter();
            below.map(|(within, file)| (format!("{name}/{within}"), file)).collect()
        } else if is_data(&path) {
            vec![(name.clone(), path)]
        } else {
            Vec::new()
        };
        match part_of(&name) {
            _ if below.is_empty() => {}
            Some(part) => named.extend(below.into_iter().map(|(name, file)| (part, name, file))),
            None => stray = stray.or(Some(name)),
        }
    }
    let has = |part: Part| named.iter().any(|(of, _, _)| *of == part);
    if !has(Part::Train) {
        return read_undivided(folder, field);
    }
    if let Some(name) = stray {
        return Err(DataError::Stray { path: folder.into(), name });
    }
    if !has(Part::Validation) {
        return Err(DataError::NoValidation { path: folder.into() });
    }
    let wikitext = is_wikitext(folder, &named);
    let mut documents = Vec::new();
    for (part, name, file) in named {
        let found = rows::documents(&file, &name, field)?;
        documents.extend(found.into_iter().map(|document| (part, document)));
    }
    let parts = Parts::new(documents);
    Ok(if wikitext { articles(parts) } else { parts })
}

fn read_undivided(folder: &Path, field: Option<&str>) -> Result<Parts, DataError> {
    let mut documents = Vec::new();
    for (name, file) in files_below(folder, is_data)? {
        documents.extend(rows::documents(&file, &name, field)?);
    }
    if documents.is_empty() {
        return Err(DataError::NoData { path: folder.into(), expected: endings() });
    }
    SplitRule::ByNumber.parts(documents)
}

/// Part that a name specifies, as in `train`, `wiki.valid.raw`, `test-00000-of-00001.parquet`.
fn part_of(name: &str) -> Option<Part> {
    let mut words = name.split(|c: char| !c.is_ascii_alphanumeric());
    words.find_map(|word| match word {
        "train" => Some(Part::Train),
        "validation" | "valid" | "val" | "dev" => Some(Part::Validation),
        "test" => Some(Part::Test),
        _ => None,
    })
}

/// Whether a folder is WikiText as published: files `wiki.train.raw`, or rows of lines in a folder `wikitext-...`.
fn is_wikitext(folder: &Path, named: &[(Part, String, PathBuf)]) -> bool {
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
    let folder = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    folder.starts_with("wikitext-") || named.iter().all(|(_, name, _)| name.starts_with("wiki."))
}

/// Concatenates the lines of each part and splits them into articles.
fn articles(parts: Parts) -> Parts {
    let joined = parts.with_borders(Borders::Joined);
    let mut documents = Vec::new();
    for (part, TextDocument { name, text }) in joined.documents {
        let mut starts: Vec<usize> = vec![0];
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            if is_title(line) && at > 0 {
                starts.push(at);
            }
            at += line.len();
        }
        starts.push(text.len());
        let cut = starts.windows(2).enumerate().map(|(number, ends)| {
            let text = text[ends[0]..ends[1]].to_owned();
            (part, TextDocument { name: format!("{name}:{number}"), text })
        });
        documents.extend(cut);
    }
    Parts::new(documents)
}

/// Whether a line is a title ` = Title = `; titles of sections have more signs.
fn is_title(line: &str) -> bool {
    let inner = line.trim_end().strip_prefix(" = ").and_then(|line| line.strip_suffix(" ="));
    inner.is_some_and(|title| !title.is_empty() && !title.contains('='))
}

/// Conventional byte offsets of the parts of `enwik8`; `None` for every other file.
pub(super) fn fixed_cuts(path: &Path) -> Option<[usize; 2]> {
    let bytes = std::fs::metadata(path).ok()?.len();
    (path.file_name()? == "enwik8" && bytes == 100_000_000).then_some([90_000_000, 95_000_000])
}
