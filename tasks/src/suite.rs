//! The list of tasks: a task is one file in `suite/` and one line here.

crate::registry::task_registry! {
    copy: Copy(CopyConfig),
    counting: Counting(CountingConfig),
    flip_flop: FlipFlop(FlipFlopConfig),
    text: Text(TextConfig),
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{ALL, TaskConfig, conformance};

    #[test]
    fn list_has_exactly_the_files_of_the_folder() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/suite");
        // A folder beside a file holds that task's longer tests.
        let on_disk: BTreeSet<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.contains('.'))
            .collect();
        let listed = conformance::files().iter().map(|(m, _)| format!("{m}.rs")).collect();
        assert_eq!(on_disk, listed);
    }

    #[test]
    fn ids_are_sorted_unique_and_kebab_case() {
        assert!(ALL.windows(2).all(|pair| pair[0].id < pair[1].id));
        for meta in ALL {
            let kebab = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            assert!(meta.id.chars().all(kebab), "{}", meta.id);
            assert!(meta.version >= 1);
            assert!(["tokens", "symbols"].contains(&meta.len_unit));
        }
    }

    #[test]
    fn every_id_parses_and_is_its_serialised_kind() {
        for meta in ALL {
            let config = TaskConfig::from_id(meta.id).unwrap();
            assert_eq!(config.meta().id, meta.id);
            assert_eq!(serde_json::to_value(&config).unwrap()["kind"], meta.id);
        }
    }

    #[test]
    fn unknown_id_suggests_the_nearest() {
        let said = TaskConfig::from_id("flipflop").unwrap_err().to_string();
        let expected = "unknown task `flipflop` (did you mean `flip-flop`?); \
                        known tasks: copy, counting, flip-flop, text";
        assert_eq!(said, expected);
        let parsed = serde_json::from_str::<TaskConfig>(r#"{"kind": "flipflop"}"#);
        assert_eq!(parsed.unwrap_err().to_string(), expected);
    }

    #[test]
    fn missing_and_mistyped_kind_are_explained() {
        let said = |json| serde_json::from_str::<TaskConfig>(json).unwrap_err().to_string();
        assert!(said("{}").contains("`kind` is missing"));
        assert!(said(r#"{"kind": 3}"#).contains("`kind` is 3"));
    }
}
