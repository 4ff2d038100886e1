//! Groups of cells behind the numbers of a report.

use super::report::{Report, Workload};
use crate::record::RunRecord;

/// All cells of one workload and encoding.
#[derive(Debug, Clone)]
pub struct Group<'a> {
    /// Name of the workload.
    pub workload: &'a Workload,
    /// Name of the encoding.
    pub encoding: &'a str,
    /// Id of the place on pages that shows the cells; see [`Report::anchor`].
    pub anchor: String,
    /// Records of the group, sorted by seed.
    pub cells: &'a [RunRecord],
}

impl Report {
    /// Cells of a workload, sorted by encoding and seed.
    pub fn cells_of(&self, workload: &Workload) -> &[RunRecord] {
        self.cells.get(workload.cells.clone()).unwrap_or_default()
    }

    /// Groups of all workloads and encodings.
    pub fn groups(&self) -> Vec<Group<'_>> {
        let of = |workload| {
            let groups =
                self.cells_of(workload).chunk_by(|a, b| a.encoding.name == b.encoding.name);
            groups.map(move |cells| {
                let encoding = cells[0].encoding.name.as_str();
                let anchor = self.anchor(workload, encoding).unwrap_or_default();
                Group { workload, encoding, anchor, cells }
            })
        };
        self.workloads.iter().flat_map(of).collect()
    }

    /// Id of the place where pages show the records of `encoding` on `workload`, for example `w0e3`; `None` for an
    /// encoding that is not in the report.
    pub fn anchor(&self, workload: &Workload, encoding: &str) -> Option<String> {
        let slot = self.encoding(encoding)?.slot;
        Some(format!("w{}e{slot}", workload.index))
    }
}
