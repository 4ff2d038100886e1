//! Folder with the checkpoints of a cell, of which the last two are kept.

use std::fs;
use std::path::{Path, PathBuf};

use tasks::{FileError, unless_absent};

use super::file;

/// Number of checkpoints kept, two so that one may be damaged.
const KEPT: usize = 2;
const EXTENSION: &str = "ckpt";
/// File with the number of deaths of the cell's worker.
const DEATHS: &str = "deaths";

/// Folder with the checkpoints of one cell, used only by the process that holds the cell's claim.
#[derive(Debug, Clone)]
pub struct CheckpointFolder {
    path: PathBuf,
    key: String,
}

impl CheckpointFolder {
    /// Folder of the cell `key` in a results folder; nothing is created or read.
    pub fn new(results: &Path, key: &str) -> Self {
        Self { path: results.join("checkpoints").join(key), key: key.to_owned() }
    }

    /// Whether the folder exists.
    pub fn exists(&self) -> bool {
        self.path.is_dir()
    }

    /// Writes the checkpoint after `step` steps atomically and removes all but the last two.
    ///
    /// # Errors
    /// If it cannot be written; earlier checkpoints are unchanged.
    pub fn write(&self, step: usize, content: &[u8]) -> Result<(), FileError> {
        fs::create_dir_all(&self.path).map_err(FileError::of("create", &self.path))?;
        self.remove_leftovers();
        let path = self.path.join(format!("{step:010}.{EXTENSION}"));
        records::store::write_atomically(&path, &file::seal(&self.key, content))
            .map_err(FileError::of("write", &path))?;
        for old in self.newest_first()?.into_iter().skip(KEPT) {
            unless_absent(fs::remove_file(&old)).map_err(FileError::of("remove", &old))?;
        }
        Ok(())
    }

    /// Removes temporary files of workers that were killed while they wrote; each is as large as a checkpoint.
    fn remove_leftovers(&self) {
        for entry in fs::read_dir(&self.path).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with('.') && name.contains(&format!(".{EXTENSION}.")) {
                // A file that stays takes space only.
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    /// Checkpoint files, the newest first.
    ///
    /// # Errors
    /// If the folder cannot be listed; a missing folder counts as empty.
    pub fn newest_first(&self) -> Result<Vec<PathBuf>, FileError> {
        let found = records::store::files_in(&self.path, EXTENSION);
        let mut found = found.map_err(FileError::of("list", &self.path))?;
        // Steps have leading zeros: the order of names is the order of steps.
        found.reverse();
        Ok(found)
    }

    /// Number of steps after which the newest checkpoint was written, by its name; `None` without one.
    pub fn newest_step(&self) -> Option<usize> {
        let newest = self.newest_first().ok()?.into_iter().next()?;
        newest.file_stem()?.to_str()?.parse().ok()
    }

    /// Reads the content of one of [`newest_first`](Self::newest_first).
    ///
    /// # Errors
    /// If it cannot be read or is damaged; nothing is changed on disk.
    pub fn read(&self, path: &Path) -> anyhow::Result<Vec<u8>> {
        let bytes = fs::read(path).map_err(FileError::of("read", path))?;
        let content = file::open(&self.key, &bytes).map(<[u8]>::to_owned);
        content.map_err(|damage| anyhow::anyhow!("{} is damaged: {damage}", path.display()))
    }

    /// Stored number of times that the cell's worker died by a signal; `None` if there is none.
    pub fn deaths(&self) -> Option<u32> {
        let text = fs::read_to_string(self.path.join(DEATHS)).ok()?;
        // A damaged count is a death at least.
        Some(text.trim().parse().unwrap_or(1))
    }

    /// Stores the number of times that the cell's worker died by a signal.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn note_deaths(&self, deaths: u32) -> Result<(), FileError> {
        fs::create_dir_all(&self.path).map_err(FileError::of("create", &self.path))?;
        let path = self.path.join(DEATHS);
        let written = records::store::write_atomically(&path, deaths.to_string().as_bytes());
        written.map_err(FileError::of("write", &path))
    }

    /// Removes all checkpoints of the cell and the temporary files of interrupted writes.
    ///
    /// # Errors
    /// If a file cannot be removed; a missing folder is not an error.
    pub fn remove(&self) -> Result<(), FileError> {
        unless_absent(fs::remove_dir_all(&self.path))
            .map_err(FileError::of("remove", &self.path))?;
        // The folder of all cells goes with the last of them; it is not empty before.
        if let Some(all) = self.path.parent() {
            let _ = fs::remove_dir(all);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> (tempfile::TempDir, CheckpointFolder) {
        let results = tempfile::tempdir().unwrap();
        let folder = CheckpointFolder::new(results.path(), "0123456789abcdef");
        (results, folder)
    }

    #[test]
    fn the_last_two_are_kept_and_the_newest_comes_first() {
        let (_results, folder) = folder();
        assert_eq!(folder.newest_first().unwrap(), [] as [PathBuf; 0]);
        for step in [9, 10, 100, 11] {
            folder.write(step, &step.to_le_bytes()).unwrap();
        }
        let half = folder.path.join(".0000000100.ckpt.1.0.tmp");
        fs::write(&half, "half").unwrap();
        folder.write(101, &101usize.to_le_bytes()).unwrap();
        assert!(!half.exists());
        fs::remove_file(folder.path.join("0000000101.ckpt")).unwrap();
        folder.write(11, &11usize.to_le_bytes()).unwrap();
        let files = folder.newest_first().unwrap();
        assert_eq!(folder.newest_step(), Some(100));
        let contents = files.iter().map(|f| folder.read(f).unwrap()).collect::<Vec<_>>();
        assert_eq!(contents, [100usize.to_le_bytes(), 11usize.to_le_bytes()]);
        folder.remove().unwrap();
        folder.remove().unwrap();
        assert_eq!(folder.newest_first().unwrap(), [] as [PathBuf; 0]);
    }

    #[test]
    fn a_damaged_file_is_named_with_what_is_wrong() {
        let (_results, folder) = folder();
        folder.write(5, b"content").unwrap();
        let file = folder.newest_first().unwrap().remove(0);
        let mut bytes = fs::read(&file).unwrap();
        *bytes.last_mut().unwrap() ^= 4;
        fs::write(&file, bytes).unwrap();
        let said = folder.read(&file).unwrap_err().to_string();
        assert!(said.contains("0000000005.ckpt") && said.contains("checksum"), "{said}");
    }

    #[test]
    fn a_write_that_fails_says_where_and_leaves_the_others() {
        let (_results, folder) = folder();
        folder.write(1, b"one").unwrap();
        // A folder in the place of the file: the rename must fail.
        fs::create_dir_all(folder.path.join("0000000002.ckpt").join("x")).unwrap();
        let said = folder.write(2, b"two").unwrap_err().to_string();
        assert!(said.starts_with("cannot write") && said.contains("0000000002.ckpt"), "{said}");
        let first = folder.newest_first().unwrap().pop().unwrap();
        assert_eq!(folder.read(&first).unwrap(), b"one");
    }
}
