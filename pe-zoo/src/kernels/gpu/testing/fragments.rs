//! Forward attention whose fragments stay in registers, compiled and counted: whether Burn's CUDA compiler can carry the
//! design of kernels on `mma.sync`.
//!
//! A plane (a warp) owns 16 rows. Scores, weights and sums are fragments in registers; keys and values go through shared
//! memory in 16-byte pieces, and each next block is read into registers while the last one is computed. There is no mask
//! and no modifier: this is for counting instructions, and nothing but the test launches it.

use std::sync::Arc;

use burn::tensor::bf16;
use burn_cubecl::cubecl;
// The trait has no other path.
use burn_cubecl::cubecl::__private::Runtime;
use burn_cubecl::cubecl::cmma::{MatrixIdent, MmaDefinition};
use burn_cubecl::cubecl::cuda::CudaRuntime;
use burn_cubecl::cubecl::prelude::*;

use super::fake_device::device;
use super::ptx::{argument, ptx, written};

/// 16 bytes of a row.
type Piece = Vector<bf16, Const<8>>;
/// A register of a factor.
type FactorPair = Vector<bf16, Const<2>>;
/// Two adjacent numbers of a result.
type SumPair = Vector<f32, Const<2>>;

/// Width of a head.
const WIDTH: usize = 64;
/// Columns of a block.
const COLUMNS: usize = 64;
/// Planes of a cube.
const PLANES: usize = 4;
/// Rows of a plane.
const ROWS: usize = 16;
/// Units of a cube.
const UNITS: usize = 32 * PLANES;
/// Pieces of a row.
const PIECES: usize = WIDTH / 8;
/// Pieces of a block that each unit copies.
const COPIES: usize = COLUMNS * PIECES / UNITS;
/// Inner dimension of one tensor instruction.
const STEP: usize = 16;
/// Columns of one tensor instruction.
const ACROSS: usize = 8;

/// Place of a piece in shared memory. Pieces of eight adjacent rows lie in different banks.
#[cube]
fn place(row: usize, piece: usize) -> usize {
    row * PIECES + (piece ^ (row & 7))
}

#[cube]
fn zeros(#[comptime] count: usize) -> Sequence<Array<SumPair>> {
    let mut fragments = Sequence::<Array<SumPair>>::new();
    #[unroll]
    for _ in 0..count {
        let mut fragment = Array::<SumPair>::new(2usize);
        fragment[0] = SumPair::new(0.0);
        fragment[1] = SumPair::new(0.0);
        fragments.push(fragment);
    }
    fragments
}

