//! Formatting of numbers. Values that are not finite are shown as `n/a`.

const MISSING: &str = "n/a";

/// Formats a share in percent with one decimal: `97.1%`.
pub fn percent(share: f64) -> String {
    if share.is_finite() { format!("{:.1}%", 100.0 * share) } else { MISSING.to_owned() }
}

/// Formats a share in percentage points, without a unit: `-4.0`.
pub fn points(share: f64) -> String {
    let text = format!("{:.1}", 100.0 * share);
    if !share.is_finite() {
        MISSING.to_owned()
    } else if text == "-0.0" {
        "0.0".to_owned()
    } else {
        text
    }
}

/// Formats a number with three significant digits: `0.0123`, `4.53`, `453`, `45300`; in scientific notation from one
/// million.
pub fn three_digits(value: f64) -> String {
    if !value.is_finite() {
        return MISSING.to_owned();
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    // The exponent is that after rounding: 9.999 with three digits is 10.0, not 10.00.
    let scientific = format!("{value:.2e}");
    let exponent: i32 = scientific.split('e').nth(1).and_then(|e| e.parse().ok()).unwrap_or(0);
    if !(-6..6).contains(&exponent) {
        return scientific;
    }
    let rounded: f64 = scientific.parse().unwrap_or(value);
    let decimals = usize::try_from(2 - exponent).unwrap_or(0);
    format!("{rounded:.decimals$}")
}

/// Formats a p-value with two significant digits and a relation: `= 0.012` or `< 0.0001`.
pub fn p_value(p: f64) -> String {
    if p < 1e-4 { "< 0.0001".to_owned() } else { format!("= {}", two_digits(p)) }
}

/// Formats the smallest p-value that a test can give, rounded up to two significant digits, with a relation: `≤ 0.0011`.
pub fn least_p_value(p: f64) -> String {
    let unit = 10_f64.powf(p.log10().floor() - 1.0);
    // Steps that are whole but for rounding stay.
    let up = (p / unit - 1e-9).ceil() * unit;
    format!("≤ {}", two_digits(up).trim_end_matches('0').trim_end_matches('.'))
}

/// Formats a number between 0.0001 and 1 with two significant digits.
pub fn two_digits(value: f64) -> String {
    let scientific = format!("{value:.1e}");
    let exponent: i32 = scientific.split('e').nth(1).and_then(|e| e.parse().ok()).unwrap_or(0);
    let decimals = usize::try_from(1 - exponent).unwrap_or(0);
    if value.is_finite() { format!("{value:.decimals$}") } else { MISSING.to_owned() }
}

/// Formats a number with a decimal prefix: `1.50 G`.
pub fn si(value: f64) -> String {
    scaled(value, 1000.0, &["", " k", " M", " G", " T", " P", " E"])
}

/// Formats bytes with a binary prefix: `64.0 MiB`.
pub fn bytes(value: f64) -> String {
    scaled(value, 1024.0, &[" B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB"])
}

fn scaled(value: f64, base: f64, units: &[&str]) -> String {
    let mut value = value;
    let mut index = 0;
    while value.abs() >= base && index + 1 < units.len() {
        value /= base;
        index += 1;
    }
    let number = if index == 0 && value.fract() == 0.0 {
        format!("{value:.0}")
    } else {
        three_digits(value)
    };
    format!("{number}{}", units[index])
}

/// Formats an interval in brackets: `[92.0, 100.0]`; empty if there is none.
pub fn bracketed(ends: Option<(f64, f64)>, show: impl Fn(f64) -> String) -> String {
    ends.map_or_else(String::new, |(low, high)| format!("[{}, {}]", show(low), show(high)))
}

/// Formats a value with its interval, if there is one: `97.1% [92.0, 100.0]`.
pub fn value_and_interval(
    value: String,
    ends: Option<(f64, f64)>,
    show: impl Fn(f64) -> String,
) -> String {
    if ends.is_none() { value } else { format!("{value} {}", bracketed(ends, show)) }
}

/// Formats an integer with thin spaces between thousands: `104 000`.
pub fn thousands(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push('\u{2009}');
        }
        out.push(digit);
    }
    out
}

