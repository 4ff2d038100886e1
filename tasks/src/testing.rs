//! Support for the tests of tasks: an example of each task, an invented text, and the shared checks.

pub(crate) mod checks;
pub(crate) mod strings;

use std::path::PathBuf;

use tempfile::TempDir;

use crate::settings::TaskConfig;

/// Function from the texts of all tokens before a scored one to the text that must follow; `None` if that is not
/// determined.
pub(crate) type Oracle = fn(&[String]) -> Option<String>;

/// Settings, lengths and expected results of one task for the shared tests.
pub(crate) struct Example {
    /// Settings of the golden hash and of the documented sample.
    pub(crate) config: TaskConfig,
    /// Length whose sample fits on a line or two of documentation.
    pub(crate) len: usize,
    /// Settings and length for the oracle.
    pub(crate) oracle_config: (TaskConfig, usize),
    pub(crate) oracle: Oracle,
    /// Settings and length at which the chance level can be measured with 40,000 samples.
    pub(crate) chance_config: (TaskConfig, usize),
    /// Whether samples are drawn: the oracle is complete, the seed matters, and the number of samples is unlimited.
    pub(crate) synthetic: bool,
    /// SHA-256 of the samples that `checks::golden` draws.
    pub(crate) golden: &'static str,
    /// Removes the text of the example when dropped.
    _folder: Option<TempDir>,
}

impl Example {
    pub(crate) fn synthetic(
        config: impl Into<TaskConfig>,
        len: usize,
        oracle: Oracle,
        golden: &'static str,
    ) -> Self {
        let config = config.into();
        Self {
            oracle_config: (config.clone(), len),
            chance_config: (config.clone(), len),
            config,
            len,
            oracle,
            synthetic: true,
            golden,
            _folder: None,
        }
    }

    pub(crate) fn from_text(
        config: TaskConfig,
        folder: TempDir,
        len: usize,
        oracle: Oracle,
        golden: &'static str,
    ) -> Self {
        Self {
            synthetic: false,
            _folder: Some(folder),
            ..Self::synthetic(config, len, oracle, golden)
        }
    }

    pub(crate) fn with_oracle_config(self, config: TaskConfig, len: usize) -> Self {
        Self { oracle_config: (config, len), ..self }
    }

    pub(crate) fn with_chance_config(self, config: TaskConfig, len: usize) -> Self {
        Self { chance_config: (config, len), ..self }
    }
}

/// Returns about 7000 characters of invented sentences, some of them not ASCII; the same each time.
pub(crate) fn harbour_text() -> String {
    const WHO: [&str; 5] = ["the pilot", "a gull", "Zoé", "the old ferry", "nobody"];
    const DOES: [&str; 7] = ["counts", "follows", "forgets", "paints", "hears", "lifts", "crosses"];
    const WHAT: [&str; 6] =
        ["the tide", "four ropes", "a café", "the lamp", "twelve crates", "fog"];
    const END: [&str; 4] = [".\n", "; ", " — again. ", "!\n"];
    let mut text = String::new();
    for k in 0..240 {
        text += WHO[k * 3 % 5];
        text += " ";
        text += DOES[k * k % 7];
        text += " ";
        text += WHAT[(k + k / 6) % 6];
        text += END[k * 7 % 11 % 4];
    }
    text
}

/// Creates a file with these bytes; dropping the folder removes it.
pub(crate) fn write_temp(bytes: &[u8]) -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("text.txt");
    std::fs::write(&path, bytes).unwrap();
    (folder, path)
}
