//! Buffers for the kernels, and how many cubes are launched.

use burn::backend::{Backend, Cube, TensorMetadata};
use burn::tensor::{DType, Shape, bf16};
use burn_cubecl::cubecl::client::Client;
use burn_cubecl::cubecl::features::MmaConfig;
use burn_cubecl::cubecl::ir::{ElemType, FloatKind};
use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::ops::numeric::{empty_device_contiguous_dtype, zeros_client};
use burn_cubecl::tensor::CubeTensor;

use super::backward::backward_kernel;
use super::cores;
use super::form::{Form, Function, Room};
use super::forward::forward_kernel;
use super::inputs::{BehindLaunch, InputsLaunch, OutputsLaunch, PlaceLaunch};
use crate::fused::operands::{OPERANDS, Operands, Sizes};
use crate::fused::spec::{Spec, WeightRule};
use crate::ops::Factors;
use crate::score::{HiddenActivation, Remainder};

/// Cubes per multiprocessor that a backward pass is cut into.
const CUBES_EACH: usize = 2;
/// Multiprocessors of a device that does not say.
const MULTIPROCESSORS: usize = 32;
/// In the place of infinity, which not every shading language can write down.
const ENDLESS: f32 = 1e30;

/// Why a form is there.
const ASKED: &str = "`fits` has been asked before";

/// What the forward pass leaves.
#[derive(Debug, Clone)]
pub(super) struct Forward {
    /// `[B, H, T, E]`.
    pub(super) output: CubeTensor,
    /// Logarithms of denominators, or of what is left of the sticks, `[B, H, T]`.
    pub(super) log: CubeTensor,
}

/// Whether an operand is there.
pub(super) fn present<T: TensorMetadata>(tensor: &T) -> bool {
    tensor.shape().num_elements() > 0
}

fn last_axis<T: TensorMetadata>(tensor: &T) -> usize {
    let shape = tensor.shape();
    if present(tensor) { shape[shape.num_dims() - 1] } else { 0 }
}

/// Whether a device multiplies rounded factors as the kernels do it.
fn has_cores(client: &Client) -> bool {
    let hardware = &client.properties().hardware;
    let side = cores::FRAGMENT as u32;
    let config = MmaConfig {
        a_type: ElemType::Float(FloatKind::BF16),
        b_type: ElemType::Float(FloatKind::BF16),
        cd_type: ElemType::Float(FloatKind::F32),
        m: side,
        n: side,
        k: side,
    };
    let planes = [hardware.plane_size_min, hardware.plane_size_max];
    planes == [cores::PLANE as u32; 2] && client.properties().features.matmul.cmma.contains(&config)
}

/// Without a tile, which depends on the kernel.
pub(super) fn form<B: Backend>(client: &Client, operands: &Operands<B>, spec: &Spec) -> Form {
    let Sizes { head_dim, value_dim, .. } = operands.sizes();
    let function = match spec.contextual.map(|contextual| contextual.activation) {
        None => Function::Absent,
        Some(Some(HiddenActivation::Relu)) => Function::Relu,
        Some(Some(HiddenActivation::Gelu)) => Function::Gelu,
        Some(None) if present(&operands.table) => Function::Table,
        Some(None) => Function::Slope,
    };
    let rule = match spec.weights {
        WeightRule::Softmax => None,
        WeightRule::StickBreaking(rule) => Some(rule),
    };
    Form {
        tile: super::form::SMALLEST,
        head_dim,
        value_dim,
        content: spec.content_scale.is_some(),
        slopes: present(&operands.slopes),
        distance: present(&operands.distance),
        query_distance: present(&operands.query_distance),
        contiguous: spec.contiguous,
        decay: present(&operands.decay),
        finer_decay: present(&operands.finer_decay),
        dense: present(&operands.dense),
        function,
        own_gates: present(&operands.gate_keys),
        entries: last_axis(&operands.table),
        sticks: rule.is_some(),
        strict: spec.strict(),
        own_token: rule.is_some_and(|rule| rule.remainder == Remainder::OwnToken),
        cores: spec.factors == Factors::Bf16 && has_cores(client),
    }
}

fn room(client: &Client) -> Room {
    let hardware = &client.properties().hardware;
    Room {
        shared_bytes: hardware.max_shared_memory_size,
        units: hardware.max_units_per_cube as usize,
    }
}

/// Whether both kernels have room.
pub(super) fn fits<B: Backend>(client: &Client, operands: &Operands<B>, spec: &Spec) -> bool {
    let rows = operands.sizes().rows;
    form(client, operands, spec).backward(rows, room(client)).is_some()
}

/// All operands in the order of their axes.
pub(super) fn contiguous(operands: Operands<Cube>) -> Operands<Cube> {
    Operands::from_array(
        operands.into_array().map(
            |tensor| {
                if present(&tensor) { into_contiguous(tensor) } else { tensor }
            },
        ),
    )
}

