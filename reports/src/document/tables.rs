//! The tables of a report.

mod claims;
mod common;
mod costs;
mod evaluations;
mod gates;
mod grid;
mod headline;
mod improvements;
mod leaders;
mod paper;
mod provenance;
mod question;
mod ranks;
mod records;
mod summary;

pub use self::claims::claims;
pub use self::costs::{costs, flops, measured};
pub use self::evaluations::evaluations;
pub use self::gates::gates;
pub(crate) use self::grid::grid;
pub use self::headline::headline;
pub use self::improvements::improvements;
pub(crate) use self::improvements::{
    explained as improvement_explained, improvement, legend as improvement_legend,
};
pub(crate) use self::leaders::leaders;
pub use self::paper::{LayoutError, PaperLayout, Spread, paper};
pub use self::provenance::provenance;
pub use self::question::question;
pub use self::ranks::ranks;
pub(crate) use self::ranks::{MOST_EFFECT, ablation, best, run_metrics};
pub use self::records::{cells, groups, not_counted, skipped_evaluations};
pub use self::summary::{prices, summary};
