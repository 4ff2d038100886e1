//! Exported folders, written in one step.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tasks::{FileError, unless_absent};

use super::ExportError;

/// Field of an exported `config.json` that names this program.
pub(super) const EXPORTED_BY: &str = "exported_by";
pub(super) const PROGRAM: &str = "pe-bench";

/// Record of a training, which only this program writes.
pub(super) const RECORD: &str = "record.json";

/// All files of exported folders.
const FILES: [&str; 7] = [
    "model.safetensors",
    "config.json",
    "pe_zoo_model.py",
    "tokenizer.json",
    "tokenizer_config.json",
    "vocabulary.json",
    RECORD,
];

/// Endings of the names of temporary folders: of one that is being written, and of an earlier export that is being replaced.
const NEW: &str = ".new";
const OLD: &str = ".old";

/// Checks that an export may be written to a folder: that it does not exist, is empty, or has an earlier export and nothing
/// else.
///
/// # Errors
///
/// [`ExportError::Foreign`] if not, [`ExportError::Io`] if it cannot be read.
pub fn check_target(folder: &Path) -> Result<(), ExportError> {
    let names = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        entries => entries.and_then(|entries| {
            entries.map(|entry| Ok(entry?.file_name())).collect::<Result<Vec<_>, _>>()
        }),
    };
    let names = names.map_err(FileError::of("read", folder))?;
    let is_known = names.iter().all(|name| FILES.iter().any(|file| name == file));
    if names.is_empty() || (is_known && is_own(folder)) {
        return Ok(());
    }
    Err(ExportError::Foreign { path: folder.to_owned() })
}

/// Whether this program wrote the settings or the record of a folder.
fn is_own(folder: &Path) -> bool {
    let config = fs::read(folder.join("config.json"));
    let config = config.ok().and_then(|text| serde_json::from_slice::<Value>(&text).ok());
    folder.join(RECORD).exists() || config.is_some_and(|config| config[EXPORTED_BY] == PROGRAM)
}

/// Writes a folder in one step: `write` fills a temporary one beside it, which then takes its place. An earlier export is
/// moved aside before that and removed after; if the program ends in between, the next call puts it back.
///
/// # Errors
///
/// As [`check_target`], or [`ExportError`] of `write`; the folder is then as before.
pub(super) fn replace(
    folder: &Path,
    write: impl FnOnce(&Path) -> Result<(), ExportError>,
) -> Result<(), ExportError> {
    // A link stays one to the same folder.
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    put_back(&folder)?;
    check_target(&folder)?;
    let new = beside(&folder, NEW);
    fs::create_dir_all(&new).map_err(FileError::of("create", &new))?;
    let written = write(&new).and_then(|()| Ok(sync(&new).and_then(|()| swap(&new, &folder))?));
    if written.is_err() {
        // The first error is reported; an error of the clean-up would hide it.
        let _ = fs::remove_dir_all(&new);
    }
    written
}

/// Path of a temporary folder of this process beside a folder.
fn beside(folder: &Path, ending: &str) -> PathBuf {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    folder.with_file_name(format!(".{name}.{}{ending}", std::process::id()))
}

/// Moves an earlier export back that a process moved aside and did not replace, and removes those that were replaced.
fn put_back(folder: &Path) -> Result<(), FileError> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let begin = format!(".{name}.");
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty());
    for entry in fs::read_dir(parent.unwrap_or(Path::new("."))).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let process = name.strip_prefix(&*begin).and_then(|rest| rest.strip_suffix(OLD));
        if process.is_none_or(|process| process.parse::<u32>().is_err()) {
            continue;
        }
        if folder.exists() {
            // A leftover folder does no harm.
            let _ = fs::remove_dir_all(entry.path());
        } else {
            fs::rename(entry.path(), folder).map_err(FileError::of("move back", folder))?;
        }
    }
    Ok(())
}

/// Waits until the files of a folder are on the disk.
fn sync(folder: &Path) -> Result<(), FileError> {
    let of_folder = FileError::of("read", folder);
    for entry in fs::read_dir(folder).map_err(of_folder)? {
        let path = entry.map_err(of_folder)?.path();
        let synced = File::options().write(true).open(&path).and_then(|file| file.sync_all());
        synced.map_err(FileError::of("write", &path))?;
    }
    Ok(())
}

