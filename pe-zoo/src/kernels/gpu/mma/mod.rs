//! Attention and linear maps on NVIDIA's `mma.sync`: bf16 factors, f32 sums, and results that stay in registers from one product to the
//! next.
//!
//! `pack` converts queries, keys, values and gradients to bf16. `forward` and `dq` own rows and walk over columns, `dkv`
//! owns keys and walks over rows; the backward pass recomputes logits and weights in each of the two. Every sum has one
//! owner, which writes it once: nothing is added in global memory, and two runs give the same bits.
//!
//! | Module | Contents |
//! | --- | --- |
//! | `choice`, `config` | which attentions these kernels compute, and their compile-time settings |
//! | `launch`, `table`, `inputs`, `tensors` | launches and arguments |
//! | `pack`, `packed`, `second` | conversion to bf16, and the dot products of output and gradient |
//! | `forward`, `dq`, `dkv`, `dkv_rows`, `bands` | the kernels |
//! | `walk`, `votes` | where a cube begins and how far it walks |
//! | `softmax`, `rows`, `row_sums` | weights from logits, gradients of logits by rows, and sums of them |
//! | `tile`, `blocks`, `columns`, `queries`, `copies` | products in registers, and blocks in shared memory |
//! | `biases` | biases and the causal mask |
//! | `channels`, `near` | products whose channels decay |
//! | `moving`, `reflected`, `reflected_gradients` | queries that change from block to block |
//! | `pieces`, `piece_gradients` | a piecewise linear function of the distance |
//! | `along`, `pair`, `row_table`, `entries` | forms along a row, and the tables of rows with their gradients |
//! | `terms` | functions of pairs from their authors |
//! | `approximate`, `instruction` | functions that are one instruction, and what LLVM makes of them |
//! | `warpgroup` | tensor instructions of the H100 and H200 |
//! | `product` | products of matrices, for linear maps |

#![expect(clippy::manual_is_multiple_of, reason = "the kernel language has only operators")]

mod along;
mod approximate;
mod bands;
mod biases;
mod blocks;
mod channels;
mod choice;
mod columns;
mod config;
mod copies;
mod dkv;
mod dkv_rows;
mod dq;
mod entries;
mod forward;
mod inputs;
#[cfg(all(feature = "cuda", not(feature = "cuda-cpp")))]
mod instruction;
mod launch;
mod moving;
mod near;
mod pack;
mod packed;
mod pair;
mod piece_gradients;
mod pieces;
pub(super) mod product;
mod queries;
mod reflected;
mod reflected_gradients;
mod row_sums;
mod row_table;
mod rows;
mod second;
mod softmax;
mod table;
mod tensors;
mod terms;
mod tile;
mod votes;
mod walk;
mod warpgroup;

#[cfg(all(test, feature = "flex"))]
pub(super) use choice::supported;
pub(super) use choice::{config, takes};
pub(super) use config::{MmaConfig, OWNED};
pub(super) use launch::{MmaForward, forward, gradients};

#[cfg(all(test, any(feature = "cores-sim", feature = "ptx")))]
pub(super) mod testing;
