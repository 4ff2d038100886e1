//! Check of the metadata of a GGUF file before they are read: the reader of the library divides by the alignment, and takes
//! many times the memory of an array's bytes.

/// Metadata key of the alignment of the tensors.
const ALIGNMENT: &[u8] = b"general.alignment";

/// Maximum number of values in the metadata, those of arrays included; vocabularies have a tenth of it.
const MOST_VALUES: u64 = 1 << 24;

/// Maximum depth of arrays within arrays; models have none.
const DEEPEST: usize = 8;

/// Refuses metadata that extend beyond the file, have too many values, or an alignment that is not a power of two. A file of
/// an unknown version is left to the reader.
pub(super) fn check(bytes: &[u8]) -> Result<(), String> {
    let mut header = Header { rest: bytes, has_short_lengths: false, values: 0 };
    let [_magic, version] = [header.number()?, header.number()?];
    if !(1..=3).contains(&version) {
        return Ok(());
    }
    header.has_short_lengths = version == 1;
    let [_tensors, entries] = [header.length()?, header.length()?];
    header.count(entries)?;
    for _ in 0..entries {
        let key = header.text()?;
        let kind = header.number()?;
        let before = header.rest;
        header.skip(kind, 0)?;
        // The reader ignores zeros at the end of a key.
        let end = key.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        if key[..end] == *ALIGNMENT {
            let value = before.first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
            let value = value.filter(|_| kind == U32);
            if !value.is_some_and(u32::is_power_of_two) {
                let value = value.map_or("of another type".to_owned(), |value| value.to_string());
                return Err(format!(
                    "`general.alignment` is {value}, expected a power of two as an unsigned number of 32 bits"
                ));
            }
        }
    }
    Ok(())
}

/// Numbers of the types of values.
const U32: u32 = 4;
const TEXT: u32 = 8;
const ARRAY: u32 = 9;

/// Number of bytes of a value of a type; `None` for texts, arrays and unknown types.
fn width(kind: u32) -> Option<u64> {
    match kind {
        0 | 1 | 7 => Some(1),
        2 | 3 => Some(2),
        U32 | 5 | 6 => Some(4),
        10..=12 => Some(8),
        _ => None,
    }
}

struct Header<'a> {
    rest: &'a [u8],
    /// Whether lengths have 32 bits, as in version 1.
    has_short_lengths: bool,
    /// Number of values so far.
    values: u64,
}

impl<'a> Header<'a> {
    fn take(&mut self, count: u64) -> Result<&'a [u8], String> {
        let parts = usize::try_from(count).ok().and_then(|count| self.rest.split_at_checked(count));
        let (taken, rest) = parts.ok_or("its metadata extend beyond the end of the file")?;
        self.rest = rest;
        Ok(taken)
    }

    /// Reads a number of `bytes` bytes, at most eight.
    fn little_endian(&mut self, bytes: u64) -> Result<u64, String> {
        let taken = self.take(bytes)?;
        Ok(taken.iter().rev().fold(0, |number, byte| (number << 8) | u64::from(*byte)))
    }

    fn number(&mut self) -> Result<u32, String> {
        Ok(self.little_endian(4)? as u32)
    }

    fn length(&mut self) -> Result<u64, String> {
        self.little_endian(if self.has_short_lengths { 4 } else { 8 })
    }

    fn text(&mut self) -> Result<&'a [u8], String> {
        let len = self.length()?;
        self.take(len)
    }

    fn count(&mut self, values: u64) -> Result<(), String> {
        self.values = self.values.saturating_add(values);
        if self.values <= MOST_VALUES {
            return Ok(());
        }
        Err(format!("its metadata have {} values, expected at most {MOST_VALUES}", self.values))
    }

    fn skip(&mut self, kind: u32, depth: usize) -> Result<(), String> {
        match (kind, width(kind)) {
            (_, Some(width)) => self.take(width).map(drop),
            (TEXT, _) => self.text().map(drop),
            (ARRAY, _) if depth < DEEPEST => {
                let kind = self.number()?;
                let len = self.length()?;
                self.count(len)?;
                match width(kind) {
                    Some(width) => self.take(len * width).map(drop),
                    None => (0..len).try_for_each(|_| self.skip(kind, depth + 1)),
                }
            }
            (ARRAY, _) => {
                Err(format!("arrays in its metadata are nested more than {DEEPEST} levels deep"))
            }
            _ => Err(format!("its metadata have a value of the unknown type {kind}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header of version 3 with these metadata, each a key, the number of a type and a value.
    fn file(entries: &[(&[u8], u32, Vec<u8>)]) -> Vec<u8> {
        let mut bytes = [b"GGUF".as_slice(), &3_u32.to_le_bytes(), &[0; 8]].concat();
        bytes.extend((entries.len() as u64).to_le_bytes());
        for (key, kind, value) in entries {
            bytes.extend((key.len() as u64).to_le_bytes());
            bytes.extend(*key);
            bytes.extend(kind.to_le_bytes());
            bytes.extend(value);
        }
        bytes
    }

    fn array(kind: u32, len: u64, values: &[u8]) -> Vec<u8> {
        [&kind.to_le_bytes(), len.to_le_bytes().as_slice(), values].concat()
    }

    #[test]
    fn an_alignment_is_a_power_of_two_whatever_zeros_end_its_key() {
        let of = |key: &[u8], kind: u32, value: &[u8]| check(&file(&[(key, kind, value.to_vec())]));
        let padded = [ALIGNMENT, &[0, 0]].concat();
        for key in [ALIGNMENT, &padded] {
            assert_eq!(of(key, U32, &32_u32.to_le_bytes()), Ok(()));
            for number in [0_u32, 24] {
                let said = of(key, U32, &number.to_le_bytes()).unwrap_err();
                assert!(said.contains(&format!("`general.alignment` is {number}, ")), "{said}");
            }
            let said = of(key, 0, &[0]).unwrap_err();
            assert!(said.contains("of another type"), "{said}");
        }
        // Other keys and texts may be anything.
        assert_eq!(of(b"general.alignments", U32, &[0; 4]), Ok(()));
        let text =
            [&(ALIGNMENT.len() as u64 + 8).to_le_bytes(), ALIGNMENT, &[4, 0, 0, 0, 0, 0, 0, 0]];
        assert_eq!(of(b"general.name", TEXT, &text.concat()), Ok(()));
    }

    #[test]
    fn lengths_beyond_the_file_or_any_model_are_refused() {
        let of = |value: Vec<u8>| check(&file(&[(b"a", ARRAY, value)]));
        assert_eq!(of(array(U32, 2, &[0; 8])), Ok(()));
        assert_eq!(of(array(ARRAY, 1, &array(TEXT, 1, &[0; 8]))), Ok(()));
        for (value, expected) in [
            (array(U32, 2, &[0; 7]), "beyond the end"),
            (array(U32, u64::MAX, &[]), "18446744073709551615 values"),
            (array(TEXT, 1, &u64::MAX.to_le_bytes()), "beyond the end"),
            (array(13, 1, &[0; 8]), "unknown type 13"),
            (array(0, MOST_VALUES, &vec![0; MOST_VALUES as usize]), "16777217 values"),
            ((0..9).fold(array(0, 0, &[]), |inner, _| array(ARRAY, 1, &inner)), "more than 8"),
        ] {
            let said = of(value).unwrap_err();
            assert!(said.contains(expected), "{said}");
        }
        assert!(check(b"GGUF").unwrap_err().contains("beyond the end"));
        assert_eq!(check(b"GGUF\x09\0\0\0"), Ok(()), "another version");
    }
}
