//! The published numbers of `reports`, compared with the encodings, tasks and suites that only this
//! crate knows.
#![allow(clippy::unwrap_used, reason = "tests panic on failure")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use analysis::reproduction::published::{PublishedRow, PublishedTable, SmallerSuite, papers};
use analysis::reproduction::recipe::{Identity, differences, flat, is_identical};
use pe_zoo::Combination;
use serde_json::{Value, json};
use tasks::TaskConfig;
use train::suite::{self, BUILT_IN, Overrides, Suite};

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
            ids.map(|id| json!({"id": id, "settings": default_of(id)})).collect()
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
    let named: BTreeSet<String> =
        rows.flat_map(|row| [row.encoding, row.trained_as]).flatten().collect();
    let expected: BTreeMap<&String, Identity> =
        named.iter().map(|expression| (expression, identity(expression))).collect();
    let mut text = serde_json::to_string_pretty(&expected).unwrap();
    text.push('\n');
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../reports/analysis/published/encodings.json");
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
        let Some(id) = table.task.as_deref() else { continue };
        let task = serde_json::to_value(TaskConfig::from_id(id).unwrap()).unwrap();
        let columns = table.columns.iter().flat_map(|column| column.identity.keys());
        let rows = table.rows.iter().flat_map(|row| row.identity.keys());
        for path in table.identity.keys().chain(table.recipe.keys()).chain(columns).chain(rows) {
            let (section, key) = path.split_once('.').unwrap();
            let value = match section {
                "task" => task.clone(),
                "model" => serde_json::to_value(pe_zoo::model::ModelConfig::default()).unwrap(),
                "train" => serde_json::to_value(train::experiment::TrainConfig::default()).unwrap(),
                other => panic!("{}: {path}: no section {other}", table.id),
            };
            let found = key.split('.').try_fold(&value, |value, key| value.get(key));
            // Not written at their defaults.
            let silent = [
                "task.train_samples",
                "task.min_len",
                "task.path",
                "task.first_token",
                "task.shared_tokens",
                "model.attention",
            ];
            assert!(found.is_some() || silent.contains(&path.as_str()), "{}: {path}", table.id);
            known.insert(path.clone());
        }
        let task = TaskConfig::from_id(id).unwrap();
        // The splits of a text are its parts.
        let splits: Vec<&str> = if task.meta().takes_path {
            vec!["validation", "test"]
        } else {
            task.build().unwrap().splits().iter().map(|split| split.name).collect()
        };
        for column in &table.columns {
            let split = column.split.as_ref().unwrap();
            assert!(splits.contains(&split.as_str()), "{}: {split}", table.id);
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
        let Some((name, task)) = table.suite.as_ref().zip(table.task.as_ref()) else { continue };
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

/// A cell for each located column of a row, among those of a suite of another size that the table names.
fn has(suite: &Suite, smaller: &SmallerSuite, table: &PublishedTable, row: &PublishedRow) -> bool {
    let cells: Vec<_> = suite
        .cells
        .iter()
        .filter(|cell| cell.task.meta().id == smaller.task)
        .filter(|cell| smaller.workload.as_ref().is_none_or(|name| cell.workload == *name))
        .collect();
    let encoding = identity(row.trained().unwrap());
    table.columns.iter().filter(|column| column.split.is_some()).all(|column| {
        let identity = smaller.identity(table.identity_of(row, column));
        cells.iter().any(|cell| {
            // A text is not read: no setting of its task is in the configuration.
            let config = if cell.task.meta().takes_path {
                json!({"encoding": cell.encoding.identity()})
            } else {
                cell.config(&*cell.task.build().unwrap())
            };
            let len = (cell.train.len as f64 * column.length_ratio).round() as usize;
            encoding.is_of(&config, &row.free)
                && is_identical(&config, &identity)
                && cell.eval.lens_or(&cell.train.len).contains(&len)
                && cell.train.steps > 0
        })
    })
}

/// Tables and suites of another size with some of their rows, and the number of these: the table of Wikitext-103 has the
/// rows of two tables of the paper.
const SOME_ROWS: [(&str, &str, usize); 1] = [("wikitext-103", "cope-table-5", 4)];

/// The suites of another size that a table names have each of its rows, except those of [`SOME_ROWS`].
#[test]
fn the_suites_of_another_size_have_the_rows_of_their_tables() {
    let mut checked = 0;
    for table in tables() {
        let rows: Vec<_> = table.rows.iter().filter(|row| row.encoding.is_some()).collect();
        for row in &rows {
            // Only an encoding that is refused has another one for it: TAPE without any update is RoPE.
            let [heads, head_dim, train_len, max_len] = [4, 16, 64, 64];
            let dims = pe_zoo::Dims {
                layers: 1,
                width: heads * head_dim,
                heads,
                head_dim,
                train_len,
                max_len,
            };
            let built = Combination::parse(row.encoding.as_ref().unwrap()).unwrap();
            assert!(row.trained_as.is_none() || built.check(&dims).is_err(), "{}", row.title());
        }
        for smaller in &table.smaller {
            let (_, text) = BUILT_IN
                .iter()
                .find(|(known, _)| *known == smaller.suite)
                .unwrap_or_else(|| panic!("{}: no suite `{}`", table.id, smaller.suite));
            let suite = suite::parse(&smaller.suite, text, &Overrides::default()).unwrap();
            let (found, missing): (Vec<&PublishedRow>, Vec<&PublishedRow>) =
                rows.iter().copied().partition(|row| has(&suite, smaller, &table, row));
            let missing = missing.iter().map(|row| row.title()).collect::<Vec<_>>();
            let some =
                SOME_ROWS.iter().find(|(id, name, _)| *id == table.id && *name == smaller.suite);
            let expected = some.map_or(rows.len(), |(_, _, count)| *count);
            let at = format!("{}, `{}`", table.id, smaller.suite);
            assert_eq!(found.len(), expected, "{at}: no cells of {missing:?}");
            checked += found.len();
        }
    }
    assert!(checked > 60, "{checked}");
}

/// Effect of a phrase in a paper's name of a row.
enum Said {
    /// Registry id of an encoding.
    Id(&'static str),
    /// A setting of the encoding, by its name as in `flat`, and its value.
    Setting(&'static str, Value),
    /// A setting of the cell, by path, and its value.
    Cell(&'static str, Value),
}

/// Phrases of the papers' own rows, the longer before those that they contain. Written from the papers' words: what a
/// row's name does not say is at the default of the encoding.
fn phrases(paper: &str, table: &str) -> Vec<(&'static str, Vec<Said>)> {
    use Said::{Cell, Id, Setting};
    let model = |path: &'static str, value: u32| vec![Cell(path, value.into())];
    let feed_forward = |size: u32| {
        let value = json!({"type": "on", "position_size": size});
        vec![Id("tape"), Setting("feed_forward_update", value)]
    };
    let off = || Setting("feed_forward_update", json!({"type": "off"}));
    let form = |form: &str| vec![Id("tape"), Setting("form", form.into())];
    let slopes = |slopes: &str| vec![Setting("slopes", slopes.into())];
    match paper {
        "cope" => {
            let mut known = vec![
                ("CoPE-ALiBi", vec![Id("cope-alibi")]),
                ("CoPE-MLP", vec![Id("cope-mlp")]),
                ("Absolute", vec![Id("learned-absolute")]),
                ("learned-absolute", vec![Id("learned-absolute")]),
                ("relative", vec![Id("relative")]),
                ("Relative", vec![Id("relative")]),
                ("RoPE", vec![Id("rope")]),
                ("rope", vec![Id("rope")]),
                ("first layer", vec![Setting("layers", json!({"type": "first"}))]),
                ("hard attention", vec![Cell("model.attention", "hard".into())]),
                ("4 layers", model("model.layers", 4)),
                ("2 layers", model("model.layers", 2)),
                ("4 heads", model("model.heads", 4)),
                ("2 heads", model("model.heads", 2)),
                ("256", model("model.width", 256)),
                ("128", model("model.width", 128)),
                ("slopes 1 and less", slopes("from-1")),
                // The best in the paper, and the default.
                ("slopes 1/4 and less", Vec::new()),
                ("slopes 1/16 and less", slopes("from-1/16")),
                ("learned slopes", slopes("learned")),
                ("value gates", vec![Setting("gates", "query-value".into())]),
                ("separate keys", vec![Setting("gates", "separate-keys".into())]),
                ("p_max 1024", vec![Setting("max_positions", 1024.into())]),
                ("p_max 16", vec![Setting("max_positions", 16.into())]),
            ];
            // On Wikitext-103 all layers share one table unless a row says otherwise.
            known.push(("layers not sharing", vec![Setting("sharing", "per-layer".into())]));
            let cope = |id| match table {
                "wikitext-103" => vec![Id(id), Setting("sharing", "all-layers".into())],
                _ => vec![Id(id)],
            };
            known.extend([("CoPE", cope("cope")), ("cope", cope("cope"))]);
            known
        }
        "tape" => vec![
            ("TAPE without equivariance", form("tensor-not-equivariant")),
            ("TAPE, not fused", vec![Id("tape")]),
            ("TAPE, fused", vec![Id("tape")]),
            ("YaRN", vec![Setting("scaling", json!({"rope_type": "yarn", "factor": 2.0}))]),
            ("TAPE", vec![Id("tape")]),
            ("tape", vec![Id("tape")]),
            ("RandPE", vec![Id("randomized"), Id("rope")]),
            (
                "xPos",
                vec![
                    Id("xpos"),
                    Setting("layout", "half-split".into()),
                    Setting("scale_base", 2048.0.into()),
                ],
            ),
            ("T5", vec![Id("t5-bias"), Setting("sharing", "per-layer".into())]),
            ("no update", vec![Id("tape"), Setting("attention_update", "none".into()), off()]),
            ("feed-forward update", vec![Id("tape"), Setting("attention_update", "none".into())]),
            ("attention update", vec![Id("tape"), off()]),
            ("both updates", vec![Id("tape")]),
            ("neither", form("vector-not-equivariant")),
            ("equivariant, no tensor", form("vector")),
            ("tensor, not equivariant", form("tensor-not-equivariant")),
            ("both", vec![Id("tape")]),
            ("I = 192", feed_forward(192)),
            ("I = 12", feed_forward(12)),
            ("I = 24", feed_forward(24)),
            ("I = 48", feed_forward(48)),
            ("I = 96", feed_forward(96)),
            ("alibi", vec![Id("alibi")]),
            ("rope", vec![Id("rope")]),
            ("nope", vec![Id("nope")]),
            ("fire", vec![Id("fire")]),
        ],
        "grape" => vec![
            ("GRAPE-AP", vec![Id("grape")]),
            ("rope", vec![Id("rope")]),
            ("alibi", vec![Id("alibi")]),
            ("fox", vec![Id("fox")]),
        ],
        "cope-vs-rope" => vec![("rope", vec![Id("rope")]), ("cope", vec![Id("cope")])],
        other => panic!("no phrases for the rows of {other}"),
    }
}

/// Whether `phrase` stands in `text` at this place as words of their own.
fn stands_at(text: &str, at: usize, phrase: &str) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '-' || letter == '/';
    !text[..at].chars().next_back().is_some_and(is_part)
        && !text[at + phrase.len()..].chars().next().is_some_and(is_part)
}

/// A row's settings follow from the paper's name of it, phrase by phrase, and from nothing else: not from our suites.
#[test]
fn the_settings_of_a_row_are_those_that_its_name_says() {
    let mut checked = 0;
    for (paper, table) in papers().unwrap().into_iter().flat_map(|paper| {
        paper.tables.into_iter().map(move |table| (paper.paper.id.clone(), table))
    }) {
        for row in table.rows.iter().filter(|row| row.encoding.is_some()) {
            let at = format!("{paper}, {}: {}", table.id, row.title());
            let (mut rest, mut ids) = (row.title().to_owned(), BTreeSet::new());
            let (mut settings, mut cells) = (BTreeMap::new(), BTreeMap::new());
            let mut known = phrases(&paper, &table.id);
            known.sort_by_key(|(phrase, _)| std::cmp::Reverse(phrase.len()));
            for (phrase, effects) in known {
                let Some((place, _)) =
                    rest.match_indices(phrase).find(|(place, _)| stands_at(&rest, *place, phrase))
                else {
                    continue;
                };
                rest.replace_range(place..place + phrase.len(), "");
                for effect in effects {
                    match effect {
                        Said::Id(id) => drop(ids.insert(id)),
                        // What a row says itself counts before what its table says of all.
                        Said::Setting(name, value) => drop(settings.entry(name).or_insert(value)),
                        Said::Cell(path, value) => drop(cells.insert(path, value)),
                    }
                }
            }
            let unread = rest.trim_matches([' ', ',', '+']);
            assert!(unread.is_empty(), "{at}: no phrase for `{unread}`");
            let found = identity(row.encoding.as_ref().unwrap());
            assert_eq!(found.id, ids.into_iter().collect::<Vec<_>>().join("+"), "{at}");
            let of_defaults = |name: &str| {
                let id = found.id.split('+').next().unwrap();
                pe_zoo::Registry::builtin().encoding(id).unwrap().identity()["settings"][name]
                    .take()
            };
            let said: BTreeMap<&str, Value> =
                settings.into_iter().filter(|(name, value)| of_defaults(name) != *value).collect();
            let flat_settings = flat(&found.settings);
            let changed: BTreeMap<&str, Value> = found
                .changed
                .iter()
                .map(|name| (name.rsplit('.').next().unwrap(), flat_settings[name].clone()))
                .collect();
            assert_eq!(changed.keys().collect::<Vec<_>>(), said.keys().collect::<Vec<_>>(), "{at}");
            for (name, value) in &said {
                // Settings that a phrase leaves out keep their defaults within the choice.
                let holds = match (value, &changed[name]) {
                    (Value::Object(said), Value::Object(found)) => {
                        said.iter().all(|(key, value)| found.get(key) == Some(value))
                    }
                    (said, found) => said == found,
                };
                assert!(holds, "{at}: {name} is {}, the name says {value}", changed[name]);
            }
            let own: BTreeMap<&str, Value> = row
                .identity
                .iter()
                .map(|(path, expected)| (path.as_str(), expected.one().unwrap().clone()))
                .collect();
            assert_eq!(own, cells, "{at}");
            checked += 1;
        }
    }
    assert!(checked > 80, "{checked}");
}
