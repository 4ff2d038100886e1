//! Copies from global to shared memory that go on while a unit computes, one by one or in groups.

#![cfg_attr(
    all(feature = "cuda", not(feature = "cuda-cpp")),
    expect(unsafe_code, reason = "the pointers of two slices that live")
)]

use burn::tensor::bf16;
use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;

/// Begins to copy the first 16 bytes of `from`, in global memory, to the first of `to`, in shared memory. It has arrived after
/// [`sync_copies`].
#[cube]
#[cfg(all(feature = "cuda", not(feature = "cuda-cpp")))]
pub(super) fn begin_copy(from: &[Vector<bf16, Const<8>>], to: &mut [Vector<bf16, Const<8>>]) {
    intrinsic!(|scope| {
        // SAFETY: both pointers are values of the kernel, whose slices live during the call.
        let from = unsafe { *from.__expand_as_ptr_method(scope) }.value(scope);
        // SAFETY: as above.
        let to = unsafe { *to.__expand_as_mut_ptr_method(scope) }.value(scope);
        scope.register(&lowered::BeginCopyOp::new(scope.ctx_mut(), from, to));
    });
}

/// Begins to copy the first 16 bytes of `from`, in global memory, to the first of `to`, in shared memory, or to write zeros
/// there and to read nothing.
#[cube]
#[cfg(all(feature = "cuda", not(feature = "cuda-cpp")))]
pub(super) fn begin_copy_or_zeros(
    from: &[Vector<bf16, Const<8>>],
    to: &mut [Vector<bf16, Const<8>>],
    copies: bool,
) {
    let bytes = u32::cast_from(copies) * 16u32;
    intrinsic!(|scope| {
        // SAFETY: both pointers are values of the kernel, whose slices live during the call.
        let from = unsafe { *from.__expand_as_ptr_method(scope) }.value(scope);
        // SAFETY: as above.
        let to = unsafe { *to.__expand_as_mut_ptr_method(scope) }.value(scope);
        let bytes = bytes.read_value(scope);
        scope.register(&lowered::BeginCopyOrZerosOp::new(scope.ctx_mut(), from, to, bytes));
    });
}

/// Puts the copies that this unit has begun since the last call into a group.
#[cube]
#[cfg(all(feature = "cuda", not(feature = "cuda-cpp")))]
pub(super) fn end_group() {
    intrinsic!(|scope| {
        scope.register(&lowered::EndGroupOp::new(scope.ctx_mut()));
    });
}

/// Waits until all groups of copies of this unit but the last ones have arrived, and lets tensor instructions that read shared
/// memory see them.
#[cube]
#[cfg(all(feature = "cuda", not(feature = "cuda-cpp")))]
pub(super) fn wait_for_groups(#[comptime] but: usize) {
    intrinsic!(|scope| {
        let but = lowered::index(but);
        scope.register(&lowered::WaitForGroupsOp::new(scope.ctx_mut(), but));
    });
}

/// Waits for the copies that this unit has begun.
#[cube]
#[cfg(all(feature = "cuda", not(feature = "cuda-cpp")))]
fn wait_for_copies() {
    intrinsic!(|scope| {
        scope.register(&lowered::WaitForCopiesOp::new(scope.ctx_mut()));
    });
}

/// Never called, because kernels without LLVM copy through registers.
#[cube]
#[cfg(not(all(feature = "cuda", not(feature = "cuda-cpp"))))]
pub(super) fn begin_copy(from: &[Vector<bf16, Const<8>>], to: &mut [Vector<bf16, Const<8>>]) {
    to[0] = from[0];
}

/// Never called, because kernels without LLVM copy through registers.
#[cube]
#[cfg(not(all(feature = "cuda", not(feature = "cuda-cpp"))))]
pub(super) fn begin_copy_or_zeros(
    from: &[Vector<bf16, Const<8>>],
    to: &mut [Vector<bf16, Const<8>>],
    _copies: bool,
) {
    to[0] = from[0];
}

/// Never called, because kernels without LLVM copy through registers.
#[cube]
#[cfg(not(all(feature = "cuda", not(feature = "cuda-cpp"))))]
pub(super) fn end_group() {}

/// Never called, because kernels without LLVM copy through registers.
#[cube]
#[cfg(not(all(feature = "cuda", not(feature = "cuda-cpp"))))]
pub(super) fn wait_for_groups(#[comptime] _but: usize) {}

/// Never called, because kernels without LLVM copy through registers.
#[cube]
#[cfg(not(all(feature = "cuda", not(feature = "cuda-cpp"))))]
fn wait_for_copies() {}

/// How blocks come to shared memory, and which instructions read them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Transfer {
    /// Whether they are copied while others are computed, and not through registers.
    pub(super) copies: bool,
    /// Whether the tensor instructions of a group of planes read them.
    pub(super) warpgroups: bool,
}

