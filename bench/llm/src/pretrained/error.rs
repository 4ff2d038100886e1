//! Errors of loading pretrained models.

use std::path::{Path, PathBuf};

use pe_zoo::PeError;
use tasks::FileError;

use pe_zoo::model::ModelError;
use train::experiment::OfRecordError;
use train::run::kept::KeptError;

/// Error while a pretrained model is fetched or loaded.
#[derive(Debug, thiserror::Error)]
pub enum PretrainedError {
    /// The argument is not a model folder, a GGUF file or a known name.
    #[error(
        "`{given}` is not a model: expected a folder with config.json and model.safetensors, a .gguf file, kept weights \
         (.safetensors) of `pe-bench run` or the key of their record, or one of: {known}"
    )]
    NotAModel {
        /// Text that was given.
        given: String,
        /// Names that can be fetched.
        known: String,
    },
    /// An operation of the file system failed.
    #[error(transparent)]
    Io(#[from] FileError),
    /// Kept weights cannot be read.
    #[error(transparent)]
    Kept(#[from] KeptError),
    /// The experiment of kept weights cannot be restored.
    #[error(transparent)]
    Record(#[from] OfRecordError),
    /// The encoding refuses the sizes of the model.
    #[error(transparent)]
    Encoding(#[from] PeError),
    /// The file is damaged.
    #[error("{} is damaged: {reason}; get the file again", path.display())]
    Damaged {
        /// Path of the file.
        path: PathBuf,
        /// Description of the file's fault.
        reason: String,
    },
    /// The decoder does not support a setting of the model.
    #[error("{}: `{field}` is {value}, expected {expected}; {remedy}", path.display())]
    Unsupported {
        /// Path of the file.
        path: PathBuf,
        /// Name of the unsupported setting.
        field: String,
        /// Value of the field.
        value: String,
        /// Description of the supported values.
        expected: String,
        /// Advice that ends the message.
        remedy: String,
    },
    /// The model attends to fewer tokens than a sequence may have.
    #[error(
        "`{name}` attends to the last {window} tokens, expected sequences of at most as many, and not of up to {len}; \
         choose shorter ones"
    )]
    BeyondWindow {
        /// Name of the model.
        name: String,
        /// Longest sequence that was asked for.
        len: usize,
        /// Number of tokens that a token sees.
        window: usize,
    },
    /// A weight is missing.
    #[error(
        "{} has no tensor `{name}`, expected with shape {expected:?} by its settings; {remedy}",
        path.display()
    )]
    MissingTensor {
        /// Path of the file or folder.
        path: PathBuf,
        /// Name of the tensor.
        name: String,
        /// Shape of the tensor.
        expected: Vec<usize>,
        /// Advice that ends the message.
        remedy: String,
    },
    /// The file has tensors that the model does not use.
    #[error(
        "{} has {count} tensors that a Llama-type model with its settings does not have, the first is `{}`; use another model",
        path.display(),
        names.join("`, `")
    )]
    UnexpectedTensors {
        /// Path of the file or folder.
        path: PathBuf,
        /// Number of unused tensors.
        count: usize,
        /// Names of the first of them.
        names: Vec<String>,
    },
    /// A weight does not have the shape that the settings require.
    #[error(
        "{}: tensor `{name}` has shape {found:?}, expected {expected:?} by the settings; get weights and settings of the same model",
        path.display()
    )]
    WrongShape {
        /// Path of the file.
        path: PathBuf,
        /// Name of the tensor.
        name: String,
        /// Shape that the settings require.
        expected: Vec<usize>,
        /// Shape of the tensor in the file.
        found: Vec<usize>,
    },
    /// A weight has an unsupported number format.
    #[error("{}: tensor `{name}` is {found}, expected {expected}; convert the model", path.display())]
    WrongDtype {
        /// Path of the file.
        path: PathBuf,
        /// Name of the tensor.
        name: String,
        /// Storage format of the tensor.
        found: String,
        /// Number formats that can be read.
        expected: &'static str,
    },
    /// A weight contains NaN or infinity.
    #[error(
        "{}: tensor `{name}` contains values that are not finite; the file is damaged, get it again",
        path.display()
    )]
    NotFinite {
        /// Path of the file.
        path: PathBuf,
        /// Name of the tensor.
        name: String,
    },
    /// The tokenizer cannot be loaded.
    #[error("{}: the tokenizer cannot be used: {reason}", path.display())]
    Tokenizer {
        /// Path of the tokenizer.
        path: PathBuf,
        /// Description of the fault, and how to fix it.
        reason: String,
    },
    /// The sizes of the model are invalid.
    #[error("{}: {source}", path.display())]
    Model {
        /// Path of the file with the settings.
        path: PathBuf,
        /// Error in the sizes.
        source: ModelError,
    },
    /// The settings of the rotation are invalid.
    #[error("{}: `{field}`: {source}", path.display())]
    Rotation {
        /// Path of the file with the settings.
        path: PathBuf,
        /// Field that the rotation was read from.
        field: String,
        /// Error in the settings of the rotation.
        source: Box<PeError>,
    },
    /// The package manager failed to fetch the model.
    #[error(
        "cannot fetch the model, `{command}` failed:\n{said}\n{}, or give a folder or a .gguf file",
        tasks::help_if_full(said).unwrap_or("check Python and the network")
    )]
    Fetch {
        /// Command that was run.
        command: String,
        /// Last lines of the command's output.
        said: String,
    },
    /// The fetched file does not have the pinned hash.
    #[error("{} is not the expected file: sha256 is {found}, expected {expected}; the file was not kept", path.display())]
    HashMismatch {
        /// Path of the file.
        path: PathBuf,
        /// Pinned hash of the file.
        expected: &'static str,
        /// Hash of the fetched file.
        found: String,
    },
}

impl PretrainedError {
    pub(super) fn damaged(path: &Path, reason: impl std::fmt::Display) -> Self {
        Self::Damaged { path: path.to_owned(), reason: reason.to_string() }
    }

    pub(super) fn missing(path: &Path, name: String, expected: &[usize]) -> Self {
        let remedy = "get the file again".to_owned();
        Self::MissingTensor { path: path.to_owned(), name, expected: expected.to_vec(), remedy }
    }

    pub(super) fn check_shape(
        path: &Path,
        name: &str,
        expected: &[usize],
        found: &[usize],
    ) -> Result<(), Self> {
        if found == expected {
            return Ok(());
        }
        let (expected, found) = (expected.to_vec(), found.to_vec());
        Err(Self::WrongShape { path: path.to_owned(), name: name.to_owned(), expected, found })
    }

    pub(super) fn unsupported(
        path: &Path,
        field: &str,
        value: impl std::fmt::Display,
        expected: impl Into<String>,
    ) -> Self {
        Self::Unsupported {
            path: path.to_owned(),
            field: field.to_owned(),
            value: value.to_string(),
            expected: expected.into(),
            remedy: "use another model".to_owned(),
        }
    }

    /// The same error about an unsupported setting or a missing tensor, with other advice.
    pub(super) fn remedied(mut self, what: &str) -> Self {
        if let Self::Unsupported { remedy, .. } | Self::MissingTensor { remedy, .. } = &mut self {
            what.clone_into(remedy);
        }
        self
    }
}
