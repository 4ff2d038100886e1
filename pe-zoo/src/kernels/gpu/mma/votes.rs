//! Agreement of a cube's planes on whether what is left of all rows is far.

use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;

use super::config::{MmaConfig, PLANES};

/// Least sums of the rows of each plane, for two steps of a walk.
#[derive(CubeType)]
pub(super) struct RowVotes {
    least: Shared<[f32]>,
}

#[cube]
impl RowVotes {
    pub(super) fn new(#[comptime] config: MmaConfig) -> RowVotes {
        RowVotes {
            least: Shared::new_slice(comptime![if config.carries() { 2 * PLANES } else { 1 }]),
        }
    }

    /// Publishes the least sum of this plane's rows for the step with `left` blocks left. A barrier must follow.
    pub(super) fn cast(&mut self, passed: &Array<f32>, left: usize, #[comptime] config: MmaConfig) {
        if comptime![config.carries()] {
            // The lanes of a row have the same sum.
            let mut least = min(passed[0], passed[1]);
            least = min(least, plane_shuffle_xor(least, 4));
            least = min(least, plane_shuffle_xor(least, 8));
            least = min(least, plane_shuffle_xor(least, 16));
            if UNIT_POS_PLANE == 0 {
                self.least[left % 2 * PLANES + UNIT_POS as usize / 32] = least;
            }
        }
    }

    /// Least sum of all rows after the step before which `left + 1` blocks were left.
    pub(super) fn least(&self, left: usize) -> f32 {
        let begin = (left + 1) % 2 * PLANES;
        let mut least = self.least[begin];
        #[unroll]
        for plane in 1..PLANES {
            least = min(least, self.least[begin + plane]);
        }
        least
    }
}
