//! Choices of the kernels that measurements make in place of the launch.

use std::sync::{Mutex, PoisonError};

use burn::tensor::Tensor;
use burn_cubecl::tensor::CubeTensor;

use super::mma::product;
use super::operation::{CubeOperation, apply};

/// Choices for all kernels of this process; `None` leaves a choice to the launch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Choices {
    /// Index of the tile, of which 0 is the largest.
    pub tile: Option<usize>,
    /// Cubes of a backward pass for each multiprocessor.
    pub cubes_each: Option<usize>,
    /// Largest number of groups of 16 rows that a plane owns in the kernels on `mma.sync`: 1 or 2.
    pub row_groups: Option<usize>,
}

static CHOICES: Mutex<Choices> =
    Mutex::new(Choices { tile: None, cubes_each: None, row_groups: None });

/// Sets the choices of all following launches.
pub fn choose(choices: Choices) {
    *CHOICES.lock().unwrap_or_else(PoisonError::into_inner) = choices;
}

pub(super) fn choices() -> Choices {
    *CHOICES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Multiplies matrices of bf16, each as it is in memory, by the kernel for linear maps: `[1, rows, columns]` in f32.
pub fn multiply_on_mma(factors: [Tensor<2>; 2], transposed: [bool; 2]) -> Tensor<3> {
    apply(MatrixProduct { transposed }, factors.map(Tensor::into_dispatch))
}

/// Product without gradients.
#[derive(Debug, Clone)]
struct MatrixProduct {
    transposed: [bool; 2],
}

impl CubeOperation<2> for MatrixProduct {
    type Kept = ();

    fn forward(&self, factors: [CubeTensor; 2]) -> (CubeTensor, ()) {
        (product::of_matrices(factors, self.transposed), ())
    }

    fn backward(&self, (): (), _: CubeTensor, _: [bool; 2]) -> [Option<CubeTensor>; 2] {
        [None, None]
    }
}
