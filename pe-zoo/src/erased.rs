//! Type-erased encodings: one concrete module type for every encoding, those of other crates
//! included.

use std::any::Any;
use std::fmt::Debug;

use burn::module::{
    Content, Devices, Flag, Module, ModuleDisplay, ModuleDisplayDefault, ModuleMapper,
    ModuleVisitor, Param,
};
use burn::tensor::{Bool, Device, Float, Int, Tensor};

use crate::encoding::{
    Constant, EmbedContext, LayerContext, PositionEncoding, PositionRequest, ScoreContext,
    StateContext, Update,
};
use crate::reference::ScalarReference;
use crate::{PeError, Positions, ScoreMod, TokenState};

/// The hooks of [`PositionEncoding`] as an object-safe trait, which models and engines call.
///
/// Implemented for every `PositionEncoding`; each method is documented there.
#[expect(missing_docs, reason = "documented at `PositionEncoding`")]
#[expect(clippy::missing_errors_doc, reason = "documented at `PositionEncoding`")]
pub trait Hooks: Debug + Send + Sync {
    fn reference(&self) -> Option<&dyn ScalarReference>;
    fn positions(&self, request: PositionRequest<'_>) -> Result<Positions, PeError>;
    fn embed(&self, x: Tensor<3>, ctx: &EmbedContext<'_>) -> Tensor<3>;
    fn state(&self, ctx: &StateContext<'_>) -> TokenState;
    fn transform_qk(
        &self,
        q: Tensor<4>,
        k: Tensor<4>,
        ctx: &LayerContext<'_>,
    ) -> (Tensor<4>, Tensor<4>);
    fn fixed_keys(&self) -> bool;
    fn score(&self, ctx: &ScoreContext<'_>) -> ScoreMod;
    fn mixed_values(&self, ctx: &LayerContext<'_>) -> Option<Tensor<4>>;
    fn update(&self, rows: TokenState, layer: usize, update: Update<'_>) -> TokenState;
    fn max_len(&self) -> Option<usize>;
    fn constants(&self) -> Vec<Constant>;
    /// [`PositionEncoding::horizon`] of a layer, which [`Combined`](crate::Combined) knows; `None` for a single encoding, because it
    /// does not keep its settings.
    fn horizon(&self, _layer: usize) -> Option<usize> {
        None
    }
}

impl<E: PositionEncoding> Hooks for E {
    fn reference(&self) -> Option<&dyn ScalarReference> {
        PositionEncoding::reference(self)
    }

    fn positions(&self, request: PositionRequest<'_>) -> Result<Positions, PeError> {
        PositionEncoding::positions(self, request)
    }

    fn embed(&self, x: Tensor<3>, ctx: &EmbedContext<'_>) -> Tensor<3> {
        PositionEncoding::embed(self, x, ctx)
    }

    fn state(&self, ctx: &StateContext<'_>) -> TokenState {
        PositionEncoding::state(self, ctx)
    }

    fn transform_qk(
        &self,
        q: Tensor<4>,
        k: Tensor<4>,
        ctx: &LayerContext<'_>,
    ) -> (Tensor<4>, Tensor<4>) {
        PositionEncoding::transform_qk(self, q, k, ctx)
    }

    fn fixed_keys(&self) -> bool {
        PositionEncoding::fixed_keys(self)
    }

    fn score(&self, ctx: &ScoreContext<'_>) -> ScoreMod {
        PositionEncoding::score(self, ctx)
    }

    fn mixed_values(&self, ctx: &LayerContext<'_>) -> Option<Tensor<4>> {
        PositionEncoding::mixed_values(self, ctx)
    }

    fn update(&self, rows: TokenState, layer: usize, update: Update<'_>) -> TokenState {
        PositionEncoding::update(self, rows, layer, update)
    }

    fn max_len(&self) -> Option<usize> {
        PositionEncoding::max_len(self)
    }

    fn constants(&self) -> Vec<Constant> {
        PositionEncoding::constants(self)
    }
}

/// Positions of a pass, checked against the encoding's length limit.
///
/// # Errors
/// [`PeError::TooLong`] past the limit, and the errors of [`PositionEncoding::positions`].
pub fn positions(
    encoding: &dyn Hooks,
    id: &str,
    request: PositionRequest<'_>,
) -> Result<Positions, PeError> {
    let at = encoding.positions(request)?;
    check_limit(encoding, id, &at)?;
    Ok(at)
}

/// Refuses positions past the encoding's length limit.
///
/// # Errors
/// [`PeError::TooLong`].
pub fn check_limit(encoding: &dyn Hooks, id: &str, at: &Positions) -> Result<(), PeError> {
    let last = at.len().saturating_sub(1);
    match encoding.max_len() {
        Some(limit) if last >= limit => Err(PeError::TooLong {
            pe: id.to_owned(),
            position: last,
            max_position: limit.saturating_sub(1),
        }),
        _ => Ok(()),
    }
}

/// Encoding of any type, as one module.
#[derive(Debug)]
pub struct AnyEncoding(Box<dyn ErasedModule>);

impl AnyEncoding {
    /// Erases the type of an encoding.
    pub fn new(encoding: impl PositionEncoding) -> Self {
        Self(Box::new(encoding))
    }

    /// Hooks of the erased encoding.
    pub fn hooks(&self) -> &dyn Hooks {
        self.0.hooks()
    }
}

#[cfg(test)]
impl AnyEncoding {
    /// The scalar reference.
    ///
    /// # Panics
    /// If the encoding has none.
    pub(crate) fn scalar(&self) -> &dyn ScalarReference {
        self.hooks().reference().unwrap()
    }
}

impl Clone for AnyEncoding {
    fn clone(&self) -> Self {
        Self(self.0.clone_box())
    }
}

impl Module for AnyEncoding {
    fn collect_devices(&self, devices: Devices) -> Devices {
        self.0.devices(devices)
    }

    fn fork(self, device: &Device) -> Self {
        Self(self.0.fork(device))
    }

    fn to_device(self, device: &Device) -> Self {
        Self(self.0.to_device(device))
    }

    fn train(self) -> Self {
        Self(self.0.train())
    }

    fn valid(&self) -> Self {
        Self(self.0.valid())
    }

    fn materialize(self) -> Self {
        Self(self.0.materialize())
    }

    fn visit<V: ModuleVisitor>(&self, visitor: &mut V) {
        self.0.visit(&mut Outwards(visitor));
    }

    fn map<M: ModuleMapper>(self, mapper: &mut M) -> Self {
        Self(self.0.map(&mut Outwards(mapper)))
    }
}

impl ModuleDisplayDefault for AnyEncoding {
    fn content(&self, content: Content) -> Option<Content> {
        Some(content)
    }
}

impl ModuleDisplay for AnyEncoding {}

/// The methods of [`Module`] that take `Self` or a type parameter, in object-safe form.
trait ErasedModule: Debug + Send + Sync {
    fn hooks(&self) -> &dyn Hooks;
    fn clone_box(&self) -> Box<dyn ErasedModule>;
    fn devices(&self, devices: Devices) -> Devices;
    fn fork(self: Box<Self>, device: &Device) -> Box<dyn ErasedModule>;
    fn to_device(self: Box<Self>, device: &Device) -> Box<dyn ErasedModule>;
    fn train(self: Box<Self>) -> Box<dyn ErasedModule>;
    fn valid(&self) -> Box<dyn ErasedModule>;
    fn materialize(self: Box<Self>) -> Box<dyn ErasedModule>;
    fn visit(&self, visitor: &mut dyn ErasedVisitor);
    fn map(self: Box<Self>, mapper: &mut dyn ErasedMapper) -> Box<dyn ErasedModule>;
}

impl<E: PositionEncoding> ErasedModule for E {
    fn hooks(&self) -> &dyn Hooks {
        self
    }

    fn clone_box(&self) -> Box<dyn ErasedModule> {
        Box::new(self.clone())
    }

    fn devices(&self, devices: Devices) -> Devices {
        self.collect_devices(devices)
    }

    fn fork(self: Box<Self>, device: &Device) -> Box<dyn ErasedModule> {
        Box::new(Module::fork(*self, device))
    }

    fn to_device(self: Box<Self>, device: &Device) -> Box<dyn ErasedModule> {
        Box::new(Module::to_device(*self, device))
    }

    fn train(self: Box<Self>) -> Box<dyn ErasedModule> {
        Box::new(Module::train(*self))
    }

    fn valid(&self) -> Box<dyn ErasedModule> {
        Box::new(Module::valid(self))
    }

    fn materialize(self: Box<Self>) -> Box<dyn ErasedModule> {
        Box::new(Module::materialize(*self))
    }

    fn visit(&self, visitor: &mut dyn ErasedVisitor) {
        Module::visit(self, &mut Inwards(visitor));
    }

    fn map(self: Box<Self>, mapper: &mut dyn ErasedMapper) -> Box<dyn ErasedModule> {
        Box::new(Module::map(*self, &mut Inwards(mapper)))
    }
}

/// Visitor of parameters, which are `Param<Tensor<D, K>>` of some rank and kind, or `Param<Flag>`.
trait ErasedVisitor {
    fn visit(&mut self, param: &dyn Any);
    fn enter(&mut self, name: &str, container: &str);
    fn exit(&mut self, name: &str, container: &str);
}

/// Mapper of parameters like those of [`ErasedVisitor`]; each is mapped to one of the same type.
trait ErasedMapper {
    fn map(&mut self, param: Box<dyn Any>) -> Box<dyn Any>;
    fn enter(&mut self, name: &str, container: &str);
    fn exit(&mut self, name: &str, container: &str);
}

/// Adapter from the generic interface inside an encoding to the erased one.
struct Inwards<'a, T: ?Sized>(&'a mut T);

impl ModuleVisitor for Inwards<'_, dyn ErasedVisitor + '_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.0.visit(param);
    }

    fn visit_int<const D: usize>(&mut self, param: &Param<Tensor<D, Int>>) {
        self.0.visit(param);
    }

    fn visit_bool<const D: usize>(&mut self, param: &Param<Tensor<D, Bool>>) {
        self.0.visit(param);
    }

    fn visit_flag(&mut self, param: &Param<Flag>) {
        self.0.visit(param);
    }

    fn enter_module(&mut self, name: &str, container: &str) {
        self.0.enter(name, container);
    }

    fn exit_module(&mut self, name: &str, container: &str) {
        self.0.exit(name, container);
    }
}

impl Inwards<'_, dyn ErasedMapper + '_> {
    fn mapped<P: 'static>(&mut self, param: P) -> P {
        let mapped = self.0.map(Box::new(param)).downcast::<P>();
        *mapped.expect("a mapper returns a parameter of the kind and rank that it was given")
    }
}

impl ModuleMapper for Inwards<'_, dyn ErasedMapper + '_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        self.mapped(param)
    }

