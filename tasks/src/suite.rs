//! The built-in tasks: one file in `suite/` each, with its line here. The build script lists them from these lines.

pub mod addition;
pub mod at_depth;
pub mod common_words;
pub mod copy;
pub mod counting;
pub mod duplicate_string;
pub mod flip_flop;
pub mod induction;
pub mod latent_list;
pub mod majority;
pub mod modular_arithmetic;
pub mod mqar;
pub mod mrcr;
pub mod n_gram_copy;
pub mod needle;
pub mod parity;
pub mod passage;
pub mod passkey;
pub mod reverse;
pub mod selective_copy;
pub mod selective_counting;
pub mod sort;
pub mod state_tracking;
pub mod text;
pub mod text_passage;
pub mod variable_tracking;

use serde::{Deserialize, Deserializer};

use crate::error::TaskError;
use crate::registry::TaskRegistry;
use crate::settings::{TaskConfig, TaskSettings};
use crate::task::TaskMeta;

/// Declares the list of built-in tasks and generates the shared tests for each.
macro_rules! builtin {
    ($($module:ident: $settings:ident),+ $(,)?) => {
        /// Facts about every built-in task, sorted by id.
        pub const ALL: &[&TaskMeta] = &[$(<$module::$settings as TaskSettings>::META),+];

        impl TaskRegistry {
            /// Returns the tasks of this crate.
            pub fn builtin() -> Self {
                Self::default()$(.with::<$module::$settings>())+
            }
        }

        /// Shared tests, once per task, so that a failure names the task.
        #[cfg(test)]
        mod conformance {
            pub(super) const MODULES: &[&str] = &[$(stringify!($module)),+];

            pub(super) fn examples() -> Vec<crate::testing::Example> {
                vec![$(crate::suite::$module::tests::example()),+]
            }

            $(mod $module {
                use crate::settings::TaskSettings as _;
                use crate::suite::$module::{$settings, tests::example};
                use crate::testing::checks;

                #[test]
                fn file_stem_is_the_id() {
                    let id = stringify!($module).replace('_', "-");
                    assert_eq!(example().config.meta().id, id);
                    assert_eq!($settings::META.id, id);
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
                fn extreme_settings_are_refused_or_kept_to() { checks::extreme_settings(&example()); }
                #[test]
                fn unknown_split_is_refused_by_name() { checks::unknown_split(&example()); }
                #[test]
                fn slices_of_tokens_are_one_for_each_scored() { checks::token_slices(&example()); }
                #[test]
                fn unseen_samples_are_outside_of_training() { checks::unseen(&example()); }
                #[test]
                fn chance_is_what_a_guesser_gets() { checks::chance(&example()); }
                #[test]
                fn output_is_what_it_was() { checks::golden(&example()); }
                #[test]
                fn documentation_has_its_headings_and_a_true_sample() {
                    let card = crate::card($settings::META.id).unwrap();
                    checks::documented(&card, $settings::SOURCE, &example());
                }
            })+
        }
    };
}

include!(concat!(env!("OUT_DIR"), "/builtin.rs"));

impl TaskConfig {
    /// Default settings of a built-in task.
    ///
    /// # Errors
    /// [`TaskError::UnknownTask`], with the most similar id.
    pub fn from_id(id: &str) -> Result<Self, TaskError> {
        TaskRegistry::builtin().from_id(id)
    }
}

impl<'de> Deserialize<'de> for TaskConfig {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        TaskRegistry::builtin().parse(from)
    }
}

