//! The best encoding without each of the workloads.

use crate::document::table::{Table, TableCell};
use analysis::{LeaderWithout, Overall, Report};
use records::number::percent;

/// Returns the table of the encoding that leads without the row's workload; no rows with fewer than three scored workloads.
pub(crate) fn leaders(report: &Report) -> Table {
    let Some(overall) = &report.overall else { return Table::default() };
    let best = overall.scores.first().map(|score| &score.encoding);
    let other = |leader: &&LeaderWithout| Some(&leader.encoding) != best;
    Table::of(&overall.leaders_without)
        .column("without", |leader| leader.workload.clone())
        .column("leads", |leader| TableCell {
            strong: other(leader),
            ..TableCell::of_encoding(report, &leader.encoding)
        })
        .column("score", |leader| percent(leader.value))
        .table()
        .in_words()
        .with_legend(format!(
            "Score: {} over the other workloads. Bold: an encoding that does not lead over all workloads.",
            Overall::NAME
        ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::ReportMeta;
    use records::testkit::TestCell;

    #[test]
    fn each_workload_is_left_out_once() {
        let mut records = Vec::new();
        // Without `a` RoPE leads.
        for (workload, cope) in [("a", 1.0), ("b", 0.75), ("c", 0.82)] {
            for seed in 0..3 {
                records.push(TestCell::new(workload, "cope", seed).beyond(cope).record());
                records.push(TestCell::new(workload, "rope", seed).beyond(0.8).record());
            }
        }
        let table = leaders(&Report::new(records, &ReportMeta::default()).unwrap());
        let rows = table.rows.iter().map(|row| (&*row[0].text, &*row[1].text, row[1].strong));
        let rows: Vec<_> = rows.collect();
        assert_eq!(rows, [("a", "RoPE", true), ("b", "CoPE", false), ("c", "CoPE", false)]);
        assert_eq!(table.rows[0][2].text, "60.0%");
    }
}
