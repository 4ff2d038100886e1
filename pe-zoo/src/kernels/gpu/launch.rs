//! Configuration and launch of the kernels.

use burn::backend::{Backend, Cube};
use burn::tensor::bf16;
use burn_cubecl::cubecl::client::Client;
use burn_cubecl::cubecl::features::MmaConfig;
use burn_cubecl::cubecl::ir::{ElemType, FloatKind};
use burn_cubecl::cubecl::prelude::*;

use super::arguments::{inputs, last_axis, place, plane_rows};
use super::backward::backward_kernel;
use super::config::{DeviceLimits, Function, KernelConfig};
use super::cores::{self, Rounded};
use super::forward::forward_kernel;
use super::inputs::BackwardInputsLaunch;
use super::results::{Backward, Forward, OutputGradient, unwritten, zeroed};
use crate::kernels::operands::{Operands, Sizes, Slot, present};
use crate::kernels::precision::MatmulPrecision;
use crate::kernels::spec::{Spec, WeightRule};
use crate::score::{HiddenActivation, Remainder};

/// Number of cubes per multiprocessor into which a backward pass is split.
const CUBES_EACH: usize = 2;
/// Number of multiprocessors assumed for a device that does not report it.
const MULTIPROCESSORS: usize = 32;

/// Number of buffers of the backward kernel: inputs, upstream gradients, outputs, sizes and
/// factors.
const BUFFERS: usize = 14 + 3 + 8 + 1;

/// Reason why a configuration exists when it is needed.
const ASKED: &str = "`fits` has been asked before";

/// Returns the format to which factors are rounded, if the device's tensor cores support it as the
/// kernels need.
fn rounded(client: &Client, precision: MatmulPrecision) -> Option<Rounded> {
    let (rounded, kind) = match precision {
        MatmulPrecision::F32 => return None,
        MatmulPrecision::Tf32 => (cores::TF32, FloatKind::TF32),
        MatmulPrecision::Bf16 => (cores::BF16, FloatKind::BF16),
    };
    let hardware = &client.properties().hardware;
    let side = cores::FRAGMENT as u32;
    let config = MmaConfig {
        a_type: ElemType::Float(kind),
        b_type: ElemType::Float(kind),
        cd_type: ElemType::Float(FloatKind::F32),
        m: side,
        n: side,
        k: rounded.inner as u32,
    };
    let planes = [hardware.plane_size_min, hardware.plane_size_max];
    let multiplies = client.properties().features.matmul.cmma.contains(&config);
    (planes == [cores::PLANE as u32; 2] && multiplies).then_some(rounded)
}

/// Kernel configuration without its tile, which depends on the kernel.
pub(super) fn config<B: Backend>(
    client: &Client,
    operands: &Operands<B>,
    spec: &Spec,
) -> KernelConfig {
    let Sizes { head_dim, value_dim, .. } = operands.sizes();
    let function = match spec.contextual.map(|contextual| contextual.activation) {
        None => Function::Absent,
        Some(Some(HiddenActivation::Relu)) => Function::Relu,
        Some(Some(HiddenActivation::Gelu)) => Function::Gelu,
        Some(None) if present(&operands[Slot::ContextualVectors]) => Function::Table,
        Some(None) => Function::Slope,
    };
    let rule = match spec.weights {
        WeightRule::Softmax => None,
        WeightRule::StickBreaking(rule) => Some(rule),
    };
    KernelConfig {
        tile: super::config::SMALLEST,
        head_dim,
        value_dim,
        content: spec.content_scale.is_some(),
        slopes: present(&operands[Slot::Slope]),
        distance: present(&operands[Slot::Distance]),
        query_distance: present(&operands[Slot::QueryDistance]),
        contiguous: spec.contiguous,
        decay: present(&operands[Slot::Decay]),
        decay_residual: present(&operands[Slot::DecayResidual]),
        dense: present(&operands[Slot::Dense]),
        function,
        own_gates: present(&operands[Slot::ContextualGateKeys]),
        entries: last_axis(&operands[Slot::ContextualVectors]),
        sticks: rule.is_some(),
        strict: spec.strict(),
        own_token: rule.is_some_and(|rule| rule.remainder == Remainder::OwnToken),
        rounded: rounded(client, spec.precision),
    }
}

