//! Queue of the cells of a sweep.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Time between checks of a cell that another sweep holds.
const BETWEEN_LOOKS: Duration = Duration::from_millis(250);

/// Remaining cells, shared by the threads of a sweep.
#[derive(Debug)]
pub(super) struct WorkQueue {
    left: Mutex<Left>,
    changed: Condvar,
}

#[derive(Debug)]
struct Left {
    /// Cells not tried yet, in the order of their start.
    fresh: VecDeque<usize>,
    /// Cells that other sweeps held when they were tried.
    held: VecDeque<usize>,
    /// Number of cells taken by threads, which may put them back.
    out: usize,
}

impl WorkQueue {
    pub(super) fn new(cells: impl IntoIterator<Item = usize>) -> Self {
        let fresh = cells.into_iter().collect();
        let left = Left { fresh, held: VecDeque::new(), out: 0 };
        Self { left: Mutex::new(left), changed: Condvar::new() }
    }

    /// Takes the next cell: one not tried yet or, after a pause, one that was held. `None` if no cell is left or the
    /// sweep is stopped.
    pub(super) fn next(&self, stop: &AtomicBool) -> Option<usize> {
        let mut left = self.lock();
        loop {
            if stop.load(Ordering::SeqCst) {
                return None;
            }
            if let Some(index) = left.fresh.pop_front() {
                left.out += 1;
                return Some(index);
            }
            if left.held.is_empty() && left.out == 0 {
                return None;
            }
            left = self
                .changed
                .wait_timeout(left, BETWEEN_LOOKS)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
            if let Some(index) = left.held.pop_front() {
                left.out += 1;
                return Some(index);
            }
        }
    }

    /// Returns a cell that another sweep holds, to be tried again later.
    pub(super) fn put_back(&self, index: usize) {
        let mut left = self.lock();
        left.out -= 1;
        left.held.push_back(index);
    }

    /// Removes a taken cell from the queue for good.
    pub(super) fn cross_out(&self) {
        self.lock().out -= 1;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Left> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_come_in_order_and_held_ones_come_again() {
        let (queue, stop) = (WorkQueue::new([3, 1, 2]), AtomicBool::new(false));
        assert_eq!(queue.next(&stop), Some(3));
        queue.put_back(3);
        assert_eq!(queue.next(&stop), Some(1));
        assert_eq!(queue.next(&stop), Some(2));
        queue.cross_out();
        assert_eq!(queue.next(&stop), Some(3));
        queue.cross_out();
        queue.cross_out();
        assert_eq!(queue.next(&stop), None);
    }

    #[test]
    fn a_stopped_sweep_starts_nothing() {
        let stop = AtomicBool::new(true);
        assert_eq!(WorkQueue::new([0]).next(&stop), None);
    }

    #[test]
    fn who_waits_gets_what_another_puts_back() {
        let (queue, stop) = (WorkQueue::new([0]), AtomicBool::new(false));
        assert_eq!(queue.next(&stop), Some(0));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| queue.next(&stop));
            std::thread::sleep(BETWEEN_LOOKS / 2);
            queue.put_back(0);
            assert_eq!(waiting.join().unwrap(), Some(0));
        });
    }
}
