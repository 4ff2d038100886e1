//! Methods that modify a trained rotation for longer sequences.

use pe_zoo::rotary::{Scaling, Yarn};
use pe_zoo::zoo::rope::{self, Rope};
use pe_zoo::{Combination, EncodingConfig, PeError};

/// Factor of the base under [`Method::Theta`]: from 10,000 to 1,000,000 in Code Llama (Rozière et al.
/// 2023, arXiv 2308.12950) and in the fine-tuning baselines of TAPE.
const THETA_RATIO: f64 = 100.0;

/// Method that modifies a rotation; `s` is the extended length divided by the trained one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Method {
    /// The rotation is not modified.
    AsTrained,
    /// Position interpolation: positions are divided by `s`.
    Linear,
    /// NTK-aware scaling: the base is raised according to `s`.
    Ntk,
    /// Dynamic NTK scaling: the base is raised according to the length of each sequence.
    Dynamic,
    /// YaRN: low frequencies are divided by `s`, high ones kept.
    Yarn,
    /// The base is multiplied by 100, independent of `s`.
    Theta,
}

/// Encoding that is evaluated, with its name in tables.
#[derive(Debug, Clone, PartialEq)]
pub struct EncodingVariant {
    /// Name shown in tables.
    pub name: String,
    /// Encoding that is evaluated.
    pub encoding: Combination,
}

/// Error of a method on the rotation of a model.
#[derive(Debug, thiserror::Error)]
pub enum MethodError {
    /// The rotation is already scaled.
    #[error(
        "the model's rotation is already scaled (`{kind}`), so `{method}` would undo that; give encodings of your own \
         with --encodings, or --methods as-trained"
    )]
    ScaledAlready {
        /// Scaling of the model's rotation.
        kind: &'static str,
        /// Name of the requested method.
        method: String,
    },
    /// The settings of the encoding are invalid.
    #[error(transparent)]
    Encoding(#[from] PeError),
}

/// Derives encodings from a model's rotation by the methods, for the factors `s`.
///
/// # Errors
///
/// [`MethodError`].
pub fn variants(
    methods: &[Method],
    trained: &rope::RopeConfig,
    context: usize,
    factors: &[f64],
) -> Result<Vec<EncodingVariant>, MethodError> {
    let mut variants = Vec::new();
    for method in methods {
        if *method != Method::AsTrained && trained.scaling != Scaling::None {
            let method = format!("{method:?}").to_lowercase();
            return Err(MethodError::ScaledAlready { kind: trained.scaling.id(), method });
        }
        variants.extend(method.variants(trained, context, factors)?);
    }
    Ok(variants)
}

/// Parses an encoding expression.
///
/// # Errors
/// [`PeError`] if the expression is invalid.
pub fn expression(text: &str) -> Result<EncodingVariant, PeError> {
    let encoding = crate::encodings::parse(text)?;
    Ok(EncodingVariant { name: encoding.to_string(), encoding })
}

/// Returns RoPE with these settings as a combination.
fn rope_encoding(settings: rope::RopeConfig) -> Result<Combination, PeError> {
    Combination::try_from(EncodingConfig::of::<Rope>(settings)?)
}

impl Method {
    fn variants(
        self,
        trained: &rope::RopeConfig,
        context: usize,
        factors: &[f64],
    ) -> Result<Vec<EncodingVariant>, PeError> {
        let variant = |name: String, rope: rope::RopeConfig| {
            Ok(EncodingVariant { name, encoding: rope_encoding(rope)? })
        };
        let scaled = |scaling| rope::RopeConfig { scaling, ..trained.clone() };
        let each = |name: &str, scaling: &dyn Fn(f64) -> Scaling| {
            let named =
                |factor: &f64| variant(format!("{name} x{factor}"), scaled(scaling(*factor)));
            factors.iter().map(named).collect::<Result<Vec<_>, _>>()
        };
        match self {
            Self::AsTrained => Ok(vec![variant("as trained".to_owned(), trained.clone())?]),
            Self::Linear => each("linear", &|factor| Scaling::Linear { factor }),
            Self::Ntk => each("NTK", &|factor| Scaling::Ntk { factor }),
            Self::Yarn => each("YaRN", &|factor| {
                Scaling::Yarn(Yarn {
                    factor: Some(factor),
                    original_max_position_embeddings: Some(context),
                    beta_fast: 32.0,
                    beta_slow: 1.0,
                    truncate: true,
                    attention_factor: None,
                    mscale: None,
                    mscale_all_dim: None,
                })
            }),
            Self::Dynamic => {
                // With factor 1 the scale is the sequence's length over the trained one.
                let original_max_position_embeddings = Some(context);
                let scaling = Scaling::Dynamic { factor: 1.0, original_max_position_embeddings };
                Ok(vec![variant("dynamic NTK".to_owned(), scaled(scaling))?])
            }
            Self::Theta => {
                let rope = rope::RopeConfig { base: trained.base * THETA_RATIO, ..trained.clone() };
                Ok(vec![variant(format!("base x{THETA_RATIO}"), rope)?])
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum as _;

    const ALL: &[Method] = &[
        Method::AsTrained,
        Method::Linear,
        Method::Ntk,
        Method::Dynamic,
        Method::Yarn,
        Method::Theta,
    ];

    #[test]
    fn every_method_is_an_encoding_of_its_own() {
        assert_eq!(Method::value_variants(), ALL);
        let trained = rope::RopeConfig { base: 1e5, ..rope::RopeConfig::default() };
        let all = variants(ALL, &trained, 8192, &[2.0, 4.0]).unwrap();
        let names = all.iter().map(|v| v.name.as_str()).collect::<Vec<_>>();
        let expected = [
            "as trained",
            "linear x2",
            "linear x4",
            "NTK x2",
            "NTK x4",
            "dynamic NTK",
            "YaRN x2",
            "YaRN x4",
            "base x100",
        ];
        assert_eq!(names, expected);
        for (index, variant) in all.iter().enumerate() {
            assert!(all[..index].iter().all(|other| other.encoding != variant.encoding));
        }
        assert_eq!(all[0].encoding.to_string(), "rope{base=100000.0}");
        assert_eq!(all[8].encoding.to_string(), "rope{base=10000000.0}");
    }

    #[test]
    fn a_rotation_that_is_scaled_already_is_not_scaled_again() {
        let scaling = Scaling::Linear { factor: 2.0 };
        let trained = rope::RopeConfig { scaling, ..rope::RopeConfig::default() };
        let refused = variants(&[Method::Yarn], &trained, 64, &[2.0]).unwrap_err().to_string();
        assert!(refused.contains("`linear`") && refused.contains("`yarn`"), "{refused}");
        assert_eq!(variants(&[Method::AsTrained], &trained, 64, &[2.0]).unwrap().len(), 1);
    }
}
