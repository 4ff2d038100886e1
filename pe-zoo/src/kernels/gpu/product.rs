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
mod tests {
    use burn::tensor::TensorData;
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::SeedableRng;

    use super::*;
    use crate::init::standard_normal;
    use crate::testkit::close::{self, F32, numbers};

    /// The device under test: that of wgpu, or without it the first NVIDIA GPU.
    fn gpu() -> Device {
        #[cfg(feature = "wgpu")]
        return Device::wgpu(burn::tensor::DeviceKind::DefaultDevice);
        #[cfg(not(feature = "wgpu"))]
        Device::cuda(0)
    }

    fn leaf<const D: usize>(
        device: &Device,
        dtype: DType,
        shape: [usize; D],
        seed: u64,
    ) -> Tensor<D> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let count = shape.iter().product::<usize>();
        let values = (0..count).map(|_| f64::from(standard_normal(&mut rng) as f32));
        let data = TensorData::new(values.collect::<Vec<_>>(), shape);
        Tensor::from_data(data, (device, dtype)).require_grad()
    }

    /// Computes the product and both gradients; `turn` selects the factors that are stored with
    /// their last axes exchanged.
    fn all<const D: usize>(
        (device, dtype): (&Device, DType),
        shapes: [[usize; D]; 2],
        turn: [bool; 2],
        product: fn(Tensor<D>, Tensor<D>) -> Tensor<D>,
    ) -> [Vec<f64>; 3] {
        let stored = |at: usize| {
            let mut shape = shapes[at];
            if turn[at] {
                shape.swap(D - 2, D - 1);
            }
            leaf(device, dtype, shape, at as u64)
        };
        let seen = |x: &Tensor<D>, at: usize| {
            if turn[at] { x.clone().swap_dims(D - 2, D - 1) } else { x.clone() }
        };
        let (left, right) = (stored(0), stored(1));
        let product = product(seen(&left, 0), seen(&right, 1));
        let upstream = leaf(device, dtype, product.dims(), 2).detach();
        let grads = (product.clone() * upstream).sum().backward();
        let grad = |x: &Tensor<D>| numbers(x.grad(&grads).expect("a gradient"));
        [numbers(product), grad(&left), grad(&right)]
    }

    fn check<const D: usize>(left: [usize; D], right: [usize; D]) {
        let flex = Device::flex().autodiff();
        let gpu = gpu().autodiff();
        for turn in [[false, false], [true, false], [false, true], [true, true]] {
            let found = all((&gpu, DType::F32), [left, right], turn, super::product);
            let expected = all((&flex, DType::F64), [left, right], turn, Tensor::matmul);
            for (what, (found, expected)) in
                ["product", "left", "right"].iter().zip(found.iter().zip(&expected))
            {
                close::compare(found, expected, F32)
                    .map_err(|e| format!("{what} of {left:?} x {right:?}, {turn:?}: {e}"))
                    .expect("the same");
            }
        }
    }

    #[test]
    fn products_and_gradients_equal_those_in_f64() {
        check([1, 1], [1, 1]);
        check([1, 7], [7, 1]);
        check([5, 1], [1, 3]);
        check([33, 17], [17, 65]);
        check([128, 64], [64, 96]);
        check([2, 3, 5, 8], [2, 3, 8, 6]);
        check([4, 2, 13, 9], [4, 2, 9, 30]);
    }

    #[test]
    fn leading_axes_of_length_1_are_repeated() {
        check([6, 5, 4], [1, 4, 3]);
        check([1, 5, 4], [6, 4, 3]);
        check([2, 3, 5, 4], [1, 3, 4, 7]);
        check([2, 1, 5, 4], [1, 3, 4, 7]);
    }

    #[test]
    fn what_is_empty_gives_nothing_or_zeros() {
        let gpu = gpu();
        let of = |rows, inner, columns| {
            let (left, right) =
                (Tensor::<2>::zeros([rows, inner], &gpu), Tensor::zeros([inner, columns], &gpu));
            super::product(left, right)
        };
        assert_eq!(of(0, 3, 2).dims(), [0, 2]);
        assert_eq!(numbers(of(2, 0, 3)), vec![0.0; 6]);
    }
}
