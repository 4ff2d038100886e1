//! A comparison of two encodings that a suite defines in advance, and its result.
//!
//! The question names two encodings, so it is tested without a correction for the comparisons of the others; Holm's
//! correction runs over the workloads that it names, with or without a result.

use std::collections::BTreeMap;

use super::contrast::{Contrast, judge};
use super::evaluated::SeedRun;
use super::ranking::{EncodingResult, RankedPair, Ranking, STANDING, separable};
use records::Metric;
use records::number::separator;
use records::settings::Question;

/// Answer to a question.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// Question that is answered.
    pub question: Question,
    /// Results, one line for each workload that can be compared.
    pub lines: Vec<AnswerLine>,
    /// Workloads that cannot be compared, one text for each reason.
    pub unanswered: Vec<String>,
    /// Number of workloads asked about, with and without a line.
    pub planned: usize,
}

/// Answer on one workload.
#[derive(Debug, Clone, PartialEq)]
pub struct AnswerLine {
    /// Name of the workload.
    pub workload: String,
    /// Ranking of the two encodings alone.
    pub ranking: Ranking,
    /// The two encodings, the one with the better mean first, with Holm's correction over the planned workloads.
    pub pair: RankedPair,
}

impl AnswerLine {
    /// Returns the result of one of the two encodings by its name; `None` for any other.
    pub fn result(&self, encoding: &str) -> Option<&EncodingResult> {
        self.ranking.results.iter().find(|result| result.encoding == encoding)
    }

    /// Returns the name of the encoding that is significantly better; `None` if neither is.
    pub fn better(&self) -> Option<&str> {
        separable(Some(&self.pair.comparison)).then_some(&*self.pair.better)
    }
}

impl Answer {
    /// Answers a question from rankings of its two encodings by workload ([`rank_asked`]).
    pub(super) fn of(question: &Question, rankings: Vec<(String, Option<Ranking>)>) -> Self {
        let mut rankings: BTreeMap<String, Option<Ranking>> = rankings.into_iter().collect();
        let asked: Vec<String> = if question.tasks.is_empty() {
            rankings.keys().cloned().collect()
        } else {
            question.tasks.clone()
        };
        let planned = asked.len();
        let (mut found, mut unpaired, mut missing) = (Vec::new(), Vec::new(), Vec::new());
        for name in asked {
            match rankings.remove(&name).flatten() {
                Some(ranking) if !ranking.pairs.is_empty() => found.push((name, ranking)),
                Some(_) => unpaired.push(name),
                None => missing.push(name),
            }
        }
        let unanswered = [
            (unpaired, "no seed has all evaluations of both encodings"),
            (missing, "no evaluation to compare"),
        ]
        .into_iter()
        .filter(|(names, _)| !names.is_empty())
        .map(|(names, reason)| {
            let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            format!("{}: {reason}", names.join(separator(&names)))
        })
        .collect();
        let family: Vec<Contrast> =
            found.iter().map(|(_, ranking)| ranking.pairs[0].contrast).collect();
        let judged = judge(&family, planned);
        let lines = found.into_iter().zip(judged).map(|((workload, ranking), comparison)| {
            let pair = RankedPair { comparison, ..ranking.pairs[0].clone() };
            AnswerLine { workload, ranking, pair }
        });
        Self { question: question.clone(), lines: lines.collect(), unanswered, planned }
    }
}

