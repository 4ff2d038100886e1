//! Agreement of gates with the tokens that a task counts, over seeds.

use polars::prelude::*;

use super::selection::{Selection, stable};
use crate::frame::rows;
use stats::Mean;

rows! {
    /// Gate score of one head over seeds; see [`records::GateScore`].
    #[derive(Debug, Clone, PartialEq)]
    pub struct GateMean {
        /// Name of the encoding.
        pub encoding: String,
        /// Kind of gate, for example `gates`.
        pub gate: String,
        /// Index of the layer, from 0.
        pub layer: u32,
        /// Index of the head, from 0.
        pub head: u32,
        /// Area under the ROC curve.
        pub auc: Mean,
    }
}

/// Averages gate scores by encoding, kind of gate, layer and head.
///
/// # Errors
/// If the query fails.
pub(super) fn gates(counted: &Selection<'_>) -> PolarsResult<Vec<GateMean>> {
    let by = ["encoding", "gate", "layer", "head"];
    let scores =
        counted.rows(|frames| &frames.gates).group_by_stable(by.map(col)).agg([col("auc")]);
    GateMean::of(scores.sort(by, stable()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Frames;
    use records::GateScore;
    use records::testkit::TestCell;

    #[test]
    fn scores_of_a_head_are_averaged_over_seeds_and_heads_are_kept_apart() {
        let score = |head, auc| GateScore { gate: "gates".into(), layer: 0, head, auc, rows: 9 };
        let record = |seed, auc| {
            let gates = vec![score(0, auc), score(1, 0.5)];
            TestCell::new("w", "cope", seed).change(|r| r.gates = gates).record()
        };
        let records = [record(0, 0.9), record(1, 0.7), TestCell::new("w", "rope", 0).record()];
        let found = gates(&Selection::counted(&Frames::of(&records).unwrap()).unwrap()).unwrap();
        assert_eq!(found.len(), 2);
        assert!((found[0].auc.mean - 0.8).abs() < 1e-12 && found[0].auc.n == 2);
        assert_eq!((found[1].head, found[1].auc.mean), (1, 0.5));
    }
}
