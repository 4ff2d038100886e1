//! Visitor and mapper between the parameters of a module and named tensors.

use std::collections::BTreeSet;

use anyhow::{Result, anyhow};
use burn::module::{Module, ModuleMapper, ModuleVisitor, Param, ParamId};
use burn::tensor::{Device, GradientCheckpointingStrategy, Tensor, TensorData};

use super::named::{NamedTensors, Stored, floats};

/// Tensors stored beside those of a parameter, such as the moments of an optimizer.
pub trait Extras {
    /// Suffixes of the names of these tensors, which are `<suffix>.<name of the parameter>`.
    const NAMES: &'static [&'static str];

    /// Returns the tensors of a parameter, in the order of the names; `None` if it has none.
    fn take<const D: usize>(&self, id: ParamId) -> Option<Vec<Tensor<D>>>;

    /// Sets the restored tensors of a parameter.
    fn put<const D: usize>(&mut self, id: ParamId, tensors: Vec<Tensor<D>>);
}

/// No further tensors.
impl Extras for () {
    const NAMES: &'static [&'static str] = &[];

    fn take<const D: usize>(&self, _id: ParamId) -> Option<Vec<Tensor<D>>> {
        None
    }

    fn put<const D: usize>(&mut self, _id: ParamId, _tensors: Vec<Tensor<D>>) {}
}

/// Collects the parameters of a module that are not frozen, and the tensors beside them.
///
/// # Errors
///
/// If a tensor cannot be read back from the device, or has another element type than f32.
pub(crate) fn collect<E: Extras>(
    module: &impl Module,
    trainable_only: bool,
    extras: &E,
) -> Result<NamedTensors> {
    let found = NamedTensors::default();
    let mut collect =
        Collect { path: ParamPath::default(), found, error: None, trainable_only, extras };
    module.visit(&mut collect);
    collect.error.map_or(Ok(collect.found), Err)
}

/// Replaces the parameters of a module by stored ones. `wanted` selects parameters by name; the others, and frozen ones
/// if `trainable_only` is set, stay as they are.
///
/// # Errors
///
/// If a tensor is missing, has another shape, or belongs to no parameter.
pub fn restore<M: Module, E: Extras>(
    module: M,
    stored: &NamedTensors,
    wanted: impl Fn(&str) -> bool,
    trainable_only: bool,
    extras: &mut E,
) -> Result<M> {
    let mut fit = Fit {
        path: ParamPath::default(),
        stored,
        wanted: &wanted,
        trainable_only,
        known: BTreeSet::new(),
        extras: E::NAMES,
        error: None,
    };
    module.visit(&mut fit);
    if let Some(error) = fit.error {
        return Err(error);
    }
    let strange = stored.tensors.iter().find(|(name, _)| {
        let owner = owner(name, E::NAMES);
        wanted(owner) && !fit.known.contains(owner)
    });
    if let Some((name, tensor)) = strange {
        return Err(of_other_model(&tensor.text(name), "no such parameter"));
    }
    let path = ParamPath::default();
    Ok(module.map(&mut Put { path, stored, wanted: &wanted, trainable_only, extras }))
}

fn of_other_model(found: &str, expected: &str) -> anyhow::Error {
    anyhow!(
        "it has {found}, expected {expected} for the model; it was written by another program version"
    )
}

/// Name of the parameter that a tensor belongs to.
fn owner<'a>(name: &'a str, extras: &[&str]) -> &'a str {
    let beside = extras.iter().find_map(|extra| name.strip_prefix(extra)?.strip_prefix('.'));
    beside.unwrap_or(name)
}

/// Path of the visited parameter within the module.
#[derive(Default)]
struct ParamPath(Vec<(String, String)>);

/// Methods of a visitor or mapper that keep the path of the visited parameter in its field `path`.
macro_rules! keeps_path {
    () => {
        fn enter_module(&mut self, name: &str, container: &str) {
            self.path.0.push((name.to_owned(), container.to_owned()));
        }

        fn exit_module(&mut self, _name: &str, _container: &str) {
            self.path.0.pop();
        }
    };
}

