//! Aggregates over the workloads of a report: interquartile mean above chance, performance profiles, probability of
//! improvement, mean ranks.

use rayon::prelude::*;

use super::ranking::{EncodingResult, Rank, Ranking};
use records::Metric;
use stats::mean_ranks::MeanRanks;
use stats::over_tasks::{
    TaskEstimate, TaskScores, aggregate, interquartile_mean, probability_of_improvement,
};

/// Number of equal steps between the thresholds of a profile.
const STEPS: u32 = 50;

/// Aggregates over the workloads of a report.
#[derive(Debug, Clone, PartialEq)]
pub struct Overall {
    /// Names of the workloads of [`Overall::ranks`] and [`Overall::improvements`].
    pub workloads: Vec<String>,
    /// Names of the workloads of scores and profiles, which are those ranked by exact match.
    pub scored: Vec<String>,
    /// Scored workloads whose chance is unknown and taken as 0.
    pub without_chance: Vec<String>,
    /// Interquartile mean above chance of each encoding, best first; empty with fewer than two scored workloads.
    pub scores: Vec<OverallScore>,
    /// The best encoding without each of the scored workloads, in their order; empty with fewer than three.
    pub leaders_without: Vec<LeaderWithout>,
    /// Performance profiles, in the order of the scores.
    pub profiles: Vec<Profile>,
    /// All pairs of encodings, the one with the better mean rank first.
    pub improvements: Vec<Improvement>,
    /// Encodings that all workloads rank, in the order of [`MeanRanks::ranks`], best first.
    pub ranked: Vec<String>,
    /// Mean ranks of these encodings, with Friedman's test.
    pub ranks: MeanRanks,
}

/// Aggregate score of an encoding.
#[derive(Debug, Clone, PartialEq)]
pub struct OverallScore {
    /// Name of the encoding.
    pub encoding: String,
    /// Interquartile mean over all seeds of all workloads of `(exact match - chance) / (1 - chance)`.
    pub value: f64,
    /// 95% stratified bootstrap interval; `None` with one seed.
    pub ci95: Option<(f64, f64)>,
    /// Number of runs of the encoding.
    pub runs: usize,
}

/// The best encoding on all scored workloads but one.
#[derive(Debug, Clone, PartialEq)]
pub struct LeaderWithout {
    /// Name of the workload that is left out.
    pub workload: String,
    /// Name of the encoding.
    pub encoding: String,
    /// Its interquartile mean above chance on the other workloads.
    pub value: f64,
    /// Name of the encoding behind it.
    pub second: String,
    /// Interquartile mean above chance of that encoding.
    pub second_value: f64,
}

/// Performance profile of an encoding.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// Name of the encoding.
    pub encoding: String,
    /// Scores above chance, ascending, each with the share of runs above it and its pointwise 95% interval.
    pub points: Vec<(f64, TaskEstimate)>,
}

/// Probability that one encoding does better than another.
#[derive(Debug, Clone, PartialEq)]
pub struct Improvement {
    /// Name of the encoding that may be better.
    pub better: String,
    /// Name of the other encoding.
    pub worse: String,
    /// Mean over the workloads of the chance that a random run of the one is better than one of the other.
    pub probability: TaskEstimate,
}

