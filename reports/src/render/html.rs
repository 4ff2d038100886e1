//! `index.html`: the page.

use super::{Contents, Format, OutFile};
use crate::page;
use crate::report::ReportError;

pub(super) struct Html;

impl Format for Html {
    fn name(&self) -> &'static str {
        "html"
    }

    fn render(&self, contents: &Contents<'_>) -> Result<Vec<OutFile>, ReportError> {
        Ok(vec![OutFile::text("index.html", page::page(contents)?)])
    }
}
