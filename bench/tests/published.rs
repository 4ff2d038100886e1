//! The published numbers of `reports`, compared with the encodings, tasks and suites that only this
//! crate knows.
#![allow(clippy::unwrap_used, reason = "tests panic on failure")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use pe_bench::suite::{self, BUILT_IN, Overrides};
use pe_zoo::Combination;
use reports::reproduction::published::{Coverage, PublishedTable, papers};
use reports::reproduction::recipe::{Identity, differences, flat, is_identical};
use serde_json::Value;
use tasks::TaskConfig;

fn tables() -> Vec<PublishedTable> {
    papers().unwrap().into_iter().flat_map(|paper| paper.tables).collect()
}

fn identity(expression: &str) -> Identity {
    let encoding = Combination::parse(expression).unwrap_or_else(|e| panic!("{expression}: {e}"));
    let whole: Identity = serde_json::from_value(encoding.identity()).unwrap();
    let default_of =
        |id: &str| pe_zoo::Registry::builtin().encoding(id).unwrap().identity()["settings"].take();
    let defaults: Value = match &whole.settings {
        Value::Array(_) => {
            let ids = whole.id.split('+');
            ids.map(|id| serde_json::json!({"id": id, "settings": default_of(id)})).collect()
        }
        _ => default_of(&whole.id),
    };
    let defaults = flat(&defaults);
    let is_changed = |(name, value): &(String, &Value)| defaults.get(name) != Some(value);
    let changed =
        flat(&whole.settings).into_iter().filter(is_changed).map(|(name, _)| name).collect();
    Identity { changed, ..whole }
}

#[test]
fn the_settings_of_every_published_encoding_are_those_of_the_zoo() {
    let rows = tables().into_iter().flat_map(|table| table.rows);
    let named: BTreeSet<String> = rows.filter_map(|row| row.encoding).collect();
    let expected: BTreeMap<&String, Identity> =
        named.iter().map(|expression| (expression, identity(expression))).collect();
    let mut text = serde_json::to_string_pretty(&expected).unwrap();
    text.push('\n');
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../reports/published/encodings.json");
    if std::fs::read_to_string(&file).unwrap() != text {
        let new = Path::new(env!("CARGO_TARGET_TMPDIR")).join("encodings.json");
        std::fs::write(&new, text).unwrap();
        panic!(
            "out of date; look at the difference, then: cp {} {}",
            new.display(),
            file.display()
        );
    }
}

/// A path that a task, a model or a training does not have would hold for no record, in silence.
#[test]
fn every_path_of_a_recipe_exists() {
    let mut known = BTreeSet::new();
    for table in tables() {
        let Some(id) = table.task() else { continue };
        let task = serde_json::to_value(TaskConfig::from_id(id).unwrap()).unwrap();
        let columns = table.columns.iter().flat_map(|column| column.identity.keys());
        let rows = table.rows.iter().flat_map(|row| row.identity.keys());
        for path in table.identity.keys().chain(table.recipe.keys()).chain(columns).chain(rows) {
            let (section, key) = path.split_once('.').unwrap();
            let value = match section {
                "task" => task.clone(),
                "model" => serde_json::to_value(pe_bench::model::ModelConfig::default()).unwrap(),
                "train" => {
                    serde_json::to_value(pe_bench::experiment::TrainConfig::default()).unwrap()
                }
                other => panic!("{}: {path}: no section {other}", table.id),
            };
            let found = key.split('.').try_fold(&value, |value, key| value.get(key));
            // Not written at their defaults.
            let silent = ["task.train_samples", "model.attention"];
            assert!(found.is_some() || silent.contains(&path.as_str()), "{}: {path}", table.id);
            known.insert(path.clone());
        }
        let splits = TaskConfig::from_id(id).unwrap().build().unwrap().splits();
        for column in &table.columns {
            let split = column.split.as_ref().unwrap();
            assert!(splits.iter().any(|known| known.name == split), "{}: {split}", table.id);
        }
    }
    assert!(known.len() > 20, "{known:?}");
}

/// The suites that claim a paper's recipe have it: for each row and column of their tables there is a
/// cell without any difference.
#[test]
fn the_suites_of_papers_have_the_published_recipes() {
    let (mut missing, mut unknown) = (Vec::new(), BTreeSet::new());
    for table in tables() {
        let Coverage::Records { suite: Some(name), task } = &table.plan else { continue };
        let Some((_, text)) = BUILT_IN.iter().find(|(known, _)| known == name) else {
            unknown.insert(name.clone());
            continue;
        };
        let suite = suite::parse(name, text, &Overrides::default()).unwrap();
        let configs: Vec<(Value, Vec<usize>, usize)> = suite
            .cells
            .iter()
            .filter(|cell| cell.task.meta().id == task)
            .map(|cell| {
                let lens = cell.eval.lens_or(&cell.train.len).to_vec();
                (cell.config(&*cell.task.build().unwrap()), lens, cell.train.len)
            })
            .collect();
        for row in &table.rows {
            let encoding = identity(row.encoding.as_ref().unwrap());
            for column in &table.columns {
                let at = format!("{}: {}, {}", table.id, row.title(), column.name);
                let identity = table.identity_of(row, column);
                let mut same = configs
                    .iter()
                    .filter(|(config, ..)| encoding.is_of(config, &row.free))
                    .filter(|(config, ..)| is_identical(config, &identity))
                    .filter(|(_, lens, len)| {
                        lens.contains(&((*len as f64 * column.length_ratio).round() as usize))
                    })
                    .map(|(config, ..)| differences(config, &table.recipe))
                    .collect::<Vec<_>>();
                same.sort_by_key(Vec::len);
                match same.first() {
                    None => missing.push(format!("{at}: no cell of `{name}`")),
                    // Another recipe whatever the settings: the suite may choose its own.
                    Some(found) if !found.is_empty() && table.unlike.is_empty() => {
                        let list = found.iter().map(ToString::to_string).collect::<Vec<_>>();
                        missing.push(format!("{at}: `{name}` has {}", list.join("; ")));
                    }
                    Some(_) => {}
                }
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
    assert!(unknown.is_empty(), "suites that tables name and that are not built in: {unknown:?}");
}
