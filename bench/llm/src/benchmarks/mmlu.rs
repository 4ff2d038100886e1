//! Groups of MMLU's subjects, as in `categories.py` of its authors (github.com/hendrycks/test).

/// Groups with their subjects.
const GROUPS: [(&str, &[&str]); 4] = [
    (
        "humanities",
        &[
            "formal_logic",
            "high_school_european_history",
            "high_school_us_history",
            "high_school_world_history",
            "international_law",
            "jurisprudence",
            "logical_fallacies",
            "moral_disputes",
            "moral_scenarios",
            "philosophy",
            "prehistory",
            "professional_law",
            "world_religions",
        ],
    ),
    (
        "social_sciences",
        &[
            "econometrics",
            "high_school_geography",
            "high_school_government_and_politics",
            "high_school_macroeconomics",
            "high_school_microeconomics",
            "high_school_psychology",
            "human_sexuality",
            "professional_psychology",
            "public_relations",
            "security_studies",
            "sociology",
            "us_foreign_policy",
        ],
    ),
    (
        "stem",
        &[
            "abstract_algebra",
            "astronomy",
            "college_biology",
            "college_chemistry",
            "college_computer_science",
            "college_mathematics",
            "college_physics",
            "computer_security",
            "conceptual_physics",
            "electrical_engineering",
            "elementary_mathematics",
            "high_school_biology",
            "high_school_chemistry",
            "high_school_computer_science",
            "high_school_mathematics",
            "high_school_physics",
            "high_school_statistics",
            "machine_learning",
        ],
    ),
    (
        "other",
        &[
            "anatomy",
            "business_ethics",
            "clinical_knowledge",
            "college_medicine",
            "global_facts",
            "human_aging",
            "management",
            "marketing",
            "medical_genetics",
            "miscellaneous",
            "nutrition",
            "professional_accounting",
            "professional_medicine",
            "virology",
        ],
    ),
];

/// Group of a subject; `None` for a subject that MMLU does not have.
pub(super) fn group(subject: &str) -> Option<&str> {
    GROUPS.iter().find(|(_, subjects)| subjects.contains(&subject)).map(|(group, _)| *group)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Counts of the authors' mapping. Others put anatomy into STEM.
    #[test]
    fn every_subject_is_in_one_group_of_the_authors() {
        let counts = GROUPS.map(|(group, subjects)| (group, subjects.len()));
        assert_eq!(
            counts,
            [("humanities", 13), ("social_sciences", 12), ("stem", 18), ("other", 14)]
        );
        let all = GROUPS.iter().flat_map(|(_, subjects)| *subjects).collect::<BTreeSet<_>>();
        assert_eq!(all.len(), 57);
        let groups = ["anatomy", "econometrics", "formal_logic", "machine_learning"].map(group);
        assert_eq!(groups, ["other", "social_sciences", "humanities", "stem"].map(Some));
        assert_eq!(["Anatomy", "birds", ""].map(group), [None; 3]);
    }
}
