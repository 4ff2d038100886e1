//! A figure of a document.

use super::plot::Plot;

/// A figure of a document.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    pub(crate) title: String,
    pub(crate) caption: String,
    pub(crate) plot: Plot,
    /// Name of its file without extension, unique in the document; `None` for a figure of pages alone.
    pub(crate) file: Option<String>,
}

impl Figure {
    pub(crate) fn new(title: String, caption: impl Into<String>, plot: Plot) -> Self {
        Self { title, caption: caption.into(), plot, file: None }
    }

    /// Returns the path of the SVG file, relative to the report; `None` for a figure of pages alone.
    pub(crate) fn path(&self) -> Option<String> {
        self.file.as_ref().map(|file| format!("figures/{file}.svg"))
    }
}
