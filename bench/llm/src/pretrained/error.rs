//! Errors about files of pretrained models.

use std::fmt::Display;
use std::path::Path;

use anyhow::{Result, anyhow, ensure};

/// A file is damaged.
pub(super) fn damaged(path: &Path, reason: impl Display) -> anyhow::Error {
    anyhow!("{} is damaged: {reason}; get the file again", path.display())
}

/// A weight is missing.
pub(super) fn missing(path: &Path, name: &str, expected: &[usize], remedy: &str) -> anyhow::Error {
    anyhow!(
        "{} has no tensor `{name}`, but the settings require it with shape {expected:?}; {remedy}",
        path.display()
    )
}

/// A weight must have the shape that the settings require.
pub(super) fn check_shape(
    path: &Path,
    name: &str,
    expected: &[usize],
    shape: &[usize],
) -> Result<()> {
    ensure!(
        shape == expected,
        "{}: tensor `{name}` has shape {shape:?}, but the settings require {expected:?}; use weights and settings of the same \
         model",
        path.display()
    );
    Ok(())
}

/// The decoder does not support a setting of the model.
pub(super) fn unsupported(
    path: &Path,
    field: &str,
    value: impl Display,
    expected: impl Display,
) -> anyhow::Error {
    let expected = format!("{expected}; use another model");
    unsuitable(path, field, value, expected)
}

/// A setting of the model is unsuitable; `expected` is followed by a remedy.
pub(super) fn unsuitable(
    path: &Path,
    field: &str,
    value: impl Display,
    expected: impl Display,
) -> anyhow::Error {
    anyhow!("{}: `{field}` is {value}, expected {expected}", path.display())
}

/// The tokenizer cannot be loaded, for a reason with its remedy.
pub(super) fn of_tokenizer(path: &Path, reason: impl Display) -> anyhow::Error {
    anyhow!("{}: the tokenizer cannot be used: {reason}", path.display())
}
