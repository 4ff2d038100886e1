//! Agreement of gates with the tokens that the task counts.

use std::collections::BTreeSet;

use crate::document::table::{Table, TableCell};
use analysis::{GateMean, Report, Workload};
use records::number::bracketed;

/// Returns the table of gate scores: one row for each encoding, gate and layer, one column for each head; no rows
/// without gates.
pub fn gates(report: &Report, workload: &Workload) -> Table {
    let heads: BTreeSet<u32> = workload.gates.iter().map(|gate| gate.head).collect();
    let layers = workload
        .gates
        .chunk_by(|a, b| (&a.encoding, &a.gate, a.layer) == (&b.encoding, &b.gate, b.layer));
    Table::of(layers)
        .column("encoding", |layer| {
            let GateMean { encoding, gate, layer, .. } = &layer[0];
            let detail = format!("{gate}, layer {}", layer + 1);
            TableCell { detail, ..TableCell::of_encoding(report, encoding) }
        })
        .columns(
            heads,
            |head| format!("head {}", head + 1),
            |head, layer| {
                TableCell::optional(layer.iter().find(|gate| gate.head == *head), score)
            },
        )
        .table()
    .with_legend(
        "Gate score: how well gates agree with the tokens that the task counts. In each row that predicts an \
         answer, it is the area under the ROC curve when the gates are used to detect the counted tokens. The table \
         shows its mean over these rows and over n seeds, with the 95% confidence interval in brackets. 1: the gates \
         of counted tokens are larger than all other gates. 0: the gates of counted tokens are smaller than all other \
         gates. 0.5: gates and counted tokens are unrelated.",
    )
}

fn score(gate: &GateMean) -> TableCell {
    let show = |x: f64| format!("{:.2}", x.clamp(0.0, 1.0));
    let wide = gate.auc.ci95.filter(|(low, high)| show(*low) != show(*high));
    let n = format!("n={}", gate.auc.n);
    let detail = [bracketed(wide, show), n].join(" ").trim_start().to_owned();
    TableCell::with_detail(show(gate.auc.mean), detail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::ReportMeta;
    use records::GateScore;
    use records::testkit::TestCell as Made;

    #[test]
    fn layers_are_rows_and_heads_are_columns() {
        let score =
            |layer, head, auc| GateScore { gate: "gates".into(), layer, head, auc, rows: 9 };
        let gates = vec![score(0, 0, 0.93), score(0, 1, 0.5), score(1, 0, 0.25)];
        let cope = Made::new("w", "cope", 0).change(|r| r.gates = gates).record();
        let rope = Made::new("w", "rope", 0).record();
        let report = Report::new(&[cope, rope][..], &ReportMeta::default()).unwrap();
        let table = super::gates(&report, &report.workloads[0]);
        assert_eq!(table.columns, ["encoding", "head 1", "head 2"]);
        let texts =
            |row: usize| table.rows[row].iter().map(|cell| cell.text.as_str()).collect::<Vec<_>>();
        assert_eq!((texts(0), texts(1)), (vec!["CoPE", "0.93", "0.50"], vec!["CoPE", "0.25", "–"]));
        assert_eq!(
            (&*table.rows[1][0].detail, &*table.rows[0][1].detail),
            ("gates, layer 2", "n=1")
        );
        assert!(table.rows[0][0].link.is_some(), "numbers lead to their cells");
    }
}