/// What the kernels read, in the order of [`Inputs`](super::inputs::Inputs).
pub(super) fn buffers(operands: &Operands<Cube>, spec: &Spec) -> [CubeTensor; OPERANDS + 1] {
    let client = &operands.q.client;
    // What the kernel does not read still needs a buffer.
    let buffer =
        |tensor: &CubeTensor| if present(tensor) { tensor.clone() } else { operands.q.clone() };
    let positions = if spec.contiguous {
        operands.q.clone()
    } else {
        let positions = spec.columns.iter().map(|at| *at as f32).collect::<Vec<_>>();
        let handle = client.create_from_slice(f32::as_bytes(&positions));
        CubeTensor::new_contiguous(
            client.clone(),
            operands.q.device.clone(),
            Shape::from([positions.len()]),
            handle,
            DType::F32,
        )
    };
    [
        buffer(&operands.q),
        buffer(&operands.k),
        buffer(&operands.values),
        buffer(&operands.slopes),
        buffer(&operands.distance),
        buffer(&operands.query_distance),
        buffer(&operands.decay),
        buffer(&operands.finer_decay),
        buffer(&operands.gate_keys),
        buffer(&operands.table),
        buffer(&operands.hidden),
        buffer(&operands.contextual_slopes),
        buffer(&operands.dense),
        positions,
    ]
}

pub(super) fn inputs(operands: &Operands<Cube>, spec: &Spec) -> InputsLaunch {
    let [
        q,
        k,
        v,
        slopes,
        distance,
        query_distance,
        decay,
        finer_decay,
        gates,
        table,
        hidden,
        contextual_slopes,
        dense,
        positions,
    ] = buffers(operands, spec).map(CubeTensor::into_buffer_arg);
    InputsLaunch::new(
        q,
        k,
        v,
        slopes,
        distance,
        query_distance,
        decay,
        finer_decay,
        gates,
        table,
        hidden,
        contextual_slopes,
        dense,
        positions,
    )
}

/// Numbers of [`Place`](super::inputs::Place), in its order: sizes, then factors.
pub(super) fn numbers(operands: &Operands<Cube>, spec: &Spec) -> ([usize; 6], [f32; 3]) {
    let Sizes { heads, rows, columns, .. } = operands.sizes();
    let (distance, query) = (last_axis(&operands.distance), last_axis(&operands.query_distance));
    let contextual = spec.contextual;
    let gate_scale = contextual.map_or(1.0, |contextual| contextual.gate_scale);
    let max = contextual.map_or(0.0, |contextual| contextual.max_position.min(ENDLESS));
    (
        [heads, rows, columns, spec.first_row, distance, query],
        [spec.content_scale.unwrap_or(1.0), gate_scale, max],
    )
}

pub(super) fn place(operands: &Operands<Cube>, spec: &Spec) -> PlaceLaunch {
    let ([heads, rows, columns, first_row, distance, query], [content_scale, gate_scale, max]) =
        numbers(operands, spec);
    PlaceLaunch::new(
        heads,
        rows,
        columns,
        first_row,
        distance,
        query,
        content_scale,
        gate_scale,
        max,
    )
}

fn empty(like: &CubeTensor, shape: Shape) -> CubeTensor {
    empty_device_contiguous_dtype(like.client.clone(), like.device.clone(), shape, DType::F32)
}

fn zeros(like: &CubeTensor, shape: Shape) -> CubeTensor {
    zeros_client(like.client.clone(), like.device.clone(), shape, DType::F32)
}

pub(super) fn cubes(form: &Form) -> CubeDim {
    CubeDim::new_2d(form.tile.units_x as u32, form.tile.units_y as u32)
}

/// Room for what the forward pass leaves.
pub(super) fn unwritten(operands: &Operands<Cube>) -> Forward {
    let Sizes { batch, heads, rows, value_dim, .. } = operands.sizes();
    Forward {
        output: empty(&operands.q, Shape::from([batch, heads, rows, value_dim])),
        log: empty(&operands.q, Shape::from([batch, heads, rows])),
    }
}

/// The output, and what its gradient needs. Operands must be [`contiguous`].
///
/// # Panics
/// If the device has no room for it, which [`fits`] says beforehand.
pub(super) fn forward(operands: &Operands<Cube>, spec: &Spec) -> Forward {
    let Sizes { batch, heads, rows, .. } = operands.sizes();
    let client = operands.q.client.clone();
    let form = form(&client, operands, spec).forward(rows, room(&client)).expect(ASKED);
    let Forward { output, log } = unwritten(operands);
    let blocks = rows.div_ceil(form.tile.rows());
    let launch =
        if form.cores { forward_kernel::launch::<bf16> } else { forward_kernel::launch::<f32> };
    launch(
        &client,
        CubeCount::Static(blocks as u32, (batch * heads) as u32, 1),
        cubes(&form),
        inputs(operands, spec),
        place(operands, spec),
        output.clone().into_buffer_arg(),
        log.clone().into_buffer_arg(),
        form,
    );
    Forward { output, log }
}

