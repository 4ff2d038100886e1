//! A small seeded mutator of bytes.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

/// Numbers and signs that parsers stumble over.
const TOKENS: &[&str] = &[
    "-0",
    "-0.0",
    "0",
    "1",
    "-1",
    "1e999",
    "-1e999",
    "1e-999",
    "NaN",
    "nan",
    "inf",
    "-inf",
    "null",
    "true",
    "2147483648",
    "4294967296",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "-9223372036854775808",
    "1e308",
    "5e-324",
    "0.30000000000000004",
    "3e-4",
    "1_000",
    "0x10",
    "1979-05-27T07:32:00Z",
    "\"\"",
    "\"\\u0000\"",
    "\"\\ud800\"",
    "{}",
    "[]",
    "[[]]",
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    "=",
    ",",
    ".",
    "+",
    "\"",
    "'",
    "\"\"\"",
    "#",
    "\n",
    "\r\n",
    "\0",
    "\u{feff}",
    "é",
    "\u{202e}",
    "*",
    "..",
    "a.b",
    "[[workload]]",
    "[ablation]",
    "kind",
    "name",
];

/// Signs that open and close something; nested deep they find recursion without an end.
const NESTS: &[(&str, &str)] = &[
    ("[", "]"),
    ("{a=", "}"),
    ("{\"a\":", "}"),
    ("(", ")"),
    ("tape(", ")"),
    ("randomized(", ")"),
    ("-", ""),
];

/// Deepest nest.
const DEEPEST: usize = 20_000;

/// Bytes at the beginning of a file that are changed more often than others.
const HEADER: usize = 512;

/// Longest result.
const LONGEST: usize = 1 << 17;

/// Changes an entry of the corpus in one to five places, few more often than many.
pub(crate) fn mutate(corpus: &[Vec<u8>], rng: &mut ChaCha8Rng) -> Vec<u8> {
    let mut bytes = corpus[below(rng, corpus.len())].clone();
    let binary = std::str::from_utf8(&bytes).is_err();
    let most = 1 + below(rng, 5);
    for _ in 0..=below(rng, most) {
        // Binary formats survive few changes of their length.
        if binary && below(rng, 4) > 0 {
            overwrite(&mut bytes, rng);
        } else {
            once(&mut bytes, corpus, rng);
        }
        bytes.truncate(LONGEST);
    }
    bytes
}

fn below(rng: &mut ChaCha8Rng, n: usize) -> usize {
    if n == 0 { 0 } else { rng.random_range(0..n) }
}

/// A range of at most `most` bytes.
fn range(bytes: &[u8], most: usize, rng: &mut ChaCha8Rng) -> std::ops::Range<usize> {
    let start = below(rng, bytes.len());
    let len = below(rng, most.min(bytes.len() - start) + 1);
    start..start + len
}

fn insert(bytes: &mut Vec<u8>, at: usize, what: &[u8]) {
    bytes.splice(at..at, what.iter().copied());
}

fn once(bytes: &mut Vec<u8>, corpus: &[Vec<u8>], rng: &mut ChaCha8Rng) {
    let at = below(rng, bytes.len() + 1);
    match below(rng, 13) {
        0 if !bytes.is_empty() => {
            let at = below(rng, bytes.len());
            bytes[at] ^= 1 << below(rng, 8);
        }
        1 => {
            let range = range(bytes, 32, rng);
            bytes.drain(range);
        }
        2 => {
            let copy = bytes[range(bytes, 64, rng)].to_vec();
            insert(bytes, at, &copy);
        }
        3 => {
            let other = &corpus[below(rng, corpus.len())];
            let part = other[range(other, 128, rng)].to_vec();
            insert(bytes, at, &part);
        }
        4 => insert(bytes, at, TOKENS[below(rng, TOKENS.len())].as_bytes()),
        5 if below(rng, 20) == 0 => {
            let (open, close) = NESTS[below(rng, NESTS.len())];
            let depth = 1 + below(rng, DEEPEST);
            insert(bytes, at, (open.repeat(depth) + &close.repeat(depth)).as_bytes());
        }
        // Lines of another entry: what makes new valid inputs out of valid ones.
        5 | 6 => {
            let other = corpus[below(rng, corpus.len())].split_inclusive(|b| *b == b'\n');
            let lines = other.collect::<Vec<_>>();
            let line = lines[below(rng, lines.len())].to_vec();
            let ends = bytes.iter().enumerate().filter(|(_, b)| **b == b'\n');
            let ends = ends.map(|(at, _)| at + 1).collect::<Vec<_>>();
            let at = if ends.is_empty() { at } else { ends[below(rng, ends.len())] };
            insert(bytes, at, &line);
        }
        7 => {
            let lines = bytes.split_inclusive(|b| *b == b'\n').map(<[u8]>::to_vec);
            let mut lines = lines.collect::<Vec<_>>();
            if lines.len() > 1 {
                lines.remove(below(rng, lines.len()));
            }
            *bytes = lines.concat();
        }
        8 => overwrite(bytes, rng),
        // The rest go to numbers: that is where ranges are.
        _ => replace_number(bytes, rng),
    }
}

/// Changes a bit, or up to eight bytes: lengths and offsets of binary formats. Half of the changes are among the first
/// bytes, where headers are.
fn overwrite(bytes: &mut [u8], rng: &mut ChaCha8Rng) {
    let end = if below(rng, 2) == 0 { bytes.len() } else { bytes.len().min(HEADER) };
    let bytes = &mut bytes[..end];
    if bytes.is_empty() {
        return;
    }
    if below(rng, 2) == 0 {
        bytes[below(rng, end)] ^= 1 << below(rng, 8);
    } else {
        let range = range(bytes, 8, rng);
        bytes[range].fill([0, 1, 0x7f, 0xff][below(rng, 4)]);
    }
}

/// Puts another number, or something else, in the place of a number.
fn replace_number(bytes: &mut Vec<u8>, rng: &mut ChaCha8Rng) {
    let is_start = |at: usize| {
        bytes[at].is_ascii_digit() && (at == 0 || !bytes[at - 1].is_ascii_alphanumeric())
    };
    let starts = (0..bytes.len()).filter(|at| is_start(*at)).collect::<Vec<_>>();
    let Some(start) = starts.get(below(rng, starts.len())).copied() else { return };
    let len = bytes[start..]
        .iter()
        .position(|b| !(b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_')))
        .unwrap_or(bytes.len() - start);
    let number = match below(rng, 4) {
        0 => TOKENS[below(rng, TOKENS.len())].to_owned(),
        1 => below(rng, 1 << 20).to_string(),
        2 => below(rng, 12).to_string(),
        _ => (rng.random::<f64>() * 10f64.powi(below(rng, 12) as i32 - 6)).to_string(),
    };
    bytes.splice(start..start + len, number.bytes());
}
