//! The plan: one JSON object a line, each with the `name` of its result and its `what`.
//!
//! ```text
//! {"name": "decay, small tile", "what": "attention", "encoding": "fox", "precision": "bf16", "tile": 1}
//! ```

use std::collections::BTreeSet;

use pe_zoo::device::Choices;
use pe_zoo::model::ActivationKind;
use pe_zoo::ops::MatmulPrecision;
use serde::{Deserialize, Serialize};

/// A line of the plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PlannedWork {
    /// Name of the result.
    pub(crate) name: String,
    /// The measured work.
    #[serde(flatten)]
    pub(crate) work: Work,
}

/// Kind of work that is measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
pub(crate) enum Work {
    /// Forward and backward pass of one layer's attention: device time, largest difference from the f32 kernel of the
    /// launch's own choices, and whether two runs give the same bits.
    Attention(AttentionWork),
    /// Forward and backward pass of a feed-forward network: device time, largest difference from f32 of the output and of
    /// each gradient, and whether two runs give the same bits.
    Network(NetworkWork),
    /// Product `[m, k] x [k, n]`.
    Product(ProductWork),
    /// Time of a training step.
    Step(StepWork),
    /// Kernels of one training step: their number, their time by name, and the time in which none ran.
    Kernels(StepWork),
}

/// Attention of one layer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct AttentionWork {
    pub(crate) encoding: String,
    pub(crate) precision: MatmulPrecision,
    pub(crate) batch: usize,
    pub(crate) len: usize,
    pub(crate) heads: usize,
    /// Width of a head.
    pub(crate) width: usize,
    pub(crate) repeats: usize,
    /// Index of the tile, of which 0 is the largest; absent: the launch's own choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tile: Option<usize>,
    /// Cubes of the backward pass for each multiprocessor; absent: the launch's own choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cubes_each: Option<usize>,
    /// Largest number of groups of 16 rows that a plane owns in the kernels on `mma.sync`; absent: the launch's own choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) row_groups: Option<usize>,
    /// Whether products may use the tensor instructions of the H100 and H200.
    pub(crate) warpgroups: Option<bool>,
}

impl Default for AttentionWork {
    fn default() -> Self {
        Self {
            encoding: "rope".to_owned(),
            precision: MatmulPrecision::F32,
            batch: 16,
            len: 2048,
            heads: 16,
            width: 64,
            repeats: 3,
            tile: None,
            cubes_each: None,
            row_groups: None,
            warpgroups: None,
        }
    }
}

impl AttentionWork {
    /// The same sizes in f32, with the launch's own choices.
    pub(crate) fn reference(&self) -> Self {
        Self {
            precision: MatmulPrecision::F32,
            tile: None,
            cubes_each: None,
            row_groups: None,
            warpgroups: None,
            ..self.clone()
        }
    }

    pub(crate) fn choices(&self) -> Choices {
        let Self { tile, cubes_each, row_groups, warpgroups, .. } = *self;
        Choices { tile, cubes_each, row_groups, warpgroups }
    }
}

/// A feed-forward network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NetworkWork {
    pub(crate) rows: usize,
    pub(crate) width: usize,
    /// Width after the activation.
    pub(crate) hidden: usize,
    pub(crate) activation: ActivationKind,
    #[serde(default)]
    pub(crate) precision: MatmulPrecision,
}

impl NetworkWork {
    /// Width before the activation.
    pub(crate) fn between(&self) -> usize {
        if self.activation == ActivationKind::SwiGlu { 2 * self.hidden } else { self.hidden }
    }
}

/// A product of matrices.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProductWork {
    pub(crate) m: usize,
    pub(crate) k: usize,
    pub(crate) n: usize,
    /// Whether the left factor is stored as `[k, m]`, as in the gradient of a weight.
    #[serde(default)]
    pub(crate) left_transposed: bool,
    /// Whether the right factor is stored as `[n, k]`, as in the gradient of an input.
    #[serde(default)]
    pub(crate) right_transposed: bool,
    #[serde(default)]
    pub(crate) precision: MatmulPrecision,
    /// Whether the product is that of pe-zoo's kernel for linear maps, of bf16, in place of Burn's.
    #[serde(default)]
    pub(crate) mma: bool,
    /// Whether that kernel may use the tensor instructions of the H100 and H200.
    #[serde(default)]
    pub(crate) warpgroups: Option<bool>,
}

/// A training step of the model of `pe-bench speed`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct StepWork {
    pub(crate) encoding: String,
    pub(crate) precision: MatmulPrecision,
    pub(crate) batch: usize,
    pub(crate) len: usize,
    pub(crate) dim: usize,
    pub(crate) heads: usize,
    pub(crate) layers: usize,
    pub(crate) vocab: usize,
    pub(crate) steps: usize,
}

impl Default for StepWork {
    fn default() -> Self {
        Self {
            encoding: "rope".to_owned(),
            precision: MatmulPrecision::F32,
            batch: 32,
            len: 2048,
            dim: 512,
            heads: 8,
            layers: 4,
            vocab: 64,
            steps: 5,
        }
    }
}

/// Parses a plan.
///
/// # Errors
///
/// Number of the line, and what is wrong with it.
pub(crate) fn parse(text: &str) -> Result<Vec<PlannedWork>, String> {
    let mut names = BTreeSet::new();
    let lines = text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty());
    lines
        .map(|(line, number)| {
            let planned: PlannedWork =
                serde_json::from_str(line).map_err(|error| format!("{number}: {error}"))?;
            if !names.insert(planned.name.clone()) {
                return Err(format!("{number}: a second line named `{}`", planned.name));
            }
            Ok(planned)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plan_of_the_repository_can_be_read() {
        let plan = parse(include_str!("../../../../ci/gpu/lab.jsonl")).expect("a plan");
        assert!(plan.len() >= 20);
        let ids = train::encodings::ids();
        for PlannedWork { name, work } in plan {
            let (Work::Attention(AttentionWork { encoding, .. })
            | Work::Step(StepWork { encoding, .. })
            | Work::Kernels(StepWork { encoding, .. })) = work
            else {
                continue;
            };
            assert!(ids.contains(&encoding), "{name}: {encoding}");
        }
    }

    #[test]
    fn a_line_that_cannot_be_read_is_refused_with_its_number() {
        let product = r#"{"name": "a", "what": "product", "m": 1, "k": 2, "n": 3}"#;
        for (line, part) in [
            (r#"{"name": "b", "what": "attention", "lenn": 3}"#, "2: unknown field `lenn`"),
            (r#"{"name": "b", "what": "prodct"}"#, "2: unknown variant `prodct`"),
            (r#"{"name": "b", "what": "product", "m": 1}"#, "2: missing field `k`"),
            (r#"{"what": "attention"}"#, "2: missing field `name`"),
            (product, "2: a second line named `a`"),
        ] {
            let error = parse(&format!("{product}\n{line}")).expect_err(line);
            assert!(error.contains(part), "{error}");
        }
    }
}
