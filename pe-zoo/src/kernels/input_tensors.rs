//! Inputs of operations that extend a backend.

use burn::backend::tensor::FloatTensor;
use burn::backend::{
    Backend, BackendTensor, Dispatch, DispatchAutodiffContext, DispatchTensor, DispatchTensorKind,
    ExtensionType,
};

/// Inputs of an operation, in their order. A vector, because an argument of an extension has no parameter but its backend.
pub(crate) struct InputTensors<B: Backend>(pub(crate) Vec<FloatTensor<B>>);

impl<B: Backend> InputTensors<B> {
    /// Returns the inputs of an operation that has `N` of them.
    pub(crate) fn array<const N: usize>(self) -> [FloatTensor<B>; N] {
        let Ok(tensors) = self.0.try_into() else {
            unreachable!("an operation is called with as many tensors as it takes");
        };
        tensors
    }
}

/// Written by hand because the derive macro does not support vectors.
impl<B: Backend> ExtensionType<B> for InputTensors<B> {
    type Target = InputTensors<Dispatch>;

    fn map_to_dispatch<F>(self, map_kind: F, autodiff: DispatchAutodiffContext) -> Self::Target
    where
        F: Fn(BackendTensor<B>) -> DispatchTensorKind,
    {
        let kinds = self.0.into_iter().map(|tensor| map_kind(BackendTensor::Float(tensor)));
        InputTensors(kinds.map(|kind| DispatchTensor { kind, autodiff }).collect())
    }

    fn map_from_dispatch<F>(target: Self::Target, unwrap_kind: F) -> Self
    where
        F: Fn(DispatchTensor) -> BackendTensor<B>,
    {
        Self(target.0.into_iter().map(|tensor| unwrap_kind(tensor).float()).collect())
    }

    fn routing_tensor(target: &Self::Target) -> Option<&DispatchTensor> {
        target.0.first()
    }

    fn routing_float_tensor(target: &Self::Target) -> Option<&DispatchTensor> {
        target.0.first()
    }

    fn autodiff_context(target: &Self::Target) -> DispatchAutodiffContext {
        target.0.iter().fold(DispatchAutodiffContext::Disabled, |context, tensor| {
            context.merge(tensor.autodiff)
        })
    }
}
