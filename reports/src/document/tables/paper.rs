//! Results in the layout of papers: one row for each encoding, one column for each split and length.

use std::collections::BTreeSet;

use crate::document::table::{Table, TableCell};
use analysis::aggregate::Aggregate;
use analysis::{Report, Workload};
use records::Metric;
use records::number::{joined, points, three_digits};
use stats::Estimate;

/// Spread over seeds beside a mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Spread {
    /// Standard deviation, after `±`.
    #[default]
    Deviation,
    /// 95% confidence interval in brackets.
    Interval,
    /// No spread is shown.
    Omitted,
}

/// Columns and cells of a [`paper`] table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PaperLayout {
    /// Metric; `None`: the headline metric of the workload.
    pub metric: Option<Metric>,
    /// Spread over seeds in each cell.
    pub spread: Spread,
    /// Names of the encodings in the order of the rows; empty: all, by name.
    pub encodings: Vec<String>,
    /// Splits to show; empty: all.
    pub splits: Vec<String>,
    /// Lengths to show; empty: all.
    pub lens: Vec<u64>,
}

/// A choice of [`PaperLayout`] that a workload does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("workload `{workload}` has no {kind} `{value}`, expected one of {known}")]
pub struct LayoutError {
    workload: String,
    kind: &'static str,
    value: String,
    known: String,
}

/// Checks that every chosen value exists.
fn known<T: PartialEq + ToString>(
    workload: &Workload,
    kind: &'static str,
    chosen: &[T],
    known: impl Iterator<Item = T> + Clone,
) -> Result<(), LayoutError> {
    let missing = chosen.iter().find(|value| !known.clone().any(|other| other == **value));
    missing.map_or(Ok(()), |value| {
        Err(LayoutError {
            workload: workload.name.clone(),
            kind,
            value: value.to_string(),
            known: joined(known.map(|value| value.to_string()).collect::<BTreeSet<_>>(), ", "),
        })
    })
}

/// Table of a workload, encodings by splits and lengths, splits in distribution first. Shares are in percent, without a sign.
///
/// # Errors
/// [`LayoutError`] for an encoding, split or length that the workload does not have.
pub fn paper(
    report: &Report,
    workload: &Workload,
    layout: &PaperLayout,
) -> Result<Table, LayoutError> {
    let rows = || workload.rows.iter();
    known(workload, "encoding", &layout.encodings, rows().map(|row| row.encoding.clone()))?;
    known(workload, "split", &layout.splits, rows().map(|row| row.split.clone()))?;
    known(workload, "length", &layout.lens, rows().map(|row| row.len))?;
    let chosen = |row: &&Aggregate| {
        (layout.splits.is_empty() || layout.splits.contains(&row.split))
            && (layout.lens.is_empty() || layout.lens.contains(&row.len))
    };
    let inside: BTreeSet<&str> =
        rows().filter(|row| row.in_distribution).map(|row| row.split.as_str()).collect();
    let places: BTreeSet<(bool, &str, u64)> = rows()
        .filter(chosen)
        .map(|row| (!inside.contains(row.split.as_str()), row.split.as_str(), row.len))
        .collect();
    let names: Vec<&str> = if layout.encodings.is_empty() {
        report.encodings.iter().map(|encoding| encoding.name.as_str()).collect()
    } else {
        layout.encodings.iter().map(String::as_str).collect()
    };
    let metric = layout.metric.unwrap_or(workload.headline);
    let at = |name: &str, (_, split, len): &(bool, &str, u64)| {
        rows().find(|row| row.encoding == name && row.split == *split && row.len == *len)
    };
    let gain = |estimate: &Estimate| {
        if metric.higher_is_better() { estimate.mean } else { -estimate.mean }
    };
    let best = |place: &(bool, &str, u64)| {
        let rows = names.iter().filter_map(|name| at(name, place));
        let above = rows.filter(|row| {
            metric != Metric::ExactMatch || row.chance.is_none_or(|c| row.exact_match.mean > c)
        });
        above.map(|row| gain(&row.estimate(metric))).fold(f64::NEG_INFINITY, f64::max)
    };
    let best: Vec<f64> = places.iter().map(best).collect();
    let mut table = Table {
        columns: std::iter::once("encoding".to_owned())
            .chain(places.iter().map(|(_, split, len)| format!("{split}\n{len}")))
            .collect(),
        ..Table::default()
    };
    for name in &names {
        let cells = places.iter().zip(&best).map(|(place, best)| {
            let Some(row) = at(name, place) else { return TableCell::from("–") };
            let estimate = row.estimate(metric);
            let strong = names.len() > 1 && best.is_finite() && gain(&estimate) >= *best;
            TableCell { strong, ..cell(metric, &estimate, layout.spread) }
        });
        let cells: Vec<TableCell> = cells.collect();
        if cells.iter().any(|cell| cell.text != "–") {
            let name = TableCell::of_encoding(report, name);
            table.rows.push(std::iter::once(name).chain(cells).collect());
        }
    }
    if metric == Metric::ExactMatch {
        let chance = |place| names.iter().find_map(|name| at(name, place)?.chance);
        let levels: Vec<Option<f64>> = places.iter().map(chance).collect();
        if levels.iter().any(Option::is_some) {
            let name = TableCell { reference: true, ..TableCell::from("chance") };
            let levels = levels.into_iter().map(|level| TableCell::optional(level, points));
            table.rows.push(std::iter::once(name).chain(levels).collect());
        }
    }
    table.legends = legends(workload, metric, layout.spread);
    Ok(table)
}

