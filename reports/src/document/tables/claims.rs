//! Claims of papers and planned contrasts with their verdicts, as a table.

use std::collections::BTreeSet;

use crate::document::table::{Table, TableCell};
use analysis::{Answer, AnswerLine, ClaimVerdict, JudgedClaim, Report};
use records::settings::ExpectedResult;

/// A comparison of a claim on a workload.
struct ClaimLine<'a> {
    judged: &'a JudgedClaim,
    /// Whether it is the first of its claim, which has the text of the claim.
    is_first: bool,
    answer: &'a Answer,
    line: &'a AnswerLine,
    verdict: ClaimVerdict,
}

/// Returns the table of claims, one row for each comparison on a workload; without rows if the report has no claims.
pub fn claims(report: &Report) -> Table {
    let pair = |answer: &Answer, between: &str| {
        let [a, b] = answer.question.compared().map(|name| report.display(&name).to_owned());
        format!("{a}{between}{b}")
    };
    let mut lines = Vec::new();
    let mut notes = Vec::new();
    for judged in &report.claims {
        lines.extend(judged.lines().enumerate().map(|(index, (answer, line, verdict))| {
            let is_first = index == 0;
            ClaimLine { judged, is_first, answer, line, verdict }
        }));
        let (claim, source) = (&judged.claim.text, &judged.claim.source);
        let unjudged = judged.answers.iter().flat_map(|answer| {
            let both = pair(answer, " and ");
            answer.unanswered.iter().map(move |text| format!("{both} on {text}"))
        });
        // Comparisons that differ in their region alone lack the same evaluations.
        let unjudged: BTreeSet<String> = unjudged.collect();
        if !unjudged.is_empty() {
            let unjudged: Vec<String> = unjudged.into_iter().collect();
            notes.push(format!(
                "No verdict on the claim “{claim}” ({source}): {}.",
                unjudged.join("; ")
            ));
        }
        let recipe = format!("{source}: {}", judged.claim.recipe);
        if !notes.contains(&recipe) {
            notes.push(recipe);
        }
    }
    let table =
        Table::of(lines)
            .column("claim", |own| {
                if own.is_first { claim_cell(own.judged) } else { TableCell::default() }
            })
            .column("encodings", |own| pair(own.answer, ", "))
            .answered(["first", "second"], |own| (own.answer, own.line))
            .column("verdict", |own| {
                let detail = match (own.line.better(), own.answer.question.margin_percent) {
                    (Some(better), None) => format!("{} is better", report.display(better)),
                    (Some(_), Some(margin)) if own.verdict == ClaimVerdict::Holds => {
                        format!("rises by less than {margin}%")
                    }
                    (Some(_), Some(margin)) => format!("rises by more than {margin}%"),
                    (None, _) => format!("n = {}", own.line.pair.comparison.paired.n),
                };
                let strong = own.verdict != ClaimVerdict::Undecided;
                TableCell { strong, ..TableCell::with_detail(own.verdict.name(), detail) }
            })
            .table();
    let table = Table { notes, keys: 3, ..table };
    table.with_legend(
        "A claim holds or is contradicted on a workload where the two encodings differ significantly. On other \
         workloads it is undecided, even if it states that there is no advantage. An encoding keeps its perplexity \
         where its perplexity at the longest evaluated length is significantly below its perplexity in distribution \
         plus the margin. Holm's correction covers the comparisons of all claims, or of each claim alone if the \
         suite says so. Comparisons with RoPE in other tables have a separate correction, so the same difference can \
         be significant there and undecided here. Difference: the first encoding minus the second (for perplexity, \
         the second divided by the first), paired by seed, with its uncorrected 95% interval.",
    )
}

fn claim_cell(judged: &JudgedClaim) -> TableCell {
    let null = match judged.claim.expected {
        ExpectedResult::Better => "",
        ExpectedResult::NotBetter => ", expected: no advantage of the first encoding",
    };
    TableCell::with_detail(&judged.claim.text, format!("{}{null}", judged.claim.source))
}

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::ReportMeta;
    use analysis::frame::Frames;
    use records::settings::{PaperClaim, Question, Settings};
    use records::testkit;

    #[test]
    fn each_comparison_on_a_workload_has_a_row_with_its_verdict() {
        let records = testkit::two_workloads();
        let comparison = Question {
            encodings: ["cope".to_owned(), "rope".to_owned()],
            tasks: ["v", "w", "x", "y"].map(str::to_owned).to_vec(),
            metric: None,
            region: None,
            change: false,
            margin_percent: None,
        };
        let claim = PaperClaim {
            text: "CoPE counts better".to_owned(),
            source: "A. Author 2024".to_owned(),
            recipe: "The models of the paper are larger.".to_owned(),
            expected: ExpectedResult::Better,
            comparisons: vec![comparison.clone(), comparison],
        };
        let settings = Settings { claims: vec![claim], ..Settings::default() };
        let frames = Frames::of(&records).unwrap();
        let report = Report::with(frames, &ReportMeta::default(), &settings).unwrap();
        let table = claims(&report);
        let texts = |row: usize| table.rows[row].iter().map(|c| &*c.text).collect::<Vec<_>>();
        assert_eq!(
            texts(0)[..7],
            ["CoPE counts better", "CoPE, RoPE", "v", "93.5%", "73.5%", "50.0%", "20.0 points"]
        );
        assert_eq!((texts(0)[9], &*table.rows[0][9].detail), ("holds", "CoPE is better"));
        assert_eq!((texts(1)[0], texts(1)[9]), ("", "undecided"));
        assert_eq!(
            table.notes,
            [
                "No verdict on the claim “CoPE counts better” (A. Author 2024): CoPE and RoPE on `x`, `y`: no evaluation to compare.",
                "A. Author 2024: The models of the paper are larger.",
            ]
        );
        assert!(table.rows.iter().all(|row| row.len() == table.columns.len()));
        // Parts of the table name the rows, also those after the first of a claim.
        let parts = table.pieces(7);
        assert_eq!(parts.iter().map(|part| part.columns.len()).collect::<Vec<_>>(), [7, 6]);
        assert!(parts.iter().all(|part| part.columns[..3] == table.columns[..3]));
        assert_eq!((&*parts[1].rows[1][1].text, &*parts[1].rows[1][2].text), ("CoPE, RoPE", "w"));
        let without = Report::new(&records, &ReportMeta::default()).unwrap();
        assert_eq!(claims(&without).rows, Vec::<Vec<TableCell>>::new());
    }
}
