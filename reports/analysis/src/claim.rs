//! Verdicts on the claims of papers that a suite names.

use super::contrast::{Contrast, judge};
use super::question::{Answer, AnswerLine};
use records::settings::{ExpectedResult, PaperClaim};

/// Verdict on a claim from one comparison on one workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimVerdict {
    /// The two encodings are significantly different, as the claim says.
    Holds,
    /// The two encodings are significantly different, against the claim.
    Contradicted,
    /// The two encodings are not significantly different.
    Undecided,
}

impl ClaimVerdict {
    /// Verdicts in the order of summaries.
    pub const ALL: [Self; 3] = [Self::Holds, Self::Contradicted, Self::Undecided];

    /// Returns the verdict in words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Contradicted => "contradicted",
            Self::Undecided => "undecided",
        }
    }
}

/// Claim with the answers to its comparisons.
#[derive(Debug, Clone, PartialEq)]
pub struct JudgedClaim {
    /// The claim that is judged.
    pub claim: PaperClaim,
    /// Answers, one for each comparison, in the order of the claim.
    pub answers: Vec<Answer>,
}

/// Corrects the comparisons of these claims as one family: a report with many claims has many chances of a false one.
pub(super) fn correct(claims: &mut [JudgedClaim]) {
    let planned = claims.iter().flat_map(|claim| &claim.answers).map(|answer| answer.planned).sum();
    let family: Vec<Contrast> =
        claims.iter().flat_map(JudgedClaim::lines).map(|(_, line, _)| line.pair.contrast).collect();
    let answers = claims.iter_mut().flat_map(|claim| &mut claim.answers);
    let lines = answers.flat_map(|answer| &mut answer.lines);
    lines.zip(judge(&family, planned)).for_each(|(line, judged)| line.pair.comparison = judged);
}

impl JudgedClaim {
    /// Returns the verdict of one line of `answer`.
    ///
    /// A missing difference does not show that two encodings are equal, so the verdict on
    /// [`ExpectedResult::NotBetter`] is [`ClaimVerdict::Undecided`] then, too.
    pub fn verdict(&self, answer: &Answer, line: &AnswerLine) -> ClaimVerdict {
        let [first, _] = answer.question.compared();
        match (line.better(), self.claim.expected) {
            (None, _) => ClaimVerdict::Undecided,
            (Some(better), expected)
                if (better == first) == (expected == ExpectedResult::Better) =>
            {
                ClaimVerdict::Holds
            }
            (Some(_), _) => ClaimVerdict::Contradicted,
        }
    }

    /// Returns all answered lines with their verdicts.
    pub fn lines(&self) -> impl Iterator<Item = (&Answer, &AnswerLine, ClaimVerdict)> {
        self.answers.iter().flat_map(move |answer| {
            answer.lines.iter().map(move |line| (answer, line, self.verdict(answer, line)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Frames;
    use crate::{Report, ReportMeta};
    use records::RunRecord;
    use records::settings::Settings;
    use records::testkit::TestCell;

    /// CoPE is better than RoPE on `v` and worse on `w`, and equal to it on `x`.
    fn records() -> Vec<RunRecord> {
        let mut records = Vec::new();
        for seed in 0..8_u64 {
            let noise = 0.01 * seed as f64;
            for (workload, cope) in [("v", 0.85), ("w", 0.55), ("x", 0.7)] {
                for (encoding, value) in [("cope", cope), ("rope", 0.7)] {
                    let value = value + noise;
                    records.push(TestCell::new(workload, encoding, seed).beyond(value).record());
                }
            }
        }
        records
    }

    fn judged(expected: &str) -> JudgedClaim {
        let text = format!(
            "text = 'CoPE counts better'\nsource = 'A. Author 2024'\nrecipe = 'Smaller models.'\n{expected}\n\
             comparisons = [{{ encodings = ['cope', 'rope'] }}]"
        );
        let claim: PaperClaim = toml::from_str(&text).unwrap();
        let settings = Settings { claims: vec![claim], ..Settings::default() };
        let frames = Frames::of(&records()).unwrap();
        let mut report = Report::with(frames, &ReportMeta::default(), &settings).unwrap();
        assert_eq!(report.answer, None);
        report.claims.pop().unwrap()
    }

    #[test]
    fn a_significant_difference_decides_for_or_against_a_claim() {
        use ClaimVerdict::{Contradicted, Holds, Undecided};
        let verdicts = |claim: &JudgedClaim| -> Vec<ClaimVerdict> {
            claim.lines().map(|(.., verdict)| verdict).collect()
        };
        let better = judged("");
        assert_eq!(verdicts(&better), [Holds, Contradicted, Undecided]);
        // Holm's correction is over the three workloads.
        assert_eq!(better.answers[0].lines[0].pair.comparison.family, 3);
        let null = judged("expected = 'not-better'");
        assert_eq!(verdicts(&null), [Contradicted, Holds, Undecided]);
        // All claims of a report are one family.
        let mut both = [better, null];
        correct(&mut both);
        assert_eq!(both[0].answers[0].lines[0].pair.comparison.family, 6);
        assert_eq!(both[1].answers[0].lines[2].pair.comparison.family, 6);
        assert_eq!(verdicts(&both[1]), [Contradicted, Holds, Undecided]);
    }

    #[test]
    fn planned_contrasts_are_corrected_one_by_one() {
        let text = "text = 'a'\nsource = 'planned contrast'\nrecipe = 'b'\ncomparisons = [{ encodings = ['cope', 'rope'] }]";
        let claim: PaperClaim = toml::from_str(text).unwrap();
        let family = |correct_each_claim: bool| {
            let claims = vec![claim.clone(), claim.clone()];
            let settings = Settings { claims, correct_each_claim, ..Settings::default() };
            let frames = Frames::of(&records()).unwrap();
            let report = Report::with(frames, &ReportMeta::default(), &settings).unwrap();
            report.claims[1].answers[0].lines[0].pair.comparison.family
        };
        assert_eq!((family(false), family(true)), (6, 3));
    }
}
