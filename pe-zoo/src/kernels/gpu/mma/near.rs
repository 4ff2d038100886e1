//! Products whose channels decay, outside of the kernels that walk over blocks: queries and keys relative to the ends of their
//! groups of 16, the products of near pairs, and gradients of both.
//!
//! A pair is near if the first row of its group does not see the last key of its group: at most 31 keys for each row.

#![expect(unsafe_code, reason = "kernels are launched without tests of their indices")]

use burn::backend::Cube;
use burn::backend::ops::FloatTensorOps;
use burn::tensor::DType;
use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::tensor::CubeTensor;

use super::approximate::{LOG2_E, NATIVE, power_of_two};
use super::channels::first_near;
use super::config::{NEAR, PLANES, ROWS};
use super::pack::{Eight, PACKED, Strided, own_row};
use super::tensors::{LaunchGrid, empty, grid, of_tokens, strided, whole_rows};
use crate::kernels::operands::{Operands, Sizes, Slot};

/// `exp(newer - older)` for eight channels of two tokens, at most 1.
#[cube]
fn decay(
    sums: &Strided,
    newer: usize,
    older: usize,
    piece: usize,
    #[comptime] native: bool,
) -> Eight {
    let apart = sums.numbers[sums.line(newer) + piece] - sums.numbers[sums.line(older) + piece];
    let mut factors = Eight::empty();
    #[unroll]
    for i in 0..8usize {
        let exponent = min(apart.extract(i), f32::new(0.0)) * comptime![LOG2_E];
        factors.insert(i, power_of_two(exponent, native));
    }
    factors
}

/// Index among the columns of the first row of the group of a row.
#[cube]
fn group_of(row: usize, first_row: usize) -> usize {
    first_row + row / ROWS * ROWS
}

/// Decay between a row and the first one of its group, or between the last key of a group and a key.
#[cube]
fn decay_in_group(
    sums: &Strided,
    token: usize,
    first_row: usize,
    piece: usize,
    #[comptime] of_rows: bool,
    #[comptime] native: bool,
) -> Eight {
    if comptime![of_rows] {
        decay(sums, first_row + token, group_of(token, first_row), piece, native)
    } else {
        let last = min(token / ROWS * ROWS + comptime![ROWS - 1], sums.rows - 1);
        decay(sums, last, token, piece, native)
    }
}

/// Computes queries relative to the first row of their group, or keys relative to the last key of theirs, `[B, H, tokens, D]`.
#[cube(launch_unchecked, create_dummy_kernel)]
pub(super) fn relative_kernel(
    from: &Strided,
    sums: &Strided,
    to: &mut Box<[Eight]>,
    first_row: usize,
    #[comptime] of_rows: bool,
    #[comptime] dim: usize,
    #[comptime] native: bool,
) {
    let token = own_row(CUBE_POS_X as usize);
    if token < from.rows {
        let pieces = comptime![dim / 8];
        let begin = (CUBE_POS_Y as usize * from.rows + token) * pieces;
        let mut piece = UNIT_POS as usize % 4;
        while piece < pieces {
            let factors = decay_in_group(sums, token, first_row, piece, of_rows, native);
            to[begin + piece] = from.numbers[from.line(token) + piece] * factors;
            piece += 4;
        }
    }
}

/// Computes the products of near pairs, `[B, H, T, 32]`; 0 for keys that a row does not see. A plane computes a row.
#[cube(launch_unchecked, create_dummy_kernel)]
pub(super) fn near_kernel(
    q: &Strided,
    k: &Strided,
    sums: &Strided,
    to: &mut Box<[f32]>,
    first_row: usize,
    #[comptime] dim: usize,
    #[comptime] native: bool,
) {
    let row = CUBE_POS_X as usize * PLANES + UNIT_POS as usize / 32;
    if row < q.rows {
        let lane = UNIT_POS_PLANE as usize;
        let own = first_row + row;
        let key = first_near(group_of(row, first_row)) + lane;
        let mut sum = f32::new(0.0);
        if key <= own {
            let mut products = Eight::new(0.0);
            for piece in 0..comptime![dim / 8] {
                let query = q.numbers[q.line(row) + piece] * decay(sums, own, key, piece, native);
                products = fma(query, k.numbers[k.line(key) + piece], products);
            }
            #[unroll]
            for i in 0..8usize {
                sum += products.extract(i);
            }
        }
        to[(CUBE_POS_Y as usize * q.rows + row) * NEAR + lane] = sum;
    }
}

