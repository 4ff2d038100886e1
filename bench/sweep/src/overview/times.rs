//! Expected times of cells that have not ended.

use std::collections::BTreeMap;

use records::Status;

use super::{CellName, OpenCell, RecordFacts, RunningCell};
use crate::estimate::{EVAL_SHARE, ExpectedSeconds, TimedWork};
use crate::manifest::ManifestCell;

/// Expected times of cells, evaluation included.
pub(super) struct CellTimes(ExpectedSeconds);

impl CellTimes {
    /// Times by these records; without any, by `estimate`, the operations of training per second.
    pub(super) fn of<'a>(
        records: impl Iterator<Item = &'a RecordFacts>,
        estimate: Option<f64>,
    ) -> Self {
        let done = records.filter(|record| record.status == Status::Done);
        let cells = done.map(|record| TimedWork {
            workload: &record.cell.workload,
            encoding: &record.cell.encoding,
            seconds: record.seconds,
            operations: record.train_flops,
        });
        let estimate = estimate.map(|speed| speed * (1.0 - EVAL_SHARE));
        Self(ExpectedSeconds::of(cells).or_rate(|| estimate))
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
            let operations = plan.map(|plan| plan.train_flops as f64);
            let whole = self.0.seconds(&cell.workload, &cell.encoding, operations)?;
            Some(whole * (1.0 - done * (1.0 - EVAL_SHARE)))
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