/// Gradients as the kernel leaves them.
#[derive(Debug)]
pub(super) struct Backward {
    pub(super) form: Form,
    /// `[B, H, T, D]`.
    pub(super) q: CubeTensor,
    /// `[slots, B, H, S, D]`.
    pub(super) k: CubeTensor,
    /// `[slots, B, H, S, E]`.
    pub(super) values: CubeTensor,
    /// `[slots, B, H, S, D]`, if there are gate keys.
    pub(super) gate_keys: CubeTensor,
    /// `[slots, B, H, N]`, if there is a table of distances.
    pub(super) distance: CubeTensor,
    /// `[slots, B, H, S]`, if there are running sums.
    pub(super) decay: CubeTensor,
    /// `[B, H, T, S]`, if there is a dense bias.
    pub(super) dense: CubeTensor,
    /// `[B, H, T, Form::row_grads]`.
    pub(super) rows: CubeTensor,
}

impl Backward {
    /// In the order of [`Outputs`](super::inputs::Outputs).
    pub(super) fn tensors(&self) -> [&CubeTensor; 8] {
        let Self { form: _, q, k, values, gate_keys, distance, decay, dense, rows } = self;
        [q, k, values, gate_keys, distance, decay, dense, rows]
    }

    pub(super) fn outputs(&self) -> OutputsLaunch {
        let [q, k, values, gate_keys, distance, decay, dense, rows] =
            self.tensors().map(|tensor| tensor.clone().into_buffer_arg());
        OutputsLaunch::new(q, k, values, gate_keys, distance, decay, dense, rows)
    }
}

/// Room for the gradients, with nothing added to them yet.
pub(super) fn zeroed(operands: &Operands<Cube>, form: Form, slots: usize) -> Backward {
    let Sizes { batch, heads, rows, columns, head_dim, value_dim } = operands.sizes();
    let like = &operands.q;
    let unless = |operand: &CubeTensor, shape: &[usize]| {
        let shape = if present(operand) { shape.to_vec() } else { vec![1] };
        zeros(like, Shape::from(shape))
    };
    let entries = last_axis(&operands.distance);
    let row_grads = form.row_grads(last_axis(&operands.query_distance));
    Backward {
        form,
        q: empty(like, Shape::from([batch, heads, rows, head_dim])),
        k: zeros(like, Shape::from([slots, batch, heads, columns, head_dim])),
        values: zeros(like, Shape::from([slots, batch, heads, columns, value_dim])),
        gate_keys: unless(&operands.gate_keys, &[slots, batch, heads, columns, head_dim]),
        distance: unless(&operands.distance, &[slots, batch, heads, entries]),
        decay: unless(&operands.decay, &[slots, batch, heads, columns]),
        dense: unless(&operands.dense, &[batch, heads, rows, columns]),
        rows: zeros(like, Shape::from([batch, heads, rows, row_grads])),
    }
}

/// Runs the backward kernel on the output's gradient, `[B, H, T, E]`, the logarithms that the forward
/// pass left, and the products of output and gradient, both `[B, H, T]`; all contiguous.
///
/// # Panics
/// As [`forward`].
pub(super) fn backward(
    operands: &Operands<Cube>,
    spec: &Spec,
    [grad, log, share]: [CubeTensor; 3],
) -> Backward {
    let Sizes { batch, heads, rows, .. } = operands.sizes();
    let client = operands.q.client.clone();
    let form = form(&client, operands, spec).backward(rows, room(&client)).expect(ASKED);
    let multiprocessors = (client.properties().hardware.num_streaming_multiprocessors)
        .map_or(MULTIPROCESSORS, |number| number as usize);
    let blocks = rows.div_ceil(form.tile.rows());
    let slots = (CUBES_EACH * multiprocessors).div_ceil(batch * heads).clamp(1, blocks);
    let found = zeroed(operands, form, slots);
    let launch =
        if form.cores { backward_kernel::launch::<bf16> } else { backward_kernel::launch::<f32> };
    launch(
        &client,
        CubeCount::Static(slots as u32, (batch * heads) as u32, 1),
        cubes(&form),
        inputs(operands, spec),
        place(operands, spec),
        BehindLaunch::new(grad.into_buffer_arg(), log.into_buffer_arg(), share.into_buffer_arg()),
        found.outputs(),
        form,
    );
    found
}