/// Formats a count with its noun: `1 seed`, `3 seeds`.
pub fn count(number: impl Into<u64>, noun: &str) -> String {
    let number = number.into();
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// Formats items with their noun: `seed 1`, `seeds 1, 2`.
pub fn numbered(noun: &str, items: &[impl std::fmt::Display]) -> String {
    let plural = if items.len() == 1 { "" } else { "s" };
    format!("{noun}{plural} {}", joined(items, ", "))
}

/// Joins items with this text between them.
pub fn joined(items: impl IntoIterator<Item: ToString>, between: &str) -> String {
    items.into_iter().map(|item| item.to_string()).collect::<Vec<_>>().join(between)
}

/// Joins items as a list in a sentence: `a`, `a and b`, `a, b and c`, and `a; b, 2; and c` if an item has a comma.
pub fn listed(items: &[String], last: &str) -> String {
    match (items, separator(items)) {
        ([], _) => String::new(),
        ([one], _) => one.clone(),
        ([first @ .., end], ", ") => format!("{} {last} {end}", first.join(", ")),
        ([first @ .., end], separator) => {
            format!("{}{separator}{last} {end}", first.join(separator))
        }
    }
}

/// Formats a list as [`listed`] does, of more than `most` and one items only the first: `a, b and 4 more`.
pub fn listed_first(most: usize, items: &[String], last: &str) -> String {
    if items.len() <= most + 1 {
        return listed(items, last);
    }
    let mut shown = items[..most].to_vec();
    shown.push(format!("{} more", items.len() - most));
    listed(&shown, last)
}

/// Returns the text with a capital first letter.
pub fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Returns what separates the items of a list: a comma, or a semicolon if an item has a comma itself.
pub fn separator<S: AsRef<str>>(items: &[S]) -> &'static str {
    if items.iter().any(|item| item.as_ref().contains(", ")) { "; " } else { ", " }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_as_intended() {
        assert_eq!(percent(0.9714), "97.1%");
        assert_eq!(percent(f64::NAN), "n/a");
        assert_eq!(points(-0.0001), "0.0");
        assert_eq!(points(-0.04), "-4.0");
        for (value, text) in [
            (4.534, "4.53"),
            (9.999, "10.0"),
            (45.34, "45.3"),
            (453.4, "453"),
            (4536.0, "4540"),
            (1.0, "1.00"),
            (0.012_34, "0.0123"),
            (12_345_678.0, "1.23e7"),
            (0.0, "0"),
            (f64::INFINITY, "n/a"),
        ] {
            assert_eq!(three_digits(value), text, "{value}");
        }
        assert_eq!((&*p_value(0.25), &*p_value(1e-9)), ("= 0.25", "< 0.0001"));
        assert_eq!((&*p_value(1.0), &*p_value(0.000_996)), ("= 1.0", "= 0.0010"));
        assert_eq!(p_value(f64::NAN), "= n/a");
        assert_eq!(si(1_500_000_000.0), "1.50 G");
        assert_eq!(si(512.0), "512");
        assert_eq!(bytes(f64::from(64 << 20)), "64.0 MiB");
        assert_eq!(thousands(104_000), "104\u{2009}000");
        assert_eq!(thousands(12), "12");
        assert_eq!((&*count(1_u64, "seed"), &*count(0_u64, "seed")), ("1 seed", "0 seeds"));
        assert_eq!(listed(&["a".into(), "b".into(), "c".into()], "and"), "a, b and c");
        assert_eq!(listed(&["a".into(), "b, 2".into(), "c".into()], "and"), "a; b, 2; and c");
        assert_eq!(listed(&["b, 2".into()], "and"), "b, 2");
        let four = ["a", "b", "c", "d"].map(str::to_owned);
        assert_eq!(listed_first(2, &four, "or"), "a, b or 2 more");
        assert_eq!(listed_first(3, &four, "or"), "a, b, c or d");
    }
}
