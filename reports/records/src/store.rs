//! Record files: `<results folder>/cells/<key>.json`, written atomically, read strictly.

mod atomic;
mod canonical;
mod error;
mod file;
mod folder;
mod layout;
mod scan;

pub use self::atomic::{remove_leftovers, write_atomically, write_unsynced};
pub use self::canonical::{cell_key, cell_key_without, hex};
pub use self::error::RecordError;
pub use self::file::{set_aside, without_mark};
pub use self::folder::{PackedReader, files_in, read_named, record_files};

#[cfg(test)]
mod tests;
