//! Methods that modify a trained rotation for longer sequences.

use pe_zoo::rotary::{Scaling, Yarn};
use pe_zoo::zoo::rope::{self, Far, Rope};
use pe_zoo::{Combination, EncodingConfig, PeError};

/// Factor of the base under [`Method::Theta`]: from 10,000 to 1,000,000 in Code Llama (Rozière et al.
/// 2023, arXiv 2308.12950) and in the fine-tuning baselines of TAPE.
const THETA_RATIO: f64 = 100.0;

/// Share of the pairs that [`Method::Clipped`] clips: 20 of 64 in the paper (Li et al. 2026, arXiv 2602.05258).
const CLIPPED_SHARE: f64 = 20.0 / 64.0;

/// Share of the trained context within which distances are exact under [`Method::SelfExtend`], as 1024 of 4096 in the paper
/// (Jin et al. 2024, arXiv 2401.01325).
const SELF_EXTEND_WINDOW: f64 = 0.25;

/// As [`SELF_EXTEND_WINDOW`], under [`Method::ReRope`].
const RE_ROPE_WINDOW: f64 = 0.5;

/// Share of the trained context of a chunk under [`Method::DualChunk`]; the rest is its local window (An et al. 2024, arXiv
/// 2402.17463). In the authors' code 3072 of 4096 are a chunk and its window together.
const DUAL_CHUNK: f64 = 0.75;

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
    /// YaRN: low frequencies are divided by `s`, high frequencies are not modified.
    Yarn,
    /// The base is multiplied by 100, independent of `s`.
    Theta,
    /// Clipped RoPE: the slowest 20/64 (31%) of the frequencies are lowered, the slowest to 0, independent of `s`.
    Clipped,
    /// SelfExtend: for distances beyond a quarter of the trained length, groups of consecutive positions share a number.
    /// A group is just large enough that at `s` times the trained length no distance exceeds the trained length.
    SelfExtend,
    /// ReRoPE: every distance above half of the trained length is replaced by half of the trained length, independent
    /// of `s`.
    ReRope,
    /// Dual chunk attention: positions restart in each chunk of three quarters of the trained length, independent of
    /// `s`. Distances to tokens in other chunks stay below the trained length.
    DualChunk,
}

/// Sizes of the model that methods depend on.
#[derive(Debug, Clone, Copy)]
pub struct TrainedSizes {
    /// Trained length in tokens.
    pub context: usize,
    /// Channels of a head.
    pub head_dim: usize,
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
    sizes: TrainedSizes,
    factors: &[f64],
) -> Result<Vec<EncodingVariant>, PeError> {
    let mut variants = Vec::new();
    for method in methods {
        variants.extend(method.variants(trained, sizes, factors)?);
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
        TrainedSizes { context, head_dim }: TrainedSizes,
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
        let for_each = |name: &str, rope: &dyn Fn(f64) -> rope::RopeConfig| {
            let named = |factor: &f64| variant(format!("{name} x{factor}"), rope(*factor));
            factors.iter().map(named).collect::<Result<Vec<_>, _>>()
        };
        let each = |name: &str, scaling: &dyn Fn(f64) -> Scaling| {
            for_each(name, &|factor| scaled(scaling(factor)))
        };
        let far = |far| rope::RopeConfig { far, ..trained.clone() };
        let share_of = |share: f64, whole: usize| ((share * whole as f64).round() as usize).max(1);
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
            Self::Clipped => {
                let rotated = (trained.rotary_fraction * head_dim as f64) as usize / 2;
                let pairs = share_of(CLIPPED_SHARE, rotated);
                let scaling = Scaling::Clipped { pairs, hard: false };
                Ok(vec![variant(format!("clipped {pairs} of {rotated}"), scaled(scaling))?])
            }
            Self::SelfExtend => for_each("SelfExtend", &|factor| {
                let window = share_of(SELF_EXTEND_WINDOW, context);
                // The longest distance, `(length - window) / group + window`, is at most the trained length.
                let beyond = factor * context as f64 - window as f64;
                let group = (beyond / (context - window).max(1) as f64).ceil() as usize;
                far(Far::Grouped { window, group: group.max(1) })
            }),
            Self::ReRope => {
                let window = share_of(RE_ROPE_WINDOW, context);
                Ok(vec![variant(format!("ReRoPE {window}"), far(Far::Constant { window }))?])
            }
            Self::DualChunk => {
                let chunk = share_of(DUAL_CHUNK, context);
                let window = context.saturating_sub(chunk).max(1);
                Ok(vec![variant(
                    format!("dual chunk {chunk}"),
                    far(Far::Chunks { chunk, window }),
                )?])
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
        Method::Clipped,
        Method::SelfExtend,
        Method::ReRope,
        Method::DualChunk,
    ];

    const SIZES: TrainedSizes = TrainedSizes { context: 8192, head_dim: 64 };

    #[test]
    fn every_method_is_an_encoding_of_its_own() {
        assert_eq!(Method::value_variants(), ALL);
        let trained = rope::RopeConfig { base: 1e5, ..rope::RopeConfig::default() };
        let all = variants(ALL, &trained, SIZES, &[2.0, 4.0]).unwrap();
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
            "clipped 10 of 32",
            "SelfExtend x2",
            "SelfExtend x4",
            "ReRoPE 4096",
            "dual chunk 6144",
        ];
        assert_eq!(names, expected);
        for (index, variant) in all.iter().enumerate() {
            assert!(all[..index].iter().all(|other| other.encoding != variant.encoding));
        }
        assert_eq!(all[0].encoding.to_string(), "rope{base=100000.0}");
        assert_eq!(all[8].encoding.to_string(), "rope{base=10000000.0}");
        // At 16,384 and 32,768 tokens: (16384 - 2048) / 3 + 2048 is 6827, (32768 - 2048) / 5 + 2048 is 8192.
        for (variant, group) in [(&all[10], 3), (&all[11], 5)] {
            let expected =
                format!("rope{{base=100000.0,far={{group={group},type=grouped,window=2048}}}}");
            assert_eq!(variant.encoding.to_string(), expected);
        }
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
        let sizes = TrainedSizes { context, head_dim: dims.0 };
        let all = variants(ALL, &trained, sizes, &[4.0]).unwrap();
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
        // One of four pairs is clipped, by nothing; distances beyond a window keep the trained scaling.
        assert_eq!(of(&all[6]), own);
        assert!(all[7..].iter().all(|variant| of(variant) == own));
    }
}
