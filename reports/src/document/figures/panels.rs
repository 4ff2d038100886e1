//! Exact match by length, one small chart for each workload, all of the same encodings.

use super::lengths::{chance, series_by_encoding};
use super::series::coloured;
use crate::document::plot::{Axis, Figure, Lines, Marks, Plot};
use crate::document::scale::Scale;
use analysis::aggregate::Aggregate;
use analysis::{Overall, Report, Workload};
use records::Metric;

/// Returns the small charts of the best encodings, RoPE and NoPE; `None` with fewer than two workloads that were evaluated at
/// several lengths.
pub(super) fn figure(report: &Report, overall: &Overall) -> Option<Figure> {
    let shown = coloured(overall.scores.iter().map(|score| &*score.encoding));
    let panel = |workload: &'_ Workload| {
        let inside: Vec<&str> =
            workload.rows.iter().filter(|r| r.in_distribution).map(|r| &*r.split).collect();
        let is_shown = |row: &&Aggregate| {
            shown.contains(&&*row.encoding)
                && inside.contains(&&*row.split)
                && row.unseen_samples != Some(0)
        };
        let rows: Vec<&Aggregate> = workload.rows.iter().filter(is_shown).collect();
        let ratio = |row: &Aggregate| row.len as f64 / row.train_len as f64;
        let mut along: Vec<f64> = rows.iter().map(|row| ratio(row)).collect();
        along.sort_by(f64::total_cmp);
        along.dedup();
        let level = chance(&rows, ratio);
        let series = series_by_encoding(report, &rows, Metric::ExactMatch, ratio);
        let mut x = Scale::at(&along);
        x.ticks.iter_mut().for_each(|(_, label)| label.push_str(" x"));
        let y = Axis::new("exact match", Scale::percent());
        let lines = Lines::new(Axis::new("length", x), y, Marks::Points, series);
        let is_panel = workload.headline == Metric::ExactMatch && along.len() > 1;
        is_panel.then(|| (workload.name.clone(), Lines { level, ..lines }))
    };
    let panels: Vec<(String, Lines)> = report.workloads.iter().filter_map(panel).collect();
    let title = "All tasks: exact match by length".to_owned();
    let caption = "Exact match on the training splits, mean over seeds. Horizontal: length, as a multiple of the \
         trained length. Shown are RoPE, NoPE and the other encodings with the best aggregates. Dashed line: chance.";
    (panels.len() > 1).then(|| Figure::new(title, caption, Plot::Panels(panels)))
}