impl Overall {
    /// Aggregates over workloads, given by name and ranking; `None` with fewer than two, or with fewer than two encodings
    /// that all of them rank.
    pub(super) fn of(mut rankings: Vec<(&str, &Ranking)>) -> Option<Self> {
        rankings.retain(|(_, ranking)| ranking.ranked().len() > 1);
        let in_all = |encoding: &&str| {
            rankings.iter().all(|(_, ranking)| result(ranking, encoding).is_some())
        };
        let (_, any) = rankings.first()?;
        let mut ranked: Vec<&str> =
            any.results.iter().map(|r| &*r.encoding).filter(in_all).collect();
        let mean = |ranking: &Ranking, encoding: &str| -> f64 {
            let mean = result(ranking, encoding).map_or(f64::NAN, EncodingResult::mean);
            // Means that are equal but for rounding tie.
            let mean = (mean * 1e12).round() / 1e12;
            if ranking.metric.higher_is_better() { mean } else { -mean }
        };
        let scores = |ranked: &[&str]| -> Vec<Vec<f64>> {
            let task = |(_, ranking): &(&str, &Ranking)| {
                ranked.iter().map(|encoding| mean(ranking, encoding)).collect()
            };
            rankings.iter().map(task).collect()
        };
        let first = MeanRanks::of(&scores(&ranked))?;
        let mut order: Vec<(f64, &str)> = first.ranks.into_iter().zip(ranked).collect();
        order.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(b.1)));
        ranked = order.into_iter().map(|(_, encoding)| encoding).collect();
        let ranks = MeanRanks::of(&scores(&ranked))?;
        let scored: Vec<(&str, &Ranking)> =
            rankings.iter().copied().filter(|(_, r)| above_chance(r).is_some()).collect();
        let mut overall = Self {
            workloads: rankings.iter().map(|(name, _)| (*name).to_owned()).collect(),
            scored: scored.iter().map(|(name, _)| (*name).to_owned()).collect(),
            without_chance: Vec::new(),
            scores: Vec::new(),
            leaders_without: Vec::new(),
            profiles: Vec::new(),
            improvements: improvements(&rankings, &ranked),
            ranked: ranked.iter().map(|name| (*name).to_owned()).collect(),
            ranks,
        };
        if scored.len() > 1 {
            let unknown = scored.iter().filter(|(_, r)| r.chance.or(r.fallback_chance).is_none());
            overall.without_chance = unknown.map(|(name, _)| (*name).to_owned()).collect();
            overall.score(&scored, &ranked);
        }
        Some(overall)
    }

    /// Computes scores and profiles.
    fn score(&mut self, scored: &[(&str, &Ranking)], ranked: &[&str]) {
        let thresholds: Vec<f64> =
            (0..STEPS).map(|step| f64::from(step) / f64::from(STEPS)).collect();
        let tasks_of = |encoding: &&str| -> Option<Vec<TaskScores>> {
            let task = |(_, ranking): &(&str, &Ranking)| {
                Some(scores_of(result(ranking, encoding)?, above_chance(ranking)?))
            };
            scored.iter().map(task).collect()
        };
        let all: Vec<(&str, Vec<TaskScores>)> =
            ranked.iter().filter_map(|encoding| Some((*encoding, tasks_of(encoding)?))).collect();
        if scored.len() > 2 {
            let without = |index: usize| leader_without(&all, index, scored[index].0);
            self.leaders_without = (0..scored.len()).filter_map(without).collect();
        }
        let found = all.par_iter().map(|(encoding, tasks)| {
            let runs = tasks.iter().map(|task| task.seeds.len()).sum();
            let (mean, profile) = aggregate(tasks, &thresholds);
            let encoding = (*encoding).to_owned();
            let points = thresholds.iter().copied().zip(profile).collect();
            let profile = Profile { encoding: encoding.clone(), points };
            (OverallScore { encoding, value: mean.value, ci95: mean.ci95, runs }, profile)
        });
        let mut found: Vec<(OverallScore, Profile)> = found.collect();
        found.sort_by(|a, b| b.0.value.total_cmp(&a.0.value));
        (self.scores, self.profiles) = found.into_iter().unzip();
    }

    /// Name of the quantity in [`Overall::scores`].
    pub const NAME: &str = "interquartile mean above chance";

    /// Returns the scores above chance of the seeds of an encoding on one workload, which [`Overall::scores`] aggregates;
    /// `None` for a task without exact match or an encoding without a rank.
    pub fn runs(ranking: &Ranking, encoding: &str) -> Option<Vec<f64>> {
        Some(scores_of(result(ranking, encoding)?, above_chance(ranking)?).seeds)
    }

    /// Returns the probability that a run of `a` is better than one of `b`; `None` if they were not compared.
    pub fn improvement(&self, a: &str, b: &str) -> Option<TaskEstimate> {
        let between = |pair: &&Improvement| {
            (pair.better == a && pair.worse == b) || (pair.better == b && pair.worse == a)
        };
        let pair = self.improvements.iter().find(between)?;
        let TaskEstimate { value, ci95 } = pair.probability;
        let ci95 =
            if pair.better == a { ci95 } else { ci95.map(|(low, high)| (1.0 - high, 1.0 - low)) };
        Some(TaskEstimate { value: if pair.better == a { value } else { 1.0 - value }, ci95 })
    }
}

