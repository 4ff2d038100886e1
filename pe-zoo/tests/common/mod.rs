//! Two modifiers that are not in the library, written as their users would write them.

use pe_zoo::score::{Number, Pair, PairTerm};

/// KERPLE's power kernel with a learned temperature:
/// `temperature[h] * q.k / sqrt(D) - a[h] * distance^p[h]` (Chi et al. 2022, arXiv:2205.09921, eq. 4).
#[derive(Debug, Clone)]
pub(crate) struct KerplePower;

impl PairTerm<3> for KerplePower {
    #[inline(always)]
    fn value<N: Number>(&self, pair: Pair<N, 3>) -> N {
        let [temperature, a, power] = pair.params;
        temperature * pair.content - a * pair.distance.pow(power)
    }
}

/// CABLE: `q.k / sqrt(D) + b_i - b_j` with `b` the running sum of `-softplus(w_h . x)` over the tokens
/// (Veisi et al. 2025, arXiv:2503.08067; the authors' `Cable.py`).
#[derive(Debug, Clone)]
pub(crate) struct Cable;

impl PairTerm<0, 1> for Cable {
    #[inline(always)]
    fn value<N: Number>(&self, pair: Pair<N, 0, 1>) -> N {
        pair.content + pair.row[0] - pair.column[0]
    }
}
