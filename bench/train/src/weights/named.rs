//! Tensors by name, in memory and in safetensors files.

use std::collections::BTreeMap;
use std::fmt::Display;

use anyhow::Result;
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};

/// Shape and bytes of a stored tensor.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Stored {
    pub(super) dims: Vec<usize>,
    /// Little-endian f32 in row-major order.
    pub(super) bytes: Vec<u8>,
}

impl Stored {
    pub(super) fn text(&self, name: &str) -> String {
        format!("`{name}` {:?}", self.dims)
    }
}

/// Tensors and other data of a safetensors file, by name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NamedTensors {
    pub(super) tensors: BTreeMap<String, Stored>,
    /// Data that are not tensors, by name.
    blobs: BTreeMap<String, Vec<u8>>,
}

impl NamedTensors {
    /// Reads a safetensors file.
    ///
    /// # Errors
    ///
    /// If the bytes are not safetensors, or hold another element type.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let file = SafeTensors::deserialize(bytes).map_err(malformed)?;
        let mut read = Self::default();
        for (name, view) in file.tensors() {
            let bytes = view.data().to_vec();
            match view.dtype() {
                Dtype::F32 => {
                    read.tensors.insert(name, Stored { dims: view.shape().to_vec(), bytes });
                }
                Dtype::U8 => {
                    read.blobs.insert(name, bytes);
                }
                other => {
                    return Err(malformed(format!(
                        "tensor `{name}` has type {other:?}, expected F32 or U8"
                    )));
                }
            }
        }
        Ok(read)
    }

    /// Serializes the tensors as a safetensors file.
    ///
    /// # Errors
    ///
    /// If there are more than the format can hold.
    pub fn bytes(&self) -> Result<Vec<u8>> {
        let tensors = self.tensors.iter().map(|(name, Stored { dims, bytes })| {
            Ok((name, TensorView::new(Dtype::F32, dims.clone(), bytes).map_err(malformed)?))
        });
        let blobs = self.blobs.iter().map(|(name, bytes)| {
            Ok((name, TensorView::new(Dtype::U8, vec![bytes.len()], bytes).map_err(malformed)?))
        });
        let views = tensors.chain(blobs).collect::<Result<Vec<_>>>()?;
        // Readers of transformers ask for this entry.
        let about = [("format".to_owned(), "pt".to_owned())];
        safetensors::serialize(views, Some(about.into_iter().collect())).map_err(malformed)
    }

    /// Names and shapes of the tensors, sorted by name.
    pub fn shapes(&self) -> impl Iterator<Item = (&str, &[usize])> {
        self.tensors.iter().map(|(name, stored)| (name.as_str(), &stored.dims[..]))
    }

    /// Values of a tensor in row-major order; `None` if there is no such tensor.
    pub fn values(&self, name: &str) -> Option<Vec<f32>> {
        Some(floats(&self.tensors.get(name)?.bytes))
    }

    /// Adds a tensor of f32 values.
    pub fn insert(&mut self, name: String, dims: Vec<usize>, values: &[f32]) {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.tensors.insert(name, Stored { dims, bytes });
    }

    /// Tensors whose names `rename` maps to others; those without a new name are left out.
    #[must_use]
    pub fn renamed(&self, rename: impl Fn(&str) -> Option<String>) -> Self {
        let tensors = self.tensors.iter();
        let tensors = tensors.filter_map(|(name, stored)| Some((rename(name)?, stored.clone())));
        Self { tensors: tensors.collect(), blobs: BTreeMap::new() }
    }

    pub(crate) fn blob(&self, name: &str) -> Option<&[u8]> {
        self.blobs.get(name).map(Vec::as_slice)
    }

    pub(crate) fn insert_blob(&mut self, name: &str, bytes: Vec<u8>) {
        self.blobs.insert(name.to_owned(), bytes);
    }
}

pub(super) fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
}

fn malformed(reason: impl Display) -> anyhow::Error {
    anyhow::anyhow!("this is not a file of f32 weights: {reason}")
}
