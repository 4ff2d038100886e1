//! The answer to the question of a suite, as a table.

use super::common::with_interval;
use crate::document::table::{Table, TableBuilder, TableCell};
use analysis::{Answer, AnswerLine, Report};
use records::number::percent;

/// Returns the heading and the table of the answer to the suite's question, one row for each workload; `None` without a
/// question.
pub fn question(report: &Report) -> Option<(String, Table)> {
    let answer = report.answer.as_ref()?;
    let [a, b] = answer.question.compared().map(|name| report.display(&name).to_owned());
    let table = Table::of(answer.lines.iter().map(|line| (answer, line)));
    let mut table = table
        .answered([&a, &b], |item| *item)
        .column("better", |(_, line)| match line.better() {
            Some(name) => report.display(name).to_owned(),
            None => format!("not separable with n = {}", line.pair.comparison.paired.n),
        })
        .table();
    table.notes = answer.unanswered.iter().map(|text| format!("Not answered: {text}.")).collect();
    let table = table.with_legend(
        "Planned question: the suite names the two encodings before any cell runs, so they are tested without \
         correction for the other encodings. Holm's correction covers all workloads of the question, also those \
         without a result. A question that is also a claim is corrected together with all claims. Difference: the \
         first encoding minus the second (for perplexity, the second divided by the first), paired by seed, with its \
         uncorrected 95% interval.",
    );
    Some((format!("Planned question: {a} against {b}"), table))
}

impl<T> TableBuilder<T> {
    /// Adds the columns of an answer: the workload, both encodings under these heads, chance, the comparison.
    pub(super) fn answered<'a>(
        self,
        encodings: [&str; 2],
        line: impl Fn(&T) -> (&'a Answer, &'a AnswerLine),
    ) -> Self {
        let value = |item: &T, index: usize| {
            let (answer, line) = line(item);
            let (names, metric) = (answer.question.compared(), line.ranking.metric);
            let estimate = line.result(&names[index]).and_then(|result| result.estimate);
            let cell = TableCell::optional(estimate, |e| with_interval(metric, &e));
            TableCell { strong: line.better() == Some(&names[index]), ..cell }
        };
        self.column("workload", |item| {
            let (answer, line) = line(item);
            let (metric, region) = (line.ranking.metric.name(), line.ranking.region.name());
            let change = if answer.question.change { "change of " } else { "" };
            TableCell::with_detail(&line.workload, format!("{change}{metric}, {region}"))
        })
        .column(encodings[0], |item| value(item, 0))
        .column(encodings[1], |item| value(item, 1))
        .column("chance", |item| TableCell::optional(line(item).1.ranking.chance, percent))
        .compared(
            "difference",
            |item| line(item).1.ranking.metric,
            |item| {
                let (answer, line) = line(item);
                Some(line.pair.gains(&answer.question.compared()[0]))
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::ReportMeta;
    use analysis::frame::Frames;
    use records::settings::{Question, Settings};
    use records::testkit;

    #[test]
    fn each_workload_has_a_row_with_the_better_of_the_two() {
        let records = testkit::two_workloads();
        let encodings = ["cope".to_owned(), "rope".to_owned()];
        let tasks = ["v", "w", "x"].map(str::to_owned).to_vec();
        let asked = Question {
            encodings,
            tasks,
            metric: None,
            region: None,
            change: false,
            margin_percent: None,
        };
        let settings = Settings { question: Some(asked), ..Settings::default() };
        let frames = Frames::of(&records).unwrap();
        let report = Report::with(frames, &ReportMeta::default(), &settings).unwrap();
        let (heading, table) = question(&report).unwrap();
        assert_eq!(heading, "Planned question: CoPE against RoPE");
        let texts = |row: usize| table.rows[row].iter().map(|c| &*c.text).collect::<Vec<_>>();
        assert_eq!(texts(0)[..5], ["v", "93.5%", "73.5%", "50.0%", "20.0 points"]);
        assert_eq!((texts(0)[7], table.rows[0][1].strong), ("CoPE", true));
        assert_eq!(texts(1)[7], "not separable with n = 8");
        assert!(!table.rows[1][1].strong && !table.rows[1][2].strong);
        assert_eq!(table.notes, ["Not answered: `x`: no evaluation to compare."]);
        assert_eq!(question(&Report::new(&records, &ReportMeta::default()).unwrap()), None);
    }
}
