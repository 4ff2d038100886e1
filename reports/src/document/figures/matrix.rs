//! Heat map of all encodings and all workloads with exact match.

use crate::document::plot::{Figure, MatrixCell, MatrixRow, Plot, ShareMatrix};
use analysis::ranking::{EncodingResult, Rank, Ranking};
use analysis::{Overall, Report, Workload};
use records::Metric;
use records::settings::Region;

/// Exact match in distribution below which a cell is hatched.
const LEARNED: f64 = 0.95;

/// Returns the heat map of exact match in the deciding region; `None` with fewer than two workloads.
pub(super) fn figure(report: &Report, overall: &Overall) -> Option<Figure> {
    let exact = |workload: &'_ Workload| {
        workload.deciding().is_some_and(|ranking| ranking.metric == Metric::ExactMatch)
    };
    let workloads: Vec<&Workload> = report.workloads.iter().filter(|w| exact(w)).collect();
    let value = |ranking: &Ranking, name: &str| {
        let is_own = |r: &&EncodingResult| r.encoding == name && r.rank != Rank::Unranked;
        let mean = ranking.results.iter().find(is_own)?.mean();
        (ranking.metric == Metric::ExactMatch).then_some(mean)
    };
    let cell = |workload: &Workload, name: &str| {
        let inside = workload.ranking(Region::Inside).and_then(|ranking| value(ranking, name));
        let is_hatched = inside.is_some_and(|inside| inside < LEARNED);
        Some(MatrixCell { share: value(workload.deciding()?, name)?, is_hatched })
    };
    let row = |name: &str| MatrixRow {
        look: report.encoding(name).map(|encoding| encoding.look),
        label: report.display(name).to_owned(),
        cells: workloads.iter().map(|workload| cell(workload, name)).collect(),
    };
    let chance = |workload: &&Workload| {
        let share = workload.deciding()?.chance?;
        Some(MatrixCell { share, is_hatched: false })
    };
    let mut rows: Vec<MatrixRow> =
        overall.scores.iter().map(|score| row(&score.encoding)).collect();
    let cells = workloads.iter().map(chance).collect();
    rows.push(MatrixRow { look: None, label: "chance".to_owned(), cells });
    let columns = workloads.iter().map(|workload| workload.name.clone()).collect();
    let caption = format!(
        "Exact match in percent, mean over seeds, in the region by which the workload is ranked; encodings are \
         sorted by {}. Hatched: the mean in distribution is below {:.0}%.",
        Overall::NAME,
        100.0 * LEARNED
    );
    let title = "All tasks: exact match by encoding and workload".to_owned();
    (workloads.len() > 1)
        .then(|| Figure::new(title, caption, Plot::Matrix(ShareMatrix { columns, rows })))
}
