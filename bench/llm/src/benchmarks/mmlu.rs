//! Groups of MMLU's subjects, as in `categories.py` of its authors (github.com/hendrycks/test).

use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Groups with their subjects.
static GROUPS: LazyLock<BTreeMap<&str, Vec<&str>>> =
    LazyLock::new(|| serde_json::from_str(include_str!("mmlu.json")).expect("groups of subjects"));

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
        let counts = GROUPS.iter().map(|(group, subjects)| (*group, subjects.len()));
        assert_eq!(
            counts.collect::<Vec<_>>(),
            [("humanities", 13), ("other", 14), ("social_sciences", 12), ("stem", 18)]
        );
        let all = GROUPS.values().flatten().collect::<BTreeSet<_>>();
        assert_eq!(all.len(), 57);
        let groups = ["anatomy", "econometrics", "formal_logic", "machine_learning"].map(group);
        assert_eq!(groups, ["other", "social_sciences", "humanities", "stem"].map(Some));
        assert_eq!(["Anatomy", "birds", ""].map(group), [None; 3]);
    }
}
