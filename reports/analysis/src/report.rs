//! The complete analysis of records: everything that a report shows, as numbers.

use std::collections::BTreeMap;

use polars::prelude::*;
use rayon::prelude::*;
use serde_json::Value;

use super::aggregate::{Aggregate, aggregate};
use super::answers::widen;
use super::claim::{self, JudgedClaim};
use super::conditions::Conditions;
use super::costs::{EncodingCost, YARDSTICK, costs, machines};
use super::curves::{Curve, SplitCurves, split_validation, training, validation};
use super::error::AnalysisError;
use super::evaluated::SeedRun;
use super::gates::{GateMean, gates};
use super::grid::{GridReport, GridSelection, select_grid_values};
use super::looks::looks;
use super::meta::ReportMeta;
use super::overall::Overall;
use super::question::{Answer, rank_asked};
use super::ranking::{Ranking, STANDING};
use super::run_metrics::{RunMetrics, run_metrics};
use super::selection::{
    NotCounted, Selection, has_status, is_newest, not_counted, stable, with_newest,
};
use super::skipped::{MissingSeeds, SkippedEvals, missing_seeds, skipped_evals};
use super::slices::{SliceSet, slices};
use crate::frame::{Frames, rows};
use records::settings::{Region, Settings};
use records::{Metric, RunRecord};

/// Analysis of records as plain data, independent of texts and formats.
#[derive(Debug, Clone)]
pub struct Report {
    /// Title, command and skipped cells, as given by the caller.
    pub meta: ReportMeta,
    /// Criteria for solved training and effective length.
    pub settings: Settings,
    /// Encodings of all records, sorted by name.
    pub encodings: Vec<Encoding>,
    /// Workloads, sorted by name.
    pub workloads: Vec<Workload>,
    /// Aggregates over the workloads; `None` with fewer than two workloads, or fewer than two encodings ranked on all
    /// of them.
    pub overall: Option<Overall>,
    /// Answer to [`Settings::question`]; `None` without a question.
    pub answer: Option<Answer>,
    /// Claims of [`Settings::claims`] with the answers to their comparisons.
    pub claims: Vec<JudgedClaim>,
    /// Frames with cells sorted by workload, encoding, seed and key. The points of curves and slices are in the
    /// workloads.
    pub frames: Frames,
    /// Conditions of all cells.
    pub conditions: Conditions,
    /// Cells excluded from all numbers.
    pub not_counted: Vec<NotCounted>,
    /// Evaluations that were not possible.
    pub skipped_evals: Vec<SkippedEvals>,
    /// Seeds that some encodings of a workload lack.
    pub missing_seeds: Vec<MissingSeeds>,
}

/// Names and colour index of an encoding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encoding {
    /// Name of the suite's expression.
    pub name: String,
    /// Label, or the name where several encodings share the label.
    pub display: String,
    /// Registry id of the encoding, for example `rope`.
    pub id: String,
    /// Number that determines colour, marker and dash; the same in every report for a built-in encoding.
    pub look: usize,
}

/// Results on one workload: a task at one size.
#[derive(Debug, Clone)]
pub struct Workload {
    /// Index among the workloads.
    pub index: usize,
    /// Name of the workload.
    pub name: String,
    /// Label of the task.
    pub task: String,
    /// Registry id of the task.
    pub task_id: String,
    /// Configuration of the first cell.
    pub config: Value,
    /// Metric that ranks the encodings.
    pub headline: Metric,
    /// Unit of lengths, for example `tokens`.
    pub len_unit: String,
    /// Headline metric of guessing, if it is known.
    pub chance: Option<f64>,
    /// Lengths in training (one, unless the records disagree).
    pub train_lens: Vec<u64>,
    /// Rankings of the regions with evaluations, in the order of [`Region::ALL`].
    pub rankings: Vec<Ranking>,
    /// Metrics of individual runs, one for each encoding; empty for tasks without exact match.
    pub run_metrics: Vec<RunMetrics>,
    /// The grid, if there is one; all other fields are then at the selected values.
    pub grid: Option<GridReport>,
    /// Aggregated evaluations of this workload.
    pub rows: Vec<Aggregate>,
    /// Loss in nats by step, for each encoding.
    pub training: Vec<Curve>,
    /// Headline metric in validations by step, for each encoding with validations; nll if the headline metric is
    /// perplexity.
    pub validation: Vec<Curve>,
    /// The same for each further split that was validated.
    pub split_validation: Vec<SplitCurves>,
    /// Results by properties of samples and tokens.
    pub slices: Vec<SliceSet>,
    /// Agreement of gates with the counted tokens, by head.
    pub gates: Vec<GateMean>,
    /// Costs of each encoding.
    pub costs: Vec<EncodingCost>,
    /// Distinct conditions of its counted cells; times and memory are comparable only if there is one.
    pub machines: Vec<String>,
}