/// Puts the folder `new` in the place of `folder`, whose files it removes.
fn swap(new: &Path, folder: &Path) -> Result<(), FileError> {
    let old = beside(folder, OLD);
    unless_absent(fs::rename(folder, &old)).map_err(FileError::of("move aside", folder))?;
    fs::rename(new, folder).map_err(|error| {
        // The first error is reported; the next export tries it again.
        let _ = fs::rename(&old, folder);
        FileError::of("rename a folder to", folder)(error)
    })?;
    // The next export tries it again.
    let _ = fs::remove_dir_all(&old);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tasks::write_in;

    fn export(folder: &Path, weights: &str) -> Result<(), ExportError> {
        replace(folder, |folder| {
            write_in(folder, "model.safetensors", weights)?;
            let config = json!({ EXPORTED_BY: PROGRAM });
            Ok(write_in(folder, "config.json", config.to_string())?)
        })
    }

    fn fail(folder: &Path) -> String {
        let failed = replace(folder, |folder| {
            write_in(folder, "config.json", "half")?;
            Err(ExportError::NotLlama)
        });
        failed.unwrap_err().to_string()
    }

    fn weights(folder: &Path) -> String {
        fs::read_to_string(folder.join("model.safetensors")).unwrap()
    }

    fn names(folder: &Path) -> Vec<String> {
        let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names = names.map(|name| name.into_string().unwrap()).collect::<Vec<_>>();
        names.sort();
        names
    }

    #[test]
    fn an_export_that_fails_leaves_the_earlier_one_and_nothing_else() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("parent/model");
        assert!(fail(&folder).contains("architecture"));
        assert!(!folder.exists());
        export(&folder, "first").unwrap();
        assert!(fail(&folder).contains("architecture"));
        assert_eq!((weights(&folder), names(&folder).len()), ("first".to_owned(), 2));
        write_in(&folder, "vocabulary.json", "[]").unwrap();
        export(&folder, "second").unwrap();
        assert_eq!(weights(&folder), "second");
        assert_eq!(names(&folder), ["config.json", "model.safetensors"], "of one export");
        assert_eq!(names(folder.parent().unwrap()), ["model"], "no temporary folder is left");
    }

    /// The program ended after the earlier export was moved aside.
    #[test]
    fn an_export_that_was_moved_aside_is_put_back() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("model");
        export(&folder, "first").unwrap();
        fs::rename(&folder, place.path().join(".model.1.old")).unwrap();
        assert!(fail(&folder).contains("architecture"));
        assert_eq!((weights(&folder), names(place.path())), ("first".into(), vec!["model".into()]));
        // It ended after the new one took its place.
        fs::create_dir(place.path().join(".model.2.old")).unwrap();
        fs::create_dir(place.path().join(".model.mine.old")).unwrap();
        export(&folder, "second").unwrap();
        assert_eq!((weights(&folder), names(place.path()).len()), ("second".into(), 2));
    }

    #[test]
    fn only_an_earlier_export_is_replaced() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("model");
        fs::create_dir(&folder).unwrap();
        export(&folder, "in an empty folder").unwrap();
        export(&folder, "first").unwrap();
        for (file, text) in [("notes.txt", "mine"), ("config.json", "{}"), ("config.json", "{")] {
            let before = fs::read(folder.join(file)).ok();
            fs::write(folder.join(file), text).unwrap();
            let said = export(&folder, "second").unwrap_err().to_string();
            assert!(said.contains("expected a new or empty folder"), "{said}");
            assert_eq!(weights(&folder), "first", "{file}");
            match before {
                Some(before) => fs::write(folder.join(file), before).unwrap(),
                None => fs::remove_file(folder.join(file)).unwrap(),
            }
        }
        // Exports of trainings have their record.
        fs::write(folder.join("config.json"), "{}").unwrap();
        fs::write(folder.join(RECORD), "{}").unwrap();
        export(&folder, "second").unwrap();
        assert_eq!(weights(&folder), "second");
    }
}
