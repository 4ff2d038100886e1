//! Weights in `model.safetensors`, whole or in shards with an index.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use burn::tensor::{DType, TensorData};
use safetensors::tensor::{Dtype, Metadata, SafeTensors};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use tasks::FileError;

use super::error;
use super::llama::{EMBEDDING, HEAD, WeightId, WeightSource};
use super::settings::LlamaSettings;
use super::version::WrittenBy;
use train::weights::NamedTensors;

/// Weights in a model's folder.
pub(super) struct ModelFolder {
    path: PathBuf,
    shards: Vec<WeightShard>,
    /// Shard of each weight that has not been taken.
    places: BTreeMap<String, usize>,
    hash: Sha256,
}

struct WeightShard {
    path: PathBuf,
    bytes: Vec<u8>,
    /// Offset of the first weight in the file.
    start: usize,
    header: Metadata,
}

#[derive(Deserialize)]
struct Index {
    weight_map: BTreeMap<String, String>,
}

const WHOLE: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";

/// Advice if the head is missing.
const NO_HEAD: &str = "get the file again, or set `tie_word_embeddings` to true in config.json if the embedding is the head";

/// Suffix of buffers in old checkpoints that are computed from the settings.
const RECOMPUTED: &str = ".rotary_emb.inv_freq";

impl ModelFolder {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let mut folder = Self {
            path: path.to_owned(),
            shards: Vec::new(),
            places: BTreeMap::new(),
            hash: Sha256::new(),
        };
        let index = path.join(INDEX);
        if path.join(WHOLE).exists() || !index.exists() {
            folder.add(WHOLE, None)?;
        } else {
            let text = tasks::read_text(&index)?;
            let Index { weight_map } = serde_json::from_str(&text).map_err(|e| {
                error::damaged(&index, format!("it is not an index of shards: {e}"))
            })?;
            let files = weight_map.values().collect::<BTreeSet<_>>();
            for file in files {
                let plain = Path::new(file).file_name().is_some_and(|name| *name == **file);
                if !plain {
                    let reason =
                        format!("shard `{file}` is not the name of a file in the same folder");
                    return Err(error::damaged(&index, reason));
                }
                folder.add(file, Some(&weight_map))?;
            }
            if let Some(name) = weight_map.keys().find(|name| !folder.places.contains_key(*name)) {
                let reason =
                    format!("it lists `{name}`, which is not in shard `{}`", weight_map[name]);
                return Err(error::damaged(&index, reason));
            }
        }
        folder.places.retain(|name, _| !name.ends_with(RECOMPUTED));
        Ok(folder)
    }

    /// Hash of all weight files, in their order.
    pub(super) fn sha256(&self) -> String {
        records::store::hex(&self.hash.clone().finalize())
    }

    /// Whether the model has a head of its own that differs from the embedding.
    fn has_differing_head(&self) -> bool {
        let stored = |slot: WeightId| {
            let name = slot.hugging_face();
            self.shards[*self.places.get(&name)?].view(&name)
        };
        let [head, embedding] = [HEAD, EMBEDDING].map(stored);
        head.is_some() && head != embedding
    }

    /// Removes the head.
    fn drop_head(&mut self) {
        self.places.remove(&HEAD.hugging_face());
    }

    /// Ties the head to the embedding, as the `config.json` at `path` says, or leaves it untied as version 5 of transformers does if the
    /// two differ; returns what the user must know.
    pub(super) fn tie(
        &mut self,
        path: &Path,
        settings: &mut LlamaSettings,
        written_by: &WrittenBy,
    ) -> Result<Option<String>> {
        if !self.has_differing_head() {
            self.drop_head();
            return Ok(None);
        }
        let what = format!(
            "{}: `tie_word_embeddings` is true, but `lm_head.weight` differs from the embedding",
            path.display()
        );
        if written_by.is_5() {
            settings.model.tied_head = false;
            return Ok(Some(format!(
                "{what}; the head is used, as in transformers 5 (set `tie_word_embeddings` to false)"
            )));
        }
        if written_by.is_known_4() {
            self.drop_head();
            return Ok(Some(format!(
                "{what}; the embedding is used as the head, as in transformers 4 (to use `lm_head.weight`, set \
                 `tie_word_embeddings` to false)"
            )));
        }
        let expected = "false, because `lm_head.weight` differs from the embedding";
        let remedy = "set it to false to use the head, or state `transformers_version`: version 4 uses the \
             embedding, version 5 uses the head";
        let expected = format!("{expected}; {remedy}");
        Err(error::unsuitable(path, "tie_word_embeddings", true, expected))
    }

    /// Removes the weights of the encoding, in f32.
    pub(super) fn take_encoding(&mut self) -> Result<NamedTensors> {
        let mut found = NamedTensors::default();
        let names = self.places.keys().filter(|name| name.starts_with(super::ENCODING));
        for name in names.cloned().collect::<Vec<_>>() {
            let Some(place) = self.places.remove(&name) else { continue };
            let shard = &self.shards[place];
            let (dtype, shape, bytes) = shard.read(&name)?;
            if dtype != Dtype::F32 {
                return Err(shard.wrong_dtype(&name, dtype, "F32"));
            }
            let values = bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
            let values = super::finite(&shard.path, &name, values.collect())?;
            found.insert(name, shape.to_vec(), &values);
        }
        Ok(found)
    }

    fn add(&mut self, file: &str, listed: Option<&BTreeMap<String, String>>) -> Result<()> {
        let path = self.path.join(file);
        let bytes = std::fs::read(&path).map_err(FileError::of("read", &path))?;
        self.hash.update(&bytes);
        let (header_bytes, header) =
            SafeTensors::read_metadata(&bytes).map_err(|e| error::damaged(&path, e))?;
        for name in header.offset_keys() {
            if listed.is_some_and(|map| map.get(&name).is_none_or(|in_file| in_file != file)) {
                let reason = format!("it has `{name}`, which {INDEX} does not list for this shard");
                return Err(error::damaged(&path, reason));
            }
            self.places.insert(name, self.shards.len());
        }
        self.shards.push(WeightShard {
            path,
            bytes,
            start: size_of::<u64>() + header_bytes,
            header,
        });
        Ok(())
    }
}