impl Workload {
    /// Returns the ranking of a region; `None` if nothing was evaluated there.
    pub fn ranking(&self, region: Region) -> Option<&Ranking> {
        self.rankings.iter().find(|ranking| ranking.region == region)
    }

    /// Returns the ranking of the deciding region: longer, else other distributions, else both, else in distribution.
    /// `None` if nothing was evaluated.
    pub fn deciding(&self) -> Option<&Ranking> {
        STANDING.into_iter().find_map(|region| self.ranking(region))
    }
}

impl Report {
    /// [`Report::with`] of records, in any order, with the default settings.
    ///
    /// # Errors
    /// As [`Report::with`].
    pub fn new(records: impl AsRef<[RunRecord]>, meta: &ReportMeta) -> Result<Self, AnalysisError> {
        Self::with(Frames::of(records.as_ref())?, meta, &Settings::default())
    }

    /// Analyses the frames of records, in any order.
    ///
    /// # Errors
    /// [`AnalysisError::Settings`] when a setting cannot work, [`AnalysisError::UnknownHeadline`] when a record's
    /// headline metric is none that is known, [`AnalysisError::Frame`] when a query fails.
    pub fn with(
        frames: Frames,
        meta: &ReportMeta,
        settings: &Settings,
    ) -> Result<Self, AnalysisError> {
        Self::of_workloads(frames, meta, settings, &[])
    }