/// Completes the gradients of queries or keys, `[B, tokens, H, D]`: multiplies those of the relative ones by the decay in their
/// group, and adds those of near pairs. `other` are keys or queries, `of_near` the gradients of the near products, `[B, H, T, 32]`.
#[cube(launch_unchecked, create_dummy_kernel)]
#[expect(clippy::too_many_arguments, reason = "the operands, and where the rows are")]
pub(super) fn near_gradients_kernel(
    other: &Strided,
    sums: &Strided,
    of_near: &Box<[f32]>,
    gradients: &mut Box<[Eight]>,
    rows: usize,
    first_row: usize,
    scale: f32,
    #[comptime] of_rows: bool,
    #[comptime] dim: usize,
    #[comptime] native: bool,
) {
    let token = own_row(CUBE_POS_X as usize);
    let tokens = if comptime![of_rows] { rows } else { sums.rows };
    if token < tokens {
        let (plane, heads) = (CUBE_POS_Y as usize, sums.heads);
        let pieces = comptime![dim / 8];
        let line = (plane / heads * tokens + token) * heads + plane % heads;
        let tables = plane * rows * NEAR;
        let mut piece = UNIT_POS as usize % 4;
        while piece < pieces {
            let mut near = Eight::new(0.0);
            if comptime![of_rows] {
                let own = first_row + token;
                let first = first_near(group_of(token, first_row));
                let mut key = first;
                while key <= own {
                    let gradient = of_near[tables + token * NEAR + key - first];
                    let vector = other.numbers[other.line(key) + piece];
                    let factors = decay(sums, own, key, piece, native) * Eight::new(gradient);
                    near = fma(vector, factors, near);
                    key += 1;
                }
            } else {
                // The last group for whose rows the key is near begins 14 rows after the key's group at most.
                let end = min(token / ROWS * ROWS + comptime![2 * ROWS - 2], sums.rows);
                let mut own = max(token, first_row);
                while own < end {
                    let row = own - first_row;
                    let first = first_near(group_of(row, first_row));
                    if first <= token {
                        let gradient = of_near[tables + row * NEAR + token - first];
                        let vector = other.numbers[other.line(row) + piece];
                        let factors = decay(sums, own, token, piece, native) * Eight::new(gradient);
                        near = fma(vector, factors, near);
                    }
                    own += 1;
                }
            }
            let at = line * pieces + piece;
            let factors = decay_in_group(sums, token, first_row, piece, of_rows, native);
            gradients[at] = fma(gradients[at], factors, near * Eight::new(scale));
            piece += 4;
        }
    }
}

/// Operands of products whose channels decay.
#[derive(Debug, Clone)]
pub(super) struct DecayingChannels {
    sizes: Sizes,
    first_row: usize,
    q: CubeTensor,
    k: CubeTensor,
    /// Running sums, `[B, H, S, D]`.
    pub(super) sums: CubeTensor,
}

/// Gradients of the operands.
pub(super) struct ChannelGradients {
    pub(super) q: CubeTensor,
    pub(super) k: CubeTensor,
    pub(super) sums: CubeTensor,
}

impl DecayingChannels {
    pub(super) fn new(operands: &Operands<Cube>, first_row: usize) -> Self {
        Self {
            sizes: operands.sizes(),
            first_row,
            q: whole_rows(&operands[Slot::Query]),
            k: whole_rows(&operands[Slot::Key]),
            sums: into_contiguous(operands[Slot::ChannelDecay].clone()),
        }
    }

    fn grid(&self, tokens: usize, of_cube: usize) -> LaunchGrid {
        grid(tokens.div_ceil(of_cube), self.sizes.batch * self.sizes.heads)
    }

    /// Computes queries and keys relative to the ends of their groups.
    pub(super) fn relative(&self) -> [CubeTensor; 2] {
        let Sizes { batch, heads, rows, columns, head_dim, .. } = self.sizes;
        [(&self.q, rows, true), (&self.k, columns, false)].map(|(from, tokens, of_rows)| {
            let to = empty(from, &[batch, heads, tokens, head_dim], DType::F32);
            let LaunchGrid { count, dim } = self.grid(tokens, PACKED);
            // SAFETY: units past the last token do nothing.
            unsafe {
                relative_kernel::launch_unchecked(
                    &from.client,
                    count,
                    dim,
                    strided(from),
                    strided(&self.sums),
                    to.clone().into_buffer_arg(),
                    self.first_row,
                    of_rows,
                    head_dim,
                    NATIVE,
                );
            }
            to
        })
    }

    /// Computes the products of near pairs, `[B, H, T, 32]`.
    pub(super) fn near(&self) -> CubeTensor {
        let Sizes { batch, heads, rows, head_dim, .. } = self.sizes;
        let to = empty(&self.q, &[batch, heads, rows, NEAR], DType::F32);
        let LaunchGrid { count, dim } = self.grid(rows, PLANES);
        // SAFETY: units past the last row do nothing.
        unsafe {
            near_kernel::launch_unchecked(
                &self.q.client,
                count,
                dim,
                strided(&self.q),
                strided(&self.k),
                strided(&self.sums),
                to.clone().into_buffer_arg(),
                self.first_row,
                head_dim,
                NATIVE,
            );
        }
        to
    }

    /// Computes the gradients of the operands from those of the relative queries and keys, `[B, H, tokens, D]` in memory `[B,
    /// tokens, H, D]`, which are overwritten, and of the near products.
    pub(super) fn gradients(
        &self,
        q: CubeTensor,
        k: CubeTensor,
        of_near: &CubeTensor,
        scale: f32,
    ) -> ChannelGradients {
        let Sizes { rows, columns, head_dim, .. } = self.sizes;
        for (gradient, other, tokens, of_rows) in
            [(&q, &self.k, rows, true), (&k, &self.q, columns, false)]
        {
            let LaunchGrid { count, dim } = self.grid(tokens, PACKED);
            // SAFETY: units past the last token do nothing.
            unsafe {
                near_gradients_kernel::launch_unchecked(
                    &gradient.client,
                    count,
                    dim,
                    strided(other),
                    strided(&self.sums),
                    of_near.clone().into_buffer_arg(),
                    gradient.clone().into_buffer_arg(),
                    rows,
                    self.first_row,
                    scale,
                    of_rows,
                    head_dim,
                    NATIVE,
                );
            }
        }
        // A channel of a pair's product has the running sum of the row in its exponent, and that of the key subtracted.
        let of_rows = Cube::float_mul(self.q.clone(), q.clone());
        let of_keys = Cube::float_neg(Cube::float_mul(self.k.clone(), k.clone()));
        ChannelGradients { sums: of_tokens(of_rows, of_keys, self.first_row), q, k }
    }
}