impl ParamPath {
    /// Returns the name of the parameter in PyTorch's convention.
    fn name(&self) -> String {
        // Variants of an enum are no modules in PyTorch.
        let modules = self.0.iter().filter(|(_, container)| !container.starts_with("Enum:"));
        let name = |(name, container): &(String, String)| match (&name[..], &container[..]) {
            ("gamma", "Struct:LayerNorm" | "Struct:RmsNorm") => "weight".to_owned(),
            ("beta", "Struct:LayerNorm" | "Struct:RmsNorm") => "bias".to_owned(),
            ("embedding", "Struct:Decoder") => "embedding.weight".to_owned(),
            _ => name.clone(),
        };
        // The parts of a combination are numbered.
        let modules = modules
            .filter(|(name, container)| !(name == "parts" && container == "Struct:Combined"));
        modules.map(name).collect::<Vec<_>>().join(".")
    }

    /// Whether PyTorch stores the transposed matrix, as for linear maps.
    fn is_transposed(&self) -> bool {
        self.0.last().is_some_and(|(name, holder)| name == "weight" && holder == "Struct:Linear")
    }
}

/// Transposes values `[rows, columns]` to `[columns, rows]`.
fn transposed(values: &[f32], rows: usize, columns: usize) -> Vec<f32> {
    (0..columns).flat_map(|c| (0..rows).map(move |r| values[r * columns + c])).collect()
}

struct Collect<'a, E> {
    path: ParamPath,
    found: NamedTensors,
    error: Option<anyhow::Error>,
    trainable_only: bool,
    extras: &'a E,
}

impl<E> Collect<'_, E> {
    fn add<const D: usize>(&mut self, name: String, tensor: Tensor<D>) -> Result<()> {
        let data = tensor.try_into_data().map_err(|error| {
            anyhow!("parameter `{name}` cannot be read back from the device: {error:?}")
        })?;
        let dtype = data.dtype();
        let mut dims = data.shape().to_vec();
        let values = data
            .as_slice::<f32>()
            .map_err(|_| anyhow!("parameter `{name}` has type {dtype:?}, expected F32"))?;
        if let ([rows, columns], true) = (&mut dims[..], self.path.is_transposed()) {
            let values = transposed(values, *rows, *columns);
            std::mem::swap(rows, columns);
            self.found.insert(name, dims, &values);
        } else {
            self.found.insert(name, dims, values);
        }
        Ok(())
    }
}

impl<E: Extras> ModuleVisitor for Collect<'_, E> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let tensor = param.val();
        if self.error.is_some() || (self.trainable_only && !tensor.is_require_grad()) {
            return;
        }
        let name = self.path.name();
        let extras = self.extras.take::<D>(param.id).into_iter().flatten();
        let extras = E::NAMES.iter().map(|extra| format!("{extra}.{name}")).zip(extras);
        let all = std::iter::once((name.clone(), tensor)).chain(extras).collect::<Vec<_>>();
        let added = all.into_iter().try_for_each(|(name, tensor)| self.add(name, tensor));
        self.error = added.err();
    }

    keeps_path!();
}

/// Visitor that checks the parameters of a module against stored tensors.
struct Fit<'a, W> {
    path: ParamPath,
    stored: &'a NamedTensors,
    wanted: &'a W,
    trainable_only: bool,
    known: BTreeSet<String>,
    extras: &'static [&'static str],
    error: Option<anyhow::Error>,
}

