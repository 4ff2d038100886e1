//! The machinery behind the list of tasks: one line per task gives ids, parsing, building and the shared tests.
//!
//! To add a task, write `suite/<id_in_snake_case>.rs` in the shape of its neighbours and add one line to the list in
//! `suite.rs`. The tests then fail until the file has its `META`, its documented sample and its golden hash.

use serde::de::{Deserializer, Error as _};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use crate::TaskError;
use crate::error::nearest;
pub use crate::suite::{ALL, TaskConfig, source};

/// Expands the list in `suite.rs`.
///
/// The modules are declared in here so that a task is one line. `cargo fmt` does not look into macros: formatting of
/// these files is checked by naming them (`rustfmt --check --edition 2024 tasks/src/suite/*.rs`).
macro_rules! task_registry {
    ($($module:ident: $variant:ident($config:ident)),+ $(,)?) => {
        $(pub mod $module;)+

        /// Settings of one task, flat, with the task's id as `kind`: `{ kind = "flip-flop", ignore = 0.8 }`.
        ///
        /// Settings that are left out have their defaults; an unknown key or id is refused by name.
        #[derive(Debug, Clone, PartialEq, serde::Serialize)]
        #[serde(tag = "kind", rename_all = "kebab-case")]
        pub enum TaskConfig {
            $(
                #[doc = concat!("Settings of [`", stringify!($module), "`].")]
                $variant($module::$config),
            )+
        }

        /// The facts of every task, sorted by id.
        pub const ALL: &[&$crate::TaskMeta] = &[$(&$module::META),+];

        /// The text of a task's file: its module documentation is the task's card.
        pub fn source(id: &str) -> Option<&'static str> {
            $(if id == $module::META.id {
                return Some(include_str!(concat!("suite/", stringify!($module), ".rs")));
            })+
            None
        }

        impl TaskConfig {
            /// The task with this id and default settings.
            ///
            /// # Errors
            /// [`TaskError::UnknownTask`](crate::TaskError::UnknownTask), with the nearest valid id.
            pub fn from_id(id: &str) -> Result<Self, $crate::TaskError> {
                $(if id == $module::META.id {
                    return Ok(Self::$variant($module::$config::default()));
                })+
                Err($crate::registry::unknown_task(id))
            }

            /// The facts of the task that is configured.
            pub fn meta(&self) -> &'static $crate::TaskMeta {
                match self {
                    $(Self::$variant(_) => &$module::META,)+
                }
            }

            /// Checks the settings and makes the task; a corpus is fetched if it is needed.
            ///
            /// # Errors
            /// The first setting that is out of range, or a text that cannot be had.
            pub fn build(&self) -> Result<Box<dyn $crate::Task>, $crate::TaskError> {
                match self {
                    $(Self::$variant(config) => Ok(Box::new(config.build()?)),)+
                }
            }
        }

        // Not derived: serde's tagged enums would neither suggest an id nor name the task in an error.
        impl<'de> serde::Deserialize<'de> for TaskConfig {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let (kind, settings) = $crate::registry::split_kind(from)?;
                $(if kind == $module::META.id {
                    return $crate::registry::settings(&kind, settings).map(Self::$variant);
                })+
                Err(serde::de::Error::custom($crate::registry::unknown_task(&kind)))
            }
        }

        /// The shared tests, once per task, so that a failure names it.
        #[cfg(test)]
        mod conformance {
            /// Every task with its module, its source text and what its tests need.
            pub(super) fn files() -> Vec<(&'static str, &'static str)> {
                vec![$((
                    stringify!($module),
                    include_str!(concat!("suite/", stringify!($module), ".rs")),
                )),+]
            }

            $(mod $module {
                use crate::testing::{checks, documented};
                use crate::suite::$module::tests::example;

                const SOURCE: &str =
                    include_str!(concat!("suite/", stringify!($module), ".rs"));

                #[test]
                fn file_stem_is_the_id() {
                    let id = stringify!($module).replace('_', "-");
                    assert_eq!(example().config.meta().id, id);
                    assert_eq!(super::super::$module::META.id, id);
                }
                #[test]
                fn same_seed_gives_same_samples() { checks::same_seed(&example()); }
                #[test]
                fn evaluation_is_not_the_training_stream() { checks::eval_differs(&example()); }
                #[test]
                fn samples_are_well_formed_at_every_length() { checks::well_formed(&example()); }
                #[test]
                fn oracle_answers_every_scored_token() { checks::oracle(&example()); }
                #[test]
                fn config_survives_json_and_toml() { checks::round_trip(&example()); }
                #[test]
                fn unknown_key_is_refused_by_name() { checks::unknown_key(&example()); }
                #[test]
                fn unknown_split_is_refused_by_name() { checks::unknown_split(&example()); }
                #[test]
                fn output_is_what_it_was() { checks::golden(&example()); }
                #[test]
                fn documentation_has_its_headings_and_a_true_sample() {
                    documented::check(SOURCE, &example());
                }
            })+
        }
    };
}
pub(crate) use task_registry;

/// An id that no task has.
pub(crate) fn unknown_task(id: &str) -> TaskError {
    let known: Vec<_> = ALL.iter().map(|meta| meta.id).collect();
    TaskError::UnknownTask { id: id.to_owned(), nearest: nearest(id, &known), known }
}

/// Takes `kind` out of a table.
pub(crate) fn split_kind<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<(String, Map<String, Value>), D::Error> {
    let mut table = Map::deserialize(from)?;
    match table.remove("kind") {
        Some(Value::String(kind)) => Ok((kind, table)),
        Some(other) => Err(D::Error::custom(format!(
            "`kind` is {other}, must be the id of a task in quotes, such as \"{}\"",
            ALL[0].id
        ))),
        None => Err(D::Error::custom(format!(
            "`kind` is missing: it names the task, such as kind = \"{}\"",
            ALL[0].id
        ))),
    }
}

/// Reads a task's own settings; an error names the task.
pub(crate) fn settings<T: DeserializeOwned, E: serde::de::Error>(
    kind: &str,
    table: Map<String, Value>,
) -> Result<T, E> {
    T::deserialize(Value::Object(table)).map_err(|error| E::custom(format!("{kind}: {error}")))
}
