//! Which records count, which do not, and what makes them hard to compare.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;
use serde_json::Value;

use crate::record::{RunRecord, Status};
use crate::settings::Settings;

/// A cell that no number in the report comes from, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotCounted {
    /// Task-and-sizes group.
    pub workload: String,
    /// Name of the encoding.
    pub encoding: String,
    /// Seed.
    pub seed: u64,
    /// Cell key.
    pub key: String,
    /// `diverged`, `failed`, `interrupted` or `superseded`.
    pub state: &'static str,
    /// Why.
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
        group.sort_by(|a, b| (&a.started_utc, &a.key).cmp(&(&b.started_utc, &b.key)));
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

/// The values that records have, each once.
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

/// What a reader must know before comparing these records: differences in anything but the encoding, and
/// an ablation that has no base.
pub(crate) fn warnings(records: &[RunRecord], settings: &Settings) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut differ = |what: &str, so: &str, get: &(dyn Fn(&RunRecord) -> String + Sync)| {
        let values = distinct(records, get);
        if values.len() > 1 {
            let list = values.into_iter().collect::<Vec<_>>().join("; ");
            warnings.push(format!("Cells differ in {what} ({list}): {so}."));
        }
    };
    let speed = "times and memory are not comparable between them";
    let numbers = "their numbers may differ for that reason alone";
    differ("host", speed, &|r| format!("{}, {}", r.host.cpu, r.host.os));
    differ("threads", speed, &|r| r.host.threads.to_string());
    differ("cells run at the same time", speed, &|r| r.host.jobs.to_string());
    differ("commit", numbers, &|r| r.commit.clone().unwrap_or_else(|| "unknown".into()));
    differ("backend", numbers, &|r| r.backend.clone());
    differ("engine", numbers, &|r| r.engine.clone());
    differ("precision", numbers, &|r| r.precision.clone());
    differ("versions", numbers, &|r| {
        let pairs: Vec<_> = r.versions.iter().map(|(k, v)| format!("{k} {v}")).collect();
        pairs.join(", ")
    });
    if records.iter().any(|r| r.dirty == Some(true)) {
        warnings.push(
            "Some cells ran with uncommitted changes: their commit does not tell the whole source."
                .to_owned(),
        );
    }
    if records.iter().any(|r| r.host.jobs > 1) {
        warnings.push(
            "Some cells ran beside others: their times include the competition for the machine."
                .to_owned(),
        );
    }
    unequal_groups(records, &mut warnings);
    if let Some(base) = &settings.ablation_base {
        let names: BTreeSet<&str> = records.iter().map(|r| r.encoding.name.as_str()).collect();
        if !records.is_empty() && !names.contains(base.as_str()) {
            let names = names.into_iter().collect::<Vec<_>>().join(", ");
            warnings.push(format!(
                "No cell has the ablation's base `{base}`, so nothing is compared with it; there are \
                 {names}."
            ));
        }
    }
    warnings
}

/// The steps that a cell was to take; it may have ended earlier, solved or diverged.
fn planned_steps(record: &RunRecord) -> u64 {
    let planned = record.config.pointer("/train/steps").and_then(Value::as_u64);
    planned.unwrap_or(record.train.steps)
}

/// Adds a warning for each workload whose encodings did not get the same task or budget, and for
/// each encoding whose seeds did not get the same settings.
fn unequal_groups(records: &[RunRecord], warnings: &mut Vec<String>) {
    let mut budgets: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    let mut settings: BTreeMap<(&str, &str), BTreeSet<String>> = BTreeMap::new();
    for r in records.iter().filter(|r| r.status == Status::Done) {
        budgets.entry(&r.workload).or_default().insert(format!(
            "task version {} with {}, {} steps of {} x {}",
            r.task.version,
            r.task.config,
            planned_steps(r),
            r.train.batch_size,
            r.train_len
        ));
        settings
            .entry((&r.workload, &r.encoding.name))
            .or_default()
            .insert(format!("{} with {} parameters", r.encoding.config, r.params.total));
    }
    for (workload, found) in budgets {
        if found.len() > 1 {
            let list = found.into_iter().collect::<Vec<_>>().join("; ");
            warnings.push(format!("{workload}: cells differ in task or budget ({list})."));
        }
    }
    for ((workload, encoding), found) in settings {
        if found.len() > 1 {
            let list = found.into_iter().collect::<Vec<_>>().join("; ");
            warnings
                .push(format!("{workload}: the seeds of {encoding} differ in settings ({list})."));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit::Cell;

    #[test]
    fn the_cell_started_last_counts_for_its_seed() {
        let old = Cell::new("w", "rope", 0).record();
        let new = Cell::new("w", "rope", 0)
            .change(|r| {
                r.key = "0000000000000000".into();
                r.started_utc = "2026-02-02T03:04:05Z".into();
            })
            .record();
        let other = Cell::new("w", "rope", 1).record();
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
            Cell::new("w", "rope", 0).status(failed).record(),
            Cell::new("w", "rope", 1).status(diverged).record(),
        ];
        let (counted, others) = select(&records);
        assert!(counted.is_empty());
        let told: Vec<_> = others.iter().map(|o| (o.state, o.reason.as_str())).collect();
        assert_eq!(told, [("failed", "no corpus"), ("diverged", "at step 9: loss is NaN")]);
    }

    type Change = fn(&mut RunRecord);

    #[test]
    fn equal_cells_give_no_warning_and_each_difference_gives_one() {
        let plain = || Cell::new("w", "rope", 0).record();
        let warnings = |records: &[RunRecord]| super::warnings(records, &Settings::default());
        assert_eq!(warnings(&[plain(), Cell::new("w", "cope", 1).record()]), Vec::<String>::new());
        let changes: [(&str, Change); 10] = [
            ("host", |r| r.host.cpu = "other".into()),
            ("threads", |r| r.host.threads = 9),
            ("commit", |r| r.commit = None),
            ("uncommitted", |r| r.dirty = Some(true)),
            ("backend", |r| r.backend = "tch".into()),
            ("engine", |r| r.engine = "fused".into()),
            ("versions", |r| r.versions.clear()),
            ("task or budget", |r| r.train.steps = 3),
            ("task or budget", |r| r.task.version = 2),
            ("settings", |r| r.params.total = 3),
        ];
        for (word, change) in changes {
            let found = warnings(&[plain(), Cell::new("w", "rope", 1).change(change).record()]);
            assert_eq!(found.len(), 1, "{word}: {found:?}");
            assert!(found[0].contains(word), "{}", found[0]);
        }
        let beside = Cell::new("w", "rope", 1).change(|r| r.host.jobs = 2).record();
        assert_eq!(warnings(&[beside]).len(), 1);
    }

    #[test]
    fn a_training_that_ended_early_had_the_same_budget() {
        let of = |steps: u64| {
            Cell::new("w", "rope", steps)
                .change(|r| {
                    r.config = serde_json::json!({ "train": { "steps": 200 } });
                    r.train.steps = steps;
                })
                .record()
        };
        let settings = Settings::default();
        assert_eq!(warnings(&[of(200), of(80)], &settings), Vec::<String>::new());
    }

    #[test]
    fn a_base_that_nobody_ran_is_told() {
        let settings = Settings { ablation_base: Some("cope".into()), ..Settings::default() };
        let found = warnings(&[Cell::new("w", "rope", 0).record()], &settings);
        assert!(found.len() == 1 && found[0].contains("`cope`"), "{found:?}");
        assert!(warnings(&[Cell::new("w", "cope", 0).record()], &settings).is_empty());
    }
}