    /// Analyses the workloads of these names ([`Frames::workloads`]); all of them without names. Names of encodings are
    /// those of the report of all workloads.
    ///
    /// # Errors
    /// As [`Report::with`].
    pub fn of_workloads(
        frames: Frames,
        meta: &ReportMeta,
        settings: &Settings,
        chosen: &[String],
    ) -> Result<Self, AnalysisError> {
        settings.check()?;
        let frames = frames.with_unique_workloads()?;
        let sorted = frames.sorted(&["workload", "encoding", "seed", "key"])?;
        let frames = &sorted.frames;
        let encodings = encodings(frames)?;
        let display: BTreeMap<String, String> =
            encodings.iter().map(|e| (e.name.clone(), e.display.clone())).collect();
        let names = frames.cells.clone().lazy().group_by_stable([col("workload")]);
        let first = ["cell", "task", "config"].map(|name| col(name).first());
        let mut names = FirstCell::of(names.agg([&first[..], &[len().alias("cells")]].concat()))?;
        names.retain(|first| chosen.is_empty() || chosen.contains(&first.workload));
        let found: Vec<Result<WorkloadResults, AnalysisError>> = (0..names.len())
            .into_par_iter()
            .map(|index| {
                let first = &names[index];
                let range = first.cell as usize..(first.cell + first.cells) as usize;
                workload(index, first, &sorted.slice(&range)?, &display, settings)
            })
            .collect();
        let mut report = Self {
            meta: meta.clone(),
            settings: settings.clone(),
            encodings,
            conditions: Conditions::of_all(frames)?,
            workloads: Vec::new(),
            overall: None,
            answer: None,
            claims: Vec::new(),
            not_counted: Vec::new(),
            skipped_evals: Vec::new(),
            missing_seeds: Vec::new(),
            // Curves and slices are in the workloads by now, and formats need room.
            frames: sorted.frames,
        };
        // All results are collected before the first error is returned, so that it is always the same one.
        let mut rankings = Vec::new();
        for found in found {
            let WorkloadResults { workload, asked, not_counted, skipped_evals, missing_seeds } =
                found?;
            rankings.push((workload.name.clone(), asked));
            report.workloads.push(workload);
            report.not_counted.extend(not_counted);
            report.skipped_evals.extend(skipped_evals);
            report.missing_seeds.extend(missing_seeds);
        }
        let standing = report.workloads.iter().filter_map(|w| Some((&*w.name, w.deciding()?)));
        report.overall = Overall::of(standing.collect());
        let mut answers = settings.questions().enumerate().map(|(i, question)| {
            let own = rankings.iter_mut().map(|(name, asked)| (name.clone(), asked[i].take()));
            Answer::of(question, own.collect())
        });
        report.answer = settings.question.as_ref().and_then(|_| answers.next());
        for claim in &settings.claims {
            let answers = answers.by_ref().take(claim.comparisons.len()).collect();
            report.claims.push(JudgedClaim { claim: claim.clone(), answers });
        }
        let family = if settings.correct_each_claim { 1 } else { report.claims.len().max(1) };
        report.claims.chunks_mut(family).for_each(claim::correct);
        // A question that is also a claim has the verdict of the claim.
        if let Some(answer) = &mut report.answer {
            let mut of_claims = report.claims.iter().flat_map(|claim| &claim.answers);
            let same = of_claims.find(|own| own.question == answer.question);
            *answer = same.unwrap_or(answer).clone();
        }
        Ok(report)
    }

    /// Looks up an encoding by name; `None` if no record of the report has it.
    pub fn encoding(&self, name: &str) -> Option<&Encoding> {
        self.encodings.iter().find(|e| e.name == name)
    }

    /// Returns the display name of an encoding.
    pub fn display<'a>(&'a self, name: &'a str) -> &'a str {
        self.encoding(name).map_or(name, |e| &e.display)
    }

    /// Returns the floating-point operations of an encoding's training step relative to those of [`YARDSTICK`], median over
    /// the workloads.
    pub fn flops_ratio(&self, encoding: &str) -> Option<f64> {
        self.median_cost(encoding, |cost| cost.flops_ratio)
    }

    /// Median over the workloads of the FLOPs of the whole training, times RoPE's.
    pub fn flops_training_ratio(&self, encoding: &str) -> Option<f64> {
        self.median_cost(encoding, |cost| cost.flops_training_ratio)
    }

    /// Returns the time of an encoding's training step relative to that of [`YARDSTICK`]: that of one run of `speed` if the
    /// report has one, because cells differ in what ran beside them, or else the median over the workloads.
    pub fn step_time_ratio(&self, encoding: &str) -> Option<f64> {
        if self.meta.measured.is_empty() {
            self.median_cost(encoding, EncodingCost::sound_step_ratio)
        } else {
            self.meta.time_ratio(encoding, YARDSTICK)
        }
    }

    /// Median over the workloads of the time of the whole training, times that of [`YARDSTICK`]; see
    /// [`Report::training_time_ratio_of`].
    pub fn training_time_ratio(&self, encoding: &str) -> Option<f64> {
        self.median_cost(encoding, |cost| self.training_time_ratio_of(cost))
    }

    /// Returns the time of the whole training of an encoding on a workload, relative to that of [`YARDSTICK`]: the numbers of steps
    /// with the step times of one run of `speed` if the report has one, because cells differ in what ran beside them, or else
    /// the measured seconds.
    pub fn training_time_ratio_of(&self, cost: &EncodingCost) -> Option<f64> {
        if self.meta.measured.is_empty() {
            cost.sound_training_ratio()
        } else {
            Some(cost.steps_ratio()? * self.meta.time_ratio(&cost.encoding, YARDSTICK)?)
        }
    }