/// The best encoding without the task of an index; the first of those with the best score.
fn leader_without(
    all: &[(&str, Vec<TaskScores>)],
    index: usize,
    workload: &str,
) -> Option<LeaderWithout> {
    let score = |(encoding, tasks): &(&str, Vec<TaskScores>)| {
        let others = tasks.iter().enumerate().filter(|(task, _)| *task != index);
        let mut seeds: Vec<f64> = others.flat_map(|(_, task)| task.seeds.clone()).collect();
        ((*encoding).to_owned(), interquartile_mean(&mut seeds))
    };
    let mut scores: Vec<(String, f64)> = all.iter().map(score).collect();
    scores.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    let mut scores = scores.into_iter();
    let ((encoding, value), (second, second_value)) = scores.next().zip(scores.next())?;
    Some(LeaderWithout { workload: workload.to_owned(), encoding, value, second, second_value })
}

/// The result of an encoding, if it is ranked.
fn result<'a>(ranking: &'a Ranking, encoding: &str) -> Option<&'a EncodingResult> {
    ranking.results.iter().find(|s| s.encoding == encoding && s.rank != Rank::Unranked)
}

/// Linear map of values to scores.
#[derive(Clone, Copy)]
struct ScoreMap {
    scale: f64,
    offset: f64,
}

/// Returns the map of the values of a ranking to exact match above chance; `None` for tasks
/// without exact match. If token accuracy ranks, every encoding has the common exact match.
fn above_chance(ranking: &Ranking) -> Option<ScoreMap> {
    let chance = ranking.chance.or(ranking.fallback_chance).unwrap_or(0.0);
    let (scale, offset) = match (ranking.metric, ranking.fallback) {
        (Metric::ExactMatch, _) => (1.0, 0.0),
        (Metric::TokenAccuracy, Some(common)) => (0.0, common),
        _ => return None,
    };
    (chance < 1.0).then(|| ScoreMap {
        scale: scale / (1.0 - chance),
        offset: (offset - chance) / (1.0 - chance),
    })
}

fn scores_of(result: &EncodingResult, map: ScoreMap) -> TaskScores {
    let ScoreMap { scale, offset } = map;
    let error = result.estimate.and_then(|e| e.question_error).unwrap_or(0.0);
    TaskScores {
        seeds: result.per_seed.iter().map(|(_, value)| scale * value + offset).collect(),
        question_error: scale * error,
    }
}

