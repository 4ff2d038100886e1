//! Encodings of the layers of a Llama-type model, from the fields of its `config.json`: the rotation of each layer, or none, and
//! its window.

use std::path::Path;

use anyhow::Result;
use pe_zoo::settings::NoSettings;
use pe_zoo::zoo::layers::of_layers;
use pe_zoo::zoo::logit_cap::{LogitCap, LogitCapConfig};
use pe_zoo::zoo::nope::Nope;
use pe_zoo::zoo::rope::{Rope, RopeConfig};
use pe_zoo::zoo::window::{AttentionWindow, WindowConfig};
use pe_zoo::{Combination, EncodingConfig};

use super::error;
use super::kinds::Windows;

/// Kind of a layer that sees all tokens before it.
pub(super) const FULL: &str = "full_attention";
/// Kind of a layer with a window.
pub(super) const SLIDING: &str = "sliding_attention";

/// Fields of `config.json` that tell layers apart.
pub(super) struct LayerFields<'a> {
    /// Layers with a window of the type of the model.
    pub(super) windows: Windows,
    /// `num_hidden_layers`.
    pub(super) layers: usize,
    /// `layer_types`: the kind of each layer.
    pub(super) types: Option<&'a [String]>,
    /// `max_window_layers`: number of the first layers without a window.
    pub(super) max_window_layers: usize,
    /// `sliding_window_pattern`: every so many layers, one has no window.
    pub(super) window_pattern: Option<usize>,
    /// `no_rope_layers`: 1 for a layer with a rotation, 0 for one without a position encoding.
    pub(super) no_rope_layers: Option<&'a [u8]>,
    /// `no_rope_layer_interval`: every so many layers, one has no position encoding.
    pub(super) no_rope_layer_interval: usize,
}

/// Parts of the encodings of the layers of a model.
pub(super) struct LayerParts {
    /// Rotation of the layers that see all tokens.
    pub(super) full: RopeConfig,
    /// Rotation of the layers with a window.
    pub(super) windowed: RopeConfig,
    /// Size of the window.
    pub(super) window: Option<usize>,
    /// Bound of the logits of all layers.
    pub(super) cap: Option<f64>,
}

impl LayerFields<'_> {
    /// Encoding of the model with these parts; `None` if it is the rotation of full attention in every layer.
    pub(super) fn encoding(
        &self,
        path: &Path,
        LayerParts { full, windowed: turned, window, cap }: &LayerParts,
    ) -> Result<Option<Combination>> {
        let (rotated, windowed) = (self.rotated(path)?, self.windowed(path)?);
        let of_layer = |(is_rotated, is_windowed): (bool, bool)| -> Result<Combination> {
            let rope = if is_windowed { turned } else { full };
            let window = window.filter(|_| is_windowed).map(|size| WindowConfig { size });
            let window = window.map(EncodingConfig::of::<AttentionWindow>).transpose()?;
            let cap = cap.map(|cap| LogitCapConfig { cap });
            let cap = cap.map(EncodingConfig::of::<LogitCap>).transpose()?;
            let mut parts: Vec<EncodingConfig> = window.into_iter().chain(cap).collect();
            if is_rotated {
                parts.push(EncodingConfig::of::<Rope>(rope.clone())?);
            } else if parts.is_empty() {
                parts.push(EncodingConfig::of::<Nope>(NoSettings::default())?);
            }
            Ok(Combination::new(parts)?)
        };
        let layers = rotated.into_iter().zip(windowed).map(of_layer);
        let encoding = of_layers(&layers.collect::<Result<Vec<_>>>()?)?;
        let plain = Combination::try_from(EncodingConfig::of::<Rope>(full.clone())?)?;
        Ok((encoding != plain).then_some(encoding))
    }

    /// Whether any layer has the window.
    pub(super) fn has_window(&self, path: &Path) -> Result<bool> {
        Ok(self.windowed(path)?.contains(&true))
    }

    /// Whether each layer has a rotation: all have one, except where those without one have the windows.
    fn rotated(&self, path: &Path) -> Result<Vec<bool>> {
        if self.windows != Windows::Unrotated {
            return Ok(vec![true; self.layers]);
        }
        match self.no_rope_layers {
            None => {
                let interval =
                    above_0(path, "no_rope_layer_interval", self.no_rope_layer_interval)?;
                Ok((1..=self.layers).map(|layer| !layer.is_multiple_of(interval)).collect())
            }
            // A longer list is that of a larger model.
            Some(rotated) if rotated.len() >= self.layers => {
                Ok(rotated[..self.layers].iter().map(|layer| *layer != 0).collect())
            }
            Some(rotated) => Err(self.uneven(path, "no_rope_layers", "number", rotated.len())),
        }
    }

    /// Whether each layer has the window, if the model has one: as `layer_types` states for the types of models that have it,
    /// otherwise by their defaults.
    fn windowed(&self, path: &Path) -> Result<Vec<bool>> {
        let layers = 0..self.layers;
        let by_default: Vec<bool> = match self.windows {
            Windows::None => return Ok(vec![false; self.layers]),
            Windows::All => return Ok(vec![true; self.layers]),
            Windows::Last => layers.map(|layer| layer >= self.max_window_layers).collect(),
            Windows::AllBut(interval) => {
                let interval = self.window_pattern.unwrap_or(interval);
                let interval = above_0(path, "sliding_window_pattern", interval)?;
                layers.map(|layer| !(layer + 1).is_multiple_of(interval)).collect()
            }
            Windows::Unrotated => self.rotated(path)?.into_iter().map(|rotated| !rotated).collect(),
        };
        let Some(types) = self.types else { return Ok(by_default) };
        if types.len() != self.layers {
            return Err(self.uneven(path, "layer_types", "kind", types.len()));
        }
        let is_windowed = |kind: &String| match kind.as_str() {
            FULL => Ok(false),
            SLIDING => Ok(true),
            other => {
                let expected = format!("\"{FULL}\" and \"{SLIDING}\" only");
                Err(error::unsupported(path, "layer_types", format!("\"{other}\""), expected))
            }
        };
        types.iter().map(is_windowed).collect()
    }

    /// Error for a list whose length is not the number of layers.
    fn uneven(&self, path: &Path, field: &str, what: &str, found: usize) -> anyhow::Error {
        let expected = format!("a {what} for each of the {} layers", self.layers);
        let found = format!("a list of {}", records::number::count(found as u64, "value"));
        error::unsupported(path, field, found, expected)
    }
}

/// Returns the number of layers after which a pattern repeats, if it is one.
fn above_0(path: &Path, field: &str, interval: usize) -> Result<usize> {
    if interval == 0 {
        return Err(error::unsupported(path, field, interval, "a number above 0"));
    }
    Ok(interval)
}
