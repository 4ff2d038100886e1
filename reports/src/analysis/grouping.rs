//! Groups of records.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;

use crate::record::RunRecord;

/// Groups records by a name, sorted by it; within a group records keep their order.
fn grouped<'a>(
    records: &[&'a RunRecord],
    name: fn(&RunRecord) -> &String,
) -> BTreeMap<&'a str, Vec<&'a RunRecord>> {
    let mut groups: BTreeMap<&str, Vec<&RunRecord>> = BTreeMap::new();
    for record in records {
        groups.entry(name(record)).or_default().push(record);
    }
    groups
}

/// Groups records by workload.
pub(super) fn by_workload<'a>(records: &[&'a RunRecord]) -> BTreeMap<&'a str, Vec<&'a RunRecord>> {
    grouped(records, |record| &record.workload)
}

/// Groups records by the name of their encoding.
pub(super) fn by_encoding<'a>(records: &[&'a RunRecord]) -> BTreeMap<&'a str, Vec<&'a RunRecord>> {
    grouped(records, |record| &record.encoding.name)
}

/// The distinct values of a property of records.
pub(crate) fn distinct<T: Ord + Send>(
    records: &[RunRecord],
    get: impl Fn(&RunRecord) -> T + Sync,
) -> BTreeSet<T> {
    let some = records.par_chunks(1024).map(|records| records.iter().map(&get).collect());
    some.reduce(BTreeSet::new, |mut all: BTreeSet<T>, more| {
        all.extend(more);
        all
    })
}
