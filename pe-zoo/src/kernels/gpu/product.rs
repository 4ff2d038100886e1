//! Products of f32 tensors without rounding of the factors.
//!
//! Burn computes f32 products on tensor cores where the device has them for tf32, which keeps
//! eleven significant bits of each factor, and has no switch against that. Here every unit
//! multiplies f32 numbers.

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::ops::FloatTensorOps;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Cube, Dispatch, DispatchDevice, backend_extension};
use burn::tensor::{DType, Device, Tensor};
use burn_cubecl::cubecl::ir::{ElemType, FloatKind};
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::kernel::matmul::init_matmul_output;
use burn_cubecl::ops::numeric::zeros_client;
use burn_cubecl::tensor::CubeTensor;
use cubek::matmul::definition::{MatmulElems, MatmulGlobalElems};
use cubek::matmul::launch::launch_ref;
use cubek::matmul::multi_level::Strategy;
use cubek::matmul::routine::BlueprintStrategy;
use cubek::std::InputBinding;

use super::mma::product::multiply::exact_product;
use crate::kernels::operands::present;

const F32: ElemType = ElemType::Float(FloatKind::F32);

/// Whether the device has tensor cores for tf32.
pub(crate) fn has_tf32(device: &Device) -> bool {
    let device = device.clone().inner();
    let DispatchDevice::Cube(device) = device.as_dispatch() else {
        return false;
    };
    device.client().properties().supports_type(ElemType::Float(FloatKind::TF32))
}

/// Whether Burn's own f32 products may round their factors on this device. True for all devices
/// where tensor cores are simulated.
pub(crate) fn rounds(device: &Device) -> bool {
    has_tf32(device) || cfg!(feature = "cores-sim") && on_gpu(device)
}

fn on_gpu(device: &Device) -> bool {
    matches!(device.clone().inner().as_dispatch(), DispatchDevice::Cube(_))
}

/// Multiplies `[.., M, K] x [.., K, N] -> [.., M, N]`, both f32; leading axes of length 1 are
/// repeated.
pub(crate) fn product<const D: usize>(left: Tensor<D>, right: Tensor<D>) -> Tensor<D> {
    let (of_left, of_right) = (left.dims(), right.dims());
    let inner = of_left[D - 1];
    if of_right[..D - 2].iter().all(|len| *len == 1) {
        let folded = left.reshape([of_left[..D - 1].iter().product::<usize>(), inner]);
        let right = right.reshape([of_right[D - 2], of_right[D - 1]]);
        let mut shape = of_left;
        shape[D - 1] = of_right[D - 1];
        return launched(folded, right).reshape(shape);
    }
    let mut shape = of_left;
    for axis in 0..D - 2 {
        shape[axis] = of_left[axis].max(of_right[axis]);
    }
    let left = left.expand(shape);
    shape[D - 2] = inner;
    shape[D - 1] = of_right[D - 1];
    let right = right.expand(shape);
    launched(left, right)
}

/// Multiplies tensors whose leading axes are equal.
fn launched<const D: usize>(left: Tensor<D>, right: Tensor<D>) -> Tensor<D> {
    let (left, right) = (left.into_dispatch(), right.into_dispatch());
    Tensor::from_dispatch(<Dispatch as CubeProduct>::cube_product(left, right))
}

/// Backend with the product of f32 tensors.
#[backend_extension(Cube, Autodiff)]
trait CubeProduct: Backend {
    /// Multiplies `[.., M, K] x [.., K, N] -> [.., M, N]`; leading axes must be equal.
    fn cube_product(left: FloatTensor<Self>, right: FloatTensor<Self>) -> FloatTensor<Self>;
}

impl CubeProduct for Cube {
    fn cube_product(left: FloatTensor<Self>, right: FloatTensor<Self>) -> FloatTensor<Self> {
        multiply(left, right)
    }
}

#[derive(Debug)]
struct ProductOp;

impl Backward<Cube, 2> for ProductOp {
    type State = [CubeTensor; 2];

    fn backward(self, ops: Ops<Self::State, 2>, grads: &mut Gradients, _: &mut Checkpointer) {
        let grad = grads.consume::<Cube>(&ops.node);
        let [left, right] = ops.state;
        let [of_left, of_right] = ops.parents;
        if let Some(node) = of_left {
            grads.register::<Cube>(node.id, multiply(grad.clone(), transposed(right)));
        }
        if let Some(node) = of_right {
            grads.register::<Cube>(node.id, multiply(transposed(left), grad));
        }
    }
}

impl<C: CheckpointStrategy> CubeProduct for Autodiff<Cube, C> {
    fn cube_product(left: FloatTensor<Self>, right: FloatTensor<Self>) -> FloatTensor<Self> {
        let nodes = [left.node(), right.node()];
        let [left, right] = [left, right].map(FloatTensor::<Self>::into_primitive);
        let product = multiply(left.clone(), right.clone());
        match ProductOp.prepare::<C>(nodes).compute_bound().stateful() {
            OpsKind::Tracked(prep) => prep.finish([left, right], product),
            OpsKind::UnTracked(prep) => prep.finish(product),
        }
    }
}

/// Returns the tensor with its last two axes exchanged.
pub(super) fn transposed(tensor: CubeTensor) -> CubeTensor {
    let axes = tensor.meta.shape().num_dims();
    Cube::float_swap_dims(tensor, axes - 2, axes - 1)
}

/// Copies axes that are repeated with stride 0, which the kernel's layouts do not support.
fn laid_out(tensor: CubeTensor) -> CubeTensor {
    if tensor.meta.strides().contains(&0) { into_contiguous(tensor) } else { tensor }
}

fn multiply(left: CubeTensor, right: CubeTensor) -> CubeTensor {
    let product = init_matmul_output(&left, &right, DType::F32);
    if !present(&product) {
        return product;
    }
    if !present(&left) {
        let (client, device) = (product.client.clone(), product.device.clone());
        return zeros_client(client, device, product.meta.shape().clone(), DType::F32);
    }
    if let Some(product) = exact_product(&left, &right) {
        return product;
    }
    let (left, right) = (laid_out(left), laid_out(right));
    let types = MatmulElems::from_globals(&MatmulGlobalElems { lhs: F32, rhs: F32, out: F32 });
    let launch = |strategy: Strategy| {
        launch_ref(
            &strategy.into(),
            &product.client,
            InputBinding::new(left.clone().binding(), F32),
            InputBinding::new(right.clone().binding(), F32),
            product.clone().binding(),
            &mut types.clone(),
        )
    };
    // Sizes without a suitable tiling use the kernel that supports all sizes.
    if let Err(blocks) = launch(Strategy::SimpleUnit(BlueprintStrategy::default()))
        && let Err(plain) = launch(Strategy::Naive)
    {
        unreachable!("a product of f32 that the device does not take: {blocks:?}, {plain:?}");
    }
    product
}

#[cfg(all(test, any(feature = "wgpu", feature = "cuda"), feature = "flex"))]
mod tests;
