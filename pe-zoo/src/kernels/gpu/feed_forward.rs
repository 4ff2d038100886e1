//! Feed-forward networks whose factors, and numbers between their two maps, are bf16.

use burn::backend::ops::FloatTensorOps;
use burn::backend::{Cube, DispatchDevice};
use burn::tensor::{DType, Tensor};
use burn_cubecl::tensor::CubeTensor;

use super::elementwise::gated;
use super::elementwise::sums::sum_of_rows;
use super::mma::product::has_products;
use super::mma::product::map::{self, MapSizes};
use super::mma::product::round::{rounded_gradient, rounded_rows};
use super::operation::{CubeOperation, apply};
use crate::kernels::activation::{ActivationKind, ActivationUnit};
use crate::kernels::linear_map::LinearMap;

/// Whether [`feed_forward`] computes a network: on GPUs with tensor instructions for bf16, where all widths are multiples of
/// eight, and both maps have a bias or neither.
pub(crate) fn supports<const D: usize>(x: &Tensor<D>, up: &LinearMap, down: &LinearMap) -> bool {
    let device = x.device().inner();
    let mut widths = [&up.weight, &down.weight].into_iter().flat_map(|weight| weight.dims());
    super::elementwise::supports(x)
        && up.bias.is_some() == down.bias.is_some()
        && widths.all(|width| width.is_multiple_of(8))
        && matches!(device.as_dispatch(), DispatchDevice::Cube(device) if has_products(&device.client()))
}

/// Computes `down(activation(up(x)))`, `[.., I] -> [.., O]`, where [`supports`] holds. Both maps have a bias, or neither.
pub(crate) fn feed_forward<const D: usize>(
    x: Tensor<D>,
    up: LinearMap,
    down: LinearMap,
    activation: ActivationKind,
) -> Tensor<D> {
    match (up.bias, down.bias) {
        (Some(up_bias), Some(down_bias)) => {
            let tensors = [up.weight, down.weight].map(Tensor::into_dispatch);
            let [up, down] = tensors;
            let [up_bias, down_bias] = [up_bias, down_bias].map(Tensor::into_dispatch);
            apply(RoundedNetwork { activation }, [x.into_dispatch(), up, down, up_bias, down_bias])
        }
        _ => {
            let [up, down] = [up.weight, down.weight].map(Tensor::into_dispatch);
            apply(RoundedNetwork { activation }, [x.into_dispatch(), up, down])
        }
    }
}

#[derive(Debug, Clone)]
struct RoundedNetwork {
    activation: ActivationKind,
}

/// Factors of the forward pass in bf16.
#[derive(Debug, Clone)]
struct NetworkFactors {
    /// Input, `[.., I]`.
    x: CubeTensor,
    up: CubeTensor,
    down: CubeTensor,
    /// Before and after the activation.
    hidden: [CubeTensor; 2],
    sizes: [MapSizes; 2],
}

impl RoundedNetwork {
    fn output(
        &self,
        x: CubeTensor,
        up: CubeTensor,
        down: CubeTensor,
        up_bias: Option<CubeTensor>,
        down_bias: Option<CubeTensor>,
    ) -> (CubeTensor, NetworkFactors) {
        let mut shape = x.meta.shape().clone();
        let last = shape.num_dims() - 1;
        let ([inputs, between], [hidden, outputs]) = (sides(&up), sides(&down));
        let rows = shape.num_elements() / inputs;
        let first = MapSizes { rows, inputs, outputs: between };
        let second = MapSizes { rows, inputs: hidden, outputs };
        let x = rounded_rows(x, rows, inputs);
        let up = rounded_rows(up, inputs, between);
        let down = rounded_rows(down, hidden, outputs);
        let [before, after] = match self.activation.unit() {
            ActivationUnit::Numbers(activation) => {
                map::activated_output(x.clone(), up.clone(), up_bias, first, activation)
            }
            ActivationUnit::Pairs(gate) => {
                let before = map::output(x.clone(), up.clone(), up_bias, first, DType::BF16);
                [before.clone(), gated::forward(before, gate)]
            }
        };
        let output = map::output(after.clone(), down.clone(), down_bias, second, DType::F32);
        shape[last] = outputs;
        let output = Cube::float_reshape(output, shape);
        (output, NetworkFactors { x, up, down, hidden: [before, after], sizes: [first, second] })
    }

    /// Gradients of the input, the two weights and their biases, if they are needed.
    fn gradients(
        &self,
        factors: NetworkFactors,
        grad: CubeTensor,
        [of_x, of_up, of_down, of_up_bias, of_down_bias]: [bool; 5],
    ) -> [Option<CubeTensor>; 5] {
        let NetworkFactors { x, up, down, hidden: [before, after], sizes: [first, second] } =
            factors;
        let mut shape = grad.meta.shape().clone();
        let last = shape.num_dims() - 1;
        shape[last] = first.inputs;
        let (grad, of_down_bias) =
            rounded_gradient(grad, second.rows, second.outputs, of_down_bias);
        let of_down = of_down.then(|| map::weight_gradient(after, grad.clone(), second));
        if !(of_x || of_up || of_up_bias) {
            return [None, None, of_down, None, of_down_bias];
        }
        let of_before = match self.activation.unit() {
            ActivationUnit::Numbers(activation) => {
                map::gradient_before(activation, before, grad, down, second)
            }
            ActivationUnit::Pairs(gate) => {
                let grad = map::input_gradient(grad, down, second, DType::BF16);
                gated::backward(before, grad, gate)
            }
        };
        let of_up_bias =
            of_up_bias.then(|| sum_of_rows(of_before.clone(), first.rows, first.outputs));
        let of_x = of_x.then(|| {
            let of_x = map::input_gradient(of_before.clone(), up, first, DType::F32);
            Cube::float_reshape(of_x, shape)
        });
        let of_up = of_up.then(|| map::weight_gradient(x, of_before, first));
        [of_x, of_up, of_down, of_up_bias, of_down_bias]
    }
}

impl CubeOperation<3> for RoundedNetwork {
    type Kept = NetworkFactors;

    fn forward(&self, [x, up, down]: [CubeTensor; 3]) -> (CubeTensor, NetworkFactors) {
        self.output(x, up, down, None, None)
    }

    fn backward(
        &self,
        factors: NetworkFactors,
        grad: CubeTensor,
        [of_x, of_up, of_down]: [bool; 3],
    ) -> [Option<CubeTensor>; 3] {
        let needed = [of_x, of_up, of_down, false, false];
        let [of_x, of_up, of_down, ..] = self.gradients(factors, grad, needed);
        [of_x, of_up, of_down]
    }
}

impl CubeOperation<5> for RoundedNetwork {
    type Kept = NetworkFactors;

    fn forward(
        &self,
        [x, up, down, up_bias, down_bias]: [CubeTensor; 5],
    ) -> (CubeTensor, NetworkFactors) {
        self.output(x, up, down, Some(up_bias), Some(down_bias))
    }

    fn backward(
        &self,
        factors: NetworkFactors,
        grad: CubeTensor,
        needed: [bool; 5],
    ) -> [Option<CubeTensor>; 5] {
        self.gradients(factors, grad, needed)
    }
}

/// Inputs and outputs of a weight.
fn sides(weight: &CubeTensor) -> [usize; 2] {
    weight.meta.shape().dims()
}
