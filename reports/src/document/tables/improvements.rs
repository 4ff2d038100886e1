//! Probabilities of improvement over all tasks.

use crate::document::table::{Table, TableCell};
use analysis::{Overall, Report};
use records::number::{bracketed, count, percent, points};

/// Returns the table of the probability that a run of the row's encoding is better than one of the column's; no rows
/// without an aggregate over workloads.
pub fn improvements(report: &Report) -> Table {
    let Some(overall) = &report.overall else { return Table::default() };
    let table = Table::of(&overall.ranked)
        .column("encoding", |name| TableCell::of_encoding(report, name))
        .columns(
            &overall.ranked,
            |other| format!("over {}", report.display(other)),
            |other, name| improvement(overall, name, other),
        )
        .table()
        .with_legend(legend(overall));
    Table { is_heat: true, ..table }
}

/// Returns the probability of improvement of one encoding over another, bold where its interval is above 50%.
pub(crate) fn improvement(overall: &Overall, name: &str, other: &str) -> TableCell {
    TableCell::optional(overall.improvement(name, other), |found| TableCell {
        strong: found.ci95.is_some_and(|(low, _)| low > 0.5),
        heat: Some((100.0 * found.value).round() as u8),
        ..TableCell::with_detail(percent(found.value), bracketed(found.ci95, points))
    })
}

/// Returns the explanation of a probability of improvement in a table.
pub(crate) fn legend(overall: &Overall) -> String {
    format!("{} Bold: the whole interval is above 50%.", explained(overall))
}

/// Returns the explanation of a probability of improvement.
pub(crate) fn explained(overall: &Overall) -> String {
    format!(
        "Probability of improvement: the chance that a random run of one encoding is better than a random run of the \
         other on the same task. Ties count half. The probability is the mean over {}, with its 95% stratified \
         bootstrap interval. It states how often one encoding is better, not by how much.",
        count(overall.workloads.len() as u64, "workload")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::ReportMeta;
    use records::testkit::TestCell;

    #[test]
    fn opposite_cells_add_up_to_one() {
        let mut records = Vec::new();
        for workload in ["v", "w"] {
            for seed in 0..3_u64 {
                let noise = 0.02 * seed as f64;
                for (encoding, value) in [("cope", 0.9), ("rope", 0.89), ("nope", 0.5)] {
                    records.push(
                        TestCell::new(workload, encoding, seed).beyond(value + noise).record(),
                    );
                }
            }
        }
        let report = Report::new(&records, &ReportMeta::default()).unwrap();
        let table = improvements(&report);
        assert_eq!(table.columns, ["encoding", "over CoPE", "over RoPE", "over NoPE"]);
        let text = |row: usize, column: usize| &*table.rows[row][column].text;
        // 0.90, 0.92, 0.94 against 0.89, 0.91, 0.93: six of nine pairs.
        assert_eq!((text(0, 1), text(0, 2), text(1, 1)), ("–", "66.7%", "33.3%"));
        assert_eq!((text(0, 3), text(2, 1)), ("100.0%", "0.0%"));
        assert!(table.rows[0][3].strong && !table.rows[2][1].strong && !table.rows[0][2].strong);
        assert_eq!(
            improvements(&Report::new(&[][..], &ReportMeta::default()).unwrap()).rows.len(),
            0
        );
    }
}
