//! What LLVM makes of instructions that CubeCL has no operation for.

use burn_cubecl::cubecl::ir::prelude::*;
use cubecl_llvm::shared::to_llvm::prelude::{CastOpInterface, LlvmPointerType, llvm};

/// Number of LLVM's address space of global memory.
pub(super) const GLOBAL: u32 = 1;
/// Number of LLVM's address space of shared memory.
pub(super) const SHARED: u32 = 3;

/// Pointer in the address space that an instruction takes.
pub(super) fn in_space(
    ctx: &mut Context,
    rewriter: &mut DialectConversionRewriter,
    pointer: Value,
    space: u32,
) -> Value {
    let wanted: TypeHandle = LlvmPointerType::get(ctx, space).into();
    if pointer.get_type(ctx) == wanted {
        return pointer;
    }
    let cast = llvm::AddrSpaceCastOp::new(ctx, pointer, wanted);
    rewriter.insert_op(ctx, &cast);
    cast.get_result(ctx)
}

/// PTX that is not moved or left out.
pub(super) fn assembly(
    ctx: &mut Context,
    rewriter: &mut DialectConversionRewriter,
    result: TypeHandle,
    operands: Vec<Value>,
    text: &str,
    constraints: &str,
) -> Value {
    let op = llvm::InlineAsmOp::new(ctx, result, operands, text, constraints, true);
    rewriter.insert_op(ctx, &op);
    op.get_result(ctx)
}
