//! Why a pretrained model could not be had.

use std::path::{Path, PathBuf};

use pe_zoo::PeError;

use crate::file_error::FileError;

use crate::model::ModelError;

/// Every error of loading. The text says what was wrong, what was expected and what to do next.
#[derive(Debug, thiserror::Error)]
pub enum PretrainedError {
    /// Neither a model's folder, nor a GGUF file, nor a known name.
    #[error(
        "`{given}` is no model: expected a folder with config.json and model.safetensors, a .gguf file, or one of: \
         {known}"
    )]
    NotAModel {
        /// Text that was given.
        given: String,
        /// Names that can be fetched.
        known: String,
    },
    /// The file system said no.
    #[error(transparent)]
    Io(#[from] FileError),
    /// A file that is not what it claims to be.
    #[error("{} is damaged: {reason}; get the file again", path.display())]
    Damaged {
        /// Path of the file.
        path: PathBuf,
        /// Description of the file's fault.
        reason: String,
    },
    /// A model of a kind that the decoder here is not.
    #[error("{}: `{field}` is {value}, expected {expected}; use another model", path.display())]
    Unsupported {
        /// Path of the file.
        path: PathBuf,
        /// The setting at fault.
        field: String,
        /// Value of the field.
        value: String,
        /// Values that would be accepted.
        expected: String,
    },
    /// A weight that the settings ask for and the file has not.
    #[error(
        "{} has no tensor `{name}` {expected:?}, which its settings ask for; get the file again",
        path.display()
    )]
    MissingTensor {
        /// The file or folder.
        path: PathBuf,
        /// Name of the tensor.
        name: String,
        /// Shape of the tensor.
        expected: Vec<usize>,
    },
    /// Weights that no part of the model takes.
    #[error(
        "{} has {count} tensors that a Llama-type model of its settings has no place for, `{}` first; use another model",
        path.display(),
        names.join("`, `")
    )]
    UnexpectedTensors {
        /// The file or folder.
        path: PathBuf,
        /// Number that was found.
        count: usize,
        /// The first of them.
        names: Vec<String>,
    },
    /// A weight of another shape than the settings say.
    #[error(
        "{}: tensor `{name}` is {found:?}, expected {expected:?} by the settings; the two are not of one model",
        path.display()
    )]
    WrongShape {
        /// Path of the file.
        path: PathBuf,
        /// Name of the tensor.
        name: String,
        /// The shape that the settings ask for.
        expected: Vec<usize>,
        /// The shape in the file.
        found: Vec<usize>,
    },
    /// A weight in a number format that cannot be read.
    #[error("{}: tensor `{name}` is {found}, expected {expected}; convert the model", path.display())]
    WrongDtype {
        /// Path of the file.
        path: PathBuf,
        /// Name of the tensor.
        name: String,
        /// Storage format of the tensor.
        found: String,
        /// Formats that can be read.
        expected: &'static str,
    },
    /// A weight with numbers that are none.
    #[error(
        "{}: tensor `{name}` holds numbers that are not finite; the file is damaged, get it again",
        path.display()
    )]
    NotFinite {
        /// Path of the file.
        path: PathBuf,
        /// Name of the tensor.
        name: String,
    },
    /// The text cannot be made into tokens.
    #[error("{}: the tokenizer cannot be used: {reason}", path.display())]
    Tokenizer {
        /// Where it was looked for.
        path: PathBuf,
        /// The fault and what would help.
        reason: String,
    },
    /// Sizes that no model can have.
    #[error("{}: {source}", path.display())]
    Model {
        /// The file of settings.
        path: PathBuf,
        /// Description of what is wrong.
        source: ModelError,
    },
    /// A rotation that cannot be.
    #[error("{}: {source}", path.display())]
    Rotation {
        /// The file of settings.
        path: PathBuf,
        /// Description of what is wrong.
        source: PeError,
    },
    /// The package manager could not bring the model.
    #[error(
        "`{command}` failed, so the model is not here; it said:\n{said}\nCheck Python and the network, or give a folder or a .gguf file"
    )]
    Fetch {
        /// Command that was run.
        command: String,
        /// The end of what it said.
        said: String,
    },
    /// The fetched file is not the pinned one.
    #[error("{} is not the expected file: sha256 is {found}, must be {expected}; nothing was kept", path.display())]
    HashMismatch {
        /// Path of the file.
        path: PathBuf,
        /// Hash that is expected.
        expected: &'static str,
        /// The hash of the file.
        found: String,
    },
}

impl PretrainedError {
    pub(super) fn damaged(path: &Path, reason: impl std::fmt::Display) -> Self {
        Self::Damaged { path: path.to_owned(), reason: reason.to_string() }
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
        }
    }
}
