mod check;

use super::*;

/// Number of published values of each source, counted independently in the papers.
const COUNTS: [(&str, usize, usize); 4] =
    [("cope", 8, 116), ("cope-vs-rope", 1, 4), ("grape", 1, 8), ("tape", 13, 235)];

#[test]
fn every_file_parses_and_holds_what_was_carried_over() {
    let papers = papers().unwrap();
    let found: Vec<_> = papers
        .iter()
        .map(|paper| {
            let ids: BTreeSet<&String> = paper.tables.iter().map(|table| &table.id).collect();
            assert_eq!(ids.len(), paper.tables.len(), "{ids:?}");
            paper.tables.iter().for_each(|table| assert_eq!(table.check(), Ok(())));
            let numbers =
                paper.tables.iter().flat_map(|t| &t.rows).map(|row| row.values.len()).sum();
            (paper.paper.id.clone(), paper.tables.len(), numbers)
        })
        .collect();
    let expected = COUNTS.map(|(id, tables, numbers)| (id.to_owned(), tables, numbers));
    assert_eq!(found, expected);
}

#[test]
fn every_encoding_of_a_row_has_its_settings_and_no_other_has_any() {
    let papers = papers().unwrap();
    let rows = papers.iter().flat_map(|paper| &paper.tables).flat_map(|table| &table.rows);
    let named: BTreeSet<String> =
        rows.flat_map(|row| [row.encoding.clone(), row.trained_as.clone()]).flatten().collect();
    assert_eq!(named, encodings().unwrap().into_keys().collect());
}

#[test]
fn free_settings_exist() {
    let encodings = encodings().unwrap();
    for paper in papers().unwrap() {
        for row in paper.tables.iter().flat_map(|table| &table.rows) {
            for setting in &row.free {
                let known = &encodings[row.encoding.as_ref().unwrap()].settings;
                let known = crate::reproduction::recipe::flat(known);
                assert!(known.contains_key(setting), "{}: {setting}", row.title());
            }
        }
    }
}

#[test]
fn what_is_known_of_the_flip_flop_table_is_there() {
    let cope = papers().unwrap().remove(0);
    let table = &cope.tables[0];
    assert_eq!((table.seeds, table.task.as_deref()), (Some(3), Some("flip-flop")));
    let row = table.rows.iter().find(|row| row.encoding.as_deref() == Some("rope")).unwrap();
    let values = row.values.iter().map(|printed| printed.value.unwrap());
    assert_eq!(values.collect::<Vec<_>>(), [1.8, 20.3]);
    assert_eq!(row.deviations.get("in distribution"), Some(&3.1));
}

#[test]
fn a_number_has_the_digits_and_the_rounding_of_its_print() {
    let printed = |text: &str| Printed::try_from(text.to_owned()).unwrap();
    for (text, value, rounding) in
        [("0.03", 0.03, 0.005), ("22.90", 22.9, 0.005), ("0.0", 0.0, 0.05), ("3910", 3910.0, 0.5)]
    {
        let number = printed(text);
        assert_eq!((number.text.as_str(), number.value), (text, Some(value)));
        assert!((number.rounding() - rounding).abs() < 1e-12, "{text}: {}", number.rounding());
    }
    assert_eq!(printed("unread").value, None);
    assert!(Printed::try_from("4,9".to_owned()).unwrap_err().contains("`4,9`, expected"));
}

/// Numbers that the papers print and that are not carried over, so that none is forgotten.
#[test]
fn every_unread_number_is_counted() {
    let papers = papers().unwrap();
    let tables = || papers.iter().flat_map(|paper| &paper.tables);
    let rows = tables().flat_map(|table| &table.rows);
    let unread = rows.clone().flat_map(|row| &row.values).filter(|n| n.value.is_none()).count();
    let deviations = rows.map(|row| row.deviations.len()).sum::<usize>();
    // Of 35 deviations in CoPE's Tables 7, 9 and 10 ten are here.
    assert_eq!((unread, deviations), (0, 10));
}

const GOOD: &str = r#"
[paper]
id = "p"
label = "P"
title = "P"
url = "u"
about = "a"
[[table]]
id = "t"
source = "Table 1"
what = "w"
metric = "error-percent"
trust = "t"
task = "copy"
columns = [{ name = "a", split = "uniform" }, { name = "b", split = "uniform", length_ratio = 2 }]
rows = [{ encoding = "rope", values = ["1.0", "2.0"], deviations = { b = 0.5 } }]
"#;

#[test]
fn a_mistake_is_refused_and_its_place_named() {
    // Reads a source and checks its tables, as the test of the files does.
    let checked = |text: &str| -> Result<(), String> {
        let paper = parse("p", text).map_err(|error| error.to_string())?;
        let failed = paper.tables.iter().find_map(|table| table.check().err());
        failed.map_or(Ok(()), |(at, reason)| Err(format!("{at}: {reason}")))
    };
    assert_eq!(checked(GOOD), Ok(()));
    for (from, to, told) in [
        ("\"2.0\"]", "\"2.o\"]", "`2.o`, expected a number"),
        ("[\"1.0\", \"2.0\"]", "[\"1.0\"]", "1 values, expected 2"),
        ("\"2.0\"]", "\"200.0\"]", "200, expected 0 to 100"),
        ("\"2.0\"]", "\"nan\"]", "NaN, expected 0 to 100"),
        ("\"2.0\"]", "\"unread\"]", ""),
        ("trust = \"t\"", "trust = \"t\"\nneeds = \"n\"", "needs"),
        ("trust = \"t\"", "trust = \"t\"\nunlike = [\"u\"]", "needs"),
        ("trust = \"t\"", "trust = \"t\"\nunlike = [\"u\"]\nneeds = \"n\"", ""),
        ("{ b = 0.5 }", "{ c = 0.5 }", "no column is called `c`"),
        ("name = \"b\"", "name = \"a\"", "stands twice"),
        ("length_ratio = 2", "length_ratio = -2", "length_ratio -2"),
        ("task = \"copy\"", "", "exactly one of"),
        ("task = \"copy\"", "missing = \"data\"", "needs"),
        ("task = \"copy\"", "missing = \"data\"\nneeds = \"n\"", "column `a`"),
        ("task = \"copy\"", "task = \"copy\"\nmissing = \"data\"", "exactly one of"),
        ("encoding = \"rope\"", "name = \"rope\"", "needs an `encoding`"),
        ("encoding =", "trained_as = \"a\", name =", "`trained_as` without"),
        ("metric = \"error-percent\"", "metric = { other = \"F1\" }", "records do not hold"),
        ("metric = \"error-percent\"", "metric = \"eror\"", "eror"),
        ("metric = \"error-percent\"", "metric = \"perplexity\"", ""),
        ("trust = \"t\"", "trust = \"t\"\nsuit = \"x\"", "suit"),
        ("trust = \"t\"", "trust = \"t\"\nstability = { n = 3 }", "expected a `stability`"),
        ("length_ratio = 2", "stability = \"/a\"", "expected a `stability`"),
    ] {
        let text = GOOD.replacen(from, to, 1);
        assert_ne!(text, GOOD, "{from}");
        let result = checked(&text);
        if told.is_empty() {
            assert_eq!(result, Ok(()), "{to}");
        } else {
            let error = result.unwrap_err();
            assert!(error.contains(told), "{to}: {error}");
        }
    }
}
