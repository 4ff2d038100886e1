//! Selection of the newest of several records with the same key.

use std::collections::BTreeMap;

use super::run::RunRecord;

/// Maps each key to its newest record: the one started last, and among those started at the same time the one
/// with the greatest cell key.
pub fn newest_by<'a, K: Ord>(
    records: impl IntoIterator<Item = &'a RunRecord>,
    key: impl Fn(&'a RunRecord) -> K,
) -> BTreeMap<K, &'a RunRecord> {
    let mut newest: BTreeMap<K, &RunRecord> = BTreeMap::new();
    for record in records {
        let held = newest.entry(key(record)).or_insert(record);
        if record.started() > held.started() {
            *held = record;
        }
    }
    newest
}