    fn median_cost(
        &self,
        encoding: &str,
        get: impl Fn(&EncodingCost) -> Option<f64>,
    ) -> Option<f64> {
        let costs = self.workloads.iter().flat_map(|workload| &workload.costs);
        let own = costs.filter(|cost| cost.encoding == encoding);
        stats::median(&own.filter_map(get).collect::<Vec<f64>>())
    }

    /// Returns the smallest and largest number of seeds of all results; `None` without results.
    pub fn seeds(&self) -> Option<(u32, u32)> {
        let n = || self.workloads.iter().flat_map(|w| &w.rows).map(|r| r.exact_match.n);
        n().min().zip(n().max())
    }
}

rows! {
    struct EncodingNames {
        encoding: String,
        encoding_id: String,
        encoding_label: String,
    }
}

impl EncodingNames {
    /// Returns the name that a suite gives, with the label of the encoding in place of its id: `RoPE, YaRN` for `rope, YaRN`,
    /// `Abacus + RoPE` for `abacus+rope` with settings.
    fn given_name(&self) -> String {
        match self.encoding.strip_prefix(&without_settings(&self.encoding_id)) {
            Some(rest) if rest.is_empty() || rest.starts_with(',') => {
                without_settings(&self.encoding_label) + rest
            }
            _ => self.encoding.clone(),
        }
    }
}

/// Returns an expression or label without the settings in braces.
fn without_settings(text: &str) -> String {
    let mut depth = 0_u32;
    let is_outside = |letter: &char| {
        depth += u32::from(*letter == '{');
        let is_outside = depth == 0;
        depth -= u32::from(*letter == '}' && depth > 0);
        is_outside
    };
    text.chars().filter(is_outside).collect()
}

fn encodings(frames: &Frames) -> PolarsResult<Vec<Encoding>> {
    let by = ["encoding"];
    let names = frames.cells.clone().lazy().group_by_stable(by.map(col));
    let names = names
        .agg(["encoding_id", "encoding_label"].map(|name| col(name).last()))
        .sort(by, stable());
    let names = EncodingNames::of(names)?;
    let with_label =
        |label: &str| names.iter().filter(|other| other.encoding_label == label).count();
    let looks = looks(names.iter().map(|own| own.encoding.as_str()));
    let encoding = |own: &EncodingNames| Encoding {
        name: own.encoding.clone(),
        // The label of plain `rope` stays `RoPE` if `rope(linear)` is also present. A name without settings that a
        // suite gives is shown in place of a label with settings.
        display: if own.encoding == own.encoding_id
            || (with_label(&own.encoding_label) == 1
                && (!own.encoding_label.contains('{') || own.encoding.contains('{')))
        {
            own.encoding_label.clone()
        } else {
            own.given_name()
        },
        id: own.encoding_id.clone(),
        look: looks[own.encoding.as_str()],
    };
    Ok(without_braces(names.iter().map(encoding).collect()))
}

/// Displays names with settings in words: `Randomized{longest=256}(RoPE)` as `Randomized RoPE`, and where that is another's name
/// as `Randomized, longest=256 (RoPE)`.
fn without_braces(mut encodings: Vec<Encoding>) -> Vec<Encoding> {
    let plain = |display: &str| without_settings(display).replace('(', " ").replace(')', "");
    let all: Vec<String> = encodings.iter().map(|own| plain(&own.display)).collect();
    for own in encodings.iter_mut().filter(|own| own.display.contains('{')) {
        let name = plain(&own.display);
        own.display = if all.iter().filter(|other| **other == name).count() == 1 {
            name
        } else {
            own.display.replace("={", " ").replace('{', ", ").replace("}(", " (").replace('}', "")
        };
    }
    encodings
}

