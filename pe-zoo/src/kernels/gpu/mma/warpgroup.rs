//! Tensor instructions of the H100 and H200, which a group of four planes executes together: a product of 64 x 64 and 64 x 128 numbers in
//! shared memory. They are 1.5 to 2 times as fast as the instructions of a plane.
//!
//! A factor is in blocks of 64 numbers across. Pieces of a row of 64 numbers, 128 bytes, are in another order in each of eight
//! adjacent rows, which the instructions undo.

#![cfg_attr(
    all(feature = "cuda", not(feature = "cuda-cpp")),
    expect(unsafe_code, reason = "the pointers of two slices that live")
)]

use burn_cubecl::cubecl;
use burn_cubecl::cubecl::client::Client;
use burn_cubecl::cubecl::ir::{ElemType, FloatKind};
use burn_cubecl::cubecl::prelude::*;

use super::approximate::NATIVE;
use super::tile::Piece;
#[cfg(feature = "lab")]
use crate::kernels::gpu::lab;

/// Rows of the left factor of a group of four planes.
pub(super) const GROUP_ROWS: usize = 64;
/// Columns of the right factor.
pub(super) const ACROSS: usize = 128;
/// Terms of a sum.
pub(super) const DEPTH: usize = 64;
/// Units of a group of four planes.
pub(super) const GROUP_UNITS: usize = 128;
/// Sums of a unit.
pub(super) const SUMS: usize = GROUP_ROWS * ACROSS / GROUP_UNITS;
/// Bytes to which blocks are aligned.
pub(super) const ALIGNMENT: usize = 1024;
/// Numbers of a row of a block, and the pieces that they fill.
const WIDTH: usize = 64;
const WIDTH_PIECES: usize = WIDTH / 8;

/// Whether a device has the instructions. Those of compute capability 10 and later are others.
pub(super) fn has_warpgroups(client: &Client) -> bool {
    let features = &client.properties().features;
    let bf16 = ElemType::Float(FloatKind::BF16);
    // Both are said of compute capabilities 9 and later, and of 10 and later.
    let (nine, ten) = (
        features.matmul.stmatrix.contains(&bf16),
        features.types.elem.contains_key(&ElemType::Float(FloatKind::E2M1)),
    );
    #[cfg(feature = "lab")]
    if lab::choices().warpgroups == Some(false) {
        return false;
    }
    NATIVE && nine && !ten
}

/// Place in a factor's blocks of the piece that begins at a row in memory, and at a piece of that row. Rows are as long as the
/// factor is across, or as the sums are, `rows` of them.
#[cube]
pub(super) fn place(row: usize, piece: usize, #[comptime] rows: usize) -> usize {
    let block = piece / WIDTH_PIECES;
    block * comptime![rows * WIDTH_PIECES]
        + row * WIDTH_PIECES
        + ((piece % WIDTH_PIECES) ^ (row & 7))
}

/// Multiplies 64 rows of a left factor, whose first piece is `left[0]`, by 128 columns of a right factor, whose first piece is
/// `right[0]`, and adds the products to this unit's sums: those of rows `16 (plane % 4) + lane / 4` and eight further, in
/// pairs of columns `8 n + 2 (lane % 4)` and the next. With `across` rows in memory are across a factor: they hold one
/// term of all sums.
///
/// All planes of the group must call it, after a barrier that follows the last write to the blocks.
#[cube]
#[cfg(all(feature = "cuda", not(feature = "cuda-cpp")))]
pub(super) fn multiply(
    left: &[Piece],
    right: &[Piece],
    sums: &mut Array<f32>,
    #[comptime] left_across: bool,
    #[comptime] right_across: bool,
) {
    intrinsic!(|scope| {
        // SAFETY: both pointers are values of the kernel, whose slices live during the call.
        let left = unsafe { *left.__expand_as_ptr_method(scope) }.value(scope);
        // SAFETY: as above.
        let right = unsafe { *right.__expand_as_ptr_method(scope) }.value(scope);
        let results = sums.__extract_list(scope);
        let sums = sums.read_value(scope);
        let [left_across, right_across] = [left_across, right_across].map(lowered::attribute);
        scope.register(&lowered::MultiplyOp::new(
            scope.ctx_mut(),
            left,
            right,
            sums,
            results,
            left_across,
            right_across,
        ));
    });
}