/// The card of a built-in task; see [`TaskRegistry::card`].
///
/// # Errors
/// [`TaskError::UnknownTask`], with the most similar id.
pub fn card(id: &str) -> Result<String, TaskError> {
    TaskRegistry::builtin().card(id)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::{ALL, TaskConfig, TaskRegistry, card, conformance};
    use crate::{Sample, draw};

    #[test]
    fn list_has_exactly_the_files_of_the_folder() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/suite");
        // A folder beside a file holds that task's other files.
        let on_disk: BTreeSet<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.contains('.'))
            .collect();
        let listed = conformance::MODULES.iter().map(|module| format!("{module}.rs")).collect();
        assert_eq!(on_disk, listed);
    }

    #[test]
    fn ids_are_sorted_unique_and_kebab_case() {
        assert!(ALL.windows(2).all(|pair| pair[0].id < pair[1].id));
        assert!(TaskRegistry::builtin().metas().eq(ALL.iter().copied()));
        for meta in ALL {
            let kebab = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            assert!(meta.id.chars().all(kebab), "{}", meta.id);
            assert!(meta.version >= 1);
            assert!(["tokens", "symbols"].contains(&meta.len_unit));
            for text in [meta.label, meta.summary, meta.source] {
                assert!(!text.is_empty(), "{}", meta.id);
            }
        }
    }

    /// Suites, tests and benchmarks that cover all tasks use one length for all of them.
    #[test]
    fn every_generated_task_has_short_and_long_samples_by_default() {
        for meta in ALL.iter().filter(|meta| !meta.takes_path) {
            let task = TaskConfig::from_id(meta.id).unwrap().build().unwrap();
            for len in [24, 32, 512] {
                task.check_len(len).unwrap();
            }
        }
    }

    #[test]
    fn every_id_parses_and_is_its_serialised_kind() {
        for meta in ALL {
            let config = TaskConfig::from_id(meta.id).unwrap();
            assert_eq!(config.meta().id, meta.id);
            assert_eq!(serde_json::to_value(&config).unwrap()["kind"], meta.id);
            let with_path = json!({ "kind": meta.id, "path": "a" });
            assert_eq!(TaskRegistry::builtin().parse(with_path).is_ok(), meta.takes_path);
        }
    }

    #[test]
    fn configurations_are_equal_if_task_and_settings_are() {
        let parse = |json| serde_json::from_str::<TaskConfig>(json).unwrap();
        assert_eq!(parse(r#"{"kind": "copy"}"#), TaskConfig::from_id("copy").unwrap());
        assert_ne!(parse(r#"{"kind": "copy", "letters": 3}"#), parse(r#"{"kind": "copy"}"#));
        assert_ne!(parse(r#"{"kind": "copy"}"#), parse(r#"{"kind": "reverse", "letters": 26}"#));
    }

    #[test]
    fn unknown_id_suggests_the_nearest() {
        let said = TaskConfig::from_id("flipflop").unwrap_err().to_string();
        let expected = "unknown task `flipflop` (did you mean `flip-flop`?)";
        assert_eq!(said, expected);
        assert_eq!(card("flipflop").unwrap_err().to_string(), expected);
        let parsed = serde_json::from_str::<TaskConfig>(r#"{"kind": "flipflop"}"#);
        assert_eq!(parsed.unwrap_err().to_string(), expected);
    }

    #[test]
    fn missing_and_mistyped_kind_are_explained() {
        let said = |json| serde_json::from_str::<TaskConfig>(json).unwrap_err().to_string();
        assert!(said("{}").contains("`kind` is missing"));
        assert!(said(r#"{"kind": 3}"#).contains("`kind` is 3"));
    }

    #[test]
    fn marks_of_a_drawing_stand_under_scored_tokens_also_after_a_line_break() {
        let task = TaskConfig::from_id("counting").unwrap().build().unwrap();
        // Token 0 is `pass;`: 13 of them fill a line of 78 columns.
        let sample = Sample {
            tokens: vec![0; 15],
            scored: (0..15).map(|t| t == 1 || t == 14).collect(),
            slices: Vec::new(),
        };
        let first = ["pass;"; 13].join(" ");
        let expected = format!("{first}\n      ^^^^^\npass; pass;\n      ^^^^^");
        assert_eq!(draw(task.as_ref(), &sample), expected);
    }
}
