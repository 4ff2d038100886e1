//! Evaluations over seeds: what the tables by length and `report.csv` hold.

use std::collections::BTreeMap;

use polars::prelude::*;
use rayon::prelude::*;

use crate::record::{EvalPoint, RunRecord, Status};
use crate::stats::Estimate;

/// One split at one length of one encoding on one workload, over seeds.
#[derive(Debug, Clone, PartialEq)]
pub struct Aggregate {
    /// Task-and-sizes group.
    pub workload: String,
    /// Name of the encoding.
    pub encoding: String,
    /// Split.
    pub split: String,
    /// Length.
    pub len: u64,
    /// Split in distribution and length within training.
    pub in_distribution: bool,
    /// Length in training.
    pub train_len: u64,
    /// The metric that ranks: `exact-match` or `perplexity`.
    pub headline: String,
    /// Exact match of guessing at this length, where it is known.
    pub chance: Option<f64>,
    /// Share of whole answers, 0 to 1.
    pub exact_match: Estimate,
    /// Share of tokens, 0 to 1.
    pub token_accuracy: Estimate,
    /// Nats per scored token.
    pub nll: Estimate,
    /// Mean bits per byte.
    pub bits_per_byte: Option<f64>,
}

/// Aggregates the evaluations of finished records over seeds: one per workload, encoding, split and
/// length, sorted.
///
/// The records of one cell must be unique (one per seed); [`crate::write_report`] sees to it.
pub fn aggregate<'a>(records: impl IntoIterator<Item = &'a RunRecord>) -> Vec<Aggregate> {
    let mut groups: BTreeMap<(&str, &str), Vec<&RunRecord>> = BTreeMap::new();
    for record in records.into_iter().filter(|r| r.status == Status::Done) {
        groups.entry((&record.workload, &record.encoding.name)).or_default().push(record);
    }
    let groups: Vec<_> = groups.into_values().collect();
    groups.into_par_iter().flat_map_iter(|records| points(&records)).collect()
}

/// The same of the records of one workload and encoding.
fn points(records: &[&RunRecord]) -> Vec<Aggregate> {
    let mut points: BTreeMap<(&str, u64), Vec<(&RunRecord, &EvalPoint)>> = BTreeMap::new();
    for record in records {
        for eval in &record.evals {
            points.entry((&eval.split, eval.len)).or_default().push((record, eval));
        }
    }
    let point = |((split, len), members): ((&str, u64), Vec<(&RunRecord, &EvalPoint)>)| {
        let (record, eval) = members.first()?;
        let over = |get: fn(&EvalPoint) -> f64| {
            Estimate::of(&members.iter().map(|(_, e)| get(e)).collect::<Vec<_>>())
        };
        let bits: Vec<f64> = members.iter().filter_map(|(_, e)| e.bits_per_byte).collect();
        Some(Aggregate {
            workload: record.workload.clone(),
            encoding: record.encoding.name.clone(),
            split: split.to_owned(),
            len,
            in_distribution: eval.in_distribution,
            train_len: record.train_len,
            headline: record.task.headline.clone(),
            chance: eval.chance.or(record.task.chance),
            exact_match: over(|e| e.exact_match)?,
            token_accuracy: over(|e| e.token_accuracy)?,
            nll: over(|e| e.nll)?,
            bits_per_byte: Estimate::of(&bits).map(|e| e.mean).filter(|x| x.is_finite()),
        })
    };
    points.into_iter().filter_map(point).collect()
}

/// The columns of an estimate: `_mean`, `_std`, `_ci_low`, `_ci_high` (Student's t, 95 %),
/// `_mean_boot_low`, `_mean_boot_high`, `_median`, `_median_boot_low`, `_median_boot_high` (bootstrap).
/// No value where there is none, for n = 1 above all.
pub(crate) fn estimate_columns(name: &str, estimates: &[Option<Estimate>]) -> Vec<Column> {
    type Part = (&'static str, fn(&Estimate) -> Option<f64>);
    const PARTS: [Part; 9] = [
        ("mean", |e| Some(e.mean)),
        ("std", |e| e.std),
        ("ci_low", |e| e.ci95.map(|(low, _)| low)),
        ("ci_high", |e| e.ci95.map(|(_, high)| high)),
        ("mean_boot_low", |e| e.bootstrap.map(|b| b.mean95.0)),
        ("mean_boot_high", |e| e.bootstrap.map(|b| b.mean95.1)),
        ("median", |e| Some(e.median)),
        ("median_boot_low", |e| e.bootstrap.map(|b| b.median95.0)),
        ("median_boot_high", |e| e.bootstrap.map(|b| b.median95.1)),
    ];
    PARTS
        .iter()
        .map(|(part, get)| {
            let values: Vec<Option<f64>> =
                estimates.iter().map(|e| e.as_ref().and_then(get)).collect();
            Column::new(format!("{name}_{part}").into(), values)
        })
        .collect()
}

/// `rows` as a table: keys, `n`, and for exact match, token accuracy and nll the columns of an
/// estimate (`exact_match_mean`, `exact_match_ci_low` ...).
///
/// Perplexity is aggregated where it is additive: `perplexity`, `perplexity_ci_low`,
/// `perplexity_ci_high` and `perplexity_median` are `exp` of those of the nll. One bad seed (nll 20)
/// would drown an arithmetic mean of perplexities.
///
/// # Errors
/// When polars cannot build the table.
pub fn aggregate_frame(rows: &[Aggregate]) -> PolarsResult<DataFrame> {
    macro_rules! column {
        ($f:expr) => {
            rows.iter().map($f).collect::<Vec<_>>()
        };
    }
    let mut frame = df!(
        "workload" => column!(|r| r.workload.as_str()),
        "encoding" => column!(|r| r.encoding.as_str()),
        "split" => column!(|r| r.split.as_str()),
        "len" => column!(|r| r.len),
        "in_distribution" => column!(|r| r.in_distribution),
        "train_len" => column!(|r| r.train_len),
        "headline" => column!(|r| r.headline.as_str()),
        "n" => column!(|r| r.exact_match.n),
    )?;
    let mut columns = vec![Column::new("chance".into(), column!(|r| r.chance))];
    columns.extend(estimate_columns("exact_match", &column!(|r| Some(r.exact_match))));
    columns.extend(estimate_columns("token_accuracy", &column!(|r| Some(r.token_accuracy))));
    columns.extend(estimate_columns("nll", &column!(|r| Some(r.nll))));
    columns.push(Column::new("bits_per_byte_mean".into(), column!(|r| r.bits_per_byte)));
    let perplexity: Vec<Estimate> = column!(|r| r.nll.map(f64::exp));
    let mut of = |name: &str, get: fn(&Estimate) -> Option<f64>| {
        let values: Vec<Option<f64>> = perplexity.iter().map(get).collect();
        columns.push(Column::new(name.into(), values));
    };
    of("perplexity", |e| Some(e.mean));
    of("perplexity_ci_low", |e| e.ci95.map(|(low, _)| low));
    of("perplexity_ci_high", |e| e.ci95.map(|(_, high)| high));
    of("perplexity_median", |e| Some(e.median));
    for column in columns {
        frame.with_column(column)?;
    }
    Ok(frame)
}

#[cfg(test)]
mod tests;
