//! The figures of a report, each module for one subject.

pub(crate) mod cost;
pub(crate) mod forest;
pub(crate) mod lengths;
mod matrix;
pub(crate) mod overall;
mod panels;
pub(crate) mod seeds;
pub(crate) mod series;
pub(crate) mod size;
pub(crate) mod slices;
pub(crate) mod tasks;
pub(crate) mod training;

/// Note on the marks of all figures.
pub(crate) const LEGEND: &str = "Figures: means over seeds; bars are 95% confidence intervals, clipped at the frame. An \
    encoding has the same colour, mark and dash in every figure and every report; related encodings share a colour.";

#[cfg(test)]
mod tests;
