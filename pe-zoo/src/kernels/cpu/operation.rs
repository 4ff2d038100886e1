//! Operations whose gradients are written by hand, as an extension of Flex that Burn can differentiate.

use std::fmt::Debug;
use std::marker::PhantomData;

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::flex::FlexTensor;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Dispatch, DispatchTensor, Flex, backend_extension};
use burn::tensor::Tensor;

use crate::kernels::input_tensors::InputTensors;

/// Differentiable operation with `N` inputs. Its fields are everything that is not a tensor.
///
/// Tensors are passed by value, so that memory that is not shared can be changed in place. An absent input is a tensor
/// without elements.
pub(crate) trait Operation<const N: usize>: Clone + Debug + Send + 'static {
    /// Results of the forward pass that the backward pass needs.
    type Kept: Clone + Debug + Send + 'static;

    /// Computes the output, and what the backward pass needs.
    fn forward(&self, inputs: [FlexTensor; N]) -> (FlexTensor, Self::Kept);

    /// Computes the output of tensors that are not differentiated.
    fn output(&self, inputs: [FlexTensor; N]) -> FlexTensor {
        self.forward(inputs).0
    }

    /// Computes the gradients of the inputs from that of the output. Only those that are `needed` are used; an input without
    /// a gradient has `None`.
    fn backward(
        &self,
        kept: Self::Kept,
        grad: FlexTensor,
        needed: [bool; N],
    ) -> [Option<FlexTensor>; N];
}

/// Applies an operation to tensors on Flex, differentiated or not.
pub(crate) fn apply<const N: usize, const D: usize>(
    operation: impl Operation<N>,
    inputs: [DispatchTensor; N],
) -> Tensor<D> {
    let inputs = InputTensors(Vec::from(inputs));
    Tensor::from_dispatch(<Dispatch as OperationBackend>::operate(inputs, operation))
}

/// Backend on which operations run.
#[backend_extension(Flex, Autodiff)]
trait OperationBackend: Backend {
    /// Backend operation of [`apply`].
    fn operate<O: Operation<N>, const N: usize>(
        #[extension_type] inputs: InputTensors<Self>,
        operation: O,
    ) -> FloatTensor<Self>;
}

impl OperationBackend for Flex {
    fn operate<O: Operation<N>, const N: usize>(
        inputs: InputTensors<Self>,
        operation: O,
    ) -> FloatTensor<Self> {
        operation.output(inputs.array())
    }
}

impl<C: CheckpointStrategy> OperationBackend for Autodiff<Flex, C> {
    fn operate<O: Operation<N>, const N: usize>(
        inputs: InputTensors<Self>,
        operation: O,
    ) -> FloatTensor<Self> {
        let inputs = inputs.array::<N>();
        let nodes = inputs.each_ref().map(FloatTensor::<Self>::node);
        let inputs = inputs.map(FloatTensor::<Self>::into_primitive);
        match Recorded::<O>(PhantomData).prepare::<C>(nodes).compute_bound().stateful() {
            OpsKind::Tracked(prep) => {
                let (output, kept) = operation.forward(inputs);
                prep.finish((operation, kept), output)
            }
            OpsKind::UnTracked(prep) => prep.finish(operation.forward(inputs).0),
        }
    }
}

/// Step of a backward pass that differentiates an operation.
#[derive(Debug)]
struct Recorded<O>(PhantomData<O>);

impl<O: Operation<N>, const N: usize> Backward<Flex, N> for Recorded<O> {
    type State = (O, O::Kept);

    fn backward(self, ops: Ops<Self::State, N>, grads: &mut Gradients, _: &mut Checkpointer) {
        let grad = grads.consume::<Flex>(&ops.node);
        let (operation, kept) = ops.state;
        let needed = ops.parents.each_ref().map(Option::is_some);
        let parent_grads = operation.backward(kept, grad, needed);
        for (parent, grad) in ops.parents.into_iter().zip(parent_grads) {
            if let (Some(parent), Some(grad)) = (parent, grad) {
                grads.register::<Flex>(parent.id, grad);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use burn::tensor::Device;

    use super::*;
    use crate::testkit::close::numbers;

    /// Returns its first input; counts what is kept and notes whose gradients are needed.
    #[derive(Debug, Clone, Default)]
    struct First {
        kept: Arc<()>,
        needed: Arc<Mutex<Vec<[bool; 2]>>>,
    }

    impl Operation<2> for First {
        type Kept = Arc<()>;

        fn forward(&self, [x, _y]: [FlexTensor; 2]) -> (FlexTensor, Arc<()>) {
            (x, Arc::clone(&self.kept))
        }

        fn backward(
            &self,
            _kept: Arc<()>,
            grad: FlexTensor,
            needed: [bool; 2],
        ) -> [Option<FlexTensor>; 2] {
            self.needed.lock().unwrap().push(needed);
            [Some(grad.clone()), Some(grad)]
        }
    }

    impl First {
        fn of(&self, x: &Tensor<1>, y: &Tensor<1>) -> Tensor<1> {
            apply(self.clone(), [x, y].map(|tensor| tensor.clone().into_dispatch()))
        }

        /// Number of forward passes whose results are kept for a backward pass. Each keeps its operation too.
        fn recorded(&self) -> usize {
            (Arc::strong_count(&self.kept) - 1) / 2
        }
    }

    #[test]
    fn only_tracked_passes_keep_something_and_only_tracked_inputs_get_gradients() {
        for device in [Device::flex(), Device::flex().autodiff()] {
            let first = First::default();
            let x = Tensor::<1>::from_floats([1.0, 2.0], &device);
            let output = first.of(&x, &x);
            assert_eq!((numbers(output.clone()), first.recorded()), (vec![1.0, 2.0], 0));
        }
        let device = Device::flex().autodiff();
        let (first, constant) = (First::default(), Tensor::<1>::from_floats([3.0, 4.0], &device));
        let leaf = constant.clone().require_grad();
        let outputs = [first.of(&constant, &leaf), first.of(&leaf, &constant)];
        assert_eq!(first.recorded(), 2);
        for output in outputs {
            let grads = output.sum().backward();
            assert_eq!(numbers(leaf.grad(&grads).unwrap()), [1.0, 1.0]);
            assert!(constant.grad(&grads).is_none());
        }
        assert_eq!(*first.needed.lock().unwrap(), [[false, true], [true, false]]);
        assert_eq!(first.recorded(), 0);
    }
}
