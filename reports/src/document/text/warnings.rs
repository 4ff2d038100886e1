//! Warnings about differences between cells that limit their comparability.

use std::collections::{BTreeMap, BTreeSet};

use analysis::{Condition, Conditions, Report};
use records::number::{joined, numbered};

/// Returns the warnings of a report, one sentence each.
pub(crate) fn warnings(report: &Report) -> Vec<String> {
    let encodings: Vec<&str> = report.encodings.iter().map(|e| e.name.as_str()).collect();
    let mut warnings = of_cells(&report.conditions);
    warnings
        .extend(report.settings.ablation_base.iter().filter_map(|base| no_base(base, &encodings)));
    warnings.extend(missing_seeds(report));
    warnings
}

/// Returns one sentence for each workload in which encodings lack seeds that others have.
fn missing_seeds(report: &Report) -> impl Iterator<Item = String> {
    report.missing_seeds.chunk_by(|a, b| a.workload == b.workload).map(|missing| {
        let lists = missing.iter().map(|m| {
            format!("{} lacks {}", report.display(&m.encoding), numbered("seed", &m.seeds))
        });
        let lists = joined(lists, "; ");
        format!(
            "`{}`: some encodings lack seeds that other encodings have ({lists}).",
            missing[0].workload
        )
    })
}

/// Returns a warning if the base of the ablations is not among the encodings.
fn no_base(base: &str, encodings: &[&str]) -> Option<String> {
    (!encodings.is_empty() && !encodings.contains(&base)).then(|| {
        format!(
            "No cell uses the ablation base `{base}`, so no ablation is shown. The encodings of these cells are {}.",
            encodings.join(", ")
        )
    })
}

/// Returns warnings about differences between cells in anything but the encoding.
fn of_cells(conditions: &Conditions) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut differ = |what: &str, so: &str, get: &dyn Fn(&Condition) -> String| {
        let list = several(conditions.distinct(get));
        warnings.extend(list.map(|list| format!("Cells differ in {what} ({list}), so {so}.")));
    };
    let speed = "times and memory are not comparable between them";
    let numbers = "their numbers may differ for this reason alone";
    differ("host", speed, &|r| format!("{}, {}", r.host_cpu, r.os));
    differ("threads", speed, &|r| r.threads.to_string());
    differ("the number of concurrent cells", speed, &|r| r.jobs.to_string());
    differ("commit", numbers, &|r| r.commit.clone().unwrap_or_else(|| "unknown".into()));
    differ("backend", numbers, &|r| r.backend.clone());
    differ("engine", numbers, &|r| r.engine.clone());
    differ("precision", numbers, &|r| r.precision.clone());
    differ("versions", numbers, &|r| r.versions.clone());
    if conditions.all.iter().any(|r| r.dirty == Some(true)) {
        warnings.push(
            "Some cells ran with uncommitted changes: the commit does not identify their source completely."
                .to_owned(),
        );
    }
    if conditions.all.iter().any(|r| r.jobs > 1) {
        warnings.push(
            "Some cells ran concurrently: their times include contention for the machine."
                .to_owned(),
        );
    }
    unequal_groups(conditions, &mut warnings);
    warnings
}

/// Adds a warning for each workload whose encodings differ in task or budget, and for each encoding whose seeds
/// differ in settings.
fn unequal_groups(conditions: &Conditions, warnings: &mut Vec<String>) {
    let mut budgets: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for b in &conditions.budgets {
        budgets.entry(&b.workload).or_default().insert(format!(
            "task version {} with {}, {} steps of {} samples of length {}",
            b.task_version, b.task_config, b.planned_steps, b.batch_size, b.train_len
        ));
    }
    let mut settings: BTreeMap<(&str, &str), BTreeSet<String>> = BTreeMap::new();
    for s in &conditions.encodings {
        let text = format!("{} with {} parameters", s.encoding_config, s.params_total);
        settings.entry((&s.workload, &s.encoding)).or_default().insert(text);
    }
    warnings.extend(budgets.into_iter().filter_map(|(workload, found)| {
        Some(format!("`{workload}`: cells differ in task or budget ({}).", several(found)?))
    }));
    warnings.extend(settings.into_iter().filter_map(|((workload, encoding), found)| {
        let list = several(found)?;
        Some(format!("`{workload}`: the seeds of `{encoding}` differ in settings ({list})."))
    }));
}

/// Joins distinct values; `None` if there are fewer than two.
fn several(values: BTreeSet<String>) -> Option<String> {
    (values.len() > 1).then(|| joined(values, "; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::frame::Frames;
    use records::RunRecord;
    use records::testkit::TestCell;

    fn warnings(records: &[RunRecord]) -> Vec<String> {
        of_cells(&Conditions::of_all(&Frames::of(records).unwrap()).unwrap())
    }

    type Change = fn(&mut RunRecord);

    #[test]
    fn equal_cells_give_no_warning_and_each_difference_gives_one() {
        let plain = || TestCell::new("w", "rope", 0).record();
        assert_eq!(
            warnings(&[plain(), TestCell::new("w", "cope", 1).record()]),
            Vec::<String>::new()
        );
        let changes: [(&str, Change); 16] = [
            ("host", |r| r.host.cpu = "other".into()),
            ("host", |r| r.host.os = "other".into()),
            ("threads", |r| r.host.threads = 9),
            ("commit", |r| r.commit = None),
            ("uncommitted", |r| r.dirty = Some(true)),
            ("backend", |r| r.backend = "tch".into()),
            ("engine", |r| r.engine = "fused".into()),
            ("precision", |r| r.precision = "bf16".into()),
            ("versions", |r| r.versions.clear()),
            ("task or budget", |r| r.train.steps = 3),
            ("task or budget", |r| r.task.version = 2),
            ("task or budget", |r| r.task.config = serde_json::json!({"x": 1})),
            ("task or budget", |r| r.train.batch_size = 3),
            ("task or budget", |r| r.train_len = 3),
            ("settings", |r| r.params.total = 3),
            ("settings", |r| r.encoding.config = serde_json::json!({"x": 1})),
        ];
        for (word, change) in changes {
            let found = warnings(&[plain(), TestCell::new("w", "rope", 1).change(change).record()]);
            assert_eq!(found.len(), 1, "{word}: {found:?}");
            assert!(found[0].contains(word), "{}", found[0]);
        }
        let beside = TestCell::new("w", "rope", 1).change(|r| r.host.jobs = 2).record();
        assert_eq!(warnings(std::slice::from_ref(&beside)).len(), 1);
        let both = warnings(&[plain(), beside]);
        assert_eq!(both.len(), 2, "{both:?}");
        assert!(both[0].contains("the number of concurrent cells"), "{}", both[0]);
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
        assert_eq!(warnings(&[of(200), of(80)]), Vec::<String>::new());
    }

    #[test]
    fn a_base_that_nobody_ran_is_told() {
        assert!(no_base("cope", &["rope"]).is_some_and(|text| text.contains("`cope`")));
        assert_eq!(no_base("cope", &["cope"]), None);
    }

    #[test]
    fn seeds_that_an_encoding_lacks_are_told() {
        let cell = |encoding, seed| TestCell::new("w", encoding, seed).record();
        let records = [cell("rope", 0), cell("rope", 1), cell("cope", 0)];
        let of = |records: &[RunRecord]| {
            super::warnings(&Report::new(records, &analysis::ReportMeta::default()).unwrap())
        };
        assert_eq!(
            of(&records),
            ["`w`: some encodings lack seeds that other encodings have (CoPE lacks seed 1)."]
        );
        assert!(of(&records[..1]).is_empty());
    }
}
