//! `pe-bench list`.

use clap::ValueEnum as _;
use pe_zoo::card::Card;
use serde_json::{Map, Value, json};

use super::Listed;
use super::columns::TerminalTable;
use super::out::{complain, say};
use super::prose::say_markdown;
use sweep::FLOPS_PER_SECOND;
use train::host::{cpu_model, memory_bytes};
use train::{backend, suite};

pub(super) fn list(kind: Option<Listed>, json: bool) {
    let Some(kind) = kind else { return all(json) };
    let list = list_of(kind);
    if json {
        say(&format!("{:#}", list.json()));
        return;
    }
    list.say();
    if kind == Listed::Suites {
        complain(&format!(
            "note: times assume {FLOPS_PER_SECOND:e} operations per second. `pe-bench run SUITE --dry-run` estimates \
             the time on this machine. `pe-bench explain SUITE` describes a suite"
        ));
    }
}

/// Prints the names of everything that is listed, or all of it as JSON.
fn all(json: bool) {
    let kinds = Listed::value_variants().iter().map(|kind| {
        let name =
            kind.to_possible_value().map_or(String::new(), |value| value.get_name().to_owned());
        (name, list_of(*kind))
    });
    if json {
        let object = kinds.map(|(name, list)| (name, list.json())).collect::<Map<_, _>>();
        say(&format!("{:#}", Value::from(object)));
        return;
    }
    for (name, list) in kinds {
        let ids = list.rows.iter().map(|row| shown("id", &row[0])).collect::<Vec<_>>();
        say_markdown(&format!("## {name} ({})\n{}\n", ids.len(), ids.join(", ")));
    }
    say_markdown(
        "`pe-bench list KIND` describes each name of a kind. `pe-bench explain NAME` describes one name in full.",
    );
}

/// Items with the same facts.
struct ItemList {
    /// Names of the facts: the heads of the columns, and with `_` for spaces the keys of JSON.
    heads: Vec<&'static str>,
    rows: Vec<Vec<Value>>,
    /// Heads of columns that a narrow terminal drops.
    spare: &'static [&'static str],
}

impl ItemList {
    fn json(&self) -> Value {
        let object = |row: &Vec<Value>| -> Value {
            let keys = self.heads.iter().map(|head| head.replace(' ', "_"));
            keys.zip(row.iter().cloned()).collect::<Map<_, _>>().into()
        };
        self.rows.iter().map(object).collect()
    }

    fn say(&self) {
        let texts = |row: &Vec<Value>| {
            self.heads.iter().zip(row).map(|(head, value)| shown(head, value)).collect()
        };
        // Units are in the values.
        let head =
            |head: &&str| head.trim_end_matches(" seconds").trim_end_matches(" bytes").to_owned();
        let heads = self.heads.iter().map(head).collect();
        let rows = self.rows.iter().map(texts).collect();
        TerminalTable { heads, rows, spare: self.spare, numbers: false }.say();
    }
}

fn list_of(kind: Listed) -> ItemList {
    match kind {
        Listed::Encodings => encodings(),
        Listed::Tasks => tasks(),
        Listed::Suites => suites(),
        Listed::Backends => backends(),
    }
}

/// Formats the value of a fact.
fn shown(head: &str, value: &Value) -> String {
    match value {
        Value::Null => "–".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            parts.iter().map(|part| shown(head, part)).collect::<Vec<_>>().join(", ")
        }
        other if head.ends_with("seconds") => core_time(other.as_f64().unwrap_or_default()),
        other if head.ends_with("bytes") => {
            format!("{:.1} GiB", other.as_f64().unwrap_or_default() / f64::from(1 << 30))
        }
        other => other.to_string(),
    }
}

fn tasks() -> ItemList {
    let row = |meta: &&tasks::TaskMeta| {
        vec![json!(meta.id), json!(meta.headline.id()), json!(meta.summary)]
    };
    let heads = vec!["id", "ranked by", "summary"];
    ItemList { heads, rows: tasks::ALL.iter().map(row).collect(), spare: &["ranked by"] }
}

/// One row per backend: device, memory of the device and the precisions it supports.
fn backends() -> ItemList {
    let row = |meta: &backend::BackendMeta| {
        let [device, memory, precision] = match meta.facts() {
            None => [
                json!(format!("not compiled in; build with --features {}", meta.feature)),
                Value::Null,
                Value::Null,
            ],
            Some(Err(reason)) => {
                [json!(format!("unavailable: {reason}")), Value::Null, Value::Null]
            }
            Some(Ok(facts)) => {
                let memory = facts
                    .memory_bytes
                    .or_else(|| facts.name.is_none().then(memory_bytes).flatten());
                let name = facts.name.or_else(cpu_model).unwrap_or_else(|| "processor".to_owned());
                [json!(name), json!(memory), json!(facts.floats)]
            }
        };
        vec![json!(meta.id), device, memory, precision, json!(meta.about)]
    };
    let heads = vec!["id", "device", "memory bytes", "precision", "hardware"];
    let spare = &["hardware", "precision", "memory"];
    ItemList { heads, rows: backend::ALL.iter().map(row).collect(), spare }
}

fn encodings() -> ItemList {
    let registry = train::encodings::registry();
    let row = |card: &Card| {
        let properties = registry.encoding(card.id).and_then(|own| pe_zoo::probe::properties(&own));
        let acts_on = match properties {
            Ok(found) if found.acts_on.is_empty() => json!("nothing"),
            Ok(found) => found.acts_on.iter().map(|part| part.label()).collect(),
            Err(error) => json!(error.to_string()),
        };
        vec![json!(card.id), acts_on, json!(card.parameters), json!(card.summary)]
    };
    let heads = vec!["id", "acts on", "learned parameters", "summary"];
    let spare = &["learned parameters", "acts on"];
    ItemList { heads, rows: registry.cards().map(row).collect(), spare }
}

fn suites() -> ItemList {
    let row = |(name, text): &(&str, &str)| match suite::parse(
        name,
        text,
        &suite::Overrides::default(),
    ) {
        Ok(mut suite) => {
            let cells = suite.cells.len();
            let fresh = suite.following().cloned().collect::<Vec<_>>();
            let of_fresh_seeds = (!fresh.is_empty()).then_some(fresh.len());
            suite.cells.extend(fresh);
            vec![
                json!(suite.name),
                json!(cells),
                json!(of_fresh_seeds),
                json!(core_seconds(&suite)),
                json!(suite.about.split_whitespace().collect::<Vec<_>>().join(" ")),
            ]
        }
        Err(error) => {
            vec![json!(name), Value::Null, Value::Null, Value::Null, json!(error.to_string())]
        }
    };
    let heads = vec!["id", "cells", "of fresh seeds", "core time seconds", "about"];
    let spare = &["of fresh seeds", "cells"];
    ItemList { heads, rows: suite::BUILT_IN.iter().map(row).collect(), spare }
}

/// Estimated training time of a suite on one CPU core in seconds, from its operation count.
pub(super) fn core_seconds(suite: &suite::Suite) -> f64 {
    (suite.operations() / FLOPS_PER_SECOND).round()
}

/// Formats a long time: `3 hours`.
pub(super) fn core_time(seconds: f64) -> String {
    let hours = seconds / 3600.0;
    let (number, unit) = match hours {
        0.0..1.0 => ((60.0 * hours).ceil(), "minute"),
        1.0..100.0 => (hours.round(), "hour"),
        _ => ((hours / 24.0).round(), "day"),
    };
    let plural = if number > 1.0 { "s" } else { "" };
    format!("{number} {unit}{plural}")
}
