//! Serialized training state: a CBOR header, then the values of all tensors.
//!
//! CBOR preserves every bit of a float, unlike JSON (points of curves have the 15 digits of records). Tensor values are
//! little-endian f32 in the visiting order of the module: the weights of each parameter and, if it has had a gradient,
//! both moments.

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{DType, Device, Tensor, TensorData};
use serde::{Deserialize, Serialize};

use super::rng_state::RngState;
use crate::run::optimizer::{AutodiffRole, Optimizer};
use crate::run::train::{TrainProgress, TrainState};

/// Error while a training state is serialized or restored; the state is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// A tensor cannot be read back from the device.
    #[error("parameter `{name}` cannot be read back from the device: {reason}")]
    Device {
        /// Path of the parameter in the model.
        name: String,
        /// Message of the device.
        reason: String,
    },
    /// A tensor has an element type that checkpoints do not support.
    #[error("parameter `{name}` has type {dtype:?}, expected F32")]
    Type {
        /// Path of the parameter in the model.
        name: String,
        /// Element type of the tensor.
        dtype: DType,
    },
    /// The header cannot be read.
    #[error("cannot read the header of the checkpoint: {0}")]
    Head(String),
    /// The parameters of the checkpoint are not those of the model.
    #[error(
        "the checkpoint has {found}, expected {expected} for the model; it was written by another program version"
    )]
    OtherModel {
        /// Description of the checkpoint's parameter.
        found: String,
        /// Description of the model's parameter.
        expected: String,
    },
}

/// Step and time of a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckpointMeta {
    /// Optimizer steps done so far.
    pub step: usize,
    /// Seconds that the cell has taken in all attempts, validations included.
    pub cell_seconds: f64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StateHeader {
    kept: CheckpointMeta,
    #[serde(rename = "course")]
    progress: TrainProgress,
    data: RngState,
    dropout: RngState,
    positions: RngState,
    optimizer_steps: u32,
    tensors: Vec<StoredTensor>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredTensor {
    name: String,
    dims: Vec<usize>,
    moments: bool,
    /// Whether the parameter is frozen; its values are then not stored.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    frozen: bool,
}

impl StoredTensor {
    fn numbers(&self) -> usize {
        let copies = match (self.frozen, self.moments) {
            (true, _) => 0,
            (false, true) => 3,
            (false, false) => 1,
        };
        self.dims.iter().product::<usize>() * copies
    }

    fn text(&self) -> String {
        let frozen = if self.frozen { ", frozen" } else { "" };
        format!("`{}` {:?}{frozen}", self.name, self.dims)
    }
}

/// Serializes the state of a training.
///
/// # Errors
/// [`StateError::Device`] or [`StateError::Type`].
pub fn pack(state: &TrainState, cell_seconds: f64) -> Result<Vec<u8>, StateError> {
    let mut collect = Collect { optimizer: Some(&state.optimizer), ..Collect::default() };
    state.model.visit(&mut collect);
    if let Some(error) = collect.error {
        return Err(error);
    }
    let head = StateHeader {
        kept: CheckpointMeta { step: state.progress.step, cell_seconds },
        progress: state.progress.clone(),
        data: RngState::of(&state.data_rng),
        dropout: RngState::of(&state.dropout_rng),
        positions: RngState::of(&state.position_rng),
        optimizer_steps: state.optimizer.steps(),
        tensors: collect.shapes,
    };
    let mut text = Vec::new();
    ciborium::into_writer(&head, &mut text).map_err(|error| StateError::Head(error.to_string()))?;
    let mut bytes = (text.len() as u64).to_le_bytes().to_vec();
    bytes.append(&mut text);
    bytes.append(&mut collect.bytes);
    Ok(bytes)
}

/// Replaces the state of a training that has just begun by a serialized one.
///
/// # Errors
/// [`StateError`]; `state` is then unchanged.
pub fn unpack(bytes: &[u8], state: &mut TrainState) -> Result<CheckpointMeta, StateError> {
    let short = || StateError::Head(format!("{} bytes are too few", bytes.len()));
    let (len, rest) = bytes.split_first_chunk().ok_or_else(short)?;
    let len = usize::try_from(u64::from_le_bytes(*len)).map_err(|_| short())?;
    let (text, numbers) = rest.split_at_checked(len).ok_or_else(short)?;
    let head: StateHeader =
        ciborium::from_reader(text).map_err(|error| StateError::Head(error.to_string()))?;
    check(&head.tensors, numbers.len(), state)?;
    let mut optimizer = Optimizer::after(head.optimizer_steps);
    let mut put = Put { optimizer: &mut optimizer, shapes: head.tensors.iter(), numbers };
    state.model = state.model.clone().map(&mut put);
    state.optimizer = optimizer;
    state.progress = head.progress;
    state.data_rng = head.data.rng();
    state.dropout_rng = head.dropout.rng();
    state.position_rng = head.positions.rng();
    Ok(head.kept)
}

/// Checks that the tensors of a checkpoint are those of the model.
fn check(found: &[StoredTensor], bytes: usize, state: &TrainState) -> Result<(), StateError> {
    let mut collect = Collect::default();
    state.model.visit(&mut collect);
    if let Some(error) = collect.error {
        return Err(error);
    }
    let expected = collect.shapes;
    let differ = |found: String, expected: String| Err(StateError::OtherModel { found, expected });
    if found.len() != expected.len() {
        let count = |shapes: &[StoredTensor]| format!("{} parameters", shapes.len());
        return differ(count(found), count(&expected));
    }
    for (found, expected) in found.iter().zip(&expected) {
        let identity =
            |shape: &StoredTensor| (shape.name.clone(), shape.dims.clone(), shape.frozen);
        if identity(found) != identity(expected) {
            return differ(found.text(), expected.text());
        }
    }
    let numbers = found.iter().map(StoredTensor::numbers).sum::<usize>();
    if bytes != numbers * size_of::<f32>() {
        return differ(format!("{bytes} bytes of numbers"), format!("{numbers} numbers of f32"));
    }
    Ok(())
}

/// Visitor that collects the tensors and moments of a model, or only the shapes if there is no optimizer.
#[derive(Default)]
struct Collect<'a> {
    optimizer: Option<&'a Optimizer>,
    path: Vec<String>,
    shapes: Vec<StoredTensor>,
    bytes: Vec<u8>,
    error: Option<StateError>,
}

