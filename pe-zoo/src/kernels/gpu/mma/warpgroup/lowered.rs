//! PTX of the tensor instructions of a group of planes, as operations in CubeCL's intermediate language.

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
use crate::kernels::gpu::mma::instruction::{SHARED, assembly, in_space, operation};

/// Bytes of a row of a block.
const ROW: usize = WIDTH * 2;

operation!(
    MultiplyOp {
        left: Value,
        right: Value,
        adds: Value,
        sums: Value,
        results: Value,
        left_across: BoolAttr,
        right_across: BoolAttr,
    },
    "pe_zoo.multiply",
    |op, ctx| vec![
        MemoryEffect::Read(op.left(ctx)),
        MemoryEffect::Read(op.right(ctx)),
        MemoryEffect::Write(op.results(ctx)),
    ],
    |rewriter| {
        let addresses =
            [op.left(ctx), op.right(ctx)].map(|pointer| shared_address(ctx, rewriter, pointer));
        let (left, right) = (op.left_across(ctx).0, op.right_across(ctx).0);
        let words = [&addresses[..], &[op.adds(ctx)]].concat();
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
        let (sums, results) = (op.sums(ctx), op.results(ctx));
        text.insert(ctx, rewriter, sums, results, words);
    }
);

operation!(
    FinishOp { sums: Value, results: Value },
    "pe_zoo.finish",
    |op, ctx| vec![MemoryEffect::Write(op.results(ctx))],
    |rewriter| {
        let mut text = Assembly::new(SUMS, 0);
        text.line("wgmma.wait_group.sync.aligned 0;");
        let (sums, results) = (op.sums(ctx), op.results(ctx));
        text.insert(ctx, rewriter, sums, results, Vec::new());
    }
);

operation!(
    AddFactorsOp {
        factors: Value,
        right: Value,
        sums: Value,
        results: Value,
        rows: IndexAttr,
        first_step: IndexAttr,
        steps: IndexAttr,
        groups: IndexAttr,
        across: BoolAttr,
    },
    "pe_zoo.add_factors",
    |op, ctx| vec![MemoryEffect::Read(op.right(ctx)), MemoryEffect::Write(op.results(ctx))],
    |rewriter| {
        let (sums, factors) = (op.sums(ctx), op.factors(ctx));
        let [count, registers] = [sums, factors].map(|array| array_len(ctx, array));
        let word = i32_ty(ctx);
        let mut operands = vec![shared_address(ctx, rewriter, op.right(ctx))];
        for pair in extracted(ctx, rewriter, factors, registers) {
            let bits = llvm::BitcastOp::new(ctx, pair, word);
            rewriter.insert_op(ctx, &bits);
            operands.push(bits.get_result(ctx));
        }
        let (first, steps) = (op.first_step(ctx).0, op.steps(ctx).0);
        let (groups, across) = (op.groups(ctx).0, op.across(ctx).0);
        let mut text = Assembly::new(count, operands.len());
        text.line("{ .reg .pred all; setp.eq.u32 all, 0, 0;");
        let rows = op.rows(ctx).0;
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
        let results = op.results(ctx);
        text.insert(ctx, rewriter, sums, results, operands);
    }
);

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
