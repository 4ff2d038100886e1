//! A comparison as a page.

use std::fmt::Write as _;

use super::{HeadToHead, Outcome, tables};
use crate::figure::Plot;
use crate::figure::plot::{Axis, Dots, Point, Series};
use crate::figure::scale::Scale;
use crate::number::points;
use crate::page::{details, html_table, plain_page, prose};
use crate::render::chart_of;
use crate::text::html as escape;

/// Colours of the first, the second, and of what is not separable: blue, vermilion, grey.
const SLOTS: [usize; 3] = [0, 1, 7];
/// A table with more rows than this is not read on a page.
const MOST: usize = 150;
/// Tables of a section that are shown at once; those of slices are folded.
const OPEN: usize = 2;

/// A page of its own, without scripts.
pub fn page(found: &HeadToHead) -> String {
    let title = format!("{} against {}", found.a.label, found.b.label);
    let mut out = format!(
        "<p>Differences are {} minus {}, paired by seed; shares in percentage points. Better: by more than noise \
         after Holm's correction; not separable does not mean equal. The interval is not corrected.</p>\n",
        escape(&found.a.name),
        escape(&found.b.name)
    );
    out.push_str("<div class=\"figures\">\n");
    for region in ["in distribution", "beyond training"] {
        out.push_str(&forest(found, region));
    }
    out.push_str("</div>\n");
    for section in tables(found) {
        let _ = write!(out, "<section>\n<h2>{}</h2>\n", escape(&section.heading));
        for note in &section.notes {
            let _ = writeln!(out, "<p class=\"note\">{}</p>", prose(note));
        }
        for (index, (caption, table)) in section.tables.iter().enumerate() {
            if index < OPEN {
                let _ = write!(out, "<h3>{}</h3>\n{}", escape(caption), html_table(table));
            } else if table.rows.len() <= MOST {
                out.push_str(&details(caption, &html_table(table)));
            } else {
                let rows = table.rows.len();
                let _ = writeln!(
                    out,
                    "<p class=\"note\">{}: {rows} values, too many for a page; <code>--slices</code> prints them, \
                     <code>--json</code> has them.</p>",
                    escape(caption)
                );
            }
        }
        out.push_str("</section>\n");
    }
    plain_page(&title, &out)
}

/// The differences of a region as dots with intervals, a row for each workload; nothing where no share was compared.
fn forest(found: &HeadToHead, region: &str) -> String {
    let duels = found.duels.iter().filter_map(|duel| {
        let line = duel.regions.iter().find(|line| line.place.region == region)?;
        // Workloads of one name in several suites are several workloads.
        let label = if found.duels.iter().all(|other| other.suite == duel.suite) {
            duel.workload.clone()
        } else {
            format!("{} ({})", duel.workload, duel.suite)
        };
        (line.difference.metric != "nll").then_some((label, &line.difference))
    });
    let series: Vec<Series> = duels
        .map(|(label, d)| {
            let slot = match d.outcome {
                Outcome::A => SLOTS[0],
                Outcome::B => SLOTS[1],
                Outcome::NotSeparable => SLOTS[2],
            };
            // Differences of shares end at one, whatever an interval says.
            let cut = |x: f64| 100.0 * x.clamp(-1.0, 1.0);
            let bar = d.ci95.map(|(low, high)| (cut(low), cut(high)));
            let point = Point { x: 0.0, y: cut(d.difference), bar, note: points(d.difference) };
            Series { slot, label, points: vec![point] }
        })
        .collect();
    if series.is_empty() {
        return String::new();
    }
    let ends = series.iter().flat_map(|s| &s.points).flat_map(|p| {
        let (low, high) = p.bar.unwrap_or((p.y, p.y));
        [0.0, p.y, low, high]
    });
    let value = Axis::new("points", Scale::linear(&ends.collect::<Vec<_>>()));
    let heading = format!("points, {} minus {}", found.a.label, found.b.label);
    let title = format!("{} against {}, {region}", found.a.label, found.b.label);
    let plot = Plot::Dots(Dots { value, groups: vec![(heading, series)] });
    format!(
        "<figure>{}<figcaption>Mean difference {region} with its 95 % interval. Blue: {} is better by more than \
         noise; orange: {}; grey: not separable.</figcaption></figure>\n",
        chart_of(&title, &plot),
        escape(&found.a.label),
        escape(&found.b.label)
    )
}

#[cfg(test)]
mod tests {
    use super::super::{Request, compare};
    use super::*;
    use crate::testkit::Cell;

    #[test]
    fn a_page_has_a_figure_for_each_region_and_every_table_and_no_script() {
        let cell = |encoding: &str, seed: u64, beyond: f64| {
            Cell::new("<i>w</i>", encoding, seed)
                .beyond(beyond)
                .change(|r| r.config = serde_json::json!({"encoding": encoding, "seed": seed}))
                .record()
        };
        let records: Vec<_> = (0..3)
            .flat_map(|seed| {
                let noise = 0.01 * seed as f64;
                [cell("cope", seed, 0.9 + noise), cell("rope", seed, 0.4 - noise)]
            })
            .collect();
        let request = Request { a: "cope".into(), b: "rope".into(), ..Request::default() };
        let page = page(&compare(&records, &request).unwrap());
        assert_eq!(page.matches("<svg").count(), 2);
        for text in
            ["<h1>CoPE against RoPE</h1>", "&lt;i&gt;w&lt;/i&gt;", "data-head=\"better\"", "+5"]
        {
            assert!(page.contains(text), "{text}: {page}");
        }
        assert!(!page.contains("<script") && !page.contains("<i>w"), "{page}");
        assert!(page.contains("default-src 'none'"));
    }
}
