//! Choices of the kernels that measurements make in place of the launch.

use std::sync::{Mutex, PoisonError};

/// Choices for all kernels of this process; `None` leaves a choice to the launch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Choices {
    /// Index of the tile, of which 0 is the largest.
    pub tile: Option<usize>,
    /// Cubes of a backward pass for each multiprocessor.
    pub cubes_each: Option<usize>,
    /// Largest number of groups of 16 rows that a plane owns in the kernels on `mma.sync`: 1 or 2.
    pub row_groups: Option<usize>,
    /// Whether products of bf16 may use the tensor instructions of the H100 and H200.
    pub warpgroups: Option<bool>,
}

static CHOICES: Mutex<Choices> =
    Mutex::new(Choices { tile: None, cubes_each: None, row_groups: None, warpgroups: None });

/// Sets the choices of all following launches.
pub fn choose(choices: Choices) {
    *CHOICES.lock().unwrap_or_else(PoisonError::into_inner) = choices;
}

pub(super) fn choices() -> Choices {
    *CHOICES.lock().unwrap_or_else(PoisonError::into_inner)
}
