//! Warnings: differences between cells that make them hard to compare.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::analysis::{Report, distinct};
use crate::record::{DeviceInfo, RunRecord, Status};

/// The warnings of a report, one sentence each.
pub(crate) fn warnings(report: &Report) -> Vec<String> {
    let mut warnings = of_records(&report.cells, report.settings.ablation_base.as_deref());
    warnings.extend(missing_seeds(report));
    warnings
}

/// One sentence for each workload in which encodings lack seeds that others have.
fn missing_seeds(report: &Report) -> impl Iterator<Item = String> {
    report.missing_seeds.chunk_by(|a, b| a.workload == b.workload).map(|missing| {
        let lists = missing.iter().map(|m| {
            let seeds: Vec<String> = m.seeds.iter().map(u64::to_string).collect();
            format!("{} {}", report.display(&m.encoding), seeds.join(", "))
        });
        let lists = lists.collect::<Vec<_>>().join("; ");
        format!("{}: some encodings lack seeds that others have ({lists}).", missing[0].workload)
    })
}

/// Differences in anything but the encoding, and an ablation whose base was not run.
fn of_records(records: &[RunRecord], ablation_base: Option<&str>) -> Vec<String> {
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
    differ("device", speed, &|r| {
        r.device.as_ref().map_or("processor".to_owned(), DeviceInfo::text)
    });
    differ("threads", speed, &|r| r.host.threads.to_string());
    differ("the number of concurrent cells", speed, &|r| r.host.jobs.to_string());
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
            "Some cells ran with uncommitted changes: the commit does not identify their source completely."
                .to_owned(),
        );
    }
    if records.iter().any(|r| r.host.jobs > 1) {
        warnings.push(
            "Some cells ran concurrently: their times include contention for the machine."
                .to_owned(),
        );
    }
    unequal_groups(records, &mut warnings);
    if let Some(base) = ablation_base {
        let names: BTreeSet<&str> = records.iter().map(|r| r.encoding.name.as_str()).collect();
        if !records.is_empty() && !names.contains(base) {
            let names = names.into_iter().collect::<Vec<_>>().join(", ");
            warnings.push(format!(
                "No cell uses the ablation base `{base}`, so no ablation is shown; encodings: {names}."
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
    use crate::testkit::TestCell;

    type Change = fn(&mut RunRecord);

    #[test]
    fn equal_cells_give_no_warning_and_each_difference_gives_one() {
        let plain = || TestCell::new("w", "rope", 0).record();
        let warnings = |records: &[RunRecord]| of_records(records, None);
        assert_eq!(
            warnings(&[plain(), TestCell::new("w", "cope", 1).record()]),
            Vec::<String>::new()
        );
        let gpu = |r: &mut RunRecord| {
            let name = "A GPU".to_owned();
            r.device =
                Some(DeviceInfo { name, driver: Some("1.2".into()), memory_bytes: Some(3 << 30) });
        };
        let changes: [(&str, Change); 11] = [
            ("device (A GPU, driver 1.2, 3.0 GiB; processor)", gpu),
            ("uncommitted", |r| r.dirty = Some(true)),
            ("host", |r| r.host.cpu = "other".into()),
            ("threads", |r| r.host.threads = 9),
            ("commit", |r| r.commit = None),
            ("backend", |r| r.backend = "tch".into()),
            ("engine", |r| r.engine = "fused".into()),
            ("versions", |r| r.versions.clear()),
            ("task or budget", |r| r.train.steps = 3),
            ("task or budget", |r| r.task.version = 2),
            ("settings", |r| r.params.total = 3),
        ];
        for (word, change) in changes {
            let found = warnings(&[plain(), TestCell::new("w", "rope", 1).change(change).record()]);
            assert_eq!(found.len(), 1, "{word}: {found:?}");
            assert!(found[0].contains(word), "{}", found[0]);
        }
        let beside = TestCell::new("w", "rope", 1).change(|r| r.host.jobs = 2).record();
        assert_eq!(warnings(&[beside]).len(), 1);
    }

    #[test]
    fn a_training_that_ended_early_had_the_same_budget() {
        let of = |steps: u64| {
            TestCell::new("w", "rope", steps)
                .change(|r| {
                    r.config = serde_json::json!({ "train": { "steps": 200 } });
                    r.train.steps = steps;
                })
                .record()
        };
        assert_eq!(of_records(&[of(200), of(80)], None), Vec::<String>::new());
    }

    #[test]
    fn a_base_that_nobody_ran_is_told() {
        let found = of_records(&[TestCell::new("w", "rope", 0).record()], Some("cope"));
        assert!(found.len() == 1 && found[0].contains("`cope`"), "{found:?}");
        assert!(of_records(&[TestCell::new("w", "cope", 0).record()], Some("cope")).is_empty());
    }
}