/// Never called, because kernels without LLVM have no such instructions.
#[cube]
#[cfg(not(all(feature = "cuda", not(feature = "cuda-cpp"))))]
pub(super) fn multiply(
    _left: &[Piece],
    _right: &[Piece],
    sums: &mut Array<f32>,
    #[comptime] _left_across: bool,
    #[comptime] _right_across: bool,
) {
    sums[0] = f32::new(0.0);
}

/// The same product of blocks of a tile, without the instruction, for the simulation.
#[cube]
pub(super) fn multiply_simulated(
    tile: &Shared<[Piece]>,
    left: usize,
    right: usize,
    sums: &mut Array<f32>,
    #[comptime] left_across: bool,
    #[comptime] right_across: bool,
) {
    let lane = UNIT_POS_PLANE as usize;
    let plane = UNIT_POS as usize / 32 % 4;
    for at in 0..SUMS {
        let row = plane * 16 + lane / 4 + at / 2 % 2 * 8;
        let column = at / 4 * 8 + lane % 4 * 2 + at % 2;
        let mut sum = sums[at];
        for term in 0..DEPTH {
            sum += number(tile, left, row, term, left_across)
                * number(tile, right, column, term, right_across);
        }
        sums[at] = sum;
    }
}

/// Number of a factor in shared memory.
#[cube]
fn number(
    tile: &Shared<[Piece]>,
    begin: usize,
    outer: usize,
    term: usize,
    #[comptime] across: bool,
) -> f32 {
    let mut row = outer;
    let mut column = term;
    if comptime![across] {
        row = term;
        column = outer;
    }
    let piece = tile[begin + place(row, column / 8, DEPTH)];
    let mut number = f32::new(0.0);
    #[unroll]
    for n in 0..8usize {
        if n == column % 8 {
            number = f32::cast_from(piece.extract(n));
        }
    }
    number
}

/// The operation in CubeCL's intermediate language, and what LLVM makes of it.
#[cfg(all(feature = "cuda", not(feature = "cuda-cpp")))]
mod lowered {
    use std::fmt::Write;

    use burn_cubecl::cubecl::ir::attributes::BoolAttr;
    use burn_cubecl::cubecl::ir::interfaces::side_effects::{MemoryEffect, MemoryEffectsOp};
    use burn_cubecl::cubecl::ir::prelude::*;
    use burn_cubecl::cubecl::ir::{CanMaterialize, HasSideEffects};
    use cubecl_llvm::shared::to_llvm::ToLLVMDialect;
    use cubecl_llvm::shared::to_llvm::prelude::{CastOpInterface, FP32Type, i32_ty, llvm};
    use pliron_llvm::types::{StructLayout, StructType};

    use super::{ACROSS, ALIGNMENT, DEPTH, SUMS, WIDTH};
    use crate::kernels::gpu::mma::instruction::{SHARED, assembly, in_space};

    /// Terms of one instruction.
    const STEP: usize = 16;
    /// Bytes of a row of a block.
    const ROW: usize = WIDTH * 2;

    #[cube_op(name = "pe_zoo.multiply")]
    #[result_ty(none)]
    #[op_traits(CanMaterialize, HasSideEffects)]
    pub struct MultiplyOp {
        pub left: Value,
        pub right: Value,
        pub sums: Value,
        pub results: Value,
        pub left_across: BoolAttr,
        pub right_across: BoolAttr,
    }

    #[op_interface_impl]
    impl MemoryEffectsOp for MultiplyOp {
        fn memory_effects(&self, ctx: &Context) -> Vec<MemoryEffect> {
            vec![
                MemoryEffect::Read(self.left(ctx)),
                MemoryEffect::Read(self.right(ctx)),
                MemoryEffect::Write(self.results(ctx)),
            ]
        }
    }

