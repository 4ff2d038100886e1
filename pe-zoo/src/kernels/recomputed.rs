//! Functions of tensors that the backward pass computes again, so that their intermediate results are not kept for it.

use std::array;
use std::fmt;
use std::sync::Arc;

use burn::backend::ops::FloatTensorOps;
use burn::backend::{
    AutodiffBackend, BackendTensor, Dispatch, DispatchAutodiffContext, DispatchTensor,
    DispatchTensorKind, TensorMetadata,
};
use burn::tensor::{Device, Tensor};

use super::Kernels;
#[cfg(feature = "flex")]
use super::cpu::operation as cpu;
#[cfg(feature = "cube")]
use super::gpu::operation as gpu;

/// Largest number of tensors that a recomputed function has; Burn fixes the number for each operation.
const MOST: usize = 32;

/// Computes `function(inputs)`, of which only the inputs are kept for the backward pass. There the function is computed again and
/// differentiated.
///
/// `function` must not hold tensors that are differentiated. It is computed once, and its results are kept, if it has more than
/// 32 inputs.
pub(crate) fn recomputed(
    inputs: &[DispatchTensor],
    device: &Device,
    function: impl Fn(&[DispatchTensor]) -> Tensor<4> + Send + Sync + 'static,
) -> Tensor<4> {
    if inputs.len() > MOST {
        return function(inputs);
    }
    // Absent inputs are tensors without elements, as those of the kernels are.
    let absent = Tensor::<1>::zeros([0], device).into_dispatch();
    let inputs = array::from_fn::<_, MOST, _>(|n| inputs.get(n).unwrap_or(&absent).clone());
    match super::of(device) {
        #[cfg(feature = "flex")]
        Some(Kernels::Cpu) => cpu::apply(Recomputed(Arc::new(function)), inputs),
        #[cfg(feature = "cube")]
        Some(Kernels::Gpu) => gpu::apply(Recomputed(Arc::new(function)), inputs),
        _ => function(&inputs),
    }
}

/// Function of [`recomputed`], as an operation of the backends that can extend Burn.
#[derive(Clone)]
struct Recomputed(Arc<TensorFunction>);

type TensorFunction = dyn Fn(&[DispatchTensor]) -> Tensor<4> + Send + Sync;

impl fmt::Debug for Recomputed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recomputed").finish_non_exhaustive()
    }
}

impl Recomputed {
    fn output<T: BackendFloat>(&self, inputs: [T; MOST]) -> T {
        T::from_dispatch((self.0)(&inputs.map(T::into_dispatch)).into_dispatch())
    }

    /// Gradients of the inputs that need them, from that of the output.
    fn gradients<T: BackendFloat>(
        &self,
        inputs: [T; MOST],
        grad: T,
        needed: [bool; MOST],
    ) -> [Option<T>; MOST] {
        let inputs = inputs.map(T::into_dispatch);
        let leaves = array::from_fn::<_, MOST, _>(|n| {
            let leaf = Dispatch::from_inner(inputs[n].clone());
            Dispatch::float_set_require_grad(leaf, needed[n])
        });
        let grad = Tensor::from_dispatch(Dispatch::from_inner(grad.into_dispatch()));
        let sum = ((self.0)(&leaves) * grad).sum();
        let mut grads = sum.is_tracked().then(|| Dispatch::backward(sum.into_dispatch()));
        array::from_fn(|n| {
            let input = &inputs[n];
            let found = grads.as_mut().and_then(|grads| Dispatch::grad_remove(&leaves[n], grads));
            // Burn fails if a tensor whose gradient is needed gets none.
            let zeros =
                || Dispatch::float_zeros(input.shape(), &input.device(), input.dtype().into());
            needed[n].then(|| T::from_dispatch(found.unwrap_or_else(zeros)))
        })
    }
}

/// Float tensor of a backend.
trait BackendFloat {
    fn into_dispatch(self) -> DispatchTensor;

    fn from_dispatch(tensor: DispatchTensor) -> Self;
}

/// Implements a backend's trait of operations for [`Recomputed`], from the name of the backend, its tensors, the trait and what the
/// trait has besides.
macro_rules! operation_on {
    ($backend:ident, $tensor:ty, $operation:ty, $($other:tt)*) => {
        impl BackendFloat for $tensor {
            fn into_dispatch(self) -> DispatchTensor {
                let kind = DispatchTensorKind::$backend(BackendTensor::Float(self));
                DispatchTensor { kind, autodiff: DispatchAutodiffContext::Disabled }
            }

            fn from_dispatch(tensor: DispatchTensor) -> Self {
                let DispatchTensorKind::$backend(tensor) = tensor.kind else {
                    unreachable!("a function of tensors of one backend returns one of the same");
                };
                tensor.float()
            }
        }

        impl $operation for Recomputed {
            $($other)*

            type Kept = [$tensor; MOST];

            fn forward(&self, inputs: [$tensor; MOST]) -> ($tensor, Self::Kept) {
                (self.output(inputs.clone()), inputs)
            }

            fn backward(
                &self,
                kept: Self::Kept,
                grad: $tensor,
                needed: [bool; MOST],
            ) -> [Option<$tensor>; MOST] {
                self.gradients(kept, grad, needed)
            }
        }
    };
}

