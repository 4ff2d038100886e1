//! Order in which a process tries to claim the cells of a sweep.

/// Fractional part of the golden ratio: the multiples `0, G, 2G, ...` modulo 1 stay far apart, however many there are.
const GOLDEN: f64 = 0.618_033_988_749_894_9;

/// Sorts cells in the order in which a process tries to claim them; `seconds` are the expected times of all cells.
///
/// Cells with longer times come first, so that no long cell is left alone at the end. Processes that start together would
/// all try the same cell. With a number, a process therefore begins at a place of its own among the cells whose times
/// differ by less than a factor of two, and takes those before it last.
pub fn sort(cells: &mut [usize], seconds: &[f64], worker: Option<u32>) {
    cells.sort_by(|a, b| seconds[*b].total_cmp(&seconds[*a]));
    let Some(worker) = worker else { return };
    let octave = |cell: usize| seconds[cell].log2().floor() as i32;
    for similar in cells.chunk_by_mut(|a, b| octave(*a) == octave(*b)) {
        let share = (f64::from(worker) * GOLDEN).fract();
        similar.rotate_left((share * similar.len() as f64) as usize);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn sorted(seconds: &[f64], worker: Option<u32>) -> Vec<usize> {
        let mut cells = (0..seconds.len()).collect::<Vec<_>>();
        sort(&mut cells, seconds, worker);
        cells
    }

    #[test]
    fn longer_cells_come_first_and_equal_ones_in_the_order_of_the_suite() {
        assert_eq!(sorted(&[1.0, 9.0, 9.0, 0.0, 30.0], None), [4, 1, 2, 0, 3]);
        assert!(sorted(&[], Some(3)).is_empty());
    }

    #[test]
    fn workers_that_start_together_begin_with_different_cells() {
        for (workers, cells) in [(8, 24), (16, 400), (100, 300), (1000, 4000)] {
            let firsts = (0..workers).map(|worker| sorted(&vec![60.0; cells], Some(worker))[0]);
            let different = firsts.collect::<BTreeSet<_>>().len();
            assert_eq!(different, workers as usize, "{cells} cells");
        }
        // With as many workers as cells, as in an array of Slurm.
        let firsts = (1..=100).map(|worker| sorted(&[60.0; 100], Some(worker))[0]);
        assert!(firsts.collect::<BTreeSet<_>>().len() > 75);
    }

    #[test]
    fn every_worker_has_all_cells_and_long_ones_first() {
        let seconds = (0..60).map(|cell| [100.0, 0.0, 7.9, 4.1][cell % 4]).collect::<Vec<_>>();
        for worker in [0, 1, 7, u32::MAX] {
            let cells = sorted(&seconds, Some(worker));
            assert_eq!(cells, sorted(&seconds, Some(worker)), "the order is repeatable");
            assert_eq!(cells.iter().collect::<BTreeSet<_>>().len(), 60);
            assert!(cells[..15].iter().all(|cell| cell % 4 == 0), "{cells:?}");
            assert!(cells[45..].iter().all(|cell| cell % 4 == 1), "{cells:?}");
        }
    }
}
