//! Settings with small sizes, at which an encoding is cheap to build and its settings act.
//!
//! Encodings are probed and checked on sequences of a few dozen tokens in a few layers. A setting such as a number of
//! positions from which on something changes has no effect there if it is large, so that neither a property nor a fault
//! that depends on it can be observed. [`acting`] finds smaller numbers at which each setting changes what is observed.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use serde_json::{Map, Number, Value};

use super::close::numbers;
use super::problem::Problem;
use super::randomise::randomise_each;
use super::{device, passes};
use crate::encoding::PositionRequest;
use crate::registry::EncodingConfig;
use crate::{Dims, Positions};

/// A number among the settings of an encoding that may be a length: a whole one, seeds excepted, or a large one with a
/// fraction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Size {
    /// Place of the number in the settings, as a JSON pointer.
    pointer: String,
    /// Value of the number, rounded.
    pub(crate) value: u64,
    /// Whether the setting is a whole number.
    is_whole: bool,
}

impl Size {
    /// Name of the setting: its fields, joined by dots.
    pub(crate) fn name(&self) -> String {
        self.pointer.trim_start_matches('/').replace('/', ".").replace("~1", "/").replace("~0", "~")
    }
}

/// Numbers among the settings of an encoding that may be lengths. A number with a fraction is one if it is above the first of
/// [`CUTS`]; smaller ones are slopes, shares and the like.
pub(crate) fn sizes(config: &EncodingConfig) -> Vec<Size> {
    fn size(pointer: &str, number: &Number) -> Option<Size> {
        let pointer = pointer.to_owned();
        if let Some(value) = number.as_u64() {
            return Some(Size { pointer, value, is_whole: true });
        }
        let value = number.as_f64().filter(|value| *value > CUTS[0] as f64)?.round() as u64;
        Some(Size { pointer, value, is_whole: false })
    }
    fn collect(pointer: &str, value: &Value, sizes: &mut Vec<Size>) {
        match value {
            Value::Number(number) => sizes.extend(size(pointer, number)),
            Value::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    collect(&format!("{pointer}/{at}"), item, sizes);
                }
            }
            Value::Object(fields) => {
                for (key, value) in fields.iter().filter(|(key, _)| *key != "seed") {
                    let key = key.replace('~', "~0").replace('/', "~1");
                    collect(&format!("{pointer}/{key}"), value, sizes);
                }
            }
            _ => {}
        }
    }
    let mut sizes = Vec::new();
    collect("", &Value::Object(config.fields().clone()), &mut sizes);
    sizes
}

/// The encoding with another value of a size; `None` if its settings cannot be read with it.
pub(crate) fn with_size(
    config: &EncodingConfig,
    size: &Size,
    value: u64,
) -> Option<EncodingConfig> {
    let mut fields = Value::Object(config.fields().clone());
    *fields.pointer_mut(&size.pointer)? =
        if size.is_whole { value.into() } else { (value as f64).into() };
    match fields {
        Value::Object(fields) => config.reread(fields).ok(),
        _ => None,
    }
}

/// Sizes to which larger ones are cut, the preferred first. Windows and lengths from which on an encoding changes should be
/// shorter than the sequences of the probe; a number of positions must reach its longest sequence, and a list of channels
/// its widest head.
const CUTS: [u64; 3] = [24, passes::DIMS.max_len as u64, super::LARGEST_HEAD_DIM as u64];

/// The encoding with sizes that probing can build, each at most as large as in its settings, and dimensions that they suit.
///
/// Settings that no dimensions suit are for sequences shorter than those that probing needs; the default settings then
/// take their place, cut in the same way.
pub(super) fn cut(
    config: &EncodingConfig,
    candidates: &(impl Iterator<Item = Dims> + Clone),
) -> Result<(EncodingConfig, Dims), String> {
    let mut refused = String::new();
    let default = config.reread(Map::new()).ok();
    for config in std::iter::once(config).chain(&default) {
        for limit in CUTS {
            let Some(cut) = cut_to(config, limit) else { continue };
            for dims in candidates.clone() {
                match cut.check(&dims) {
                    Ok(()) => return Ok((lowered(cut, &dims), dims)),
                    Err(error) => refused = error.to_string(),
                }
            }
        }
    }
    Err(format!("its settings accept none of the sizes used for probing: {refused}"))
}

/// Whole numbers of the settings above a limit. The others are the lengths of no table.
fn whole_above(config: &EncodingConfig, limit: u64) -> impl Iterator<Item = Size> + use<> {
    sizes(config).into_iter().filter(move |size| size.is_whole && size.value > limit)
}

/// The encoding with every whole number above `limit` cut to it.
fn cut_to(config: &EncodingConfig, limit: u64) -> Option<EncodingConfig> {
    let mut large = whole_above(config, limit);
    large.try_fold(config.clone(), |config, size| with_size(&config, &size, limit))
}