    fn map_int<const D: usize>(&mut self, param: Param<Tensor<D, Int>>) -> Param<Tensor<D, Int>> {
        self.mapped(param)
    }

    fn map_bool<const D: usize>(
        &mut self,
        param: Param<Tensor<D, Bool>>,
    ) -> Param<Tensor<D, Bool>> {
        self.mapped(param)
    }

    fn map_flag(&mut self, param: Param<Flag>) -> Param<Flag> {
        self.mapped(param)
    }

    fn enter_module(&mut self, name: &str, container: &str) {
        self.0.enter(name, container);
    }

    fn exit_module(&mut self, name: &str, container: &str) {
        self.0.exit(name, container);
    }
}

/// Adapter from the erased interface back to the generic visitor or mapper of the caller.
struct Outwards<'a, T>(&'a mut T);

/// Returns the result of a generic method if the parameter is a tensor of this kind and of any supported rank. Encodings
/// have no parameters of more than six dimensions.
macro_rules! by_rank {
    ($param:ident, $kind:ty, $take:ident => $call:expr, $($rank:literal)+) => {
        $(if let Some($take) = $param.downcast_ref::<Param<Tensor<$rank, $kind>>>() {
            return $call;
        })+
    };
    (owned $param:ident, $kind:ty, $take:ident => $call:expr, $($rank:literal)+) => {
        $(let $param = match $param.downcast::<Param<Tensor<$rank, $kind>>>() {
            Ok($take) => return Box::new($call),
            Err($param) => $param,
        };)+
    };
}