impl<W: Fn(&str) -> bool> ModuleVisitor for Fit<'_, W> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let (name, tensor) = (self.path.name(), param.val());
        let left_out = self.trainable_only && !tensor.is_require_grad();
        if self.error.is_some() || left_out || !(self.wanted)(&name) {
            return;
        }
        let mut dims = tensor.dims().to_vec();
        if self.path.is_transposed() {
            dims.reverse();
        }
        let extras = self.extras.iter().map(|extra| format!("{extra}.{name}"));
        for stored in std::iter::once(name.clone()).chain(extras) {
            let found = match self.stored.tensors.get(&stored) {
                Some(tensor) if tensor.dims == dims => continue,
                // A parameter without a gradient so far has no moments.
                None if stored != name => continue,
                Some(tensor) => tensor.text(&stored),
                None => format!("no tensor `{stored}`"),
            };
            let expected = Stored { dims: dims.clone(), bytes: Vec::new() }.text(&stored);
            self.error.get_or_insert_with(|| of_other_model(&found, &expected));
        }
        self.known.insert(name);
    }

    keeps_path!();
}

/// Mapper that replaces the parameters of a module; their shapes have been checked.
struct Put<'a, W, E> {
    path: ParamPath,
    stored: &'a NamedTensors,
    wanted: &'a W,
    trainable_only: bool,
    extras: &'a mut E,
}

impl<W, E> Put<'_, W, E> {
    fn tensor<const D: usize>(
        &self,
        name: &str,
        dims: [usize; D],
        device: &Device,
    ) -> Option<Tensor<D>> {
        let stored = self.stored.tensors.get(name)?;
        let mut values = floats(&stored.bytes);
        if let ([rows, columns], true) = (&stored.dims[..], self.path.is_transposed()) {
            values = transposed(&values, *rows, *columns);
        }
        Some(Tensor::from_data(TensorData::new(values, dims), device))
    }
}

impl<W: Fn(&str) -> bool, E: Extras> ModuleMapper for Put<'_, W, E> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let name = self.path.name();
        let left_out = self.trainable_only && !param.val().is_require_grad();
        if left_out || !(self.wanted)(&name) {
            return param;
        }
        let (id, tensor, mapper) = param.consume();
        let role = AutodiffRole::of(&tensor);
        // Moments, and weights until they are trained, are outside the autodiff graph.
        let device = role.outside(tensor.clone()).device();
        let stored = |name: &str| self.tensor(name, tensor.dims(), &device);
        let extras = E::NAMES.iter().map(|extra| stored(&format!("{extra}.{name}")));
        let extras = extras.collect::<Option<Vec<_>>>().filter(|extras| !extras.is_empty());
        let restored = stored(&name).map(|tensor| role.take(tensor));
        if let Some(extras) = extras {
            self.extras.put(id, extras);
        }
        let restored = restored.unwrap_or(tensor);
        Param::from_mapped_value(id, restored, mapper)
    }

    keeps_path!();
}

/// Autodiff settings of a weight. A replacement needs the same settings to be combined with other tensors.
pub(crate) struct AutodiffRole {
    in_graph: bool,
    learns: bool,
    checkpointing: Option<GradientCheckpointingStrategy>,
}

impl AutodiffRole {
    pub(crate) fn of<const D: usize>(weights: &Tensor<D>) -> Self {
        Self {
            in_graph: weights.is_autodiff(),
            learns: weights.is_require_grad(),
            checkpointing: weights.gradient_checkpointing_strategy(),
        }
    }

    /// Returns the weights outside the autodiff graph.
    pub(super) fn outside<const D: usize>(&self, weights: Tensor<D>) -> Tensor<D> {
        if self.in_graph { weights.inner() } else { weights }
    }

    /// Applies the settings to weights from outside the autodiff graph.
    pub(crate) fn take<const D: usize>(&self, weights: Tensor<D>) -> Tensor<D> {
        if !self.in_graph {
            return weights;
        }
        let weights = Tensor::from_inner(weights);
        let weights = match self.checkpointing {
            Some(strategy) => weights.with_gradient_checkpointing_strategy(strategy),
            None => weights,
        };
        weights.set_require_grad(self.learns)
    }
}
