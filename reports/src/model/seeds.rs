//! Seeds that an encoding lacks.

use std::collections::{BTreeMap, BTreeSet};

use crate::record::RunRecord;

/// A sentence for each workload in which an encoding lacks seeds that others have.
pub(super) fn missing_seeds(
    counted: &[&RunRecord],
    display: &BTreeMap<String, String>,
) -> Vec<String> {
    let mut seeds: BTreeMap<&str, BTreeMap<&str, BTreeSet<u64>>> = BTreeMap::new();
    for record in counted {
        let encodings = seeds.entry(&record.workload).or_default();
        encodings.entry(&record.encoding.name).or_default().insert(record.seed);
    }
    let lacking = |encodings: &BTreeMap<&str, BTreeSet<u64>>| -> Vec<String> {
        let all: BTreeSet<u64> = encodings.values().flatten().copied().collect();
        let missing = encodings.iter().filter(|(_, has)| has.len() < all.len());
        missing
            .map(|(name, has)| {
                let list: Vec<String> = all.difference(has).map(u64::to_string).collect();
                let name = display.get(*name).map_or(*name, String::as_str);
                format!("{name} {}", list.join(", "))
            })
            .collect()
    };
    seeds
        .iter()
        .map(|(workload, encodings)| (workload, lacking(encodings)))
        .filter(|(_, lacking)| !lacking.is_empty())
        .map(|(workload, lacking)| {
            format!("{workload}: seeds are missing that others have ({}).", lacking.join("; "))
        })
        .collect()
}