impl WeightShard {
    /// Returns number format, shape and bytes of a weight.
    fn view(&self, name: &str) -> Option<(Dtype, &[usize], &[u8])> {
        let info = self.header.info(name)?;
        let (from, to) = info.data_offsets;
        let bytes = self.bytes.get(self.start..)?.get(from..to)?;
        Some((info.dtype, &info.shape, bytes))
    }

    fn read(&self, name: &str) -> Result<(Dtype, &[usize], &[u8])> {
        self.view(name).ok_or_else(|| {
            let reason = format!("tensor `{name}` extends beyond the end of the file");
            error::damaged(&self.path, reason)
        })
    }

    fn wrong_dtype(&self, name: &str, dtype: Dtype, expected: &str) -> anyhow::Error {
        let path = self.path.display();
        anyhow!("{path}: tensor `{name}` is {dtype:?}, expected {expected}; convert the model")
    }
}

impl WeightSource for ModelFolder {
    fn path(&self) -> &Path {
        &self.path
    }

    fn take(&mut self, slot: WeightId, shape: &[usize]) -> Result<Vec<f32>> {
        let name = slot.hugging_face();
        let Some(place) = self.places.remove(&name) else {
            let remedy = if slot == HEAD { NO_HEAD } else { "get the file again" };
            return Err(error::missing(&self.path, &name, shape, remedy));
        };
        let shard = &self.shards[place];
        let (dtype, found, bytes) = shard.read(&name)?;
        error::check_shape(&shard.path, &name, shape, found)?;
        let format = match dtype {
            Dtype::F32 => DType::F32,
            Dtype::F16 => DType::F16,
            Dtype::BF16 => DType::BF16,
            Dtype::F64 => DType::F64,
            other => return Err(shard.wrong_dtype(&name, other, "F32, F16, BF16 or F64")),
        };
        // The crate has held the number of bytes against shape and format.
        let data = TensorData::from_bytes_vec(bytes.to_vec(), shape.to_vec(), format);
        let values = data
            .convert::<f32>()
            .try_into_vec::<f32>()
            .map_err(|e| error::damaged(&shard.path, format!("{e:?}")))?;
        super::finite(&self.shards[place].path, &name, values)
    }

    fn left(&self) -> Vec<String> {
        self.places.keys().cloned().collect()
    }
}
