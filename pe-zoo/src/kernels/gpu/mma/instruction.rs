//! What LLVM makes of instructions that CubeCL has no operation for.

use burn_cubecl::cubecl::ir::prelude::*;
use cubecl_llvm::shared::to_llvm::prelude::{CastOpInterface, LlvmPointerType, llvm};

/// Declares an operation without a result, its effects on memory, and what LLVM makes of it.
macro_rules! operation {
    (
        $operation:ident { $($field:ident: $type:ident),* $(,)? },
        $name:tt,
        |$op:ident, $ctx:ident| $effects:expr,
        |$rewriter:ident| $rewrite:block
    ) => {
        #[cube_op(name = $name)]
        #[result_ty(none)]
        #[op_traits(CanMaterialize, HasSideEffects)]
        pub struct $operation {
            $(pub $field: $type,)*
        }

        #[op_interface_impl]
        impl MemoryEffectsOp for $operation {
            fn memory_effects(&self, $ctx: &Context) -> Vec<MemoryEffect> {
                let $op = self;
                let _ = ($op, $ctx);
                $effects
            }
        }

        #[op_interface_impl]
        impl ToLLVMDialect for $operation {
            fn rewrite(
                &self,
                $ctx: &mut Context,
                $rewriter: &mut DialectConversionRewriter,
                _: &OperandsInfo,
            ) -> Result<()> {
                let $op = self;
                $rewrite;
                $rewriter.erase_operation($ctx, $op.get_operation());
                Ok(())
            }
        }
    };
}
pub(super) use operation;

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
