//! Repetition of the heads that groups share, in one pass.

use burn::backend::flex::FlexTensor;

use super::head_rows::{HeadRows, each_row};
use crate::kernels::cpu::operation::Operation;
use crate::kernels::cpu::tensors::{dims, in_order};

/// Repetition of each head.
#[derive(Debug, Clone)]
pub(super) struct RepeatHeads {
    /// Number of copies.
    pub(super) times: usize,
}

impl Operation<1> for RepeatHeads {
    type Kept = ();

    fn forward(&self, [x]: [FlexTensor; 1]) -> (FlexTensor, ()) {
        (forward(x, self.times), ())
    }

    fn backward(&self, (): (), grad: FlexTensor, _: [bool; 1]) -> [Option<FlexTensor>; 1] {
        [Some(backward(grad, self.times))]
    }
}

fn forward(x: FlexTensor, times: usize) -> FlexTensor {
    let x = in_order(x);
    let [batch, heads, tokens, width] = dims(&x);
    let x = HeadRows::new(&x);
    each_row(
        [batch, heads * times, tokens, width],
        #[inline(always)]
        |at, h, output| output.copy_from_slice(x.row(at, h / times)),
    )
}

/// Adds up the gradients of each group.
fn backward(grad: FlexTensor, times: usize) -> FlexTensor {
    let grad = in_order(grad);
    let [batch, heads, tokens, width] = dims(&grad);
    let grad = HeadRows::new(&grad);
    each_row(
        [batch, heads / times, tokens, width],
        #[inline(always)]
        |at, h, output| {
            for n in h * times..(h + 1) * times {
                for (output, grad) in output.iter_mut().zip(grad.row(at, n)) {
                    *output += grad;
                }
            }
        },
    )
}
