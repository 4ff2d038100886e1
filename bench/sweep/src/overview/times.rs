//! Expected times of cells that have not ended.

use std::collections::BTreeMap;

use records::Status;
use stats::median;

use super::{CellName, OpenCell, RecordFacts, RunningCell};
use crate::estimate::EVAL_SHARE;
use crate::manifest::ManifestCell;

/// Expected times of cells.
pub(super) struct CellTimes {
    /// Median seconds of finished cells, by workload and encoding.
    known: BTreeMap<(String, String), f64>,
    /// Operations of training per second of a cell, evaluation included.
    speed: Option<f64>,
}

impl CellTimes {
    pub(super) fn of<'a>(
        records: impl Iterator<Item = &'a RecordFacts>,
        estimate: Option<f64>,
    ) -> Self {
        let mut seconds = BTreeMap::<_, Vec<f64>>::new();
        let mut speeds = Vec::new();
        for record in records.filter(|r| r.status == Status::Done && r.seconds > 0.0) {
            let kind = (record.cell.workload.clone(), record.cell.encoding.clone());
            seconds.entry(kind).or_default().push(record.seconds);
            speeds.push(record.train_flops / record.seconds);
        }
        let estimate = estimate.map(|speed| speed * (1.0 - EVAL_SHARE));
        let known = seconds.into_iter().filter_map(|(kind, all)| Some((kind, median(&all)?)));
        let measured = median(&speeds).filter(|speed| *speed > 0.0);
        Self { known: known.collect(), speed: measured.or(estimate) }
    }

    fn of_cell(&self, cell: &CellName, plan: Option<&&ManifestCell>) -> Option<f64> {
        let kind = (cell.workload.clone(), cell.encoding.clone());
        self.known.get(&kind).copied().or_else(|| Some(plan?.train_flops as f64 / self.speed?))
    }

    /// Seconds until all cells have ended: the work divided by the cells at a time, or the longest remainder of a cell.
    pub(super) fn left(
        &self,
        running: &[RunningCell],
        open: &[OpenCell],
        planned: &BTreeMap<&str, &ManifestCell>,
    ) -> Option<f64> {
        let of = |cell: &CellName, step: Option<usize>| {
            let plan = planned.get(cell.key.as_str());
            let steps = plan.map_or(0, |plan| plan.steps).max(1);
            let done = (step.unwrap_or(0) as f64 / steps as f64).min(1.0);
            Some(self.of_cell(cell, plan)? * (1.0 - done * (1.0 - EVAL_SHARE)))
        };
        let running = running.iter().map(|r| of(&r.cell, r.step)).collect::<Option<Vec<_>>>()?;
        let open = open.iter().map(|o| of(&o.cell, o.step)).collect::<Option<Vec<_>>>()?;
        if running.is_empty() {
            return open.is_empty().then_some(0.0);
        }
        let work = running.iter().chain(&open).sum::<f64>() / running.len() as f64;
        Some(running.iter().chain(&open).copied().fold(work, f64::max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(key: &str, encoding: &str, seconds: f64) -> RecordFacts {
        RecordFacts {
            cell: cell(key, encoding),
            status: Status::Done,
            seconds,
            train_flops: 1000.0,
        }
    }

    fn cell(key: &str, encoding: &str) -> CellName {
        CellName {
            key: key.to_owned(),
            workload: "copy".to_owned(),
            encoding: encoding.to_owned(),
            seed: 0,
        }
    }

    fn planned(key: &str, encoding: &str) -> ManifestCell {
        ManifestCell {
            key: key.to_owned(),
            workload: "copy".to_owned(),
            encoding: encoding.to_owned(),
            seed: 0,
            steps: 100,
            train_flops: 2000,
        }
    }

    fn open(key: &str, encoding: &str) -> OpenCell {
        OpenCell { cell: cell(key, encoding), step: None, last_process: None }
    }

    fn running(key: &str, encoding: &str, step: Option<usize>) -> RunningCell {
        RunningCell {
            cell: cell(key, encoding),
            step,
            steps: Some(100),
            host: "node".to_owned(),
            pid: 1,
            since_utc: String::new(),
        }
    }

    #[test]
    fn the_time_left_follows_finished_cells_and_the_cells_at_a_time() {
        let cells = [planned("a", "rope"), planned("b", "cope"), planned("c", "rope")];
        let plan = cells.iter().map(|cell| (cell.key.as_str(), cell)).collect();
        let left = |times: &CellTimes, running: &[RunningCell], open: &[OpenCell]| {
            times.left(running, open, &plan)
        };
        let measured = CellTimes::of([facts("x", "rope", 10.0)].iter(), Some(1.0));
        // RoPE's time is known; CoPE's operations take twice as long at the measured rate.
        assert_eq!(
            left(&measured, &[running("a", "rope", None)], &[open("b", "cope")]),
            Some(30.0)
        );
        let two = [running("a", "rope", Some(50)), running("c", "rope", None)];
        assert_eq!(left(&measured, &two, &[]), Some(10.0), "no cell is shared between processes");
        let half = left(&measured, &[running("a", "rope", Some(50))], &[]).unwrap();
        assert!((half - 5.5).abs() < 1e-9, "{half}");
        assert_eq!(left(&measured, &[], &[open("b", "cope")]), None, "nobody works on it");
        assert_eq!(left(&measured, &[], &[]), Some(0.0));
        let estimated = CellTimes::of([].iter(), Some(100.0));
        let seconds = left(&estimated, &[running("a", "rope", None)], &[]).unwrap();
        assert!((seconds - 2000.0 / 90.0).abs() < 1e-9, "{seconds}");
        let nothing = CellTimes::of([].iter(), None);
        assert_eq!(left(&nothing, &[running("a", "rope", None)], &[]), None);
    }
}