fn improvements(rankings: &[(&str, &Ranking)], ranked: &[&str]) -> Vec<Improvement> {
    let tasks = |encoding: &str| -> Option<Vec<TaskScores>> {
        let task = |(_, ranking): &(&str, &Ranking)| {
            let sign = if ranking.metric.higher_is_better() { 1.0 } else { -1.0 };
            result(ranking, encoding).map(|result| {
                let scores = scores_of(result, ScoreMap { scale: sign, offset: 0.0 });
                TaskScores { question_error: scores.question_error.abs(), ..scores }
            })
        };
        rankings.iter().map(task).collect()
    };
    let all: Vec<(&str, Vec<TaskScores>)> =
        ranked.iter().filter_map(|encoding| Some((*encoding, tasks(encoding)?))).collect();
    let pairs = all.iter().enumerate().flat_map(|(i, a)| all[i + 1..].iter().map(move |b| (a, b)));
    let pairs: Vec<_> = pairs.collect();
    let improvement = |((better, a), (worse, b)): &(&(&str, Vec<TaskScores>), &(&str, Vec<_>))| {
        Some(Improvement {
            better: (*better).to_owned(),
            worse: (*worse).to_owned(),
            probability: probability_of_improvement(a, b)?,
        })
    };
    pairs.par_iter().filter_map(improvement).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Report, ReportMeta};
    use records::RunRecord;
    use records::testkit::TestCell;

    fn report(records: Vec<RunRecord>) -> Report {
        Report::new(records, &ReportMeta::default()).unwrap()
    }

    /// `cope` at 1 - d, `rope` at 1/2 + d, `nope` at chance (1/2) on three workloads of three seeds.
    fn records() -> Vec<RunRecord> {
        let mut records = Vec::new();
        for workload in ["a", "b", "c"] {
            for seed in 0..3_u64 {
                let noise = 0.01 * seed as f64;
                for (encoding, value) in
                    [("cope", 1.0 - noise), ("rope", 0.75 + noise), ("nope", 0.5)]
                {
                    records.push(TestCell::new(workload, encoding, seed).beyond(value).record());
                }
            }
        }
        records
    }

    #[test]
    fn scores_are_above_chance_and_in_order() {
        let overall = report(records()).overall.unwrap();
        let scores: Vec<(&str, f64)> =
            overall.scores.iter().map(|s| (&*s.encoding, (100.0 * s.value).round())).collect();
        // Chance is 1/2, so 0.99 is 98% above chance and 0.76 is 52%.
        assert_eq!(scores, [("cope", 98.0), ("rope", 52.0), ("nope", 0.0)]);
        assert_eq!((overall.scored.len(), overall.scores[0].runs), (3, 9));
        let (low, high) = overall.scores[0].ci95.unwrap();
        assert!((0.93..0.98).contains(&low) && 0.98 < high && high <= 1.0, "{low} {high}");
        assert_eq!(
            (overall.ranked.join(" "), overall.ranks.ranks.clone()),
            ("cope rope nope".into(), vec![1.0, 2.0, 3.0])
        );
        // Nine disjoint pairs of runs, all won.
        let always = TaskEstimate { value: 1.0, ci95: Some((0.025_f64.powf(1.0 / 9.0), 1.0)) };
        assert!(overall.improvements.iter().all(|pair| pair.probability == always));
        assert_eq!(overall.improvements.len(), 3);
        let half = overall.profiles[1].points[25];
        assert_eq!(
            (half.0, half.1.value),
            (0.5, 2.0 / 3.0),
            "RoPE is at 50% in one of three seeds"
        );
        assert!(overall.without_chance.is_empty());
        assert!(overall.leaders_without.iter().all(|leader| leader.encoding == "cope"));
        assert_eq!(overall.leaders_without.len(), 3);
    }

    #[test]
    fn the_leader_without_a_workload_is_the_best_on_the_others() {
        let mut records = records();
        for record in records.iter_mut().filter(|r| r.encoding.name != "nope") {
            // CoPE leads by "c" alone.
            let value = match (&*record.workload, &*record.encoding.name) {
                ("c", "cope") => 1.0,
                ("c", _) => 0.5,
                (_, "cope") => 0.8,
                _ => 0.82,
            };
            record.evals.iter_mut().for_each(|eval| eval.exact_match = value);
        }
        let overall = report(records).overall.unwrap();
        assert_eq!(overall.scores[0].encoding, "cope");
        let leaders: Vec<(&str, &str)> =
            overall.leaders_without.iter().map(|l| (&*l.workload, &*l.encoding)).collect();
        assert_eq!(leaders, [("a", "cope"), ("b", "cope"), ("c", "rope")]);
        assert!((overall.leaders_without[2].value - 0.64).abs() < 1e-9);
    }

    #[test]
    fn an_exact_match_that_all_share_is_above_chance_too() {
        let mut records = records();
        records.retain(|r| r.workload != "c");
        for record in &mut records {
            let tokens = if record.encoding.name == "cope" { 0.9 } else { 0.8 };
            for eval in &mut record.evals {
                (eval.exact_match, eval.token_accuracy) = (0.75, tokens);
            }
        }
        let found = report(records.clone());
        assert_eq!(found.workloads[0].deciding().unwrap().metric, Metric::TokenAccuracy);
        // Chance is 1/2.
        let overall = found.overall.unwrap();
        assert!(overall.scores.iter().all(|s| (s.value - 0.5).abs() < 1e-12), "{overall:?}");
        assert!(overall.without_chance.is_empty());
        records.iter_mut().filter(|r| r.workload == "a").for_each(|r| r.task.chance = None);
        let overall = report(records).overall.unwrap();
        assert_eq!(overall.without_chance, ["a"], "the chance is taken as 0");
    }

    #[test]
    fn an_encoding_that_a_workload_lacks_is_left_out_and_one_workload_has_no_aggregate() {
        let mut some = records();
        some.retain(|r| r.workload != "c" || r.encoding.name != "rope");
        let overall = report(some.clone()).overall.unwrap();
        assert_eq!(overall.ranked, ["cope", "nope"]);
        some.retain(|r| r.workload == "a");
        assert_eq!(report(some).overall, None);
    }

    #[test]
    fn perplexity_is_ranked_and_has_no_scale() {
        let mut records = records();
        records.retain(|r| r.workload == "a" && r.encoding.name != "nope");
        for seed in 0..3 {
            for (encoding, nll) in [("cope", 1.5), ("rope", 1.6)] {
                let nll = nll + 0.01 * seed as f64;
                records.push(TestCell::new("text", encoding, seed).text(1.4, nll).record());
            }
        }
        let overall = report(records).overall.unwrap();
        assert_eq!(
            (overall.workloads.len(), overall.scored.len(), overall.scores.len()),
            (2, 1, 0)
        );
        assert_eq!(overall.ranked, ["cope", "rope"]);
        assert!(overall.improvements[0].probability.value > 0.9);
    }
}
