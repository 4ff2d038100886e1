//! The list of tasks: a task is one file in `suite/` and one line here.

crate::registry::task_registry! {
    addition: Addition(AdditionConfig),
    common_words: CommonWords(CommonWordsConfig),
    copy: Copy(CopyConfig),
    counting: Counting(CountingConfig),
    duplicate_string: DuplicateString(DuplicateStringConfig),
    flip_flop: FlipFlop(FlipFlopConfig),
    induction: Induction(InductionConfig),
    majority: Majority(MajorityConfig),
    modular_arithmetic: ModularArithmetic(ModularArithmeticConfig),
    mqar: Mqar(MqarConfig),
    n_gram_copy: NGramCopy(NGramCopyConfig),
    needle: Needle(NeedleConfig),
    parity: Parity(ParityConfig),
    passkey: Passkey(PasskeyConfig),
    reverse: Reverse(ReverseConfig),
    selective_copy: SelectiveCopy(SelectiveCopyConfig),
    selective_counting: SelectiveCounting(SelectiveCountingConfig),
    sort: Sort(SortConfig),
    state_tracking: StateTracking(StateTrackingConfig),
    text: Text(TextConfig),
    variable_tracking: VariableTracking(VariableTrackingConfig),
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{ALL, TaskConfig, card, conformance};

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

    /// Suites, tests and benchmarks that go through all tasks have to choose one length for them.
    #[test]
    fn every_drawn_task_has_short_and_long_samples_by_default() {
        for meta in ALL.iter().filter(|meta| !meta.takes_path) {
            let task = TaskConfig::from_id(meta.id).unwrap().build().unwrap();
            for len in [16, 32, 512] {
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
        }
    }

    #[test]
    fn unknown_id_suggests_the_nearest() {
        let said = TaskConfig::from_id("flipflop").unwrap_err().to_string();
        let known: Vec<&str> = ALL.iter().map(|meta| meta.id).collect();
        let known = known.join(", ");
        let expected =
            format!("unknown task `flipflop` (did you mean `flip-flop`?); known tasks: {known}");
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
}
