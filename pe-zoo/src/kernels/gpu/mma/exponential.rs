//! Powers of two: one instruction where Burn's own exponential is a function of eight.

use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;

/// Whether kernels are compiled by LLVM, which has the instruction. As C++ text they have Burn's exponential.
pub(super) const NATIVE: bool = cfg!(all(feature = "cuda", not(feature = "cuda-cpp")));

/// Logits in base 2 are natural ones times this factor.
pub(super) const LOG2_E: f32 = std::f32::consts::LOG2_E;

/// Computes `2^x`, with 22 significant bits; 0 where it would be subnormal.
#[cube]
pub(super) fn power_of_two(x: f32, #[comptime] native: bool) -> f32 {
    if comptime![native] { instruction(x) } else { f32::exp(x * comptime![std::f32::consts::LN_2]) }
}

/// The instruction, where it exists.
#[cube]
#[cfg(all(feature = "cuda", not(feature = "cuda-cpp")))]
fn instruction(x: f32) -> f32 {
    intrinsic!(|scope| {
        let operation = lowered::PowerOfTwoOp::new(scope.ctx_mut(), x.read_value(scope));
        scope.register_with_result(&operation).into()
    })
}

#[cube]
#[cfg(not(all(feature = "cuda", not(feature = "cuda-cpp"))))]
fn instruction(x: f32) -> f32 {
    f32::exp(x * comptime![std::f32::consts::LN_2])
}

/// The operation in CubeCL's intermediate language, which has none for powers of two, and what LLVM makes of it.
#[cfg(all(feature = "cuda", not(feature = "cuda-cpp")))]
mod lowered {
    use burn_cubecl::cubecl::ir::CanMaterialize;
    use burn_cubecl::cubecl::ir::PropagatesUniformity;
    use burn_cubecl::cubecl::ir::Pure;
    use burn_cubecl::cubecl::ir::interfaces::TriviallyUnrollable;
    use burn_cubecl::cubecl::ir::prelude::*;
    use cubecl_llvm::shared::to_llvm::ToLLVMDialect;
    use cubecl_llvm::shared::to_llvm::prelude::{FuncType, llvm};

    #[cube_op(name = "pe_zoo.power_of_two")]
    #[result_ty(same_as = input)]
    #[op_interfaces(SameOperandsType, SameOperandsAndResultType, TriviallyUnrollable)]
    #[op_traits(CanMaterialize, Pure, PropagatesUniformity)]
    pub struct PowerOfTwoOp {
        pub input: Value,
    }

    #[op_interface_impl]
    impl ToLLVMDialect for PowerOfTwoOp {
        fn rewrite(
            &self,
            ctx: &mut Context,
            rewriter: &mut DialectConversionRewriter,
            _: &OperandsInfo,
        ) -> Result<()> {
            let input = self.input(ctx);
            let number = input.get_type(ctx);
            let function = FuncType::get(ctx, number, vec![number], false);
            let name = "llvm.nvvm.ex2.approx.ftz.f32".to_owned();
            let call = llvm::CallIntrinsicOp::new(ctx, name.into(), function, vec![input]);
            rewriter.insert_op(ctx, &call);
            let result = call.get_result(ctx);
            rewriter.replace_operation_with_values(ctx, self.get_operation(), vec![result]);
            Ok(())
        }
    }
}
