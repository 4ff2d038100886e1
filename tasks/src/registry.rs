//! A list of tasks by id, to which tasks of other crates can be added.
//!
//! ```
//! use rand_chacha::ChaCha8Rng;
//! use serde::{Deserialize, Serialize};
//! use tasks::vocabulary::TokenGroup;
//! use tasks::{Generator, Sample, Split, TaskError, TaskMeta, TaskRegistry};
//!
//! /// Predicts that a letter repeats.
//! #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
//! #[serde(default, deny_unknown_fields)]
//! struct Repeat {
//!     letters: u32,
//! }
//!
//! impl Default for Repeat {
//!     fn default() -> Self {
//!         Self { letters: 3 }
//!     }
//! }
//!
//! impl Generator for Repeat {
//!     const META: &'static TaskMeta =
//!         &TaskMeta { id: "repeat", label: "Repeat", ..TaskMeta::GENERATED };
//!     const SOURCE: &'static str = "//! # Repeat: repeat the letter";
//!     const SPLITS: &'static [Split] = &[Split::as_trained("uniform", "A random letter.")];
//!
//!     fn vocabulary(&self) -> Vec<TokenGroup> {
//!         vec![TokenGroup::symbols(self.letters)]
//!     }
//!
//!     fn check_len(&self, _len: usize) -> Result<(), TaskError> {
//!         Ok(())
//!     }
//!
//!     fn sample(&self, _split: usize, len: usize, _rng: &mut ChaCha8Rng) -> Sample {
//!         Sample::scored_from(1, vec![len as u32 % self.letters; len], Vec::new())
//!     }
//! }
//!
//! let registry = TaskRegistry::builtin().with::<Repeat>();
//! let task = registry.parse(serde_json::json!({ "kind": "repeat", "letters": 2 }))?.build()?;
//! assert_eq!(task.eval_set("uniform", 5, 1, 0)?[0].tokens, [1; 5]);
//! assert_eq!(registry.card("repeat")?, "# Repeat: repeat the letter");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use serde::de::{Deserialize as _, DeserializeOwned, Deserializer, Error as _};
use serde_json::{Map, Value};

use crate::error::TaskError;
use crate::nearest::nearest;
use crate::settings::{TaskConfig, TaskSettings};
use crate::task::TaskMeta;

/// One kind of task.
#[derive(Debug, Clone, Copy)]
struct TaskEntry {
    meta: &'static TaskMeta,
    source: &'static str,
    default: fn() -> TaskConfig,
    parse: fn(Value) -> Result<TaskConfig, serde_json::Error>,
}

impl TaskEntry {
    fn of<S: TaskSettings>() -> Self {
        Self {
            meta: S::META,
            source: S::SOURCE,
            default: || S::default().into(),
            parse: |settings| read::<S>(settings).map(TaskConfig::from),
        }
    }
}

/// List of tasks by id.
#[derive(Debug, Clone, Default)]
pub struct TaskRegistry {
    entries: Vec<TaskEntry>,
}

impl TaskRegistry {
    /// Adds a task; it replaces one of the same id.
    #[must_use]
    pub fn with<S: TaskSettings>(mut self) -> Self {
        self.entries.retain(|entry| entry.meta.id != S::META.id);
        self.entries.push(TaskEntry::of::<S>());
        self
    }

    /// Facts about every task, in the order in which they were added; the built-in tasks are sorted by id.
    pub fn metas(&self) -> impl Iterator<Item = &'static TaskMeta> {
        self.entries.iter().map(|entry| entry.meta)
    }

    fn find(&self, id: &str) -> Result<&TaskEntry, TaskError> {
        self.entries.iter().find(|entry| entry.meta.id == id).ok_or_else(|| {
            let known: Vec<_> = self.metas().map(|meta| meta.id).collect();
            TaskError::UnknownTask { id: id.to_owned(), nearest: nearest(id, &known), known }
        })
    }

    /// Default settings of a task.
    ///
    /// # Errors
    /// [`TaskError::UnknownTask`], with the most similar id.
    pub fn from_id(&self, id: &str) -> Result<TaskConfig, TaskError> {
        self.find(id).map(|entry| (entry.default)())
    }

    /// Renders the card of a task in Markdown: its demands on an encoding, the predicted order of
    /// encodings, its definition, a sample, its source.
    ///
    /// # Errors
    /// [`TaskError::UnknownTask`], with the most similar id.
    pub fn card(&self, id: &str) -> Result<String, TaskError> {
        self.find(id).map(|entry| module_doc(entry.source))
    }

    /// Reads settings from a table whose `kind` is the id of a task. Settings that are left out have their defaults.
    ///
    /// # Errors
    /// A missing or unknown `kind`, an unknown key, or a value of the wrong type, with the task's id.
    pub fn parse<'de, D: Deserializer<'de>>(&self, from: D) -> Result<TaskConfig, D::Error> {
        let example = self.entries.first().map_or("copy", |entry| entry.meta.id);
        let mut table = Map::deserialize(from)?;
        let kind = match table.remove("kind") {
            Some(Value::String(kind)) => kind,
            Some(other) => {
                return Err(D::Error::custom(format!(
                    "`kind` is {other}, must be the id of a task in quotes, such as \"{example}\""
                )));
            }
            None => {
                return Err(D::Error::custom(format!(
                    "`kind` is missing: it names the task, such as kind = \"{example}\""
                )));
            }
        };
        let entry = self.find(&kind).map_err(D::Error::custom)?;
        (entry.parse)(Value::Object(table))
            .map_err(|error| D::Error::custom(format!("{kind}: {error}")))
    }
}

/// Reads settings; an error names the setting.
pub(crate) fn read<S: DeserializeOwned>(settings: Value) -> Result<S, serde_json::Error> {
    serde_path_to_error::deserialize(settings).map_err(|error| {
        let (path, said) = (error.path().to_string(), error.inner().to_string());
        // Messages about unknown and missing fields name them.
        let is_named = path == "." || said.contains(" field `");
        if is_named {
            error.into_inner()
        } else {
            serde_json::Error::custom(format!("{path}: {said}"))
        }
    })
}

/// The `//!` comment at the head of a file.
pub(crate) fn module_doc(source: &str) -> String {
    let lines = source.lines().map_while(|line| line.strip_prefix("//!"));
    lines.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect::<Vec<_>>().join("\n")
}
