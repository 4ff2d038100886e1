//! The macro behind the one list: ids, parsing, dispatch and tests all come from it.

/// Declares the modules and expands to `Pe`, `PeConfig`, `ALL` and a conformance test per entry.
///
/// rustfmt does not follow modules declared inside a macro, so `ci/check.sh` hands it these files
/// by name.
macro_rules! zoo {
    ($($module:ident => $Type:ident,)+) => {
        $(pub mod $module;)+

        use burn::module::Module;
        use burn::tensor::{Device, Tensor};
        use rand_chacha::ChaCha8Rng;
        use serde_json::{Map, Value};

        use crate::encoding::{
            EmbedContext, LayerContext, PositionRequest, ScoreContext, StateContext, Update,
        };
        use crate::meta::{Brackets, Conduct, PeMeta};
        use crate::reference::{Heads, ScalarInput, ScalarLayer, ScalarReference, Tokens};
        use crate::testkit::{Finding, examine_settings};
        use crate::{Cost, Dims, EncodingConfig, PeError, PositionEncoding, Positions, ScoreMod};
        use crate::{TokenState, settings};

        /// The facts about every encoding, sorted by id.
        pub const ALL: &[&PeMeta] = &[$(&$module::META),+];

        /// The text of an encoding's file: its module documentation is the encoding's card.
        pub fn source(id: &str) -> Option<&'static str> {
            $(
                if id == $module::META.id {
                    return Some(include_str!(concat!("zoo/", stringify!($module), ".rs")));
                }
            )+
            None
        }

        /// Module names, in the order of [`ALL`].
        #[cfg(test)]
        const MODULES: &[&str] = &[$(stringify!($module)),+];

        /// Any encoding of the zoo.
        #[derive(Module, Debug)]
        pub enum Pe {
            $(
                #[doc = concat!("See [`", stringify!($module), "`].")]
                $Type($module::$Type),
            )+
        }

        /// The settings of any encoding of the zoo.
        #[derive(Debug, Clone, PartialEq)]
        pub enum PeConfig {
            $(
                #[doc = concat!("See [`", stringify!($module), "`].")]
                $Type($module::Config),
            )+
        }

        impl PeConfig {
            /// The encoding with this id, at its default settings.
            ///
            /// # Errors
            /// [`PeError::UnknownId`], the nearest id suggested.
            pub fn from_id(id: &str) -> Result<Self, PeError> {
                Self::from_fields(id, Map::new())
            }

            /// The encoding with this id and these settings; what is not given keeps its default.
            ///
            /// # Errors
            /// [`PeError::UnknownId`], or [`PeError::Settings`] with the field named.
            pub fn from_fields(id: &str, fields: Map<String, Value>) -> Result<Self, PeError> {
                $(
                    if id == $module::META.id {
                        return Ok(Self::$Type(settings::read(id, fields)?));
                    }
                )+
                Err(PeError::UnknownId {
                    id: id.to_owned(),
                    nearest: settings::nearest(id, ALL.iter().map(|meta| meta.id)),
                    known: ALL.iter().map(|meta| meta.id).collect::<Vec<_>>().join(", "),
                })
            }

            /// The checks of the conformance kit that are about settings.
            pub fn examine_settings(&self) -> Vec<Finding> {
                match self {
                    $(Self::$Type(config) => examine_settings(config),)+
                }
            }
        }

        impl serde::Serialize for PeConfig {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self {
                    $(Self::$Type(config) => config.serialize(serializer),)+
                }
            }
        }

        impl EncodingConfig for PeConfig {
            type Encoding = Pe;

            fn meta(&self) -> &'static PeMeta {
                match self {
                    $(Self::$Type(config) => config.meta(),)+
                }
            }

            fn conduct(&self) -> Vec<Conduct> {
                match self {
                    $(Self::$Type(config) => config.conduct(),)+
                }
            }

            fn brackets(&self) -> Brackets {
                match self {
                    $(Self::$Type(config) => config.brackets(),)+
                }
            }

            fn dims_beside(&self, dims: &Dims) -> Dims {
                match self {
                    $(Self::$Type(config) => config.dims_beside(dims),)+
                }
            }

            fn check(&self, dims: &Dims) -> Result<(), PeError> {
                match self {
                    $(Self::$Type(config) => config.check(dims),)+
                }
            }

            fn init(
                &self,
                dims: &Dims,
                rng: &mut ChaCha8Rng,
                device: &Device,
            ) -> Result<Pe, PeError> {
                match self {
                    $(Self::$Type(config) => config.init(dims, rng, device).map(Pe::$Type),)+
                }
            }

            fn param_count(&self, dims: &Dims) -> usize {
                match self {
                    $(Self::$Type(config) => config.param_count(dims),)+
                }
            }

            fn cost(&self, dims: &Dims, len: usize) -> Cost {
                match self {
                    $(Self::$Type(config) => config.cost(dims, len),)+
                }
            }
        }

        impl PositionEncoding for Pe {
            fn positions(&self, request: PositionRequest<'_>) -> Result<Positions, PeError> {
                match self {
                    $(Self::$Type(pe) => pe.positions(request),)+
                }
            }

            fn embed(&self, x: Tensor<3>, ctx: &EmbedContext<'_>) -> Tensor<3> {
                match self {
                    $(Self::$Type(pe) => pe.embed(x, ctx),)+
                }
            }

            fn state(&self, ctx: &StateContext<'_>) -> TokenState {
                match self {
                    $(Self::$Type(pe) => pe.state(ctx),)+
                }
            }

            fn transform_qk(
                &self,
                q: Tensor<4>,
                k: Tensor<4>,
                ctx: &LayerContext<'_>,
            ) -> (Tensor<4>, Tensor<4>) {
                match self {
                    $(Self::$Type(pe) => pe.transform_qk(q, k, ctx),)+
                }
            }

            fn score(&self, ctx: &ScoreContext<'_>) -> ScoreMod {
                match self {
                    $(Self::$Type(pe) => pe.score(ctx),)+
                }
            }

            fn mixed_values(&self, ctx: &LayerContext<'_>) -> Option<Tensor<4>> {
                match self {
                    $(Self::$Type(pe) => pe.mixed_values(ctx),)+
                }
            }

            fn update(&self, rows: TokenState, layer: usize, update: Update<'_>) -> TokenState {
                match self {
                    $(Self::$Type(pe) => pe.update(rows, layer, update),)+
                }
            }

            fn max_len(&self) -> Option<usize> {
                match self {
                    $(Self::$Type(pe) => pe.max_len(),)+
                }
            }
        }

        impl ScalarReference for Pe {
            fn scalar_embed(&self, x: &Tokens, ids: &[usize], positions: &[usize]) -> Tokens {
                match self {
                    $(Self::$Type(pe) => pe.scalar_embed(x, ids, positions),)+
                }
            }

            fn scalar_transformed(&self, input: &ScalarInput) -> ScalarInput {
                match self {
                    $(Self::$Type(pe) => pe.scalar_transformed(input),)+
                }
            }

            fn scalar_logits(&self, input: &ScalarInput) -> Heads {
                match self {
                    $(Self::$Type(pe) => pe.scalar_logits(input),)+
                }
            }

            fn scalar_weights(&self, input: &ScalarInput) -> Heads {
                match self {
                    $(Self::$Type(pe) => pe.scalar_weights(input),)+
                }
            }

            fn scalar_stack(&self, layers: &[ScalarLayer]) -> Vec<Heads> {
                match self {
                    $(Self::$Type(pe) => pe.scalar_stack(layers),)+
                }
            }

            fn scalar_stack_beside(
                &self,
                layers: &[ScalarLayer],
                weigh: &dyn Fn(&ScalarInput, Heads) -> Heads,
            ) -> Vec<Heads> {
                match self {
                    $(Self::$Type(pe) => pe.scalar_stack_beside(layers, weigh),)+
                }
            }

            fn differentiable_at(&self, parameter: usize, value: f64) -> bool {
                match self {
                    $(Self::$Type(pe) => pe.differentiable_at(parameter, value),)+
                }
            }
        }

        /// One conformance test per encoding, so that a failure carries its name.
        #[cfg(test)]
        mod conformance {
            $(
                #[test]
                fn $module() {
                    let config = super::PeConfig::$Type(Default::default());
                    let mut findings = crate::testkit::examine(&config);
                    findings.extend(config.examine_settings());
                    crate::testkit::assert_all_hold(super::$module::META.id, findings);
                }
            )+
        }
    };
}

pub(super) use zoo;