fn limits(client: &Client) -> DeviceLimits {
    let hardware = &client.properties().hardware;
    DeviceLimits {
        shared_bytes: hardware.max_shared_memory_size,
        units: hardware.max_units_per_cube as usize,
    }
}

/// Whether both kernels fit into the device's shared memory and its limit of buffers.
pub(super) fn fits<B: Backend>(client: &Client, operands: &Operands<B>, spec: &Spec) -> bool {
    let rows = operands.sizes().rows;
    let buffers = client.properties().hardware.max_bindings as usize;
    buffers >= BUFFERS && config(client, operands, spec).backward(rows, limits(client)).is_some()
}

pub(super) fn cubes(config: &KernelConfig) -> CubeDim {
    CubeDim::new_2d(config.tile.units_x as u32, config.tile.units_y as u32)
}

/// Computes the output and the results that its gradient needs. Operands must be
/// [`contiguous`](super::arguments::contiguous).
///
/// # Panics
///
/// If the kernel does not fit on the device; test with [`fits`] before.
pub(super) fn forward(operands: &Operands<Cube>, spec: &Spec) -> Forward {
    let Sizes { batch, heads, rows, .. } = operands.sizes();
    let client = operands[Slot::Query].client.clone();
    let config = config(&client, operands, spec).forward(rows, limits(&client)).expect(ASKED);
    let Forward { output, log } = unwritten(operands);
    let blocks = rows.div_ceil(config.tile.rows());
    let launch = match config.rounded {
        None => forward_kernel::launch::<f32>,
        Some(cores::TF32) => forward_kernel::launch::<tf32>,
        Some(_) => forward_kernel::launch::<bf16>,
    };
    launch(
        &client,
        CubeCount::Static(blocks as u32, (batch * heads) as u32, 1),
        cubes(&config),
        inputs(operands, spec),
        place(operands, spec),
        output.clone().into_buffer_arg(),
        log.clone().into_buffer_arg(),
        config,
    );
    Forward { output, log }
}

/// Runs the backward kernel.
///
/// # Panics
///
/// If the kernel does not fit on the device; test with [`fits`] before.
pub(super) fn backward(
    operands: &Operands<Cube>,
    spec: &Spec,
    OutputGradient { grad, log, share }: OutputGradient,
) -> Backward {
    let Sizes { batch, heads, rows, .. } = operands.sizes();
    let client = operands[Slot::Query].client.clone();
    let config = config(&client, operands, spec).backward(rows, limits(&client)).expect(ASKED);
    let multiprocessors = (client.properties().hardware.num_streaming_multiprocessors)
        .map_or(MULTIPROCESSORS, |number| number as usize);
    let blocks = rows.div_ceil(config.tile.rows());
    #[cfg(feature = "lab")]
    let each = super::lab::choices().cubes_each.unwrap_or(CUBES_EACH);
    #[cfg(not(feature = "lab"))]
    let each = CUBES_EACH;
    let slots = (each * multiprocessors).div_ceil(batch * heads).clamp(1, blocks);
    let found = zeroed(operands, config, slots);
    // Rows that a device pads would get the gradients of others.
    assert!(
        found.tensors().iter().all(|tensor| tensor.is_contiguous()),
        "gradients with padded rows"
    );
    let launch = match config.rounded {
        None => backward_kernel::launch::<f32>,
        Some(cores::TF32) => backward_kernel::launch::<tf32>,
        Some(_) => backward_kernel::launch::<bf16>,
    };
    launch(
        &client,
        CubeCount::Static(slots as u32, (batch * heads) as u32, 1),
        cubes(&config),
        inputs(operands, spec),
        place(operands, spec),
        BackwardInputsLaunch::new(plane_rows(grad), log.into_buffer_arg(), share.into_buffer_arg()),
        found.outputs(),
        config,
    );
    found
}