/// Ranks the two encodings of a question among `runs` of a workload ranked by `headline`, in the region of the question; `None`
/// if nothing was evaluated there.
pub(super) fn rank_asked(
    question: &Question,
    runs: &[SeedRun],
    display: &BTreeMap<String, String>,
    headline: Metric,
) -> Option<Ranking> {
    let own = runs.iter().filter(|run| question.encodings.contains(&run.encoding));
    let metric = question.metric.unwrap_or(headline);
    let own = own.filter(|_| {
        metric == Metric::Perplexity || !(question.change || question.margin_percent.is_some())
    });
    let runs: Vec<SeedRun> = if question.change {
        own.filter_map(|run| run.outside(|nll, inside| nll - inside)).collect()
    } else if let Some(margin) = question.margin_percent {
        let bound = (f64::from(margin) / 100.0).ln_1p();
        let [_, kept] = question.compared();
        let own: Vec<&SeedRun> = own.collect();
        let kept = own
            .iter()
            .filter_map(|run| run.outside(|_, inside| inside + bound))
            .map(|run| SeedRun { encoding: kept.clone(), ..run });
        own.iter().copied().cloned().chain(kept).map(SeedRun::at_longest).collect()
    } else {
        own.cloned().collect()
    };
    let regions = question.region.map_or_else(|| STANDING.to_vec(), |region| vec![region]);
    let mut rankings =
        regions.into_iter().map(|region| Ranking::new(&runs, display, region, metric));
    rankings.find(|ranking| !ranking.points.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Frames;
    use crate::{Report, ReportMeta};
    use records::RunRecord;
    use records::settings::{Region, Settings};
    use records::testkit::TestCell;

    fn ask(toml: &str) -> Question {
        toml::from_str(toml).unwrap()
    }

    fn answer(question: Question, records: &[RunRecord]) -> Answer {
        let settings = Settings { question: Some(question), ..Settings::default() };
        Report::with(Frames::of(records).unwrap(), &ReportMeta::default(), &settings)
            .unwrap()
            .answer
            .unwrap()
    }

    fn cells(workload: &str) -> Vec<RunRecord> {
        let mut records = Vec::new();
        for seed in 0..3_u64 {
            let noise = 0.01 * seed as f64;
            for (encoding, value) in [("cope", 0.9 + noise), ("rope", 0.7), ("a", 0.6), ("b", 0.8)]
            {
                records.push(TestCell::new(workload, encoding, seed).beyond(value).record());
            }
        }
        records
    }

    #[test]
    fn two_named_encodings_need_no_correction_for_the_others() {
        let found = answer(ask("encodings = ['rope', 'cope']"), &cells("w"));
        let line = &found.lines[0];
        assert_eq!((line.pair.comparison.family, line.better()), (1, Some("cope")));
        assert_eq!(line.ranking.region, Region::Both);
        // Six pairs of four encodings would need four seeds.
        let report = Report::new(cells("w"), &ReportMeta::default()).unwrap();
        let ranking = report.workloads[0].deciding().unwrap();
        assert_eq!((ranking.seeds_needed, ranking.separates()), (Some(4), false));
        // Two workloads are a family of two, which three seeds cannot carry.
        let both = [cells("v"), cells("w")].concat();
        let found = answer(ask("encodings = ['rope', 'cope']"), &both);
        assert_eq!((found.lines[0].pair.comparison.family, found.lines[0].better()), (2, None));
        let found = answer(ask("encodings = ['rope', 'cope']\ntasks = ['w']"), &both);
        assert_eq!((found.lines.len(), found.lines[0].better()), (1, Some("cope")));
        // So are two planned ones of which one has no result yet.
        let found = answer(ask("encodings = ['rope', 'cope']\ntasks = ['w', 'x']"), &both);
        assert_eq!((found.lines[0].pair.comparison.family, found.lines[0].better()), (2, None));
    }

    #[test]
    fn metric_and_region_may_be_named() {
        let found = answer(
            ask("encodings = ['rope', 'cope']\nmetric = 'token-accuracy'\nregion = 'inside'"),
            &cells("w"),
        );
        let ranking = &found.lines[0].ranking;
        assert_eq!((ranking.metric, ranking.region), (Metric::TokenAccuracy, Region::Inside));
    }

    #[test]
    fn a_change_is_compared_in_place_of_the_level() {
        let mut records = Vec::new();
        for seed in 0..8_u64 {
            let noise = 0.001 * seed as f64;
            // CoPE is better at both lengths and loses more; ALiBi is worse and loses nothing.
            for (encoding, inside, beyond) in
                [("cope", 1.0, 1.3), ("alibi", 1.5, 1.5), ("rope", 1.2, 1.4)]
            {
                let cell = TestCell::new("text", encoding, seed).text(inside, beyond + noise);
                records.push(cell.record());
            }
        }
        let better = |encodings: &str, change: bool| {
            let found =
                answer(ask(&format!("encodings = {encodings}\nchange = {change}")), &records);
            let line = &found.lines[0];
            (line.better().unwrap().to_owned(), line.pair.comparison.paired.mean_difference)
        };
        let named = |(name, difference): (String, f64), expected: &str, by: f64| {
            assert_eq!(name, expected);
            assert!((difference - by).abs() < 1e-12, "{difference}");
        };
        named(better("['cope', 'rope']", false), "cope", 0.1);
        named(better("['cope', 'rope']", true), "rope", 0.1);
        named(better("['alibi', 'rope']", false), "rope", 0.1);
        named(better("['alibi', 'rope']", true), "alibi", 0.2);
        // ALiBi keeps its perplexity within 5%, CoPE does not.
        let kept = |encoding: &str| {
            let found = answer(
                ask(&format!("encodings = ['{encoding}', '{encoding}']\nmargin_percent = 5")),
                &records,
            );
            let line = &found.lines[0];
            (line.better().unwrap().to_owned(), line.pair.comparison.paired.mean_difference)
        };
        named(kept("alibi"), "alibi", 1.05_f64.ln() - 0.0035);
        named(kept("cope"), "in distribution + 5%", 0.3035 - 1.05_f64.ln());
        // Exact match has no factor.
        let found = answer(ask("encodings = ['rope', 'cope']\nchange = true"), &cells("w"));
        assert_eq!((found.lines.len(), found.unanswered.len()), (0, 1));
    }

    #[test]
    fn what_cannot_be_answered_is_said() {
        let found = answer(ask("encodings = ['rope', 'alibi']\ntasks = ['w', 'x']"), &cells("w"));
        assert_eq!(found.lines, []);
        assert_eq!(
            found.unanswered,
            ["`w`: no seed has all evaluations of both encodings", "`x`: no evaluation to compare"]
        );
        let same =
            Question { encodings: ["a".into(), "a".into()], ..ask("encodings = ['a', 'b']") };
        assert!(same.check().unwrap_err().contains("twice"));
        let of = |toml: &str| ask(toml).check();
        assert_eq!(of("encodings = ['a', 'a']\nmargin_percent = 5"), Ok(()));
        assert!(of("encodings = ['a', 'b']\nmargin_percent = 5").unwrap_err().contains("itself"));
        let both = of("encodings = ['a', 'a']\nmargin_percent = 5\nchange = true");
        assert!(both.unwrap_err().contains("expected one"));
        let unknown = toml::from_str::<Question>("encodings = ['a', 'b']\nmetrics = 'x'");
        assert!(unknown.unwrap_err().to_string().contains("unknown field `metrics`"));
    }
}
