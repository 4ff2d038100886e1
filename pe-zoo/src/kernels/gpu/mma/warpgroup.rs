//! Tensor instructions of the H100 and H200, which a group of four planes executes together: products of 64 rows with up to 256
//! columns in shared memory. They are 1.5 to 2 times as fast as the instructions of a plane.
//!
//! A factor is in blocks of 64 numbers across. Pieces of a row of 64 numbers, 128 bytes, are in another order in each of eight
//! adjacent rows, which the instructions undo.

#![cfg_attr(
    all(feature = "cuda", not(feature = "cuda-cpp")),
    expect(unsafe_code, reason = "the pointers of two slices that live")
)]

use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;

use super::config::{STEP, UNITS, WIDTH};
use super::copies::begin_copy;
use super::tile::{FactorPair, LeftFactors, Piece, Results, SumPair};

/// Rows of the left factor of a group of four planes.
pub(super) const GROUP_ROWS: usize = 64;
/// Columns of the right factor.
pub(super) const ACROSS: usize = 256;
/// Terms of a sum.
pub(super) const DEPTH: usize = 64;
/// Units of a group of four planes.
pub(super) const GROUP_UNITS: usize = 128;
/// Sums of a unit.
pub(super) const SUMS: usize = GROUP_ROWS * ACROSS / GROUP_UNITS;
/// Bytes to which blocks are aligned.
pub(super) const ALIGNMENT: usize = 1024;
/// Pieces of a row of a block.
const WIDTH_PIECES: usize = WIDTH / 8;

/// Place in a factor's blocks of the piece that begins at a row in memory, and at a piece of that row. Rows are as long as the
/// factor is across, or as the sums are, `rows` of them.
#[cube]
pub(super) fn place(row: usize, piece: usize, #[comptime] rows: usize) -> usize {
    let block = piece / WIDTH_PIECES;
    block * comptime![rows * WIDTH_PIECES]
        + row * WIDTH_PIECES
        + ((piece % WIDTH_PIECES) ^ (row & 7))
}