/// Computes `out`, `[plane, T, 64]`, of contiguous `q`, `k` and `v` of this shape in bf16, and the logarithms
/// of the softmax's denominators, `[plane, T]`. `scale` is that of the logits, `len` a multiple of 64.
#[cube(launch_unchecked, create_dummy_kernel)]
pub(super) fn forward_fragments(
    q: &[Piece],
    k: &[Piece],
    v: &[Piece],
    out: &mut [SumPair],
    log: &mut [f32],
    len: usize,
    scale: f32,
) {
    let unit = UNIT_POS as usize;
    let lane = UNIT_POS_PLANE as usize;
    let of_plane = unit / 32 * ROWS;
    let plane = CUBE_POS_Y as usize;
    let first_row = CUBE_POS_X as usize * comptime![ROWS * PLANES];
    let multiply = MmaDefinition::<bf16, bf16, f32>::new(ROWS, ACROSS, STEP);

    let mut keys = Shared::<[Piece]>::new_slice(comptime![2 * COLUMNS * PIECES]);
    let mut values = Shared::<[Piece]>::new_slice(comptime![2 * COLUMNS * PIECES]);
    let mut rows = Shared::<[Piece]>::new_slice(comptime![ROWS * PLANES * PIECES]);
    let begin = plane * len * PIECES;
    #[unroll]
    for copy in 0..COPIES {
        let at = unit + copy * UNITS;
        rows[place(at / PIECES, at % PIECES)] = q[begin + first_row * PIECES + at];
    }
    let blocks = first_row / COLUMNS + 1;
    let last = begin + (blocks - 1) * comptime![COLUMNS * PIECES];
    #[unroll]
    for copy in 0..COPIES {
        let at = unit + copy * UNITS;
        keys[place(at / PIECES, at % PIECES)] = k[last + at];
        values[place(at / PIECES, at % PIECES)] = v[last + at];
    }
    sync_cube();
    let mut queries = Sequence::<Array<FactorPair>>::new();
    #[unroll]
    for step in 0..comptime![WIDTH / STEP] {
        let at = place(of_plane + lane % 16, step * 2 + lane / 16);
        queries.push(multiply.load_matrix::<Piece, Const<2>>(
            &rows[at..at + 1],
            MatrixIdent::A,
            4usize,
            false,
        ));
    }
    let mut sums = zeros(comptime![WIDTH / ACROSS]);
    let mut largest = Array::<f32>::new(2usize);
    let mut total = Array::<f32>::new(2usize);
    #[unroll]
    for half in 0..2usize {
        largest[half] = f32::new(-1e30);
        total[half] = f32::new(0.0);
    }
    let mut next_keys = Array::<Piece>::new(COPIES);
    let mut next_values = Array::<Piece>::new(COPIES);
    for block in 0..blocks {
        let stage = block % 2 * comptime![COLUMNS * PIECES];
        let next = block + 1 < blocks;
        if next {
            let from = begin + (blocks - 2 - block) * comptime![COLUMNS * PIECES];
            #[unroll]
            for copy in 0..COPIES {
                next_keys[copy] = k[from + unit + copy * UNITS];
                next_values[copy] = v[from + unit + copy * UNITS];
            }
        }
        let mut scores = zeros(comptime![COLUMNS / ACROSS]);
        #[unroll]
        for step in 0..comptime![WIDTH / STEP] {
            #[unroll]
            for two in 0..comptime![COLUMNS / ACROSS / 2] {
                let at = place(two * 16 + lane % 8 + lane / 16 * 8, step * 2 + lane / 8 % 2);
                let both = multiply.load_matrix::<Piece, Const<2>>(
                    &keys[stage + at..stage + at + 1],
                    MatrixIdent::B,
                    4usize,
                    false,
                );
                #[unroll]
                for one in 0..2usize {
                    let mut factor = Array::<FactorPair>::new(2usize);
                    factor[0] = both[one * 2];
                    factor[1] = both[one * 2 + 1];
                    multiply.execute_inplace(
                        queries.index(step),
                        &factor,
                        scores.index_mut(two * 2 + one),
                    );
                }
            }
        }
        #[unroll]
        for half in 0..2usize {
            let mut most = largest[half];
            #[unroll]
            for n in 0..comptime![COLUMNS / ACROSS] {
                let pair = scores.index(n)[half];
                most = max(most, max(pair.extract(0usize), pair.extract(1usize)));
            }
            most = max(most, plane_shuffle_xor(most, 1));
            most = max(most, plane_shuffle_xor(most, 2));
            let shrink = f32::exp((largest[half] - most) * scale);
            largest[half] = most;
            let mut sum = f32::new(0.0);
            #[unroll]
            for n in 0..comptime![COLUMNS / ACROSS] {
                let pair = scores.index(n)[half];
                let mut weights = SumPair::empty();
                #[unroll]
                for one in 0..2usize {
                    let weight = f32::exp(fma(pair.extract(one), scale, -(most * scale)));
                    weights.insert(one, weight);
                    sum += weight;
                }
                scores.index_mut(n)[half] = weights;
            }
            total[half] = total[half] * shrink + sum;
            #[unroll]
            for n in 0..comptime![WIDTH / ACROSS] {
                let old = sums.index(n)[half];
                sums.index_mut(n)[half] = old * SumPair::new(shrink);
            }
        }
        #[unroll]
        for step in 0..comptime![COLUMNS / STEP] {
            let mut weights = Array::<FactorPair>::new(4usize);
            #[unroll]
            for quarter in 0..4usize {
                weights[quarter] =
                    FactorPair::cast_from(scores.index(step * 2 + quarter / 2)[quarter % 2]);
            }
            #[unroll]
            for two in 0..comptime![WIDTH / ACROSS / 2] {
                let at = place(step * 16 + lane % 8 + lane / 8 % 2 * 8, two * 2 + lane / 16);
                let both = multiply.load_matrix::<Piece, Const<2>>(
                    &values[stage + at..stage + at + 1],
                    MatrixIdent::B,
                    4usize,
                    true,
                );
                #[unroll]
                for one in 0..2usize {
                    let mut factor = Array::<FactorPair>::new(2usize);
                    factor[0] = both[one * 2];
                    factor[1] = both[one * 2 + 1];
                    multiply.execute_inplace(&weights, &factor, sums.index_mut(two * 2 + one));
                }
            }
        }
        if next {
            let other = comptime![COLUMNS * PIECES] - stage;
            #[unroll]
            for copy in 0..COPIES {
                let at = unit + copy * UNITS;
                keys[other + place(at / PIECES, at % PIECES)] = next_keys[copy];
                values[other + place(at / PIECES, at % PIECES)] = next_values[copy];
            }
        }
        sync_cube();
    }
    #[unroll]
    for half in 0..2usize {
        let mut sum = total[half];
        sum += plane_shuffle_xor(sum, 1);
        sum += plane_shuffle_xor(sum, 2);
        let row = plane * len + first_row + of_plane + lane / 4 + half * 8;
        let share = SumPair::new(1.0 / sum);
        #[unroll]
        for n in 0..comptime![WIDTH / ACROSS] {
            out[row * comptime![WIDTH / 2] + n * 4 + lane % 4] = sums.index(n)[half] * share;
        }
        if lane % 4 == 0 {
            log[row] = largest[half] * scale + f32::ln(sum);
        }
    }
}

#[test]
fn fragments_stay_in_registers() {
    let kernel = forward_fragments::create_dummy_kernel(
        device(),
        Arc::new(CudaRuntime::target_properties()),
        CubeCount::Static(1, 1, 1),
        CubeDim::new_1d(UNITS as u32),
        argument(),
        argument(),
        argument(),
        argument(),
        argument(),
        64,
        0.125,
    );
    let text = ptx(&kernel);
    written("fragments, forward", &text);
    assert!(!text.contains(".local"), "an array lies in local memory");
    let products = text.matches("mma.sync.aligned.m16n8k16").count();
    assert_eq!(products, COLUMNS / ACROSS * WIDTH / STEP + WIDTH / ACROSS * COLUMNS / STEP);
}
