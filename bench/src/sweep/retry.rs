//! Policy for running cells with a record again.

use std::collections::BTreeSet;

use clap::ValueEnum;
use reports::Status;

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
}

impl RetryPolicy {
    /// Whether a cell with this status is run again.
    pub fn includes(&self, status: &Status) -> bool {
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
        let only = |kind| RetryPolicy { force: false, retry: BTreeSet::from([kind]) };
        let force = RetryPolicy { force: true, retry: BTreeSet::new() };
        for (status, kind) in &ends {
            assert!(!RetryPolicy::default().includes(status), "{status:?}");
            for named in [*kind, Retry::All] {
                assert!(only(named).includes(status), "{status:?}");
            }
            for (_, other) in ends.iter().filter(|(_, other)| other != kind) {
                assert!(!only(*other).includes(status), "{status:?} by {other:?}");
            }
            assert!(force.includes(status));
        }
        assert!(RetryPolicy::default().includes(&Status::Interrupted));
        assert!(!only(Retry::All).includes(&Status::Done) && force.includes(&Status::Done));
        assert!(
            only(Retry::Damaged).includes_damaged() && !RetryPolicy::default().includes_damaged()
        );
    }
}
