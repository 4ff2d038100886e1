//! Queries, keys and states of heads, `[B, H, T, D]`, read and written token by token.

use burn::backend::flex::{FlexTensor, Layout};
use burn::tensor::{Bytes, DType, Shape};

/// A tensor `[1 or B, 1 or H, 1 or T, D]`, whose axes of length 1 stand for all indices.
#[derive(Debug, Clone, Copy)]
pub(super) struct HeadRows<'a> {
    numbers: &'a [f32],
    /// Strides of sequence, head and token; 0 along an axis of length 1.
    strides: [usize; 3],
    width: usize,
}

impl<'a> HeadRows<'a> {
    /// Borrows a tensor that [`in_order`] returned.
    pub(super) fn new(tensor: &'a FlexTensor) -> Self {
        let layout = tensor.layout();
        let shape = layout.shape();
        let stride = |axis: usize| match shape[axis] {
            1 => 0,
            _ => layout.strides()[axis].unsigned_abs(),
        };
        Self {
            numbers: &tensor.storage::<f32>()[layout.start_offset()..],
            strides: [stride(0), stride(1), stride(2)],
            width: shape[3],
        }
    }

    /// Numbers of one head of one token.
    #[inline(always)]
    pub(super) fn row(&self, [b, t]: [usize; 2], h: usize) -> &'a [f32] {
        let [of_batch, of_head, of_token] = self.strides;
        &self.numbers[b * of_batch + h * of_head + t * of_token..][..self.width]
    }
}

/// Returns the tensor with adjacent elements along the last axis and no negative strides; copies if necessary.
pub(super) fn in_order(tensor: FlexTensor) -> FlexTensor {
    let strides = tensor.layout().strides();
    let fits = strides[3] == 1 && strides.iter().all(|stride| *stride >= 0);
    if fits { tensor } else { tensor.to_contiguous() }
}

/// Creates a tensor `[B, H, T, D]` from numbers in the order `[B, T, H, D]`, like the output of a projection.
pub(super) fn in_token_order(
    numbers: Vec<f32>,
    [batch, heads, tokens, width]: [usize; 4],
) -> FlexTensor {
    FlexTensor::new(
        Bytes::from_elems(numbers),
        token_layout([batch, heads, tokens, width]),
        DType::F32,
    )
}

/// Layout of `[B, H, T, D]` in the order `[B, T, H, D]`.
pub(super) fn token_layout([batch, heads, tokens, width]: [usize; 4]) -> Layout {
    let strides = [tokens * heads * width, width, heads * width, 1].map(|stride| stride as isize);
    Layout::new(Shape::from([batch, heads, tokens, width]), strides.to_vec(), 0)
}
