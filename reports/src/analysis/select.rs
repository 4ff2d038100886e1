//! Selection of the records that enter the numbers of a report.

use std::collections::BTreeMap;

use crate::record::{RunRecord, Status};

/// A cell that is excluded from all numbers, with the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotCounted {
    /// Name of the workload: a task at one size.
    pub workload: String,
    /// Name of the encoding.
    pub encoding: String,
    /// Seed of the cell.
    pub seed: u64,
    /// Key of the cell.
    pub key: String,
    /// `diverged`, `failed`, `interrupted` or `superseded`.
    pub state: &'static str,
    /// Reason, as a phrase.
    pub reason: String,
}

impl NotCounted {
    fn new(record: &RunRecord, state: &'static str, reason: String) -> Self {
        Self {
            workload: record.workload.clone(),
            encoding: record.encoding.name.clone(),
            seed: record.seed,
            key: record.key.clone(),
            state,
            reason,
        }
    }
}

/// Splits `records` into those that count (done, sorted by workload, encoding and seed) and the rest.
///
/// A results folder keeps the cells of older configurations. Two records of one workload, encoding
/// and seed are one seed, not two: the one started last counts, the others are superseded.
pub(crate) fn select<'a>(
    records: impl IntoIterator<Item = &'a RunRecord>,
) -> (Vec<&'a RunRecord>, Vec<NotCounted>) {
    let mut groups: BTreeMap<(&str, &str, u64), Vec<&RunRecord>> = BTreeMap::new();
    for record in records {
        let id = (record.workload.as_str(), record.encoding.name.as_str(), record.seed);
        groups.entry(id).or_default().push(record);
    }
    let (mut counted, mut others) = (Vec::new(), Vec::new());
    for mut group in groups.into_values() {
        group.sort_by(|a, b| a.started().cmp(&b.started()));
        let Some(newest) = group.pop() else { continue };
        match newest.status {
            Status::Done => counted.push(newest),
            _ => others.push(NotCounted::new(newest, newest.status.name(), newest.status.reason())),
        }
        others.extend(group.into_iter().map(|old| {
            let reason = format!(
                "cell {} of another configuration has the same encoding and seed and was started later",
                newest.key
            );
            NotCounted::new(old, "superseded", reason)
        }));
    }
    (counted, others)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit::TestCell;

    #[test]
    fn the_cell_started_last_counts_for_its_seed() {
        let old = TestCell::new("w", "rope", 0).record();
        let new = TestCell::new("w", "rope", 0)
            .change(|r| {
                r.key = "0000000000000000".into();
                r.started_utc = "2026-02-02T03:04:05Z".into();
            })
            .record();
        let other = TestCell::new("w", "rope", 1).record();
        let records = [new.clone(), old.clone(), other.clone()];
        let (counted, others) = select(&records);
        assert_eq!(counted, [&new, &other]);
        assert_eq!((others.len(), others[0].state), (1, "superseded"));
        assert_eq!(others[0].key, old.key);
    }

    #[test]
    fn cells_without_a_result_are_listed_with_their_reason() {
        let failed = Status::Failed { reason: "no corpus".into() };
        let diverged = Status::Diverged { step: 9, reason: "loss is NaN".into() };
        let records = [
            TestCell::new("w", "rope", 0).status(failed).record(),
            TestCell::new("w", "rope", 1).status(diverged).record(),
        ];
        let (counted, others) = select(&records);
        assert!(counted.is_empty());
        let told: Vec<_> = others.iter().map(|o| (o.state, o.reason.as_str())).collect();
        assert_eq!(told, [("failed", "no corpus"), ("diverged", "at step 9: loss is NaN")]);
    }
}
