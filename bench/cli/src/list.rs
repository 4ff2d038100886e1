//! `pe-bench list`.

use pe_zoo::card::Card;
use serde_json::{Map, Value, json};

use super::Listed;
use super::columns::say_table;
use super::out::{complain, say};
use sweep::FLOPS_PER_SECOND;
use train::host::{cpu_model, memory_bytes};
use train::{backend, suite};

pub(super) fn list(kind: Listed, json: bool) {
    match kind {
        Listed::Encodings => encodings(json),
        Listed::Tasks => tasks(json),
        Listed::Suites => {
            suites(json);
            if !json {
                complain(&format!(
                    "note: times are those of {FLOPS_PER_SECOND:e} operations per second; \
                     `pe-bench run SUITE --dry-run` estimates them for this machine"
                ));
            }
        }
        Listed::Backends => backends(json),
    }
}

/// Prints a list with the heads of its columns, as a table or as JSON.
fn print<const N: usize>(json: bool, heads: [&str; N], rows: impl Iterator<Item = [Value; N]>) {
    if json {
        let object = |row: [Value; N]| -> Value {
            let keys = heads.iter().map(|head| head.replace(' ', "_"));
            keys.zip(row).collect::<Map<_, _>>().into()
        };
        let objects = rows.map(object).collect::<Vec<_>>();
        say(&format!("{:#}", Value::from(objects)));
        return;
    }
    say_table(heads, rows.map(|row| row.iter().map(shown).collect()));
}

/// Formats a value for a table.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "–".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(shown).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

fn tasks(json: bool) {
    let row =
        |meta: &&tasks::TaskMeta| [json!(meta.id), json!(meta.headline.id()), json!(meta.summary)];
    print(json, ["id", "ranked by", "summary"], tasks::ALL.iter().map(row));
}

/// One row per backend: device, memory of the device and the precisions it supports.
fn backends(json: bool) {
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
                let gib = |bytes: u64| format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30));
                [json!(name), json!(memory.map(gib)), json!(facts.floats)]
            }
        };
        [json!(meta.id), device, memory, precision, json!(meta.about)]
    };
    let heads = ["id", "device", "memory", "precision", "hardware"];
    print(json, heads, backend::ALL.iter().map(row));
}

fn encodings(json: bool) {
    let registry = train::encodings::registry();
    let row = |card: &Card| {
        let properties = registry.encoding(card.id).and_then(|own| pe_zoo::probe::properties(&own));
        let acts_on = match properties {
            Ok(found) if found.acts_on.is_empty() => json!("nothing"),
            Ok(found) => found.acts_on.iter().map(|part| part.label()).collect(),
            Err(error) => json!(error.to_string()),
        };
        [json!(card.id), acts_on, json!(card.parameters), json!(card.summary)]
    };
    print(json, ["id", "acts on", "learned parameters", "summary"], registry.cards().map(row));
}

fn suites(json: bool) {
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
            [
                json!(suite.name),
                json!(cells),
                json!(of_fresh_seeds),
                json!(core_time(&suite)),
                json!(suite.about.split_whitespace().collect::<Vec<_>>().join(" ")),
            ]
        }
        Err(error) => {
            [json!(name), Value::Null, Value::Null, Value::Null, json!(error.to_string())]
        }
    };
    let heads = ["id", "cells", "of fresh seeds", "training on one core", "about"];
    print(json, heads, suite::BUILT_IN.iter().map(row));
}

/// Estimated training time of a suite on one CPU core, from its operation count: `3 hours`.
fn core_time(suite: &suite::Suite) -> String {
    let hours = suite.operations() / FLOPS_PER_SECOND / 3600.0;
    let (number, unit) = match hours {
        0.0..1.0 => ((60.0 * hours).ceil(), "minute"),
        1.0..100.0 => (hours.round(), "hour"),
        _ => ((hours / 24.0).round(), "day"),
    };
    let plural = if number > 1.0 { "s" } else { "" };
    format!("{number} {unit}{plural}")
}
