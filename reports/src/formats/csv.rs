//! `tables/*.csv`, for other programs: `evaluations`, `ranks`, `pairs`, `improvements`, `costs`, `training`, `slices`, `gates`,
//! `cells`. An empty field means that there is no value.

mod curves;
mod evaluations;
mod ranks;

use polars::prelude::*;

use super::contents::{Contents, FormatError, OutFile};
use crate::document::{Table, TableCell};
use analysis::Report;
use analysis::aggregate::Aggregate;

/// Function that builds a table.
type TableOf = fn(&Report) -> PolarsResult<DataFrame>;

/// The tables by name.
pub(super) const TABLES: [(&str, TableOf); 9] = [
    ("evaluations", |report| {
        let rows: Vec<Aggregate> =
            report.workloads.iter().flat_map(|w| w.rows.iter().cloned()).collect();
        evaluations::evaluations(&rows)
    }),
    ("ranks", ranks::ranks),
    ("pairs", ranks::pairs),
    ("improvements", ranks::improvements),
    ("costs", curves::costs),
    ("training", curves::training),
    ("slices", curves::slices),
    ("gates", curves::gates),
    ("cells", |report| Ok(report.frames.table())),
];

pub(super) fn render(contents: &Contents<'_>) -> Result<Vec<OutFile>, FormatError> {
    let file = |(name, table): &(&str, TableOf)| {
        let bytes = bytes(table(contents.report)?)?;
        Ok(OutFile { path: format!("tables/{name}.csv"), bytes })
    };
    TABLES.iter().map(file).collect()
}

/// Formats a frame as CSV in which a spreadsheet runs no formula.
pub(super) fn bytes(frame: DataFrame) -> Result<Vec<u8>, FormatError> {
    let mut bytes = Vec::new();
    CsvWriter::new(&mut bytes).finish(&mut harmless(frame)?)?;
    Ok(bytes)
}

/// A table as CSV: each column of numbers is followed by one with its spreads, if it has any.
///
/// # Errors
/// [`FormatError::Frame`], when two columns have one name.
pub fn table_csv(table: &Table) -> Result<Vec<u8>, FormatError> {
    let mut columns: Vec<Column> = Vec::new();
    for (index, head) in table.columns.iter().enumerate() {
        let head = head.replace('\n', " ");
        let of = |get: fn(&TableCell) -> &str| -> Vec<String> {
            table.rows.iter().map(|row| get(&row[index]).to_owned()).collect()
        };
        let spreads = of(|cell| &cell.detail);
        columns.push(Column::new(head.as_str().into(), of(|cell| &cell.text)));
        if spreads.iter().any(|spread| !spread.is_empty()) {
            columns.push(Column::new(format!("{head} spread").into(), spreads));
        }
    }
    bytes(DataFrame::new(table.rows.len(), columns)?)
}

/// Prefixes texts that a spreadsheet would evaluate as a formula with an apostrophe, which spreadsheets read as a
/// mark of plain text. Numbers are unchanged.
fn harmless(mut frame: DataFrame) -> PolarsResult<DataFrame> {
    let texts: Vec<PlSmallStr> = frame
        .columns()
        .iter()
        .filter(|column| column.dtype() == &DataType::String)
        .map(|column| column.name().clone())
        .collect();
    for name in texts {
        let column = frame.column(&name)?.str()?;
        if column.iter().flatten().any(is_formula) {
            let mark = |text: &str| if is_formula(text) { "'" } else { "" };
            let safe = column.iter().map(|field| field.map(|text| mark(text).to_owned() + text));
            let safe: Vec<Option<String>> = safe.collect();
            frame.with_column(Column::new(name, safe))?;
        }
    }
    Ok(frame)
}

fn is_formula(text: &str) -> bool {
    text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n'])
}

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::ReportMeta;
    use records::testkit::suite;

    #[test]
    fn ranks_and_pairs_hold_what_the_pages_show() {
        let report = Report::new(suite(), &ReportMeta::default()).unwrap();
        let ranks = ranks::ranks(&report).unwrap();
        let rankings = report.workloads.iter().flat_map(|w| &w.rankings);
        let results: usize = rankings.clone().map(|c| c.results.len()).sum();
        assert_eq!(ranks.height(), results);
        let row = (0..ranks.height())
            .find(|row| {
                let is = |column: &str, value: &str| {
                    ranks.column(column).unwrap().str().unwrap().get(*row) == Some(value)
                };
                is("workload", "flip-flop") && is("region", "both") && is("encoding", "rope")
            })
            .unwrap();
        let real = |column: &str| ranks.column(column).unwrap().f64().unwrap().get(row);
        let whole = |column: &str| ranks.column(column).unwrap().u32().unwrap().get(row);
        assert_eq!((whole("rank"), whole("n"), whole("comparisons")), (None, Some(3), Some(3)));
        assert_eq!(real("value_median"), real("value_mean"), "three values at equal distances");
        // CoPE is .96 and RoPE .60 plus the same noise.
        assert!((real("difference").unwrap() - 0.36).abs() < 1e-12);
        assert_eq!((real("hedges_g"), real("p_permutation")), (None, Some(0.25)));
        assert_eq!((real("fit_rate"), real("effective_len")), (Some(1.0), Some(64.0)));
        let pairs = ranks::pairs(&report).unwrap();
        assert_eq!(pairs.height(), rankings.map(|c| c.pairs.len()).sum::<usize>());
        assert_eq!(pairs.column("p_holm").unwrap().null_count(), 6, "text has one seed");
    }

    #[test]
    fn gate_scores_are_rows_by_layer_and_head() {
        use records::GateScore;
        use records::testkit::TestCell;
        let score =
            |layer, head, auc| GateScore { gate: "gates".into(), layer, head, auc, rows: 9 };
        let gates = vec![score(0, 1, 0.75), score(2, 0, 0.25)];
        let cope = TestCell::new("w", "cope", 0).change(|r| r.gates = gates).record();
        let report = Report::new([cope], &ReportMeta::default()).unwrap();
        let text = String::from_utf8(bytes(curves::gates(&report).unwrap()).unwrap()).unwrap();
        let expected = "workload,encoding,gate,layer,head,n,auc_mean,auc_ci_low,auc_ci_high\n\
                        w,cope,gates,0,1,1,0.75,,\nw,cope,gates,2,0,1,0.25,,\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn an_improvement_is_a_row_from_the_better_to_the_worse() {
        let records = records::testkit::two_workloads();
        let report = Report::new(records, &ReportMeta::default()).unwrap();
        let table = ranks::improvements(&report).unwrap();
        let text = String::from_utf8(bytes(table).unwrap()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!((lines.len(), lines[0]), (2, "better,worse,probability,ci_low,ci_high"));
        let fields: Vec<&str> = lines[1].split(',').collect();
        assert_eq!(fields[..2], ["cope", "rope"]);
        let [value, low, high] = [2, 3, 4].map(|i: usize| fields[i].parse::<f64>().unwrap());
        // Always better on one task, equal on the other.
        assert!((value - 0.75).abs() < 1e-9 && low < value && value < high, "{text}");
    }

    #[test]
    fn nothing_gives_tables_with_heads() {
        let report = Report::new(&[][..], &ReportMeta::default()).unwrap();
        for file in super::render(&Contents::of(&report, &[]).unwrap()).unwrap() {
            let text = String::from_utf8(file.bytes).unwrap();
            let heads = ["workload,", "suite,", "better,"];
            assert!(heads.iter().any(|head| text.starts_with(head)), "{}", file.path);
            assert_eq!(text.lines().count(), 1, "{}", file.path);
        }
    }
}
