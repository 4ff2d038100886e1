//! The tables of a comparison.

use std::collections::BTreeSet;

use crate::document::tables::MOST_EFFECT;
use crate::document::{Element, Section, Table, TableCell};
use crate::text::add_new;
use analysis::compare::{
    Better, Compared, Difference, EvaluationPoint, HeadToHead, PairwiseComparison,
    RegionEvaluations, Slice,
};
use records::number::{
    bracketed, count, joined, numbered, p_value, percent, points, three_digits, two_digits,
};
use records::settings::Region;
use records::{PAIR, PAIRED, SliceUnit};
use stats::minimum_p_value;

/// Returns a section with the regions of all workloads, one for each workload, and one that lists the cells that were
/// not compared, if there are any.
pub(super) fn sections(found: &HeadToHead) -> Vec<Section> {
    let all = Section::of_table("All workloads", regions(found));
    let own = found.comparisons.iter().map(|comparison| section(found, comparison));
    let mut sections: Vec<Section> = std::iter::once(all).chain(own).collect();
    if !found.left_out.is_empty() {
        sections.push(Section::of("Not compared", vec![Element::List(found.left_out.clone())]));
    }
    sections
}

fn section(found: &HeadToHead, comparison: &PairwiseComparison) -> Section {
    let mut notes = vec![format!(
        "{} in common: {}.",
        count(comparison.seeds.len() as u64, "seed"),
        joined(&comparison.seeds, ", ")
    )];
    for (side, seeds) in [(&found.a, &comparison.only_a), (&found.b, &comparison.only_b)] {
        if !seeds.is_empty() {
            notes.push(format!("Left out: only {} has {}.", side.name, numbered("seed", seeds)));
        }
    }
    notes.extend(comparison.notes.iter().cloned());
    let mut properties: Vec<(SliceUnit, &str)> = comparison
        .slices
        .iter()
        .map(|line| (line.place.unit, line.place.property.as_str()))
        .collect();
    properties.dedup();
    let by_point = Section::of_table("By split and length", by_point(found, comparison));
    let by_property = properties.into_iter().map(|(unit, property)| {
        let table = by_slice(found, comparison, unit, property);
        Section::of_table(format!("By {property}"), table).folded()
    });
    Section::of(
        format!("{} ({})", comparison.workload, comparison.suite),
        vec![Element::List(notes)],
    )
    .with(std::iter::once(by_point).chain(by_property))
}

/// Returns the name of a workload, with its suite if several are compared.
pub(super) fn label(found: &HeadToHead, comparison: &PairwiseComparison) -> String {
    let PairwiseComparison { suite, workload, .. } = comparison;
    if found.comparisons.iter().all(|other| other.suite == *suite) {
        workload.clone()
    } else {
        format!("{workload} ({suite})")
    }
}

/// Returns the table with one row for each workload and region, with the notes of all workloads.
fn regions(found: &HeadToHead) -> Table {
    let heads = ["workload", "region"];
    let mut all = table(found, &heads, &[], |_: &Compared<Slice>| Vec::new());
    for comparison in &found.comparisons {
        let workload = label(found, comparison);
        let name = |line: &Compared<RegionEvaluations>| {
            vec![workload.clone(), line.place.region.to_owned()]
        };
        let own = table(found, &heads, &comparison.regions.iter().collect::<Vec<_>>(), name);
        all.rows.extend(own.rows);
        add_new(&mut all.notes, own.notes);
    }
    all
}

fn by_point(found: &HeadToHead, comparison: &PairwiseComparison) -> Table {
    let name = |line: &Compared<EvaluationPoint>| {
        let place = match line.place.region {
            Region::Inside => "",
            Region::Longer => " (longer)",
            Region::Shifted => " (other distribution)",
            Region::Both => " (other distribution, longer)",
        };
        vec![format!("{}{place}", line.place.split), line.place.len.to_string()]
    };
    table(found, &["split", "length"], &comparison.points.iter().collect::<Vec<_>>(), name)
}

fn by_slice(
    found: &HeadToHead,
    comparison: &PairwiseComparison,
    unit: SliceUnit,
    property: &str,
) -> Table {
    let of = |line: &&Compared<Slice>| line.place.unit == unit && line.place.property == property;
    let lines = comparison.slices.iter().filter(of).collect::<Vec<_>>();
    let name = |line: &Compared<Slice>| {
        let place = &line.place;
        vec![
            place.point.split.clone(),
            place.point.len.to_string(),
            value(property, place.value),
            place.count.to_string(),
        ]
    };
    table(found, &["split", "length", property, unit.name()], &lines, name)
}

