//! Operations of GPUs whose gradients are written by hand, as an extension of Burn's CubeCL backends.

use std::fmt::Debug;
use std::marker::PhantomData;

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Cube, Dispatch, backend_extension};
use burn::tensor::Tensor;
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::tensor::CubeTensor;

use crate::kernels::input_tensors::InputTensors;

/// Differentiable operation on f32 tensors with `N` inputs. Its fields are everything that is not differentiated.
pub(crate) trait CubeOperation<const N: usize>: Clone + Debug + Send + 'static {
    /// Whether the operation reads inputs and the gradient of its output in any order of their axes. Otherwise it gets them in
    /// row-major order.
    const STRIDED: bool = false;

    /// Results of the forward pass that the backward pass needs.
    type Kept: Clone + Debug + Send + 'static;

    /// Computes the output, and what the backward pass needs.
    fn forward(&self, inputs: [CubeTensor; N]) -> (CubeTensor, Self::Kept);

    /// Computes the gradients of the inputs from that of the output. Only those that are `needed` are used; an input without
    /// a gradient has `None`.
    fn backward(
        &self,
        kept: Self::Kept,
        grad: CubeTensor,
        needed: [bool; N],
    ) -> [Option<CubeTensor>; N];
}

/// Applies an operation to tensors on a GPU, differentiated or not.
pub(crate) fn apply<const N: usize, const D: usize>(
    operation: impl CubeOperation<N>,
    inputs: [burn::backend::DispatchTensor; N],
) -> Tensor<D> {
    let inputs = InputTensors(Vec::from(inputs));
    Tensor::from_dispatch(<Dispatch as CubeOperationBackend>::operate_on_gpu(inputs, operation))
}

/// Copies a tensor to row-major order, if the operation needs that.
fn ordered<O: CubeOperation<N>, const N: usize>(tensor: CubeTensor) -> CubeTensor {
    if O::STRIDED { tensor } else { into_contiguous(tensor) }
}

/// Backend on which operations run.
#[backend_extension(Cube, Autodiff)]
trait CubeOperationBackend: Backend {
    /// Backend operation of [`apply`].
    fn operate_on_gpu<O: CubeOperation<N>, const N: usize>(
        #[extension_type] inputs: InputTensors<Self>,
        operation: O,
    ) -> FloatTensor<Self>;
}

impl CubeOperationBackend for Cube {
    fn operate_on_gpu<O: CubeOperation<N>, const N: usize>(
        inputs: InputTensors<Self>,
        operation: O,
    ) -> FloatTensor<Self> {
        operation.forward(inputs.array().map(ordered::<O, N>)).0
    }
}

impl<C: CheckpointStrategy> CubeOperationBackend for Autodiff<Cube, C> {
    fn operate_on_gpu<O: CubeOperation<N>, const N: usize>(
        inputs: InputTensors<Self>,
        operation: O,
    ) -> FloatTensor<Self> {
        let inputs = inputs.array::<N>();
        let nodes = inputs.each_ref().map(FloatTensor::<Self>::node);
        let inputs = inputs.map(FloatTensor::<Self>::into_primitive).map(ordered::<O, N>);
        match RecordedOnGpu::<O>(PhantomData).prepare::<C>(nodes).compute_bound().stateful() {
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
struct RecordedOnGpu<O>(PhantomData<O>);

impl<O: CubeOperation<N>, const N: usize> Backward<Cube, N> for RecordedOnGpu<O> {
    type State = (O, O::Kept);

    fn backward(self, ops: Ops<Self::State, N>, grads: &mut Gradients, _: &mut Checkpointer) {
        let grad = ordered::<O, N>(grads.consume::<Cube>(&ops.node));
        let (operation, kept) = ops.state;
        let needed = ops.parents.each_ref().map(Option::is_some);
        let gradients = operation.backward(kept, grad, needed);
        for (parent, grad) in ops.parents.into_iter().zip(gradients) {
            if let (Some(parent), Some(grad)) = (parent, grad) {
                grads.register::<Cube>(parent.id, grad);
            }
        }
    }
}