    #[op_interface_impl]
    impl ToLLVMDialect for MultiplyOp {
        fn rewrite(
            &self,
            ctx: &mut Context,
            rewriter: &mut DialectConversionRewriter,
            _: &OperandsInfo,
        ) -> Result<()> {
            let sums = self.sums(ctx);
            let mut operands = Vec::with_capacity(SUMS + 2);
            for at in 0..SUMS as u32 {
                let number = llvm::ExtractValueOp::new(ctx, sums, vec![at])
                    .expect("a constant index into the sums");
                rewriter.insert_op(ctx, &number);
                operands.push(number.get_result(ctx));
            }
            for pointer in [self.left(ctx), self.right(ctx)] {
                let pointer = in_space(ctx, rewriter, pointer, SHARED);
                let word = i32_ty(ctx);
                let address = llvm::PtrToIntOp::new(ctx, pointer, word);
                rewriter.insert_op(ctx, &address);
                operands.push(address.get_result(ctx));
            }
            let float: TypeHandle = FP32Type::get(ctx).into();
            let all = StructType::get_unnamed(ctx, (vec![float; SUMS], StructLayout::Unpacked));
            let (left, right) = (self.left_across(ctx).0, self.right_across(ctx).0);
            let added =
                assembly(ctx, rewriter, all.into(), operands, &text(left, right), &constraints());
            let mut results = sums;
            for at in 0..SUMS as u32 {
                let number = llvm::ExtractValueOp::new(ctx, added, vec![at])
                    .expect("a constant index into the results");
                rewriter.insert_op(ctx, &number);
                let number = number.get_result(ctx);
                let inserted = llvm::InsertValueOp::new(ctx, results, number, vec![at]);
                rewriter.insert_op(ctx, &inserted);
                results = inserted.get_result(ctx);
            }
            let store = llvm::StoreOp::new(ctx, results, self.results(ctx));
            rewriter.insert_op(ctx, &store);
            rewriter.erase_operation(ctx, self.get_operation());
            Ok(())
        }
    }

    pub(super) fn attribute(value: bool) -> BoolAttr {
        BoolAttr(value)
    }

    /// Sums as results and as operands, and two addresses.
    fn constraints() -> String {
        let mut text = "=f,".repeat(SUMS);
        for at in 0..SUMS {
            write!(text, "{at},").expect("a string");
        }
        text + "r,r,~{memory}"
    }

    /// Descriptor of a factor without its address: 128 bytes in the order of eight rows, the distance from eight rows to the
    /// next eight, and that from a block to the next one, all in 16 bytes.
    fn descriptor() -> u64 {
        let (rows, block) = ((8 * ROW / 16) as u64, (DEPTH * ROW / 16) as u64);
        1 << 62 | rows << 32 | block << 16
    }

    /// Distance from a step to the next in 16 bytes.
    fn advance(across: bool) -> usize {
        let bytes = if across { STEP * ROW } else { STEP * 2 };
        assert!(!across || bytes.is_multiple_of(ALIGNMENT), "a step begins at eight rows");
        bytes / 16
    }

    /// Products of all steps. Nothing else touches the sums until they are added.
    fn text(left_across: bool, right_across: bool) -> String {
        let sums = (0..SUMS).map(|at| format!("${at}")).collect::<Vec<_>>().join(",");
        let (left, right) = (SUMS * 2, SUMS * 2 + 1);
        let mut text = format!(
            "{{ .reg .pred all; .reg .b64 left, right; setp.eq.u32 all, 0, 0; \
             cvt.u64.u32 left, ${left}; shr.u64 left, left, 4; or.b64 left, left, {form}; \
             cvt.u64.u32 right, ${right}; shr.u64 right, right, 4; or.b64 right, right, {form}; \
             wgmma.fence.sync.aligned; ",
            form = descriptor(),
        );
        for step in 0..DEPTH / STEP {
            if step > 0 {
                let (left, right) = (advance(left_across), advance(right_across));
                write!(text, "add.s64 left, left, {left}; add.s64 right, right, {right}; ")
                    .expect("a string");
            }
            let (a, b) = (u8::from(left_across), u8::from(right_across));
            write!(
                text,
                "wgmma.mma_async.sync.aligned.m64n{ACROSS}k{STEP}.f32.bf16.bf16 {{{sums}}}, left, right, all, 1, 1, {a}, {b}; "
            )
            .expect("a string");
        }
        text + "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; }"
    }
}
