//! A comparison as a document.

mod tables;

use self::tables::{label, sections};
use crate::document::figures::forest;
use crate::document::plot::{Point, Series};
use crate::document::{Document, Element, Figure, Table};
use analysis::compare::{Better, Compared, HeadToHead, RegionEvaluations};
use analysis::{NEUTRAL, looks};
use records::number::points;
use records::settings::Region;

/// Converts a comparison to a document: one figure for each region, one section for each workload.
pub fn document(found: &HeadToHead) -> Document {
    let (a, b) = (&found.a, &found.b);
    let about = format!(
        "Differences are {} minus {}, paired by seed; differences of shares are in percentage points. An encoding is \
         better if its result is above chance and p is at most 0.05. Not separable means that the difference is not \
         significant, not that the encodings are equal. Each row of the table of all workloads is one test; without any \
         difference, one row in 20 would be significant by chance. P-values in tables by split and length have Holm's \
         correction. Intervals are not corrected. A report corrects over all pairs of its encodings, so fewer of its \
         differences are significant.",
        a.name, b.name
    );
    let figures = region_names(found).into_iter().filter_map(|region| figure(found, region));
    let first = [Element::Table(counts(found)), Element::Prose(about)];
    Document {
        title: format!("{} against {}", a.label, b.label),
        elements: first.into_iter().chain(figures.map(Element::Figure)).collect(),
        sections: sections(found),
    }
}

/// Returns the names of the regions that a comparison has, in the order of [`Region::ALL`].
fn region_names(found: &HeadToHead) -> Vec<&'static str> {
    let has = |name: &&str| {
        let mut lines = found.comparisons.iter().flat_map(|comparison| &comparison.regions);
        lines.any(|line| line.place.region == *name)
    };
    Region::ALL.map(Region::name).into_iter().filter(has).collect()
}

/// Returns the number of workloads on which each encoding is better, by region.
fn counts(found: &HeadToHead) -> Table {
    let count = |region: &str, better: Better| {
        let lines = found.comparisons.iter().flat_map(|comparison| &comparison.regions);
        let same = |line: &&Compared<RegionEvaluations>| {
            line.place.region == region && line.difference.better == better
        };
        lines.filter(same).count().to_string()
    };
    Table::of(region_names(found))
        .column("workloads", |region| (*region).to_owned())
        .column(format!("{} better", found.a.label), |region| count(region, Better::A))
        .column(format!("{} better", found.b.label), |region| count(region, Better::B))
        .column("neither", |region| count(region, Better::NotSeparable))
        .table()
}