/// The encoding with each whole number cut to the first of [`CUTS`] where its check accepts that.
fn lowered(config: EncodingConfig, dims: &Dims) -> EncodingConfig {
    whole_above(&config, CUTS[0]).fold(config, |config, size| {
        let lower = with_size(&config, &size, CUTS[0]);
        lower.filter(|lower| lower.check(dims).is_ok()).unwrap_or(config)
    })
}

/// Settings at which an encoding's sizes act.
#[derive(Debug, Clone)]
pub(crate) struct Acting {
    /// The encoding; sizes that had no effect are replaced by smaller ones that have one.
    pub(crate) config: EncodingConfig,
    /// Whole numbers that have no effect at any number that was tried.
    pub(crate) without_effect: Vec<Size>,
}

/// Values that are tried in place of a size without effect, the largest first.
const SMALLER: [u64; 7] = [12, 8, 5, 4, 3, 2, 1];

/// Finds settings at which every size changes the outputs of a stack of layers over `tokens` tokens, the embeddings or
/// the positions when it is changed by a little.
pub(crate) fn acting(config: &EncodingConfig, dims: &Dims, tokens: usize) -> Acting {
    let observer = Observer { dims, tokens };
    let mut acting = Acting { config: config.clone(), without_effect: sizes(config) };
    if !acting.without_effect.is_empty() && observer.observed(config).is_none() {
        return Acting { without_effect: Vec::new(), ..acting };
    }
    // A size may act only once another one does.
    loop {
        let without_effect = acting.without_effect.len();
        acting = observer.each_lowered(acting);
        if acting.without_effect.is_empty() || acting.without_effect.len() == without_effect {
            break;
        }
    }
    // Initial values have no effect here: the observed parameters are random.
    acting.without_effect.retain(|size| size.is_whole);
    if !acting.without_effect.is_empty()
        && let Some(config) = observer.lowered_together(&acting)
    {
        acting = Acting { config, without_effect: Vec::new() };
    }
    acting
}

/// Sizes of the passes in which effects are observed.
struct Observer<'a> {
    dims: &'a Dims,
    tokens: usize,
}

impl Observer<'_> {
    /// Lowers the sizes without effect one after the other, where that gives them one.
    fn each_lowered(&self, Acting { mut config, without_effect }: Acting) -> Acting {
        let mut remaining = Vec::new();
        for size in without_effect {
            let lowered = std::iter::once(size.value).chain(smaller(&size)).find_map(|value| {
                let lowered = with_size(&config, &size, value)?;
                self.acts(&lowered, &Size { value, ..size.clone() }).then_some(lowered)
            });
            match lowered {
                Some(lowered) => config = lowered,
                None => remaining.push(size),
            }
        }
        Acting { config, without_effect: remaining }
    }

    /// Lowers the sizes without effect together, where each of them then has one: alone, with one of the other sizes, or with
    /// all of them. Some sizes must be a little larger than others.
    fn lowered_together(
        &self,
        Acting { config, without_effect }: &Acting,
    ) -> Option<EncodingConfig> {
        let remains =
            |size: &Size| without_effect.iter().any(|other| other.pointer == size.pointer);
        let all = sizes(config);
        let others = || all.iter().filter(|size| !remains(size)).map(|size| &size.pointer);
        let mut groups = vec![Vec::new(), others().collect::<Vec<_>>()];
        groups.extend(others().map(|other| vec![other]));
        let limits = SMALLER.into_iter().flat_map(|limit| [0, 1, 2].map(|by| (limit, limit + by)));
        let mut choices = limits.flat_map(|limits| groups.iter().map(move |group| (limits, group)));
        choices.find_map(|((limit, of_remaining), group)| {
            let lowered = all.iter().map(|size| {
                let limit = match (remains(size), group.contains(&&size.pointer)) {
                    (true, _) => of_remaining,
                    (false, true) => limit,
                    (false, false) => u64::MAX,
                };
                Size { value: size.value.min(limit), ..size.clone() }
            });
            let lowered = lowered.collect::<Vec<_>>();
            let config = lowered
                .iter()
                .try_fold(config.clone(), |config, size| with_size(&config, size, size.value))?;
            let mut remaining = lowered.iter().filter(|size| remains(size));
            remaining.all(|size| self.acts(&config, size)).then_some(config)
        })
    }

    /// Whether a small change of a size changes what is observed; true as well if no size near it can be built, false if the
    /// settings themselves cannot.
    fn acts(&self, config: &EncodingConfig, size: &Size) -> bool {
        let Some(plain) = self.observed(config) else { return false };
        // Some sizes must be even.
        let near = [1, -1, 2].map(|by| size.value.checked_add_signed(by));
        // Single precision does not tell large numbers apart from their neighbours.
        let far = (!size.is_whole).then(|| size.value.checked_add(size.value / 8));
        let mut others = near.into_iter().flatten().chain(far.flatten()).filter_map(|value| {
            let config = with_size(config, size, value)?;
            self.observed(&config)
        });
        others.next().is_none_or(|first| first != plain || others.any(|other| other != plain))
    }

    /// Outputs of a stack of layers, embeddings, positions and their limit, with random parameters; `None` if the settings
    /// are refused or a hook panics.
    fn observed(&self, config: &EncodingConfig) -> Option<Vec<f64>> {
        catch_unwind(AssertUnwindSafe(|| self.observe(config))).ok()?
    }

    fn observe(&self, config: &EncodingConfig) -> Option<Vec<f64>> {
        let Self { dims, tokens } = *self;
        config.check(dims).ok()?;
        let device = device();
        let encoding = config.build(dims, &mut ChaCha8Rng::seed_from_u64(7), &device).ok()?;
        let encoding = randomise_each(encoding);
        let hooks = encoding.hooks();
        let at = match hooks.max_len() {
            Some(limit) => Positions::contiguous(0, tokens.min(limit)),
            None => Positions::contiguous(0, tokens),
        };
        let problem = Problem::random(1, at.cols().len(), dims, 31);
        let mut seen = numbers(passes::embedded(hooks, &problem, &at, &device));
        let (outputs, carried) = passes::stack(hooks, &problem, &at, dims.layers, &device);
        seen.extend(outputs.into_iter().chain(carried.tensors).flat_map(numbers));
        seen.extend(hooks.max_len().map(|limit| limit as f64));
        for seed in [None, Some(1), Some(2), Some(3), Some(4)] {
            let mut rng = ChaCha8Rng::seed_from_u64(seed.unwrap_or(0));
            let training_rng = seed.map(|_| &mut rng);
            let request = PositionRequest { cached_tokens: 0, new_tokens: tokens, training_rng };
            let at = hooks.positions(request).ok()?;
            seen.extend(at.cols().iter().map(|position| *position as f64));
        }
        Some(seen)
    }
}

