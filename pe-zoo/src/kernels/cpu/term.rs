//! Pair terms on the CPU: functions applied to the content logits of a block.

use super::problem::{Block, Head};
use super::reduce::Grads;
use super::scratch::{Scratch, grow};
use super::term_inputs::row;
use crate::kernels::operands::Slot;
use crate::score::{TermGrads, TermSizes};

/// Applies all terms to the content logits in `s.logits`. With `keep`, stores the input of each
/// term in `s.contents`.
pub(super) fn apply<const R: usize>(
    head: &Head<'_>,
    block: &Block<R>,
    s: &mut Scratch<R>,
    keep: bool,
) {
    let n = block.columns;
    s.term_inputs.positions(head, block);
    let mut offset = TermSizes::default();
    for (number, term) in head.spec.terms.iter().enumerate() {
        if keep {
            s.contents.resize_with(head.spec.terms.len(), Vec::new);
            let content = &mut s.contents[number];
            grow(content, n);
            content[..n].copy_from_slice(&s.logits[..n]);
        }
        let TermSizes { params, state } = term.sizes();
        s.term_inputs.read(head, block, offset, term.sizes());
        term.apply(&s.term_inputs.block(), s.logits[..n].as_flattened_mut());
        offset.params += params;
        offset.state += state;
    }
}

/// Converts `s.grads` from gradients of the terms' values to those of the content logits, and adds
/// the gradients of parameters and state.
pub(super) fn backward<const R: usize>(
    head: &Head<'_>,
    block: &Block<R>,
    s: &mut Scratch<R>,
    grads: &mut Grads<'_>,
) {
    let n = block.columns;
    s.term_inputs.positions(head, block);
    let sizes = head.spec.terms.iter().map(|term| term.sizes()).collect::<Vec<_>>();
    let mut offset = sizes.iter().fold(TermSizes::default(), |sum, sizes| TermSizes {
        params: sum.params + sizes.params,
        state: sum.state + sizes.state,
    });
    for (number, term) in head.spec.terms.iter().enumerate().rev() {
        let TermSizes { params, state } = sizes[number];
        offset.params -= params;
        offset.state -= state;
        s.term_inputs.read(head, block, offset, sizes[number]);
        let mut of_params = vec![0.0; params * R];
        let mut of_rows = vec![0.0; state * R];
        let mut of_columns = vec![0.0; state * n];
        term.backward(
            &s.term_inputs.block(),
            s.contents[number][..n].as_flattened(),
            s.grads[..n].as_flattened_mut(),
            TermGrads {
                params: &mut of_params,
                row_state: &mut of_rows,
                column_state: &mut of_columns,
            },
        );
        if let Some(total) = grads.get(Slot::TermParams) {
            for (p, lanes) in of_params.chunks(R).enumerate() {
                *total.get(0, offset.params + p) += lanes[..block.rows].iter().sum::<f32>();
            }
        }
        if let Some(total) = grads.get(Slot::TermState) {
            for (k, lanes) in of_rows.chunks(R).enumerate() {
                for (lane, grad) in lanes[..block.rows].iter().enumerate() {
                    *total.get(row(head, block, lane), offset.state + k) += grad;
                }
            }
            for (j, columns) in of_columns.chunks(state.max(1)).enumerate() {
                for (k, grad) in columns.iter().enumerate() {
                    *total.get(j, offset.state + k) += grad;
                }
            }
        }
    }
}
