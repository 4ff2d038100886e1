//! `pe-bench list`.

use super::Listed;
use super::out::say;
use crate::host::{cpu_model, memory_bytes};
use crate::sweep::FLOPS_PER_SECOND;
use crate::{backend, suite};

pub(super) fn list(kind: Listed) {
    let rows = match kind {
        Listed::Encodings => encodings(),
        Listed::Tasks => tasks::ALL
            .iter()
            .map(|meta| {
                vec![meta.id.to_owned(), meta.headline.id().to_owned(), meta.summary.to_owned()]
            })
            .collect(),
        Listed::Suites => suites(),
        Listed::Backends => backends(),
    };
    for line in aligned(&rows) {
        say(&line);
    }
}

/// Returns one row per backend: device, memory of the device and supported precisions.
fn backends() -> Vec<Vec<String>> {
    let header = ["id", "device", "memory", "precision", "hardware"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    rows.extend(backend::ALL.iter().map(|meta| {
        let none = || "–".to_owned();
        let [device, memory, precision] = match meta.facts() {
            None => [format!("not compiled in; build with --features {}", meta.id), none(), none()],
            Some(Err(reason)) => [format!("unavailable: {reason}"), none(), none()],
            Some(Ok(facts)) => {
                let memory = facts
                    .memory_bytes
                    .or_else(|| facts.name.is_none().then(memory_bytes).flatten());
                let name = facts.name.or_else(cpu_model).unwrap_or_else(|| "processor".to_owned());
                let gib = |bytes: u64| format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30));
                [name, memory.map_or_else(none, gib), facts.floats.join(" ")]
            }
        };
        vec![meta.id.to_owned(), device, memory, precision, meta.about.to_owned()]
    }));
    rows
}

fn encodings() -> Vec<Vec<String>> {
    let header = ["id", "acts on", "learned parameters", "summary"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    let registry = crate::encodings::registry();
    rows.extend(registry.cards().map(|card| {
        let properties = registry.encoding(card.id).and_then(|own| pe_zoo::probe::properties(&own));
        let acts_on = match properties {
            Ok(found) if found.acts_on.is_empty() => "nothing".to_owned(),
            Ok(found) => {
                found.acts_on.iter().map(|part| part.label()).collect::<Vec<_>>().join(", ")
            }
            Err(error) => error.to_string(),
        };
        vec![card.id.to_owned(), acts_on, card.parameters.to_owned(), card.summary.to_owned()]
    }));
    rows
}

fn suites() -> Vec<Vec<String>> {
    suite::BUILT_IN
        .iter()
        .map(|(name, text)| match suite::parse(name, text, &suite::Overrides::default()) {
            Ok(suite) => vec![
                suite.name.clone(),
                format!("{} cells", suite.cells.len()),
                core_time(&suite),
                suite.about.split_whitespace().collect::<Vec<_>>().join(" "),
            ],
            Err(error) => vec![(*name).to_owned(), String::new(), String::new(), error.to_string()],
        })
        .collect()
}

/// Assumed vocabulary of a character-level text that is not read, about that of English.
const TEXT_VOCABULARY: usize = 100;

/// Estimated training time of a suite on one CPU core, from its operation count: `about 3 core hours`.
fn core_time(suite: &suite::Suite) -> String {
    let operations = suite.cells.iter().map(|cell| {
        // Building a text task could fetch its corpus.
        let task = if cell.task.meta().takes_path { None } else { cell.task.build().ok() };
        let (vocabulary, len) = task.map_or((TEXT_VOCABULARY, cell.train.len), |task| {
            (task.vocab_size(), cell.token_lens(&*task)[0])
        });
        cell.model.step_operations(vocabulary, len, cell.train.batch_size) * cell.train.steps as f64
    });
    let hours = operations.sum::<f64>() / FLOPS_PER_SECOND / 3600.0;
    match hours {
        0.0..1.0 => format!("about {:.0} core minutes", (60.0 * hours).ceil()),
        1.0..100.0 => format!("about {hours:.0} core hours"),
        _ => format!("about {:.0} core days", hours / 24.0),
    }
}

/// Pads columns to their widest entry, except for the last one.
pub(super) fn aligned(rows: &[Vec<String>]) -> Vec<String> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
    };
    let widths = (0..columns).map(|column| width(column).unwrap_or(0)).collect::<Vec<_>>();
    rows.iter()
        .map(|row| {
            let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
            cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        })
        .collect()
}
