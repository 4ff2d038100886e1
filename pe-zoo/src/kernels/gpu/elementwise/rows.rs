//! Selection of rows, whose gradient is one ordered sum for each row of the source.
//!
//! Burn's gradient adds all selected rows one after the other, in one thread for each column.

use std::sync::Arc;

use burn::backend::Cube;
use burn::backend::ops::FloatTensorOps;
use burn::tensor::{DType, Int, Shape, Tensor};
use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::tensor::CubeTensor;

use super::{cubes, empty, integers, last_axis, units_of_row};
use crate::kernels::gpu::operation::{CubeOperation, apply};

/// Selects rows, `[R, C], [N] -> [N, C]`. Where gradients are computed, the indices are read from the device.
///
/// # Panics
///
/// If an index is not that of a row, where gradients are computed.
pub(crate) fn select_rows(x: Tensor<2>, rows: Tensor<1, Int>) -> Tensor<2> {
    if !x.device().is_autodiff() {
        return x.select(0, rows);
    }
    let [count, _width] = x.dims();
    let indices = rows.clone().into_data().convert::<i64>();
    let indices = indices.try_into_vec::<i64>().expect("indices are 64-bit integers");
    let selected = Arc::new(SelectedPlaces::of(&indices, count));
    apply(SelectRows { rows: integers(rows.into_dispatch()), selected }, [x.into_dispatch()])
}

/// Where each row of the source was selected.
#[derive(Debug, PartialEq)]
struct SelectedPlaces {
    /// Places in the selection, those of row 0 first, each row's ascending.
    places: Vec<u32>,
    /// Begin of each row's places, and the end of the last one's.
    begins: Vec<u32>,
}

impl SelectedPlaces {
    /// Sorts the places of a selection by their rows.
    fn of(indices: &[i64], rows: usize) -> Self {
        let mut begins = vec![0_u32; rows + 1];
        for index in indices {
            let row = usize::try_from(*index).ok().filter(|row| *row < rows);
            let Some(row) = row else { panic!("row {index} of a tensor with {rows} rows") };
            begins[row + 1] += 1;
        }
        for row in 0..rows {
            begins[row + 1] += begins[row];
        }
        let (mut next, mut places) = (begins.clone(), vec![0; indices.len()]);
        for (place, index) in indices.iter().enumerate() {
            let next = &mut next[*index as usize];
            places[*next as usize] = place as u32;
            *next += 1;
        }
        Self { places, begins }
    }
}

#[derive(Debug, Clone)]
struct SelectRows {
    rows: CubeTensor,
    selected: Arc<SelectedPlaces>,
}

impl CubeOperation<1> for SelectRows {
    type Kept = ();

    fn forward(&self, [x]: [CubeTensor; 1]) -> (CubeTensor, ()) {
        (Cube::float_select(x, 0, self.rows.clone()), ())
    }

    fn backward(&self, (): (), grad: CubeTensor, _: [bool; 1]) -> [Option<CubeTensor>; 1] {
        let SelectedPlaces { places, begins } = &*self.selected;
        let (rows, width) = (begins.len() - 1, last_axis(&grad));
        let output = empty(&grad, [rows, width]);
        let uploaded = |numbers: &[u32]| {
            let (client, device) = (grad.client.clone(), grad.device.clone());
            let handle = client.create_from_slice(u32::as_bytes(numbers));
            let shape = Shape::from([numbers.len()]);
            CubeTensor::new_contiguous(client, device, shape, handle, DType::U32)
        };
        let (count, dim) = cubes(&grad.client, rows, units_of_row(width));
        selected_sums::launch(
            &grad.client.clone(),
            count,
            dim,
            grad.clone().into_buffer_arg(),
            uploaded(places).into_buffer_arg(),
            uploaded(begins).into_buffer_arg(),
            output.clone().into_buffer_arg(),
            rows,
            width,
        );
        [Some(output)]
    }
}

/// Numbers that are read before the first is added, so that their latencies overlap.
const AHEAD: usize = 8;

/// A cube computes a row of `output`: the sum of the rows of `grad` at its places, in their order.
#[cube(launch)]
fn selected_sums(
    grad: &[f32],
    places: &[u32],
    begins: &[u32],
    output: &mut [f32],
    rows: usize,
    width: usize,
) {
    let row = CUBE_POS;
    if row < rows {
        let begin = begins[row] as usize;
        let end = begins[row + 1] as usize;
        let mut column = UNIT_POS as usize;
        while column < width {
            let mut sum = f32::new(0.0);
            let mut at = begin;
            while at + AHEAD <= end {
                let mut terms = Array::<f32>::new(AHEAD);
                #[unroll]
                for n in 0..AHEAD {
                    terms[n] = grad[places[at + n] as usize * width + column];
                }
                #[unroll]
                for n in 0..AHEAD {
                    sum += terms[n];
                }
                at += AHEAD;
            }
            while at < end {
                sum += grad[places[at] as usize * width + column];
                at += 1;
            }
            output[row * width + column] = sum;
            column += CUBE_DIM as usize;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_sorted_by_row_and_ascend() {
        let selected = SelectedPlaces::of(&[2, 0, 2, 3, 0, 2], 5);
        assert_eq!(selected.places, [1, 4, 0, 2, 5, 3]);
        assert_eq!(selected.begins, [0, 2, 2, 5, 6, 6]);
    }

    #[test]
    #[should_panic(expected = "row 5 of a tensor with 5 rows")]
    fn a_row_that_does_not_exist_is_refused() {
        SelectedPlaces::of(&[0, 5], 5);
    }
}