/// Formats a value of a property. The value of a pair of properties is split into its two numbers.
fn value(property: &str, value: u32) -> String {
    let value = u64::from(value);
    if property.contains(PAIRED) {
        format!("{}{PAIRED}{}", value / PAIR, value % PAIR)
    } else {
        value.to_string()
    }
}

fn table<P>(
    found: &HeadToHead,
    places: &[&str],
    lines: &[&Compared<P>],
    name: impl Fn(&Compared<P>) -> Vec<String>,
) -> Table {
    let mut columns: Vec<String> = places.iter().map(|place| (*place).to_owned()).collect();
    columns.extend(["metric".to_owned(), found.a.name.clone(), found.b.name.clone()]);
    columns.extend(
        ["chance", "difference", "95% interval", "p", "g", "won-lost-tied", "better"]
            .map(str::to_owned),
    );
    let row = |line: &&Compared<P>| {
        let mut row: Vec<TableCell> = name(line).into_iter().map(TableCell::from).collect();
        row.extend(cells(found, &line.difference));
        row
    };
    // Lines may differ in seeds, and so in the test: each kind is said.
    let tests: BTreeSet<String> = lines.iter().map(|line| used(&line.difference)).collect();
    let mut notes: Vec<String> = tests.into_iter().collect();
    if lines.iter().any(|line| line.difference.question_error.is_some()) {
        notes.push(
            "Intervals and p-values include the variation between seeds and between questions."
                .to_owned(),
        );
    }
    Table { columns, rows: lines.iter().map(row).collect(), notes, ..Table::default() }
}

/// Returns a sentence on the test of a line.
fn used(difference: &Difference) -> String {
    let Difference { family, test, n, .. } = difference;
    let seeds = count(*n, "seed");
    let corrected = match family {
        0 => return format!("No test: {seeds} in common, and a test needs at least 3."),
        1 => String::new(),
        _ => format!(", with Holm's correction over {family} comparisons"),
    };
    let bound = match *test {
        "paired t" => format!(" (smallest possible p: {})", two_digits(minimum_p_value(*n))),
        _ if difference.question_error.is_some() => {
            " or t test over seeds and questions, whichever p is larger".to_owned()
        }
        _ => String::new(),
    };
    let needed = difference.seeds_needed.map_or_else(String::new, |needed| {
        format!("; with so few seeds no difference can be significant: run at least {needed} seeds")
    });
    format!("p-value of rows with {seeds}: {test}{bound}{corrected}{needed}.")
}

fn cells(found: &HeadToHead, d: &Difference) -> Vec<TableCell> {
    let share = d.metric != "nll";
    let value = |x: f64| if share { percent(x) } else { three_digits(x) };
    let change = |x: f64| {
        let text = if share { points(x) } else { three_digits(x) };
        if x > 0.0 && text != "0.0" { format!("+{text}") } else { text }
    };
    // A t interval of shares may exceed -1 and 1.
    let end = |x: f64| change(if share { x.clamp(-1.0, 1.0) } else { x });
    let mut better = TableCell::from(match d.better {
        Better::A => found.a.name.clone(),
        Better::B => found.b.name.clone(),
        Better::NotSeparable => format!("not separable with n = {}", d.n),
    });
    better.strong = d.better != Better::NotSeparable;
    vec![
        TableCell::from(d.metric),
        value(d.mean_a).into(),
        value(d.mean_b).into(),
        TableCell::optional(d.chance, percent),
        change(d.difference).into(),
        TableCell::optional(d.ci95, |(low, high)| format!("[{}, {}]", end(low), end(high))),
        TableCell::optional(d.p_holm, |p| p_value(p).trim_start_matches("= ").to_owned()),
        TableCell::optional(d.effect.filter(|g| g.abs() <= MOST_EFFECT), |g| {
            let interval = bracketed(d.effect_ci95, |g| format!("{g:.1}"));
            TableCell::with_detail(format!("{g:.1}"), interval)
        }),
        format!("{}-{}-{}", d.won, d.lost, d.tied).into(),
        better,
    ]
}