impl Collect<'_> {
    fn add<const D: usize>(&mut self, name: &str, tensor: Tensor<D>) {
        let data = match tensor.try_into_data() {
            Ok(data) => data,
            Err(error) => {
                let (name, reason) = (name.to_owned(), format!("{error:?}"));
                self.error = Some(StateError::Device { name, reason });
                return;
            }
        };
        match data.as_slice::<f32>() {
            Ok(values) => self.bytes.extend(values.iter().flat_map(|value| value.to_le_bytes())),
            Err(_) => {
                self.error = Some(StateError::Type { name: name.to_owned(), dtype: data.dtype() });
            }
        }
    }
}

impl ModuleVisitor for Collect<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if self.error.is_some() {
            return;
        }
        let name = self.path.join(".");
        let tensor = param.val();
        let frozen = !tensor.is_require_grad();
        let moments = self.optimizer.and_then(|optimizer| optimizer.moments::<D>(param.id));
        self.shapes.push(StoredTensor {
            name: name.clone(),
            dims: tensor.dims().to_vec(),
            moments: moments.is_some(),
            frozen,
        });
        if self.optimizer.is_some() && !frozen {
            self.add(&name, tensor);
        }
        for moment in moments.into_iter().flatten() {
            self.add(&name, moment);
        }
    }

    fn enter_module(&mut self, name: &str, _container: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.pop();
    }
}

/// Mapper that replaces the tensors of a model, whose shapes have been checked.
struct Put<'a> {
    optimizer: &'a mut Optimizer,
    shapes: std::slice::Iter<'a, StoredTensor>,
    numbers: &'a [u8],
}

impl Put<'_> {
    fn take<const D: usize>(&mut self, dims: [usize; D], device: &Device) -> Tensor<D> {
        let (taken, rest) =
            self.numbers.split_at(dims.iter().product::<usize>() * size_of::<f32>());
        self.numbers = rest;
        let values =
            taken.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect::<Vec<_>>();
        Tensor::from_data(TensorData::new(values, dims), device)
    }
}

impl ModuleMapper for Put<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let Some(shape) = self.shapes.next().filter(|shape| !shape.frozen) else { return param };
        let (id, tensor, mapper) = param.consume();
        let (dims, place) = (tensor.dims(), AutodiffRole::of(&tensor));
        // Moments, and weights until they are told to learn, lie beside the autodiff graph.
        let device = tensor.inner().device();
        let weights = place.take(self.take(dims, &device));
        if shape.moments {
            let moments = [self.take(dims, &device), self.take(dims, &device)];
            self.optimizer.put_moments(id, moments);
        }
        Param::from_mapped_value(id, weights, mapper)
    }
}
