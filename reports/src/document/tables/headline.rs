//! The table of `results/README.md` and of other files in Markdown: the summary, with as many columns as a page shows.

use super::common::ratio;
use super::summary::summary;
use crate::document::table::{Table, TableCell};
use analysis::ranking::{EncodingResult, FAR, RankedPair, Ranking, separable};
use analysis::{Overall, Report, YARDSTICK};
use records::number::{bracketed, percent, points};

/// Number of workloads up to which each has a column of its own.
const MOST_COLUMNS: usize = 5;

/// Returns the aggregate of each encoding with its interval, then its score on each workload, or with many workloads on
/// how many it has the first rank and differs from RoPE; no rows without an aggregate.
pub fn headline(report: &Report) -> Table {
    let Some(overall) = report.overall.as_ref().filter(|overall| !overall.scores.is_empty()) else {
        return Table::default();
    };
    let rankings: Vec<&Ranking> = report.workloads.iter().filter_map(|w| w.deciding()).collect();
    if rankings.len() > MOST_COLUMNS {
        return counted(report, overall, &rankings);
    }
    let mut table = summary(report);
    for row in &mut table.rows {
        // Intervals, ranks and fit rates are in the report.
        row.iter_mut().skip(2).for_each(|cell| cell.detail.clear());
    }
    let note = format!(
        "Bold: first rank, that is, the best encoding and all encodings that do not differ significantly from it and \
         are at most {:.0} points (for text {FAR} nats) behind it. In brackets: 95% intervals.",
        100.0 * FAR
    );
    Table { notes: vec![note], legends: Vec::new(), ..table }
}

/// Returns the table for many workloads.
fn counted(report: &Report, overall: &Overall, rankings: &[&Ranking]) -> Table {
    let telling: Vec<&&Ranking> = rankings.iter().filter(|r| r.has_several_ranks()).collect();
    let note = format!(
        "First rank: the number of workloads on which the encoding is the best, or does not differ significantly from \
         the best and is at most {:.0} points (for text {FAR} nats) behind it. Only workloads with several ranks count. \
         Better / worse: the number of workloads on which the encoding is significantly better than {}, and the number \
         on which it is significantly worse. In each workload, Holm's correction covers all comparisons with {}. In brackets: 95% intervals.{}",
        100.0 * FAR,
        report.display(YARDSTICK),
        report.display(YARDSTICK),
        step_time(report, overall)
    );
    let in_first = |name: &str| {
        let first = |r: &EncodingResult| r.encoding == name && r.group == Some(1);
        telling.iter().filter(|ranking| ranking.results.iter().any(first)).count()
    };
    let contrasts: Vec<RankedPair> = rankings
        .iter()
        .flat_map(|ranking| ranking.contrasts(YARDSTICK))
        .filter(|pair| separable(Some(&pair.comparison)))
        .collect();
    let significant = |better: &str, worse: &str| {
        let same = |pair: &&RankedPair| pair.better == better && pair.worse == worse;
        contrasts.iter().filter(same).count()
    };
    let table = Table::of(&overall.scores)
        .column("encoding", |score| TableCell::of_encoding(report, &score.encoding))
        .column(format!("all tasks\n{}", Overall::NAME), |score| {
            TableCell::with_detail(percent(score.value), bracketed(score.ci95, points))
        })
        .column(
            format!("first rank\non the {} workloads with several ranks", telling.len()),
            |score| in_first(&score.encoding).to_string(),
        )
        .column("against RoPE\nbetter / worse", |score| match &*score.encoding {
            YARDSTICK => "–".to_owned(),
            name => format!("{} / {}", significant(name, YARDSTICK), significant(YARDSTICK, name)),
        })
        .column("FLOPs of a step\nrelative to RoPE", |score| {
            TableCell::optional(report.flops_ratio(&score.encoding), ratio)
        })
        .column("FLOPs of the training\nrelative to RoPE", |score| {
            TableCell::optional(report.flops_training_ratio(&score.encoding), ratio)
        })
        .column("step time\nrelative to RoPE", |score| {
            TableCell::optional(report.step_time_ratio(&score.encoding), ratio)
        })
        .column("time of the training\nrelative to RoPE", |score| {
            TableCell::optional(report.training_time_ratio(&score.encoding), ratio)
        })
        .table();
    Table { notes: vec![note], ..table }.without_empty_columns()
}

/// Returns a sentence, after a space, on where step times are from; empty without step times.
fn step_time(report: &Report, overall: &Overall) -> String {
    let mut names = overall.scores.iter().map(|score| &score.encoding);
    if !names.any(|name| report.step_time_ratio(name).is_some()) {
        String::new()
    } else if report.meta.measured.is_empty() {
        " Times: measured during training, median over the workloads.".to_owned()
    } else {
        format!(
            " Step time: measured by `pe-bench speed` with {}. Time of the training: this step time multiplied by the \
             number of steps, which early stopping reduces; median over the workloads.",
            report.meta.measured_at
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::{MeasuredStep, ReportMeta};
    use records::RunRecord;
    use records::testkit::TestCell;

    fn report(workloads: usize) -> Report {
        let mut records: Vec<RunRecord> = Vec::new();
        for workload in 0..workloads {
            for seed in 0..8_u64 {
                let noise = 0.01 * seed as f64;
                let best = if workload % 2 == 0 { "cope" } else { "rope" };
                for encoding in ["cope", "rope", "nope"] {
                    let value = if encoding == best { 0.9 } else { 0.6 };
                    let name = format!("w{workload}");
                    records
                        .push(TestCell::new(&name, encoding, seed).beyond(value + noise).record());
                }
            }
        }
        Report::new(records, &ReportMeta::default()).unwrap()
    }

    #[test]
    fn few_workloads_have_columns_and_many_are_counted() {
        let few = headline(&report(2));
        let heads: Vec<_> = few.columns.iter().filter_map(|head| head.lines().next()).collect();
        assert_eq!(heads, ["encoding", "all tasks", "w0", "w1"]);
        assert!(few.rows.iter().all(|row| row[2].detail.is_empty()));
        assert_eq!(few.rows.last().unwrap()[0].text, "chance");
        let many = headline(&report(7));
        let cope = many.rows.iter().find(|row| row[0].text == "CoPE").unwrap();
        let texts: Vec<&str> = cope.iter().map(|cell| &*cell.text).collect();
        assert_eq!(
            texts[2..],
            ["4", "4 / 3", "1.00", "1.00", "2.00", "1.00"],
            "{:?}",
            many.columns
        );
        assert_eq!(headline(&report(1)).rows.len(), 0);
    }

    #[test]
    fn the_note_says_of_what_the_step_time_is() {
        let mut report = report(7);
        let note = |report: &Report| headline(report).notes.concat();
        assert!(
            note(&report).ends_with(" Times: measured during training, median over the workloads.")
        );
        report.meta.measured_at = "batches of 32 sequences of 63 tokens".into();
        report.meta.measured =
            vec![MeasuredStep { encoding: "rope".into(), step_seconds: 0.5, peak_bytes: None }];
        let sizes = "by `pe-bench speed` with batches of 32 sequences of 63 tokens. Time of the training: this";
        assert!(note(&report).contains(sizes), "{}", note(&report));
        // As many steps as with RoPE, each three times as long.
        let step = |encoding: &str, step_seconds: f64| MeasuredStep {
            encoding: encoding.into(),
            step_seconds,
            peak_bytes: None,
        };
        report.meta.measured = vec![step("rope", 0.5), step("cope", 1.5)];
        assert_eq!(report.training_time_ratio("cope"), Some(3.0));
    }
}
