//! Files of samples: arrays of NumPy, a Parquet table, or JSON Lines.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;

use polars::prelude::{Column, DataFrame, NamedFrom as _, ParquetWriter, Series};
use tasks::{Sample, Task};
use train::run::evaluate::chance;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::json_of;

/// SampleFormat of a file, by its ending.
#[derive(Clone, Copy)]
pub(super) enum SampleFormat {
    /// Arrays `tokens` and `scored`, `[samples, longest]`, and `lengths`; tokens after the end of a sample are 0.
    Npz,
    /// One row a sample, with lists of tokens.
    Parquet,
    /// One JSON object a sample.
    JsonLines,
}

impl SampleFormat {
    /// # Errors
    /// Another ending than those of the formats.
    pub(super) fn of(path: &Path) -> anyhow::Result<Self> {
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("npz") => Ok(Self::Npz),
            Some("parquet") => Ok(Self::Parquet),
            Some("jsonl") => Ok(Self::JsonLines),
            _ => anyhow::bail!(
                "--out is {}, expected a file that ends with .npz, .parquet or .jsonl",
                path.display()
            ),
        }
    }

    pub(super) fn write(
        self,
        path: &Path,
        task: &dyn Task,
        samples: &[Sample],
    ) -> anyhow::Result<()> {
        match self {
            Self::Npz => arrays(path, task, samples),
            Self::Parquet => table(path, samples),
            Self::JsonLines => {
                let mut file = BufWriter::new(File::create(path)?);
                for sample in samples {
                    writeln!(file, "{}", json_of(task, sample))?;
                }
                Ok(file.flush()?)
            }
        }
    }
}

/// Writes an archive of one file an array.
fn arrays(path: &Path, task: &dyn Task, samples: &[Sample]) -> anyhow::Result<()> {
    let longest = samples.iter().map(|sample| sample.tokens.len()).max().unwrap_or(0);
    let (count, rows) = ([samples.len()], [samples.len(), longest]);
    let mut tokens = vec![0; samples.len() * longest];
    let mut scored = vec![0_u8; samples.len() * longest];
    for (row, sample) in samples.iter().enumerate() {
        for (column, (token, is_scored)) in sample.tokens.iter().zip(&sample.scored).enumerate() {
            tokens[row * longest + column] = i64::from(*token);
            scored[row * longest + column] = u8::from(*is_scored);
        }
    }
    let mut file = ZipWriter::new(BufWriter::new(File::create(path)?));
    array(&mut file, "tokens", "<i8", &rows, &bytes(tokens))?;
    array(&mut file, "scored", "|b1", &rows, &scored)?;
    let lengths = samples.iter().map(|sample| sample.tokens.len() as i64);
    array(&mut file, "lengths", "<i8", &count, &bytes(lengths))?;
    for (at, name) in names(samples).enumerate() {
        let values = samples.iter().map(|sample| i64::from(sample.slices[at].1));
        array(&mut file, name, "<i8", &count, &bytes(values))?;
    }
    let chance = chance(task.meta().headline, samples).unwrap_or(f64::NAN);
    array(&mut file, "chance", "<f8", &[], &chance.to_le_bytes())?;
    array(&mut file, "vocab_size", "<i8", &[], &bytes([task.vocab_size() as i64]))?;
    file.finish()?.flush()?;
    Ok(())
}

fn bytes(values: impl IntoIterator<Item = i64>) -> Vec<u8> {
    values.into_iter().flat_map(i64::to_le_bytes).collect()
}

/// Writes an array in version 1.0 of NumPy's format; `kind` is NumPy's name of the type.
fn array(
    file: &mut ZipWriter<BufWriter<File>>,
    name: &str,
    kind: &str,
    shape: &[usize],
    bytes: &[u8],
) -> anyhow::Result<()> {
    // The data begin at a multiple of 64 bytes.
    let sizes = shape.iter().map(|size| size.to_string() + ", ").collect::<String>();
    let head = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({sizes}), }}");
    let length = (head.len() + 11).next_multiple_of(64) - 10;
    file.start_file(
        format!("{name}.npy"),
        SimpleFileOptions::default().compression_method(CompressionMethod::Stored),
    )?;
    file.write_all(b"\x93NUMPY\x01\x00")?;
    file.write_all(&u16::try_from(length)?.to_le_bytes())?;
    writeln!(file, "{head:<width$}", width = length - 1)?;
    file.write_all(bytes)?;
    Ok(())
}

fn table(path: &Path, samples: &[Sample]) -> anyhow::Result<()> {
    analysis::threads::check()?;
    let tokens = samples.iter().map(|sample| Series::new("".into(), &sample.tokens));
    let scored = samples.iter().map(|sample| Series::new("".into(), &sample.scored));
    let mut columns = vec![
        Column::new("tokens".into(), tokens.collect::<Vec<_>>()),
        Column::new("scored".into(), scored.collect::<Vec<_>>()),
    ];
    for (at, name) in names(samples).enumerate() {
        let values = samples.iter().map(|sample| sample.slices[at].1).collect::<Vec<_>>();
        columns.push(Column::new(name.into(), values));
    }
    let mut frame = DataFrame::new(samples.len(), columns)?;
    ParquetWriter::new(File::create(path)?).finish(&mut frame)?;
    Ok(())
}

/// Names of the properties, which all samples of a task share.
fn names(samples: &[Sample]) -> impl Iterator<Item = &'static str> {
    samples.first().into_iter().flat_map(|sample| sample.slices.iter().map(|(name, _)| *name))
}
