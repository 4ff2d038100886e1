//! Functions that are one instruction of NVIDIA's GPUs, where Burn's own are functions of eight and more: powers of two,
//! binary logarithms and reciprocals.

use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;

/// Whether kernels are compiled by LLVM, which has the instructions. As C++ text they have Burn's functions.
pub(super) const NATIVE: bool = cfg!(all(feature = "cuda", not(feature = "cuda-cpp")));

/// Logits in base 2 are natural ones times this factor.
pub(super) const LOG2_E: f32 = std::f32::consts::LOG2_E;

/// Computes `2^x`, with 22 significant bits; 0 where it would be subnormal.
#[cube]
pub(super) fn power_of_two(x: f32, #[comptime] native: bool) -> f32 {
    if comptime![native] {
        native_power_of_two(x)
    } else {
        f32::exp(x * comptime![std::f32::consts::LN_2])
    }
}

/// Computes the binary logarithm of a number of at least 1, with an error of at most `2^-22`.
#[cube]
pub(super) fn logarithm(x: f32, #[comptime] native: bool) -> f32 {
    if comptime![native] { native_logarithm(x) } else { x.ln() * comptime![LOG2_E] }
}

/// Computes `1 / x` for a number of at least 1, with 23 significant bits; 0 for infinity.
#[cube]
pub(super) fn reciprocal(x: f32, #[comptime] native: bool) -> f32 {
    if comptime![native] { native_reciprocal(x) } else { f32::new(1.0) / x }
}

/// Declares a function that is one instruction, as an operation of CubeCL's intermediate language and what LLVM makes of it.
macro_rules! instruction {
    ($function:ident, $operation:ident) => {
        #[cube]
        #[cfg(all(feature = "cuda", not(feature = "cuda-cpp")))]
        fn $function(x: f32) -> f32 {
            intrinsic!(|scope| {
                let operation = lowered::$operation::new(scope.ctx_mut(), x.read_value(scope));
                scope.register_with_result(&operation).into()
            })
        }

        /// Never called, because kernels without LLVM are not native.
        #[cube]
        #[cfg(not(all(feature = "cuda", not(feature = "cuda-cpp"))))]
        fn $function(x: f32) -> f32 {
            x
        }
    };
}

instruction!(native_power_of_two, PowerOfTwoOp);
instruction!(native_logarithm, LogarithmOp);
instruction!(native_reciprocal, ReciprocalOp);

/// The operations in CubeCL's intermediate language, which has none of these, and what LLVM makes of them.
#[cfg(all(feature = "cuda", not(feature = "cuda-cpp")))]
#[expect(
    dead_code,
    unreachable_pub,
    reason = "what the attribute generates for a field has the field's visibility"
)]
mod lowered {
    use burn_cubecl::cubecl::ir::CanMaterialize;
    use burn_cubecl::cubecl::ir::PropagatesUniformity;
    use burn_cubecl::cubecl::ir::Pure;
    use burn_cubecl::cubecl::ir::interfaces::TriviallyUnrollable;
    use burn_cubecl::cubecl::ir::prelude::*;
    use cubecl_llvm::shared::to_llvm::ToLLVMDialect;
    use cubecl_llvm::shared::to_llvm::prelude::{FuncType, llvm};

    macro_rules! operation {
        ($operation:ident, $name:tt, $intrinsic:tt) => {
            #[cube_op(name = $name)]
            #[result_ty(same_as = input)]
            #[op_interfaces(SameOperandsType, SameOperandsAndResultType, TriviallyUnrollable)]
            #[op_traits(CanMaterialize, Pure, PropagatesUniformity)]
            pub struct $operation {
                pub input: Value,
            }

            #[op_interface_impl]
            impl ToLLVMDialect for $operation {
                fn rewrite(
                    &self,
                    ctx: &mut Context,
                    rewriter: &mut DialectConversionRewriter,
                    _: &OperandsInfo,
                ) -> Result<()> {
                    let input = self.input(ctx);
                    let number = input.get_type(ctx);
                    let function = FuncType::get(ctx, number, vec![number], false);
                    let name = $intrinsic.to_owned();
                    let call = llvm::CallIntrinsicOp::new(ctx, name.into(), function, vec![input]);
                    rewriter.insert_op(ctx, &call);
                    let result = call.get_result(ctx);
                    rewriter.replace_operation_with_values(ctx, self.get_operation(), vec![result]);
                    Ok(())
                }
            }
        };
    }

    operation!(PowerOfTwoOp, "pe_zoo.power_of_two", "llvm.nvvm.ex2.approx.ftz.f32");
    operation!(LogarithmOp, "pe_zoo.logarithm", "llvm.nvvm.lg2.approx.ftz.f");
    operation!(ReciprocalOp, "pe_zoo.reciprocal", "llvm.nvvm.rcp.approx.ftz.f");
}