fn cell(metric: Metric, estimate: &Estimate, spread: Spread) -> TableCell {
    let share = metric.higher_is_better();
    let show = |x: f64| if share { points(x) } else { three_digits(x.exp()) };
    let deviation = |std: f64| {
        // Perplexity is averaged as its logarithm: its deviation to first order.
        let shown = if share { points(std) } else { three_digits(estimate.mean.exp() * std) };
        format!("± {shown}")
    };
    let detail = match spread {
        Spread::Deviation => estimate.std.map(deviation),
        Spread::Interval => estimate.ci95.map(|ci| format!("[{}]", metric.show_interval(ci))),
        Spread::Omitted => None,
    };
    TableCell::with_detail(show(estimate.mean), detail.unwrap_or_default())
}

fn legends(workload: &Workload, metric: Metric, spread: Spread) -> Vec<String> {
    let n: BTreeSet<u32> = workload.rows.iter().map(|row| row.exact_match.n).collect();
    let unit = if metric.higher_is_better() { " in percent" } else { "" };
    let spread = match spread {
        Spread::Deviation => ", ± standard deviation over seeds",
        Spread::Interval => ", with 95% confidence intervals",
        Spread::Omitted => "",
    };
    vec![
        format!(
            "{}: {}{unit}, mean over n = {} seeds{spread}; columns are splits and lengths in {}. The trained length \
             is {}.",
            workload.name,
            metric.name(),
            joined(n, " or "),
            workload.len_unit,
            joined(&workload.train_lens, " and "),
        ),
        "Bold: the best mean of a column, if it is above chance. No test of significance is made."
            .to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::ReportMeta;
    use records::testkit::TestCell;

    fn report() -> Report {
        let mut records = Vec::new();
        for (seed, noise) in [(0, 0.0), (1, 0.02)] {
            records.push(TestCell::new("w", "cope", seed).beyond(0.90 + noise).record());
            records.push(TestCell::new("w", "rope", seed).inside(0.4).beyond(0.60).record());
        }
        Report::new(records, &ReportMeta::default()).unwrap()
    }

    fn texts(row: &[TableCell]) -> Vec<String> {
        row.iter().map(|c| format!("{} {}", c.text, c.detail).trim().to_owned()).collect()
    }

    #[test]
    fn encodings_are_rows_and_splits_and_lengths_are_columns() {
        let report = report();
        let of = |layout| paper(&report, &report.workloads[0], &layout).unwrap();
        let table = of(PaperLayout::default());
        assert_eq!(table.columns, ["encoding", "in-distribution\n64", "sparse\n128"]);
        assert_eq!(texts(&table.rows[0]), ["CoPE", "100.0 ± 0.0", "91.0 ± 1.4"]);
        assert_eq!(texts(&table.rows[1]), ["RoPE", "40.0 ± 0.0", "60.0 ± 0.0"]);
        assert_eq!(texts(&table.rows[2]), ["chance", "50.0", "50.0"]);
        assert!(table.rows[0][1].strong && !table.rows[1][1].strong);
        let layout = PaperLayout {
            spread: Spread::Interval,
            encodings: vec!["rope".into(), "cope".into()],
            lens: vec![128],
            ..PaperLayout::default()
        };
        let table = of(layout);
        assert_eq!(texts(&table.rows[0]), ["RoPE", "60.0 [60.0, 60.0]"]);
        assert_eq!(texts(&table.rows[1]), ["CoPE", "91.0 [78.3, 100.0]"]);
    }

    #[test]
    fn a_column_at_chance_has_no_winner_and_an_unknown_choice_is_an_error() {
        let records = ["cope", "rope"].map(|e| TestCell::new("w", e, 0).exact(0.5).record());
        let report = Report::new(&records[..], &ReportMeta::default()).unwrap();
        let table = paper(&report, &report.workloads[0], &PaperLayout::default()).unwrap();
        assert!(table.rows.iter().flatten().all(|cell| !cell.strong));
        let layout = PaperLayout { lens: vec![7], ..PaperLayout::default() };
        let error = paper(&report, &report.workloads[0], &layout).unwrap_err().to_string();
        assert_eq!(error, "workload `w` has no length `7`, expected one of 128, 64");
    }
}
