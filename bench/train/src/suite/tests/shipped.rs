use std::collections::BTreeMap;

use super::*;

fn suites() -> impl Iterator<Item = Suite> {
    BUILT_IN.iter().map(|(name, text)| parse(name, text, &Overrides::default()).unwrap())
}

#[test]
#[ignore = "workloads of new tasks are added before a release"]
fn before_a_release_every_task_is_trained_under_at_least_two_encodings() {
    let mut trained: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for suite in suites().filter(|suite| suite.name != "smoke" && !suite.name.contains("paper")) {
        for cell in suite.cells {
            let encoding = cell.encoding.to_string();
            trained.entry(cell.task.meta().id).or_default().insert(encoding);
        }
    }
    for meta in tasks::ALL {
        let encodings = trained.get(meta.id).map_or(0, BTreeSet::len);
        assert!(encodings >= 2, "{}: {encodings}", meta.id);
    }
}

#[test]
#[ignore = "records of new encodings and tasks are made before a release"]
fn before_a_release_the_suite_coverage_has_every_task_and_every_encoding() {
    let suite = suites().find(|suite| suite.name == "coverage").unwrap();
    let tasks: BTreeSet<_> = suite.cells.iter().map(|cell| cell.task.meta().id).collect();
    assert_eq!(tasks, tasks::ALL.iter().map(|meta| meta.id).collect());
    let parts = |cell: &Experiment| -> Vec<String> {
        cell.encoding.parts().iter().map(|part| part.card().id.to_owned()).collect()
    };
    let encodings: BTreeSet<String> = suite.cells.iter().flat_map(parts).collect();
    let known = pe_zoo::Registry::builtin().cards().map(|card| card.id.to_owned()).collect();
    assert_eq!(encodings, known);
}

#[test]
#[ignore = "workloads of new tasks are added before a release"]
fn before_a_release_the_suite_nightly_has_every_generated_task() {
    let suite = suites().find(|suite| suite.name == "nightly").unwrap();
    let trained: BTreeSet<_> = suite.cells.iter().map(|cell| cell.task.meta().id).collect();
    let generated = tasks::ALL.iter().filter(|meta| !meta.takes_path).map(|meta| meta.id);
    assert_eq!(trained, generated.collect());
}

#[test]
fn what_suites_say_of_themselves_is_kept() {
    let of = |name: &str| suites().find(|suite| suite.name == name).unwrap();
    let count = |suite: &Suite, get: fn(&Experiment) -> String| {
        suite.cells.iter().map(get).collect::<BTreeSet<_>>().len()
    };
    let contextual = of("contextual");
    assert_eq!(count(&contextual, |c| c.name.clone()), 6);
    assert_eq!(count(&contextual, |c| c.seed.to_string()), 5);
    assert_eq!(count(&contextual, |c| c.task.meta().id.to_owned()), 4);
    let quick = of("quick");
    assert_eq!(count(&quick, |c| c.seed.to_string()), 6);
    for name in ["ablation-cope", "ablation-tape"] {
        let suite = of(name);
        let base = suite.report.ablation_base.clone().unwrap();
        assert!(suite.cells.iter().any(|cell| cell.name == base), "{name}");
    }
    // Nightly numbers are compared from night to night: one seed, and nothing that must be fetched.
    let nightly = of("nightly");
    assert_eq!(count(&nightly, |c| c.seed.to_string()), 1);
    assert!(nightly.cells.iter().all(|cell| !cell.task.meta().takes_path));
}

/// Operations per second and core that suites of a middle size rely on: two busy cores of an EPYC have 6e10 each.
const MIDDLE_SPEED: f64 = 4e10;

/// Suites of a middle size say how long they take if no training ends early.
#[test]
fn suites_for_two_cores_take_at_most_four_hours() {
    let middle = suites().filter(|suite| suite.about.contains("hours on two cores"));
    let mut counted = 0;
    for suite in middle {
        let hours = suite.operations() / MIDDLE_SPEED / 3600.0 / 2.0;
        assert!((0.5..=4.0).contains(&hours), "{}: {hours:.2} hours", suite.name);
        counted += 1;
    }
    assert_eq!(counted, 19);
}