/// Begins to multiply 64 rows of a left factor, whose first piece is `left[0]`, by 256 columns of a right factor, whose first piece is
/// `right[0]`. The products become this unit's sums, or are added to them: those of rows `16 (plane % 4) + lane / 4` and eight further, in
/// pairs of columns `8 n + 2 (lane % 4)` and the next. With `across` rows in memory are across a factor: they hold one
/// term of all sums.
///
/// All planes of the group must call it, after a barrier that follows the last write to the blocks. The product before it is
/// done then, so that its blocks are no longer read; this one is after [`finish`].
#[cube]
#[cfg(all(feature = "cuda", not(feature = "cuda-cpp")))]
pub(super) fn multiply(
    left: &[Piece],
    right: &[Piece],
    sums: &mut Array<f32>,
    adds: bool,
    #[comptime] left_across: bool,
    #[comptime] right_across: bool,
) {
    let adds = u32::cast_from(adds);
    intrinsic!(|scope| {
        // SAFETY: both pointers are values of the kernel, whose slices live during the call.
        let left = unsafe { *left.__expand_as_ptr_method(scope) }.value(scope);
        // SAFETY: as above.
        let right = unsafe { *right.__expand_as_ptr_method(scope) }.value(scope);
        let results = sums.__extract_list(scope);
        let sums = sums.read_value(scope);
        let adds = adds.read_value(scope);
        let [left_across, right_across] = [left_across, right_across].map(lowered::attribute);
        scope.register(&lowered::MultiplyOp::new(
            scope.ctx_mut(),
            left,
            right,
            adds,
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
    _adds: bool,
    #[comptime] _left_across: bool,
    #[comptime] _right_across: bool,
) {
    sums[0] = f32::new(0.0);
}

/// Waits for the products that [`multiply`] has begun.
#[cube]
#[cfg(all(feature = "cuda", not(feature = "cuda-cpp")))]
pub(super) fn finish(sums: &mut Array<f32>) {
    intrinsic!(|scope| {
        let results = sums.__extract_list(scope);
        let sums = sums.read_value(scope);
        scope.register(&lowered::FinishOp::new(scope.ctx_mut(), sums, results));
    });
}

/// Never called, because kernels without LLVM have no such instructions.
#[cube]
#[cfg(not(all(feature = "cuda", not(feature = "cuda-cpp"))))]
pub(super) fn finish(sums: &mut Array<f32>) {
    sums[0] = f32::new(0.0);
}

/// Copies rows of whole blocks, of which the first piece is `from[first]`, to a tile from `begin` on.
#[cube]
pub(super) fn copy(
    from: &Box<[Piece]>,
    first: usize,
    tile: &mut Shared<[Piece]>,
    begin: usize,
    #[comptime] rows: usize,
    #[comptime] width: usize,
) {
    let pieces = comptime![width / 8];
    let unit = UNIT_POS as usize;
    let from = &from[first + unit..];
    // Pieces of a unit lie whole groups of eight rows apart, at the same place in them.
    let to = &mut tile[begin + place(unit / pieces, unit % pieces, rows)..];
    #[unroll]
    for copy in 0..comptime![rows * pieces / UNITS] {
        let further = comptime![copy * UNITS / pieces * WIDTH_PIECES];
        begin_copy(&from[copy * UNITS..], &mut to[further..]);
    }
}

/// Adds products of left factors in registers, from `16 first_step` on of the terms and one for each group of 16 rows of this plane, with the
/// rows of a block, `[columns, terms]`, or with `across` its columns, `[terms, columns]`. The block begins at `right[0]`.
///
/// All four planes of a cube must call it, after a barrier that follows the last write to the block.
#[cube]
#[expect(clippy::too_many_arguments, reason = "two factors, and their sizes")]
pub(super) fn add(
    left: &LeftFactors,
    right: &[Piece],
    results: &mut Results,
    #[comptime] first_step: usize,
    #[comptime] steps: usize,
    #[comptime] columns: usize,
    #[comptime] groups: usize,
    #[comptime] across: bool,
) {
    let mut factors = Array::<FactorPair>::new(comptime![steps * groups * 4]);
    #[unroll]
    for factor in 0..comptime![steps * groups] {
        #[unroll]
        for register in 0..4usize {
            factors[comptime![factor * 4 + register]] = left.index(factor)[register];
        }
    }
    let eights = comptime![columns / 8];
    let mut sums = Array::<f32>::new(comptime![groups * eights * 4]);
    #[unroll]
    for at in 0..comptime![groups * eights * 4] {
        let (group, n, number) = comptime![(at / (eights * 4), at / 4 % eights, at % 4)];
        let pair = results.index(n)[comptime![group * 2 + number / 2]];
        sums[at] = pair.extract(comptime![number % 2]);
    }
    let rows = comptime![if across { steps * STEP } else { columns }];
    add_factors(&factors, right, &mut sums, rows, first_step, steps, groups, across);
    #[unroll]
    for n in 0..eights {
        #[unroll]
        for eight in 0..comptime![groups * 2] {
            let first = comptime![(eight / 2 * eights + n) * 4 + eight % 2 * 2];
            let mut pair = SumPair::empty();
            pair.insert(0usize, sums[first]);
            pair.insert(1usize, sums[comptime![first + 1]]);
            results.index_mut(n)[eight] = pair;
        }
    }
}

/// Adds the products of [`add`], whose left factors are one after the other for the groups of each step, and whose sums are for
/// each group.
#[cube]
#[cfg(all(feature = "cuda", not(feature = "cuda-cpp")))]
fn add_factors(
    factors: &Array<FactorPair>,
    right: &[Piece],
    sums: &mut Array<f32>,
    #[comptime] rows: usize,
    #[comptime] first_step: usize,
    #[comptime] steps: usize,
    #[comptime] groups: usize,
    #[comptime] across: bool,
) {
    intrinsic!(|scope| {
        // SAFETY: the pointer is a value of the kernel, whose slice lives during the call.
        let right = unsafe { *right.__expand_as_ptr_method(scope) }.value(scope);
        let factors = factors.read_value(scope);
        let results = sums.__extract_list(scope);
        let sums = sums.read_value(scope);
        let [rows, first_step, steps, groups] =
            [rows, first_step, steps, groups].map(lowered::index);
        let across = lowered::attribute(across);
        scope.register(&lowered::AddFactorsOp::new(
            scope.ctx_mut(),
            factors,
            right,
            sums,
            results,
            rows,
            first_step,
            steps,
            groups,
            across,
        ));
    });
}

/// Never called, because kernels without LLVM have no such instructions.
#[cube]
#[cfg(not(all(feature = "cuda", not(feature = "cuda-cpp"))))]
fn add_factors(
    _factors: &Array<FactorPair>,
    _right: &[Piece],
    sums: &mut Array<f32>,
    #[comptime] _rows: usize,
    #[comptime] _first_step: usize,
    #[comptime] _steps: usize,
    #[comptime] _groups: usize,
    #[comptime] _across: bool,
) {
    sums[0] = f32::new(0.0);
}

/// The product of [`multiply`] of blocks of a tile, without the instruction, for the simulation.
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
    use std::ops::{Range, RangeFrom};

    use burn_cubecl::cubecl::ir::attributes::{BoolAttr, IndexAttr};
    use burn_cubecl::cubecl::ir::interfaces::side_effects::{MemoryEffect, MemoryEffectsOp};
    use burn_cubecl::cubecl::ir::prelude::*;
    use burn_cubecl::cubecl::ir::{CanMaterialize, HasSideEffects};
    use cubecl_llvm::shared::to_llvm::ToLLVMDialect;
    use cubecl_llvm::shared::to_llvm::prelude::{
        CastOpInterface, FP32Type, LlvmArrayType, i32_ty, llvm,
    };
    use pliron_llvm::types::{StructLayout, StructType};

    use super::{DEPTH, SUMS};
    use crate::kernels::gpu::mma::config::{STEP, WIDTH};
    use crate::kernels::gpu::mma::instruction::{SHARED, assembly, in_space};

    /// Bytes of a row of a block.
    const ROW: usize = WIDTH * 2;

    #[cube_op(name = "pe_zoo.multiply")]
    #[result_ty(none)]
    #[op_traits(CanMaterialize, HasSideEffects)]
    pub struct MultiplyOp {
        pub left: Value,
        pub right: Value,
        pub adds: Value,
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
            let addresses = [self.left(ctx), self.right(ctx)]
                .map(|pointer| shared_address(ctx, rewriter, pointer));
            let (left, right) = (self.left_across(ctx).0, self.right_across(ctx).0);
            let words = [&addresses[..], &[self.adds(ctx)]].concat();
            let mut text = Assembly::new(SUMS, words.len());
            text.line("{ .reg .pred all, adds; setp.eq.u32 all, 0, 0;");
            text.line(&format!("setp.ne.u32 adds, ${}, 0;", 2 * SUMS + 2));
            text.descriptor("left", 0, DEPTH);
            text.descriptor("right", 1, DEPTH);
            text.line("wgmma.fence.sync.aligned;");
            for step in 0..DEPTH / STEP {
                text.go_to("left", offset(step, DEPTH, left));
                text.go_to("right", offset(step, DEPTH, right));
                let (left, right) = (u8::from(left), u8::from(right));
                let adds = if step > 0 { "all" } else { "adds" };
                let form = format!("left_at, right_at, {adds}, 1, 1, {left}, {right}");
                text.multiply(0..SUMS, &form);
            }
            text.line("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 1; }");
            let (sums, results) = (self.sums(ctx), self.results(ctx));
            text.insert(ctx, rewriter, sums, results, words);
            rewriter.erase_operation(ctx, self.get_operation());
            Ok(())
        }
    }

    #[cube_op(name = "pe_zoo.finish")]
    #[result_ty(none)]
    #[op_traits(CanMaterialize, HasSideEffects)]
    pub struct FinishOp {
        pub sums: Value,
        pub results: Value,
    }

    #[op_interface_impl]
    impl MemoryEffectsOp for FinishOp {
        fn memory_effects(&self, ctx: &Context) -> Vec<MemoryEffect> {
            vec![MemoryEffect::Write(self.results(ctx))]
        }
    }

    #[op_interface_impl]
    impl ToLLVMDialect for FinishOp {
        fn rewrite(
            &self,
            ctx: &mut Context,
            rewriter: &mut DialectConversionRewriter,
            _: &OperandsInfo,
        ) -> Result<()> {
            let mut text = Assembly::new(SUMS, 0);
            text.line("wgmma.wait_group.sync.aligned 0;");
            let (sums, results) = (self.sums(ctx), self.results(ctx));
            text.insert(ctx, rewriter, sums, results, Vec::new());
            rewriter.erase_operation(ctx, self.get_operation());
            Ok(())
        }
    }

    #[cube_op(name = "pe_zoo.add_factors")]
    #[result_ty(none)]
    #[op_traits(CanMaterialize, HasSideEffects)]
    pub struct AddFactorsOp {
        pub factors: Value,
        pub right: Value,
        pub sums: Value,
        pub results: Value,
        pub rows: IndexAttr,
        pub first_step: IndexAttr,
        pub steps: IndexAttr,
        pub groups: IndexAttr,
        pub across: BoolAttr,
    }

    #[op_interface_impl]
    impl MemoryEffectsOp for AddFactorsOp {
        fn memory_effects(&self, ctx: &Context) -> Vec<MemoryEffect> {
            vec![MemoryEffect::Read(self.right(ctx)), MemoryEffect::Write(self.results(ctx))]
        }
    }

    #[op_interface_impl]
    impl ToLLVMDialect for AddFactorsOp {
        fn rewrite(
            &self,
            ctx: &mut Context,
            rewriter: &mut DialectConversionRewriter,
            _: &OperandsInfo,
        ) -> Result<()> {
            let (sums, factors) = (self.sums(ctx), self.factors(ctx));
            let [count, registers] = [sums, factors].map(|array| array_len(ctx, array));
            let word = i32_ty(ctx);
            let mut operands = vec![shared_address(ctx, rewriter, self.right(ctx))];
            for pair in extracted(ctx, rewriter, factors, registers) {
                let bits = llvm::BitcastOp::new(ctx, pair, word);
                rewriter.insert_op(ctx, &bits);
                operands.push(bits.get_result(ctx));
            }
            let (first, steps) = (self.first_step(ctx).0, self.steps(ctx).0);
            let (groups, across) = (self.groups(ctx).0, self.across(ctx).0);
            let mut text = Assembly::new(count, operands.len());
            text.line("{ .reg .pred all; setp.eq.u32 all, 0, 0;");
            let rows = self.rows(ctx).0;
            text.descriptor("right", 0, rows);
            text.line("wgmma.fence.sync.aligned;");
            for step in 0..steps {
                text.go_to("right", offset(first + step, rows, across));
                for group in 0..groups {
                    let own = count / groups;
                    let factor = text.operands((step * groups + group) * 4 + 1..).join(",");
                    let form = format!("{{{factor}}}, right_at, all, 1, 1, {}", u8::from(across));
                    text.multiply(group * own..(group + 1) * own, &form);
                }
            }
            text.line("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; }");
            let results = self.results(ctx);
            text.insert(ctx, rewriter, sums, results, operands);
            rewriter.erase_operation(ctx, self.get_operation());
            Ok(())
        }
    }

    pub(super) fn attribute(value: bool) -> BoolAttr {
        BoolAttr(value)
    }

    pub(super) fn index(value: usize) -> IndexAttr {
        IndexAttr(value)
    }

    /// Numbers of an array in registers.
    fn array_len(ctx: &Context, array: Value) -> usize {
        let ty = array.get_type(ctx);
        let ty = ty.deref(ctx);
        ty.downcast_ref::<LlvmArrayType>().expect("registers are an array").size() as usize
    }

    fn extracted(
        ctx: &mut Context,
        rewriter: &mut DialectConversionRewriter,
        aggregate: Value,
        count: usize,
    ) -> Vec<Value> {
        let mut element = |at: usize| {
            let op = llvm::ExtractValueOp::new(ctx, aggregate, vec![at as u32])
                .expect("a constant index into registers");
            rewriter.insert_op(ctx, &op);
            op.get_result(ctx)
        };
        (0..count).map(&mut element).collect()
    }

    fn shared_address(
        ctx: &mut Context,
        rewriter: &mut DialectConversionRewriter,
        pointer: Value,
    ) -> Value {
        let pointer = in_space(ctx, rewriter, pointer, SHARED);
        let word = i32_ty(ctx);
        let address = llvm::PtrToIntOp::new(ctx, pointer, word);
        rewriter.insert_op(ctx, &address);
        address.get_result(ctx)
    }

    /// Descriptor of a factor without its address: 128 bytes in the order of eight rows, the distance from eight rows to the
    /// next eight, and that from a block of so many rows to the next one, all in 16 bytes.
    fn descriptor(rows: usize) -> u64 {
        let (eight, block) = ((8 * ROW / 16) as u64, (rows * ROW / 16) as u64);
        1 << 62 | eight << 32 | block << 16
    }

    /// Distance of a step from the beginning of blocks of so many rows, in 16 bytes.
    fn offset(step: usize, rows: usize, across: bool) -> usize {
        let steps = WIDTH / STEP;
        let bytes = if across {
            step * STEP * ROW
        } else {
            step / steps * rows * ROW + step % steps * STEP * 2
        };
        bytes / 16
    }

    /// Instructions that add products to sums. Sums are results and operands; other operands are words.
    struct Assembly {
        text: String,
        sums: usize,
        words: usize,
    }

    impl Assembly {
        fn new(sums: usize, words: usize) -> Self {
            Self { text: String::new(), sums, words }
        }

        fn line(&mut self, line: &str) {
            self.text += line;
            self.text += "\n";
        }

        /// Names of four words.
        fn operands(&self, words: RangeFrom<usize>) -> Vec<String> {
            words.take(4).map(|word| format!("${}", 2 * self.sums + word)).collect()
        }

        /// Makes the descriptor of a factor at an address.
        fn descriptor(&mut self, name: &str, word: usize, rows: usize) {
            let (word, form) = (2 * self.sums + word, descriptor(rows));
            self.line(&format!(
                ".reg .b64 {name}, {name}_at; cvt.u64.u32 {name}, ${word}; shr.u64 {name}, {name}, 4; or.b64 {name}, {name}, {form};"
            ));
        }

        /// Makes the descriptor of a step.
        fn go_to(&mut self, name: &str, offset: usize) {
            self.line(&format!("add.s64 {name}_at, {name}, {offset};"));
        }

        fn multiply(&mut self, sums: Range<usize>, form: &str) {
            let across = sums.len() * 2;
            let sums = sums.map(|at| format!("${at}")).collect::<Vec<_>>().join(",");
            self.line(&format!(
                "wgmma.mma_async.sync.aligned.m64n{across}k{STEP}.f32.bf16.bf16 {{{sums}}}, {form};"
            ));
        }

        /// Adds to an array in registers, and stores the results.
        fn insert(
            self,
            ctx: &mut Context,
            rewriter: &mut DialectConversionRewriter,
            sums: Value,
            to: Value,
            words: Vec<Value>,
        ) {
            let same = (0..self.sums).map(|at| format!("{at},")).collect::<String>();
            let (of_sums, of_words) = ("=f,".repeat(self.sums), "r,".repeat(self.words));
            let constraints = format!("{of_sums}{same}{of_words}~{{memory}}");
            let operands = [extracted(ctx, rewriter, sums, self.sums), words].concat();
            let float: TypeHandle = FP32Type::get(ctx).into();
            let all = (vec![float; self.sums], StructLayout::Unpacked);
            let all = StructType::get_unnamed(ctx, all).into();
            let added = assembly(ctx, rewriter, all, operands, &self.text, &constraints);
            let numbers = extracted(ctx, rewriter, added, self.sums);
            let mut results = sums;
            for (at, number) in numbers.into_iter().enumerate() {
                let inserted = llvm::InsertValueOp::new(ctx, results, number, vec![at as u32]);
                rewriter.insert_op(ctx, &inserted);
                results = inserted.get_result(ctx);
            }
            let store = llvm::StoreOp::new(ctx, results, to);
            rewriter.insert_op(ctx, &store);
        }
    }
}
