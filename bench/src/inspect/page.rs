//! Inspection of a cell written to files: a figure for each layer and quantity, the numbers as JSON, and a page with
//! all of them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use reports::GateScore;
use reports::document::Table;
use serde_json::{Value, json};
use tasks::{Sample, Task};

use super::svg::{TokenAxis, escape, svg};
use crate::run::{AttentionMap, Observed};

/// Maximum number of tokens of a sample; larger maps do not fit a screen.
pub const MAX_TOKENS: usize = 256;

/// Cell and sample shown on an inspection page.
#[derive(Debug)]
pub struct InspectedCell<'a> {
    /// Key of the cell.
    pub key: &'a str,
    /// Workload of the cell.
    pub workload: &'a str,
    /// Name of its encoding.
    pub encoding: &'a str,
    /// Name of the cell's encoding.
    pub seed: u64,
    /// Split of the sample.
    pub split: &'a str,
    /// Number of the sample in its evaluation set, from 0.
    pub index: usize,
    /// Sample that the maps belong to.
    pub sample: &'a Sample,
    /// Task of the sample.
    pub task: &'a dyn Task,
    /// Observed maps of the sample.
    pub seen: &'a Observed,
    /// Gate scores of the model.
    pub gates: &'a [GateScore],
}

impl InspectedCell<'_> {
    fn texts(&self) -> Vec<String> {
        self.sample.tokens.iter().map(|token| self.task.token_text(*token)).collect()
    }

    /// Data of all figures as JSON; each row has the columns that it sees.
    pub fn json(&self) -> Value {
        let map = |map: &AttentionMap| json!({ "name": map.look.id(), "heads": map.heads });
        let layer = |(index, maps): (usize, &Vec<AttentionMap>)| json!({ "layer": index, "maps": maps.iter().map(map).collect::<Vec<_>>() });
        json!({
            "cell": self.key,
            "workload": self.workload,
            "encoding": self.encoding,
            "seed": self.seed,
            "split": self.split,
            "sample": self.index,
            "tokens": self.texts(),
            "scored": self.sample.scored,
            "counted": self.task.counted(self.sample),
            "layers": self.seen.layers.iter().enumerate().map(layer).collect::<Vec<_>>(),
            "gate_scores": self.gates,
        })
    }

    /// Writes `inspect.json`, `layer-N-NAME.svg` and `index.html` into a folder, which is created, and returns the path of
    /// the page.
    ///
    /// # Errors
    /// Error of the file system, with the path.
    pub fn write(&self, folder: &Path) -> Result<PathBuf, std::io::Error> {
        let named = |path: &Path, error: std::io::Error| {
            std::io::Error::new(error.kind(), format!("{}: {error}", path.display()))
        };
        std::fs::create_dir_all(folder).map_err(|error| named(folder, error))?;
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            std::fs::write(&path, text).map_err(|error| named(&path, error))
        };
        let texts = self.texts();
        // The last token is never read.
        let read = texts.len() - 1;
        let counted = self.task.counted(self.sample).unwrap_or_default();
        let axis = TokenAxis {
            texts: &texts[..read],
            asked: &self.sample.scored[1..],
            counted: &counted[..counted.len().min(read)],
        };
        let mut figures = String::new();
        for (layer, maps) in self.seen.layers.iter().enumerate() {
            for (number, map) in maps.iter().enumerate() {
                let before = maps[..number].iter().filter(|other| other.look == map.look).count();
                // Two parts of a combination may have gates.
                let part = if before > 0 { format!("-{}", before + 1) } else { String::new() };
                let figure = svg(layer, map, &axis);
                write(&format!("layer-{}-{}{part}.svg", layer + 1, map.look.id()), &figure)?;
                let _ = writeln!(figures, "<figure class=\"wide\">{figure}</figure>");
            }
        }
        write("inspect.json", &self.json().to_string())?;
        write("index.html", &self.html(&texts, &figures))?;
        Ok(folder.join("index.html"))
    }

    fn scores(&self) -> Table {
        let row = |score: &GateScore| {
            let (layer, head) = (score.layer + 1, score.head + 1);
            let texts = [format!("{}, layer {layer}, head {head}", score.gate)];
            let numbers = [format!("{:.3}", score.auc), score.rows.to_string()];
            texts.into_iter().chain(numbers).map(Into::into).collect()
        };
        let columns = ["gate", "score", "rows"].map(str::to_owned).to_vec();
        Table { columns, rows: self.gates.iter().map(row).collect(), ..Table::default() }
    }

    fn html(&self, texts: &[String], figures: &str) -> String {
        let title = format!(
            "{} on {}, seed {}: sample {} of {}",
            self.encoding, self.workload, self.seed, self.index, self.split
        );
        let mut out = format!(
            "<p>Cell <code>{}</code>. Each row attends to the columns up to its own; rows with orange names predict a scored token.{}</p>\n<p class=\"text\">",
            escape(self.key),
            if self.task.counted(self.sample).is_some() {
                " Columns with blue names are tokens that the task counts."
            } else {
                ""
            }
        );
        let counted = self.task.counted(self.sample).unwrap_or_default();
        for (t, text) in texts.iter().enumerate() {
            let text = escape(text);
            let text = if self.sample.scored[t] { format!("<u>{text}</u>") } else { text };
            let text = if counted.get(t) == Some(&true) { format!("<b>{text}</b>") } else { text };
            let _ = write!(out, "{text} ");
        }
        out.push_str("</p>\n");
        if !self.gates.is_empty() {
            out.push_str(
                "<h2>Gate scores</h2>\n<p>How well gates agree with the tokens that the task counts: area under the \
                 ROC curve within a row, mean over rows. 1: above all others; 0.5: no relation; 0: below all others.</p>\n",
            );
            out.push_str(&reports::html_table(&self.scores()));
        }
        out.push_str("<h2>Maps</h2>\n");
        out.push_str(figures);
        reports::plain_page(&title, &out)
    }
}