/// Values that are tried in place of a size without effect.
fn smaller(size: &Size) -> impl Iterator<Item = u64> {
    SMALLER.into_iter().filter(move |value| *value < size.value)
}

#[cfg(test)]
mod tests {
    use burn::module::Module;
    use serde_json::json;

    use super::*;
    use crate::{Combination, probe};

    /// Number that no table of the probe reaches.
    const HUGE: u64 = 1_000_000_000;

    /// Every encoding at its defaults and at settings of every kind, each with one whole number replaced by a huge one;
    /// numbers that are left to their default included.
    fn with_a_huge_number() -> Vec<EncodingConfig> {
        let mut huge = Vec::new();
        for config in crate::zoo::tests::examples().flat_map(|encoding| encoding.parts().to_vec()) {
            for size in sizes(&config) {
                huge.extend(with_size(&config, &size, HUGE));
            }
            let absent = config.fields().iter().filter(|(_, value)| value.is_null());
            for (key, _) in absent {
                let mut fields = config.fields().clone();
                fields.insert(key.clone(), json!(HUGE));
                huge.extend(config.reread(fields));
            }
        }
        huge
    }

    #[test]
    fn the_probe_builds_no_table_of_full_size() {
        let huge = with_a_huge_number();
        assert!(huge.len() > 60, "{}", huge.len());
        for config in huge {
            let (small, dims) = probe::sized(&config).unwrap();
            let built = small.build(&dims, &mut ChaCha8Rng::seed_from_u64(0), &device()).unwrap();
            let numbers = built.num_params();
            let (id, fields) = (config.card().id, config.fields());
            assert!(numbers < 200_000, "{id} {fields:?}: {numbers} numbers");
            for size in whole_above(&small, 0) {
                let place = format!("{id} {fields:?}: {} is {}", size.name(), size.value);
                assert!(size.value <= CUTS[CUTS.len() - 1], "{place}");
            }
        }
    }

    #[test]
    fn properties_do_not_depend_on_how_large_a_size_is() {
        for text in [
            "learned-absolute{max_len=NUMBER}",
            "randomized{longest=NUMBER}(fire)",
            "cope{max_positions=NUMBER}",
            "window{size=NUMBER}",
            "relative{max_distance=NUMBER}",
            "t5-bias{max_distance=NUMBER}",
        ] {
            let properties = |number: &str| {
                Combination::parse(&text.replace("NUMBER", number)).unwrap().properties().unwrap()
            };
            assert_eq!(properties("1000000000"), properties("64"), "{text}");
        }
    }
}