const TOO_MANY_AXES: &str = "a parameter with more than six dimensions";

impl<V: ModuleVisitor> ErasedVisitor for Outwards<'_, V> {
    fn visit(&mut self, param: &dyn Any) {
        by_rank!(param, Float, p => self.0.visit_float(p), 1 2 3 4 5 6);
        by_rank!(param, Int, p => self.0.visit_int(p), 1 2 3 4 5 6);
        by_rank!(param, Bool, p => self.0.visit_bool(p), 1 2 3 4 5 6);
        self.0.visit_flag(param.downcast_ref::<Param<Flag>>().expect(TOO_MANY_AXES));
    }

    fn enter(&mut self, name: &str, container: &str) {
        self.0.enter_module(name, container);
    }

    fn exit(&mut self, name: &str, container: &str) {
        self.0.exit_module(name, container);
    }
}

impl<M: ModuleMapper> ErasedMapper for Outwards<'_, M> {
    fn map(&mut self, param: Box<dyn Any>) -> Box<dyn Any> {
        by_rank!(owned param, Float, p => self.0.map_float(*p), 1 2 3 4 5 6);
        by_rank!(owned param, Int, p => self.0.map_int(*p), 1 2 3 4 5 6);
        by_rank!(owned param, Bool, p => self.0.map_bool(*p), 1 2 3 4 5 6);
        Box::new(self.0.map_flag(*param.downcast::<Param<Flag>>().expect(TOO_MANY_AXES)))
    }

    fn enter(&mut self, name: &str, container: &str) {
        self.0.enter_module(name, container);
    }

    fn exit(&mut self, name: &str, container: &str) {
        self.0.exit_module(name, container);
    }
}