rows! {
    /// Number of a workload's cells, and facts about the first cell.
    struct FirstCell {
        workload: String,
        cell: u32,
        cells: u32,
        task: String,
        config: String,
    }
}

rows! {
    /// Facts about the task of a cell.
    struct TaskRow {
        key: String,
        task_label: String,
        len_unit: String,
        headline: String,
        task_chance: Option<f64>,
        train_len: u64,
    }
}

/// Results on a workload, and its excluded cells and evaluations.
struct WorkloadResults {
    workload: Workload,
    /// Rankings of the two encodings of each question ([`Settings::questions`]).
    asked: Vec<Option<Ranking>>,
    not_counted: Vec<NotCounted>,
    skipped_evals: Vec<SkippedEvals>,
    missing_seeds: Vec<MissingSeeds>,
}

fn workload(
    index: usize,
    first: &FirstCell,
    frames: &Frames,
    display: &BTreeMap<String, String>,
    settings: &Settings,
) -> Result<WorkloadResults, AnalysisError> {
    let GridSelection { selected, defaults, grid } = select_grid_values(frames)?;
    let tasks = TaskRow::of(selected.clone().lazy())?;
    let mut headline = Metric::ExactMatch;
    for task in &tasks {
        headline = Metric::from_headline(&task.headline).ok_or_else(|| {
            AnalysisError::UnknownHeadline {
                key: task.key.clone(),
                headline: task.headline.clone(),
            }
        })?;
    }
    let cells = with_newest(selected.lazy())?;
    let done = is_newest().and(has_status("done"));
    let counted = Selection::new(frames, cells.clone().filter(done.clone()))?;
    // A seed that diverged was trained, and did not solve: it belongs in the fit rate.
    let diverged = is_newest().and(has_status("diverged"));
    let ended = Selection::new(frames, cells.clone().filter(done.clone().or(diverged)))?;
    let rankings_of = |runs: &[SeedRun]| -> Vec<Ranking> {
        let all = Region::ALL.map(|region| Ranking::new(runs, display, region, headline));
        all.into_iter().filter(|ranking| !ranking.points.is_empty()).collect()
    };
    let runs = SeedRun::all(&counted)?;
    let rankings = rankings_of(&runs);
    let asked = settings.questions().map(|q| rank_asked(q, &runs, display, headline)).collect();
    let grid = match grid {
        None => None,
        Some(grid) => {
            let defaults = Selection::new(frames, with_newest(defaults.lazy())?.filter(done))?;
            Some(GridReport { grid, defaults: rankings_of(&SeedRun::all(&defaults)?) })
        }
    };
    let mut train_lens: Vec<u64> = tasks.iter().map(|task| task.train_len).collect();
    train_lens.sort_unstable();
    train_lens.dedup();
    // Names come from cells, so there is a first one.
    let task = tasks.into_iter().next();
    let mut rows = aggregate(&counted)?;
    widen(&mut rows, &runs);
    let workload = Workload {
        index,
        name: first.workload.clone(),
        task_id: first.task.clone(),
        config: serde_json::from_str(&first.config).unwrap_or_default(),
        chance: task.as_ref().and_then(|task| task.task_chance),
        len_unit: task.as_ref().map_or_else(String::new, |task| task.len_unit.clone()),
        task: task.map_or_else(String::new, |task| task.task_label),
        headline,
        train_lens,
        run_metrics: run_metrics(&ended, settings)?,
        rankings,
        grid,
        rows,
        training: training(&counted)?,
        validation: validation(&counted, headline)?,
        split_validation: split_validation(&counted, headline)?,
        slices: slices(&counted)?,
        gates: gates(&counted)?,
        costs: costs(&counted)?,
        machines: machines(&counted)?,
    };
    Ok(WorkloadResults {
        workload,
        asked,
        not_counted: not_counted(cells)?,
        skipped_evals: skipped_evals(&counted)?,
        missing_seeds: missing_seeds(&counted)?,
    })
}

#[cfg(test)]
mod tests;
