//! Record files: `<results folder>/cells/<key>.json`, written atomically, read strictly; and many records in one file.

mod atomic;
mod canonical;
mod caught;
mod error;
mod file;
mod folder;
mod labels;
mod layout;
mod packed;
mod scan;

pub(crate) use self::atomic::write_unsynced;
pub use self::atomic::{remove_leftovers, write_atomically};
pub use self::canonical::cell_key;
pub(crate) use self::canonical::cell_key_without;
pub use self::canonical::hex;
pub use self::error::RecordError;
pub use self::file::set_aside;
pub use self::folder::{
    files_in, packed_only, read_dir, read_each, read_named, record_files, unpack,
};
pub use self::labels::{LabelledEvaluation, LabelledQuestions, read_labelled};
pub use self::packed::{PACKED, lean, pack};

#[cfg(test)]
mod tests;
