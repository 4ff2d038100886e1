//! Observation of a forward pass: attention weights and traces of the encoding.

use anyhow::Result;
use burn::tensor::{Device, Int, Tensor};
use pe_zoo::Positions;
use pe_zoo::attention::{Trace, TraceKind, Weights};
use tasks::{Batch, Sample};

use crate::run::scored::{Scored, read, reused};
use pe_zoo::model::{Decoder, Dropout};

/// Quantity that is observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Look {
    /// Attention weights of the layer.
    Attention,
    /// Trace of the encoding.
    Trace(TraceKind),
    /// Attention of positions alone, computed from traces.
    PositionsAlone,
}

impl Look {
    /// Name of the quantity in files.
    pub fn id(self) -> &'static str {
        match self {
            Self::Attention => "attention",
            Self::Trace(kind) => kind.id(),
            Self::PositionsAlone => "positions-alone",
        }
    }

    /// Name shown to readers.
    pub fn label(self) -> &'static str {
        match self {
            Self::Attention => "attention weights",
            Self::Trace(kind) => kind.label(),
            Self::PositionsAlone => "attention of positions alone",
        }
    }
}

/// One quantity of one layer on one sample.
#[derive(Debug, Clone, PartialEq)]
pub struct AttentionMap {
    /// Quantity that the map shows.
    pub look: Look,
    /// Values by head, row and column. Row `i` has `i + 1` columns; a quantity per column has one row with all columns.
    pub heads: Vec<Vec<Vec<f32>>>,
}

impl AttentionMap {
    /// Whether the quantity depends only on the column.
    pub fn is_of_columns(&self) -> bool {
        self.look == Look::Trace(TraceKind::Forgetting)
    }

    /// Values of a row at the columns up to `end`.
    pub(super) fn row(&self, head: usize, row: usize, end: usize) -> &[f32] {
        let row = if self.is_of_columns() { 0 } else { row };
        &self.heads[head][row][..end]
    }
}

/// Maps of one sample by layer, attention weights first.
#[derive(Debug, Clone, PartialEq)]
pub struct Observed {
    /// Maps of each layer.
    pub layers: Vec<Vec<AttentionMap>>,
}

/// Observes a model on samples, each in a batch of its own, because padding would be visible.
///
/// # Errors
/// If the encoding refuses the positions.
pub fn observe(
    model: &Decoder,
    id: &str,
    samples: &[Sample],
    device: &Device,
) -> Result<Vec<Observed>> {
    let mut last_at = None;
    let mut seen = Vec::with_capacity(samples.len());
    for sample in samples {
        let batch = Batch::collate(std::slice::from_ref(sample));
        let at = reused(&mut last_at, model.positions(id, 0, batch.len)?);
        seen.push(observe_at(model, Scored::of(&batch, device).inputs, &at)?);
    }
    Ok(seen)
}

/// Observes a model on one sequence of tokens, `[1, T]`, at the given positions.
///
/// # Errors
/// If a map cannot be read back from the device.
pub fn observe_at(model: &Decoder, inputs: Tensor<2, Int>, at: &Positions) -> Result<Observed> {
    let pass = model.forward(inputs, at, None, Dropout::off(), Weights::Explain);
    let layers = pass.weights.into_iter().zip(pass.traces).map(|(weights, traces)| {
        let [_one, heads, tokens, _columns] = weights.dims();
        let mut maps = vec![map(Look::Attention, weights, heads, tokens)?];
        for Trace { kind, values } in traces {
            maps.push(map(Look::Trace(kind), values, heads, tokens)?);
        }
        Ok(maps)
    });
    Ok(Observed { layers: layers.collect::<Result<_>>()? })
}

fn map(look: Look, values: Tensor<4>, heads: usize, tokens: usize) -> Result<AttentionMap> {
    let [_one, _heads, rows, columns] = values.dims();
    let values = read(values.expand([1, heads, rows, columns]))?;
    let row =
        |(i, row): (usize, &[f32])| row[..if rows < tokens { columns } else { i + 1 }].to_vec();
    let heads = values
        .chunks(rows * columns)
        .map(|head| head.chunks(columns).enumerate().map(row).collect())
        .collect();
    Ok(AttentionMap { look, heads })
}