/// Barrier of a cube, after which all copies that its units have begun have arrived.
#[cube]
pub(super) fn sync_copies(#[comptime] transfer: Transfer) {
    if comptime![transfer.copies] {
        if comptime![transfer.warpgroups] {
            end_group();
            wait_for_groups(0usize);
        } else {
            wait_for_copies();
        }
    }
    sync_cube();
}

/// The operations in CubeCL's intermediate language, whose own are only for its C++ compiler, and what LLVM makes of them.
#[cfg(all(feature = "cuda", not(feature = "cuda-cpp")))]
#[expect(dead_code, unreachable_pub, reason = "what the attribute generates for each field")]
mod lowered {
    use burn_cubecl::cubecl::ir::attributes::IndexAttr;
    use burn_cubecl::cubecl::ir::interfaces::side_effects::{MemoryEffect, MemoryEffectsOp};
    use burn_cubecl::cubecl::ir::prelude::*;
    use burn_cubecl::cubecl::ir::{AddressSpace, CanMaterialize, HasSideEffects};
    use cubecl_llvm::shared::to_llvm::ToLLVMDialect;
    use cubecl_llvm::shared::to_llvm::prelude::{FuncType, VoidType, llvm};

    use crate::kernels::gpu::mma::instruction::{GLOBAL, SHARED, assembly, in_space, operation};

    operation!(
        BeginCopyOp { from: Value, to: Value },
        "pe_zoo.begin_copy",
        |op, ctx| vec![MemoryEffect::Read(op.from(ctx)), MemoryEffect::Write(op.to(ctx))],
        |rewriter| {
            let to = in_space(ctx, rewriter, op.to(ctx), SHARED);
            let from = in_space(ctx, rewriter, op.from(ctx), GLOBAL);
            call(ctx, rewriter, "llvm.nvvm.cp.async.cg.shared.global.16", vec![to, from]);
        }
    );

    operation!(
        BeginCopyOrZerosOp { from: Value, to: Value, bytes: Value },
        "pe_zoo.begin_copy_or_zeros",
        |op, ctx| vec![MemoryEffect::Read(op.from(ctx)), MemoryEffect::Write(op.to(ctx))],
        |rewriter| {
            let to = in_space(ctx, rewriter, op.to(ctx), SHARED);
            let from = in_space(ctx, rewriter, op.from(ctx), GLOBAL);
            let operands = vec![to, from, op.bytes(ctx)];
            call(ctx, rewriter, "llvm.nvvm.cp.async.cg.shared.global.16.s", operands);
        }
    );

    operation!(
        EndGroupOp {},
        "pe_zoo.end_group",
        |op, ctx| vec![MemoryEffect::WriteAllInSpace(AddressSpace::Shared)],
        |rewriter| {
            call(ctx, rewriter, "llvm.nvvm.cp.async.commit.group", Vec::new());
        }
    );

    operation!(
        WaitForGroupsOp { but: IndexAttr },
        "pe_zoo.wait_for_groups",
        |op, ctx| vec![MemoryEffect::WriteAllInSpace(AddressSpace::Shared)],
        |rewriter| {
            let nothing = VoidType::get(ctx).into();
            let but = op.but(ctx).0;
            let text = format!("cp.async.wait_group {but}; fence.proxy.async.shared::cta;");
            assembly(ctx, rewriter, nothing, Vec::new(), &text, "~{memory}");
        }
    );

    pub(super) fn index(value: usize) -> IndexAttr {
        IndexAttr(value)
    }

    operation!(
        WaitForCopiesOp {},
        "pe_zoo.wait_for_copies",
        |op, ctx| vec![MemoryEffect::WriteAllInSpace(AddressSpace::Shared)],
        |rewriter| {
            call(ctx, rewriter, "llvm.nvvm.cp.async.wait.all", Vec::new());
        }
    );

    fn call(
        ctx: &mut Context,
        rewriter: &mut DialectConversionRewriter,
        name: &str,
        operands: Vec<Value>,
    ) {
        let types = operands.iter().map(|operand| operand.get_type(ctx)).collect();
        let nothing = VoidType::get(ctx).into();
        let function = FuncType::get(ctx, nothing, types, false);
        let call = llvm::CallIntrinsicOp::new(ctx, name.to_owned().into(), function, operands);
        rewriter.insert_op(ctx, &call);
    }
}
