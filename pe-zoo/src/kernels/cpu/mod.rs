//! Kernels for the CPU: attention in blocks that stay in the cache, in SIMD.
//!
//! A block of query rows is processed with all visible columns at once: logits, suffix sums, softmax and
//! values stay in the cache, and the backward pass, written by hand, recomputes logits and weights
//! instead of keeping them. One loop serves every modifier, because all of them are functions of
//! (dot product, distance, suffix sum along the row). Logits are stored key-major, `[column][row]`,
//! so that suffix sums run across rows in SIMD lanes.
//!
//! | Module | Contents |
//! | --- | --- |
//! | `op` | attention as an operation |
//! | `operation` | operations that Burn can differentiate |
//! | `heads` | operands cut into heads |
//! | `engine`, `gradients`, `reduce` | tasks in parallel, and sums over them in a fixed order |
//! | `rows` | rows of one head or of all heads of a sequence |
//! | `kernel` | one block of rows of one head, forward and backward |
//! | `one_row` | the last token alone, as in decoding |
//! | `contextual`, `contextual_mlp`, `contextual_mlp_pieces`, `distance`, `term`, `term_inputs` | the more complex biases |
//! | `modifiers`, `modifier_scratch` | biases and products with additional operands |
//! | `problem`, `scratch` | heads and blocks, buffers |
//! | `view`, `parallel`, `tensors` | matrices, threads and tensors, as `operation` also used by `ops` |

mod contextual;
mod contextual_mlp;
mod contextual_mlp_pieces;
mod distance;
mod engine;
mod gradients;
mod heads;
mod kernel;
mod modifier_scratch;
pub(crate) mod modifiers;
mod one_row;
mod op;
pub(crate) mod operation;
pub(crate) mod parallel;
mod problem;
mod reduce;
mod rows;
mod scratch;
pub(crate) mod tensors;
mod term;
mod term_inputs;
pub(crate) mod view;

pub(crate) use op::attend;

/// Tests that results have the same bits on any number of threads.
#[cfg(test)]
mod tests;