#[cfg(feature = "flex")]
operation_on!(Flex, burn::backend::flex::FlexTensor, cpu::Operation<MOST>,);
#[cfg(feature = "cube")]
operation_on!(
    Cube,
    burn_cubecl::tensor::CubeTensor,
    gpu::CubeOperation<MOST>,
    const STRIDED: bool = true;
);

#[cfg(all(test, feature = "flex"))]
mod tests {
    use burn::backend::flex::FlexTensor;

    use super::*;
    use crate::testkit::close::numbers;

    /// Returns its input, and counts what is kept for backward passes.
    #[derive(Debug, Clone, Default)]
    struct Kept(Arc<()>);

    impl cpu::Operation<1> for Kept {
        type Kept = ();

        fn forward(&self, [x]: [FlexTensor; 1]) -> (FlexTensor, ()) {
            (x, ())
        }

        fn backward(
            &self,
            _kept: (),
            grad: FlexTensor,
            _needed: [bool; 1],
        ) -> [Option<FlexTensor>; 1] {
            [Some(grad)]
        }
    }

    fn input(number: f32) -> Tensor<4> {
        let device = Device::flex().autodiff();
        Tensor::<1>::from_floats([number], &device).reshape([1, 1, 1, 1]).require_grad()
    }

    /// The product of the first two inputs.
    fn product(inputs: &[DispatchTensor]) -> Tensor<4> {
        let [x, y] = [0, 1].map(|n| Tensor::<4>::from_dispatch(inputs[n].clone()));
        x * y
    }

    fn recompute(
        inputs: &[&Tensor<4>],
        function: impl Fn(&[DispatchTensor]) -> Tensor<4> + Send + Sync + 'static,
    ) -> Tensor<4> {
        let inputs = inputs.iter().map(|&input| input.clone().into_dispatch()).collect::<Vec<_>>();
        recomputed(&inputs, &Device::flex().autodiff(), function)
    }

    #[test]
    fn nothing_inside_is_kept_and_gradients_are_those_of_the_function() {
        let (x, y, kept) = (input(3.0), input(5.0), Kept::default());
        let function = || {
            let inside = kept.clone();
            move |inputs: &[DispatchTensor]| {
                cpu::apply::<1, 4>(inside.clone(), [product(inputs).into_dispatch()])
            }
        };
        let output = recompute(&[&x, &y], function());
        // Those of the test and of the function.
        assert_eq!(Arc::strong_count(&kept.0), 2);
        let direct = function()(&[&x, &y].map(|input| input.clone().into_dispatch()));
        assert_eq!((numbers(direct), Arc::strong_count(&kept.0)), (vec![15.0], 3));
        let grads = output.backward();
        assert_eq!(numbers(output), [15.0]);
        assert_eq!([&x, &y].map(|x| numbers(x.grad(&grads).unwrap())), [[5.0], [3.0]]);
    }

    #[test]
    fn one_tensor_may_be_several_inputs_and_others_none() {
        let (x, unused) = (input(3.0), input(5.0));
        let output = recompute(&[&x, &x, &(unused.clone() * 2.0)], product);
        let grads = output.backward();
        assert_eq!(numbers(x.grad(&grads).unwrap()), [6.0]);
        assert_eq!(numbers(unused.grad(&grads).unwrap()), [0.0]);
        // No gradient reaches an input that needs one.
        let output = recompute(&[&x, &x], |inputs| product(inputs).detach());
        assert_eq!(numbers(x.grad(&output.backward()).unwrap()), [0.0]);
    }

    #[test]
    fn inputs_without_gradients_and_too_many_are_computed_as_well() {
        let (x, y) = (input(3.0), input(5.0).detach());
        let output = recompute(&[&x, &y], product);
        assert_eq!(numbers(x.grad(&output.backward()).unwrap()), [5.0]);
        assert_eq!(numbers(recompute(&[&y, &y], product)), [25.0]);
        let many = recompute(&[&x; MOST + 1], product);
        assert_eq!(numbers(x.grad(&many.backward()).unwrap()), [6.0]);
    }
}
