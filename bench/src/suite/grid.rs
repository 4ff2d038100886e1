//! Grid of learning rates: each cell runs once per rate, with the same rates for all encodings.

use reports::GridPoint;

use crate::experiment::TrainConfig;

/// Setting that the grid varies, as a path into a cell's configuration.
pub const AXIS: &str = "train.optimizer.learning_rate";

/// Training settings for each rate, with the grid point; the given settings if there is no grid.
///
/// # Errors
/// Message, if a rate is not positive, is listed twice, or the optimizer's own rate is not among them.
pub(super) fn trainings(
    rates: &[f64],
    train: &TrainConfig,
) -> Result<Vec<(TrainConfig, Option<GridPoint>)>, String> {
    if rates.is_empty() {
        return Ok(vec![(train.clone(), None)]);
    }
    let own = train.optimizer.learning_rate;
    for (index, rate) in rates.iter().enumerate() {
        if !(rate.is_finite() && *rate > 0.0) {
            return Err(format!("{rate}, expected finite numbers above 0"));
        }
        if rates[..index].iter().any(|other| same(*other, *rate)) {
            return Err(format!("{rate} is listed twice; keep one"));
        }
    }
    if !rates.iter().any(|rate| same(*rate, own)) {
        return Err(format!(
            "{rates:?} does not contain {own}, the optimizer's learning rate, which reports show as \
             the default; add it, or set `optimizer = {{ learning_rate = … }}` under `[train]` to one of \
             them"
        ));
    }
    let point = |rate: f64| {
        let mut train = train.clone();
        train.optimizer.learning_rate = rate;
        let default = same(rate, own);
        (train, Some(GridPoint { axis: AXIS.to_owned(), value: rate, default }))
    };
    Ok(rates.iter().map(|rate| point(*rate)).collect())
}

/// Whether two rates have the same bits.
fn same(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits()
}
