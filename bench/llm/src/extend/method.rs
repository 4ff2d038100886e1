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

/// Derives encodings from a model's rotation by the methods, for the factors `s`. If the rotation is scaled already, as
/// that of Llama 3.1, a method modifies the scaled frequencies.
///
/// # Errors
///
/// [`PeError`] if the settings of an encoding are invalid.
pub fn variants(
    methods: &[Method],
    trained: &rope::RopeConfig,
    context: usize,
    factors: &[f64],
) -> Result<Vec<EncodingVariant>, PeError> {
    let mut variants = Vec::new();
    for method in methods {
        variants.extend(method.variants(trained, context, factors)?);
    }
    Ok(variants)
}

/// Parses an encoding expression.
///
/// # Errors
/// [`PeError`] if the expression is invalid.
pub fn expression(text: &str) -> Result<EncodingVariant, PeError> {
    let encoding = train::encodings::parse(text)?;
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
        let scaled = |scaling| rope::RopeConfig {
            scaling: match &trained.scaling {
                Scaling::None => scaling,
                trained => Scaling::Composed { parts: vec![trained.clone(), scaling] },
            },
            ..trained.clone()
        };
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
                    extrapolation_factor: None,
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
    use pe_zoo::rotary::Llama3;

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
    fn methods_modify_the_scaled_frequencies_of_llama_3_1() {
        let llama = Scaling::Llama3(Llama3 {
            factor: 8.0,
            low_freq_factor: 1.0,
            high_freq_factor: 4.0,
            original_max_position_embeddings: 16,
        });
        let (dims, context) = ((8, 64), 64);
        let trained = rope::RopeConfig { scaling: llama.clone(), ..rope::RopeConfig::default() };
        let all = variants(ALL, &trained, context, &[4.0]).unwrap();
        assert_eq!(all[0].encoding, rope_encoding(trained.clone()).unwrap());
        let spectrum = |scaling: &Scaling, base: f64| {
            scaling.spectrum(base, dims.0, context, 2 * context).frequencies
        };
        let own = spectrum(&llama, 1e4);
        let of = |variant: &EncodingVariant| {
            let fields = variant.encoding.parts()[0].fields().clone();
            let rope: rope::RopeConfig = serde_json::from_value(fields.into()).unwrap();
            spectrum(&rope.scaling, rope.base)
        };
        // Linear: a quarter of each trained frequency.
        for (found, own) in of(&all[1]).iter().zip(&own) {
            assert!((found / own - 0.25).abs() < 1e-12, "{found} {own}");
        }
        // NTK-aware: the fastest pair is kept, the slowest divided by the factor.
        let ntk = of(&all[2]);
        assert!((ntk[0] / own[0] - 1.0).abs() < 1e-12 && (ntk[3] / own[3] - 0.25).abs() < 1e-12);
        // A raised base keeps the trained scaling.
        assert_eq!(of(&all[5]), spectrum(&llama, 1e6));
    }
}