/// Draws the differences of a region as dots with intervals, one row for each workload; `None` if no metric that is a
/// share was compared.
fn figure(found: &HeadToHead, region: &str) -> Option<Figure> {
    let comparisons = found.comparisons.iter().filter_map(|comparison| {
        let line = comparison.regions.iter().find(|line| line.place.region == region)?;
        let label = label(found, comparison);
        (line.difference.metric != "nll").then_some((label, &line.difference))
    });
    let looks = looks([&*found.a.name, &*found.b.name]);
    let series: Vec<Series> = comparisons
        .map(|(label, d)| {
            let look = match d.better {
                Better::A => looks[&*found.a.name],
                Better::B => looks[&*found.b.name],
                Better::NotSeparable => NEUTRAL,
            };
            // Differences of shares are at most 1, so intervals are clamped.
            let cut = |x: f64| 100.0 * x.clamp(-1.0, 1.0);
            let bar = d.ci95.map(|(low, high)| (cut(low), cut(high)));
            let point = Point { x: 0.0, y: cut(d.difference), bar, note: points(d.difference) };
            Series { look, label, points: vec![point] }
        })
        .collect();
    if series.is_empty() {
        return None;
    }
    let heading = format!("points, {} minus {}", found.a.label, found.b.label);
    let title = format!("{} against {}, {region}", found.a.label, found.b.label);
    let plot = forest::plot("points", vec![(heading, series)]);
    let caption = format!(
        "Mean differences with 95% intervals, evaluated {region}. The mark shows the encoding that is significantly \
         better: {} on the right, {} on the left. Grey circle: not separable.",
        found.a.label, found.b.label
    );
    Some(Figure::new(title, caption, plot))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::{html_document, markdown_document};
    use crate::testkit::table_of;
    use analysis::compare::{Request, compare};
    use records::RunRecord;
    use records::testkit::TestCell;

    /// Builds a cell whose configuration depends on the workload only.
    fn cell(workload: &str, encoding: &str, seed: u64, beyond: f64) -> RunRecord {
        let config = serde_json::json!({"encoding": encoding, "task": workload, "seed": seed});
        let key = records::store::cell_key(&config);
        let cell = TestCell::new(workload, encoding, seed).beyond(beyond);
        cell.change(|r| (r.config, r.key) = (config, key)).record()
    }

    fn cells(workload: &str, encoding: &str, beyond: &[f64]) -> Vec<RunRecord> {
        (0..).zip(beyond).map(|(seed, value)| cell(workload, encoding, seed, *value)).collect()
    }

    fn found(records: &[RunRecord], a: &str, b: &str) -> HeadToHead {
        compare(records, &Request { a: a.into(), b: b.into(), ..Request::default() }).unwrap()
    }

    #[test]
    fn an_interval_of_a_difference_of_shares_has_possible_ends() {
        let records =
            [cells("w", "cope", &[1.0, 1.0, 0.7]), cells("w", "rope", &[0.0, 0.1, 0.1])].concat();
        let found = found(&records, "cope", "rope");
        assert!(found.comparisons[0].regions[1].difference.ci95.unwrap().1 > 1.0);
        let text = markdown_document(&document(&found));
        assert!(text.contains(", +100.0] |"), "{text}");
    }

    #[test]
    fn regions_stand_in_one_order_whichever_workload_comes_first() {
        let mut records = [cells("a", "cope", &[0.8]), cells("a", "rope", &[0.7])].concat();
        let mut longer = [cells("b", "cope", &[0.8]), cells("b", "rope", &[0.7])].concat();
        for record in &mut longer {
            record.evals[1].split = "in-distribution".into();
        }
        records.extend(longer);
        assert_eq!(
            region_names(&found(&records, "cope", "rope")),
            ["in distribution", "at longer lengths", "on other distributions at longer lengths"]
        );
    }

    #[test]
    fn one_seed_in_common_is_no_test() {
        let records = [cells("v", "cope", &[0.8, 0.8]), vec![cell("v", "rope", 1, 0.5)]].concat();
        let text = markdown_document(&document(&found(&records, "cope", "rope")));
        assert!(text.contains("No test: 1 seed in common, and a test needs at least 3."), "{text}");
    }

    #[test]
    fn the_table_of_all_workloads_names_each_test_once() {
        let of = |workload: &str, n: usize| {
            let values: Vec<f64> = (0..n).map(|i| 0.9 + 0.01 * i as f64).collect();
            let others: Vec<f64> = values.iter().map(|value| value / 2.0).collect();
            [cells(workload, "cope", &values), cells(workload, "rope", &others)].concat()
        };
        let records = [of("v", 3), of("w", 3), of("x", 8)].concat();
        let document = document(&found(&records, "cope", "rope"));
        let table = table_of(&document.sections[0]);
        let tests: Vec<&String> =
            table.notes.iter().filter(|note| note.starts_with("p-value of")).collect();
        assert_eq!(tests.len(), 2, "{tests:?}");
        let seeds = ["p-value of rows with 3 seeds: ", "p-value of rows with 8 seeds: "];
        assert!(tests.iter().zip(seeds).all(|(test, start)| test.starts_with(start)), "{tests:?}");
    }

    #[test]
    fn a_hostile_name_neither_opens_a_tag_nor_ends_a_cell() {
        let name = "x|<img src=y onerror=z>\n\n# h";
        let records = [cells("w", name, &[0.9]), cells("w", "rope", &[0.8])].concat();
        let text = markdown_document(&document(&found(&records, name, "rope")));
        assert!(!text.contains("<img") && !text.contains("\n# h"), "{text}");
        let header = text.lines().find(|line| line.starts_with("| workload |")).unwrap();
        assert_eq!(header.replace("\\|", "").matches('|').count(), 13, "{header}");
    }

    #[test]
    fn a_page_has_a_figure_for_each_region_and_every_table_and_one_script() {
        let cell = |encoding: &str, seed: u64, beyond: f64| {
            TestCell::new("<i>w</i>", encoding, seed)
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
        let page = html_document(&document(&compare(&records, &request).unwrap()));
        assert_eq!(page.matches("<svg class=\"chart\"").count(), 2);
        for text in
            ["<h1>CoPE against RoPE</h1>", "&lt;i&gt;w&lt;/i&gt;", ">better</span></th>", "+5"]
        {
            assert!(page.contains(text), "{text}: {page}");
        }
        assert!(page.matches("<script").count() == 1 && !page.contains("<i>w"), "{page}");
        assert!(page.contains("default-src 'none'"));
    }
}
