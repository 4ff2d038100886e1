//! Policy for running cells with a record again.

use std::collections::BTreeSet;

use clap::ValueEnum;
use records::{RunRecord, Status};

/// Status of cells that `--retry` runs again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Retry {
    /// Runs that failed with an error.
    Failed,
    /// Cells that exceeded their time limit; resumed from the last checkpoint.
    TimedOut,
    /// Cells that exceeded their memory limit; resumed from the last checkpoint.
    OutOfMemory,
    /// Runs whose loss became infinite or NaN.
    Diverged,
    /// Cells with an unreadable record, which is renamed to `<key>.json.damaged`.
    Damaged,
    /// All of the above.
    All,
}

/// Policy for running cells with a record again; interrupted cells are always resumed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Whether all cells are run again from the start.
    pub force: bool,
    /// Statuses of cells that are run again.
    pub retry: BTreeSet<Retry>,
    /// Time, RFC 3339 in UTC, before which a run must have started to be run again for its status; `None`: at any time. A
    /// worker of a cluster that is queued again does not repeat the retries of the one before.
    pub before: Option<String>,
}

impl RetryPolicy {
    /// Whether a cell with this record is run again.
    pub fn includes(&self, record: &RunRecord) -> bool {
        let is_older = self.before.as_ref().is_none_or(|before| record.started_utc < *before);
        self.includes_status(&record.status) && (is_older || record.status == Status::Interrupted)
    }

    fn includes_status(&self, status: &Status) -> bool {
        let kind = match status {
            Status::Interrupted => return true,
            Status::Done => return self.force,
            Status::Failed { .. } => Retry::Failed,
            Status::TimedOut { .. } => Retry::TimedOut,
            Status::OutOfMemory { .. } => Retry::OutOfMemory,
            Status::Diverged { .. } => Retry::Diverged,
        };
        self.names(kind)
    }

    /// Whether a cell whose record cannot be read is run again.
    pub fn includes_damaged(&self) -> bool {
        self.names(Retry::Damaged)
    }

    fn names(&self, kind: Retry) -> bool {
        self.force || self.retry.contains(&kind) || self.retry.contains(&Retry::All)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ended_stays_until_it_is_named() {
        let reason = String::new;
        let ends = [
            (Status::Failed { reason: reason() }, Retry::Failed),
            (Status::TimedOut { reason: reason() }, Retry::TimedOut),
            (Status::OutOfMemory { reason: reason() }, Retry::OutOfMemory),
            (Status::Diverged { step: 1, reason: reason() }, Retry::Diverged),
        ];
        let only = |kind| RetryPolicy { retry: BTreeSet::from([kind]), ..RetryPolicy::default() };
        let force = RetryPolicy { force: true, ..RetryPolicy::default() };
        for (status, kind) in &ends {
            assert!(!RetryPolicy::default().includes_status(status), "{status:?}");
            for named in [*kind, Retry::All] {
                assert!(only(named).includes_status(status), "{status:?}");
            }
            for (_, other) in ends.iter().filter(|(_, other)| other != kind) {
                assert!(!only(*other).includes_status(status), "{status:?} by {other:?}");
            }
            assert!(force.includes_status(status));
        }
        assert!(RetryPolicy::default().includes_status(&Status::Interrupted));
        assert!(
            !only(Retry::All).includes_status(&Status::Done)
                && force.includes_status(&Status::Done)
        );
        assert!(
            only(Retry::Damaged).includes_damaged() && !RetryPolicy::default().includes_damaged()
        );
    }
}
