//! The table of workloads: the encodings of the first rank, the best score and chance.

use crate::document::table::{Table, TableCell};
use crate::document::target::Target;
use analysis::ranking::Ranking;
use analysis::{Report, Workload};
use records::number::{listed, percent, separator};

/// Returns a cell with the name of a workload that leads to its section.
pub(super) fn name(workload: &Workload) -> TableCell {
    let link = Some(Target::Workload(workload.name.clone()));
    TableCell { link, ..TableCell::from(&workload.name) }
}

/// Returns the table of workloads.
pub(super) fn table(report: &Report) -> Table {
    let ranked = report.workloads.iter().filter_map(|w| Some((w, w.deciding()?)));
    Table::of(ranked)
        .column("workload", |(workload, _)| name(workload))
        .column("evaluations", |(_, ranking)| ranking.region.name())
        .column("first rank", |(_, ranking)| first_rank(ranking))
        .column("best mean", |(_, ranking)| {
            let best = ranking.ranked().first().and_then(|best| best.estimate);
            TableCell::optional(best, |estimate| ranking.metric.show(estimate.mean))
        })
        .column("chance", |(_, ranking)| TableCell::optional(ranking.chance, percent))
        .table()
        .in_words()
}

/// Returns the names of the encodings of the first rank, of many only the first.
fn first_rank(ranking: &Ranking) -> String {
    let ranked = ranking.ranked();
    let first = ranked.iter().filter(|result| result.group == Some(1));
    let first: Vec<String> = first.map(|result| result.display.clone()).collect();
    match (ranking.has_several_ranks(), first.len()) {
        (false, _) if ranking.separates() => {
            "no ranks, although some pairs are separated".to_owned()
        }
        (false, _) => "not separated by these seeds".to_owned(),
        (true, 0..=5) => listed(&first, "and"),
        (true, n) => format!("{} and {} more", first[..4].join(separator(&first[..4])), n - 4),
    }
}
