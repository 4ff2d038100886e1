//! Exported folders, written in one step.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Result, ensure};
use serde_json::Value;
use tasks::{FileError, unless_absent};

/// Field of an exported `config.json` that names this program.
pub(super) const EXPORTED_BY: &str = "exported_by";
pub(super) const PROGRAM: &str = "pe-bench";

/// Record of a training, which only this program writes.
pub(super) const RECORD: &str = "record.json";

/// All files of exported folders.
const FILES: [&str; 6] = [
    "model.safetensors",
    "config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "vocabulary.json",
    RECORD,
];

/// Checks that an export may be written to a folder: that it does not exist, is empty, or has an earlier export and nothing
/// else.
///
/// # Errors
///
/// If not, or if it cannot be read.
pub fn check_target(folder: &Path) -> Result<()> {
    let names = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        entries => entries.and_then(|entries| {
            entries.map(|entry| Ok(entry?.file_name())).collect::<Result<Vec<_>, _>>()
        }),
    };
    let names = names.map_err(FileError::of("read", folder))?;
    let is_known = names.iter().all(|name| FILES.iter().any(|file| name == file));
    ensure!(
        names.is_empty() || (is_known && is_own(folder)),
        "{} has files that pe-bench did not export, expected a new or empty folder, or a folder with nothing but an \
         earlier export; choose another folder, or move the files away",
        folder.display()
    );
    Ok(())
}

/// Whether this program wrote the settings or the record of a folder.
fn is_own(folder: &Path) -> bool {
    let config = fs::read(folder.join("config.json"));
    let config = config.ok().and_then(|text| serde_json::from_slice::<Value>(&text).ok());
    folder.join(RECORD).exists() || config.is_some_and(|config| config[EXPORTED_BY] == PROGRAM)
}

/// Writes a folder in one step: `write` fills a temporary one beside it, which then takes its place.
///
/// # Errors
///
/// As [`check_target`], or that of `write`; the folder is then as before.
pub(super) fn replace(folder: &Path, write: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    // A link stays one to the same folder.
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    check_target(&folder)?;
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let new = folder.with_file_name(format!(".{name}.{}.new", std::process::id()));
    fs::create_dir_all(&new).map_err(FileError::of("create", &new))?;
    let written = write(&new).and_then(|()| {
        sync(&new)?;
        unless_absent(fs::remove_dir_all(&folder)).map_err(FileError::of("remove", &folder))?;
        Ok(fs::rename(&new, &folder).map_err(FileError::of("rename a folder to", &folder))?)
    });
    if written.is_err() {
        // The first error is reported; an error of the clean-up would hide it.
        let _ = fs::remove_dir_all(&new);
    }
    written
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tasks::write_in;

    fn export(folder: &Path, weights: &str) -> Result<()> {
        replace(folder, |folder| {
            write_in(folder, "model.safetensors", weights)?;
            let config = json!({ EXPORTED_BY: PROGRAM });
            Ok(write_in(folder, "config.json", config.to_string())?)
        })
    }

    fn fail(folder: &Path) -> String {
        let failed = replace(folder, |folder| {
            write_in(folder, "config.json", "half")?;
            anyhow::bail!("of this architecture")
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
