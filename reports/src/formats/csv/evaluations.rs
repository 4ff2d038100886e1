//! Evaluations aggregated over seeds.

use polars::prelude::*;

use analysis::aggregate::Aggregate;
use analysis::frame::frame;
use stats::Estimate;

/// Returns the columns of an estimate: `_mean`, `_std`, `_ci_low`, `_ci_high` (Student's t, 95%), `_question_error`
/// (standard error of the mean due to the questions), `_mean_boot_low`, `_mean_boot_high`, `_median`,
/// `_median_boot_low`, `_median_boot_high` (bootstrap). Values that do not exist, such as intervals for n = 1, are
/// null.
pub(super) fn estimate_columns(name: &str, estimates: &[Option<Estimate>]) -> Vec<Column> {
    type Part = (&'static str, fn(&Estimate) -> Option<f64>);
    const PARTS: [Part; 10] = [
        ("mean", |e| Some(e.mean)),
        ("std", |e| e.std),
        ("ci_low", |e| e.ci95.map(|(low, _)| low)),
        ("ci_high", |e| e.ci95.map(|(_, high)| high)),
        ("question_error", |e| e.question_error),
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

/// Returns `rows` as a table: keys, `n`, and for exact match, token accuracy and nll the columns of an estimate
/// (`exact_match_mean`, `exact_match_ci_low` ...).
///
/// Perplexity is aggregated on the scale of the nll: `perplexity`, `perplexity_ci_low`, `perplexity_ci_high` and
/// `perplexity_median` are `exp` of those of the nll. A single bad seed (nll 20) would dominate an arithmetic mean of
/// perplexities.
///
/// # Errors
/// If polars cannot build the table.
pub(super) fn evaluations(rows: &[Aggregate]) -> PolarsResult<DataFrame> {
    macro_rules! column {
        ($f:expr) => {
            rows.iter().map($f).collect::<Vec<_>>()
        };
    }
    let frame = frame!(rows;
        "workload": |r| r.workload.as_str(),
        "encoding": |r| r.encoding.as_str(),
        "split": |r| r.split.as_str(),
        "len": |r| r.len,
        "in_distribution": |r| r.in_distribution,
        "train_len": |r| r.train_len,
        "headline": |r| r.headline.as_str(),
        "n": |r| r.exact_match.n,
        "chance": |r| r.chance,
    )?;
    let mut columns = estimate_columns("exact_match", &column!(|r| Some(r.exact_match)));
    columns.extend(estimate_columns("token_accuracy", &column!(|r| Some(r.token_accuracy))));
    columns.extend(estimate_columns("nll", &column!(|r| Some(r.nll))));
    columns.push(Column::new("bits_per_byte_mean".into(), column!(|r| r.bits_per_byte)));
    let perplexity: Vec<Estimate> = column!(|r| r.nll.map(f64::exp));
    let perplexity = frame!(perplexity;
        "perplexity": |e| e.mean,
        "perplexity_ci_low": |e| e.ci95.map(|(low, _)| low),
        "perplexity_ci_high": |e| e.ci95.map(|(_, high)| high),
        "perplexity_median": |e| e.median,
    )?;
    frame.hstack(&columns)?.hstack(perplexity.columns())
}

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::{Report, ReportMeta};
    use records::RunRecord;
    use records::testkit::{TestCell, suite};

    fn aggregated(records: &[RunRecord]) -> Vec<Aggregate> {
        let report = Report::new(records, &ReportMeta::default()).unwrap();
        report.workloads.into_iter().flat_map(|workload| workload.rows).collect()
    }

    #[test]
    fn columns_hold_the_estimates_and_perplexity_is_mapped_from_the_nll() {
        let mut records: Vec<RunRecord> = (0..3)
            .zip([0.5, 0.6, 0.7])
            .map(|(seed, x)| TestCell::new("w", "rope", seed).exact(x).record())
            .collect();
        for (record, nll) in records.iter_mut().zip([1.0, 2.0, 3.0]) {
            record.evals[1].nll = nll;
        }
        records.push(TestCell::new("w", "cope", 0).exact(0.25).record());
        let frame = evaluations(&aggregated(&records)).unwrap();
        let column = |name: &str| frame.column(name).unwrap().f64().unwrap().clone();
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-7, "{a} is not {b}");
        close(column("perplexity").get(3).unwrap(), 2.0_f64.exp());
        let nll = Estimate::of(&[1.0, 2.0, 3.0]).unwrap().ci95.unwrap();
        close(column("perplexity_ci_high").get(3).unwrap().ln(), nll.1);
        close(column("exact_match_median_boot_high").get(3).unwrap(), 0.7);
        assert_eq!(column("exact_match_median_boot_high").get(0), None);
    }

    #[test]
    fn nothing_is_an_empty_table_with_all_its_columns() {
        let none = evaluations(&aggregated(&[])).unwrap();
        let some = evaluations(&aggregated(&suite())).unwrap();
        assert_eq!((none.height(), none.width()), (0, some.width()));
    }
}
