//! Fast parser of intact record files: one pass for the checksum and one for the fields.
//!
//! If it fails, the slower parser in [`super::file`] describes the defect. This one builds no tree of values, which
//! would take most of the time of reading a hundred thousand files.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::value::CowStrDeserializer;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;
use sha2::{Digest, Sha256};

use super::canonical::append;
use crate::record::{RunRecord, SCHEMA};

/// Name of the checksum's field.
const SEAL: &str = "sha256";

/// Parses the record in a file; `None` if the file differs in any way from the form that is written today.
pub(super) fn read(bytes: &[u8]) -> Option<RunRecord> {
    let mut pass = Pass::default();
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    Canonical { pass: &mut pass, outermost: true }.deserialize(&mut reader).ok()?;
    reader.end().ok()?;
    let known = pass.schema.is_some_and(|schema| (1..=u64::from(SCHEMA)).contains(&schema));
    let whole = pass.seal.is_none_or(|written| *written == hex::encode(Sha256::digest(&pass.text)));
    if !known || !whole {
        return None;
    }
    let mut fields = serde_json::Deserializer::from_slice(bytes);
    let mut record = RunRecord::deserialize(Unsealed(&mut fields)).ok()?;
    // Without this, a list has a capacity of four, and most evaluations have one property.
    record.evals.iter_mut().for_each(|eval| eval.slices.shrink_to_fit());
    Some(record)
}

/// State of the checksum pass over a file.
#[derive(Default)]
struct Pass<'de> {
    /// Canonical JSON without the checksum, up to the current position.
    text: Vec<u8>,
    /// Fields of the open objects: the name, and the range of its text.
    fields: Vec<(Cow<'de, str>, usize, usize)>,
    /// Buffer for sorting fields.
    sorted: Vec<u8>,
    schema: Option<u64>,
    seal: Option<String>,
}

impl Pass<'_> {
    /// Closes an object whose fields start at index `first` and whose text starts at `open`: sorts its fields by
    /// name. Returns `false` if two fields have the same name.
    fn close(&mut self, first: usize, open: usize) -> bool {
        let fields = &mut self.fields[first..];
        fields.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        let once = fields.windows(2).all(|two| two[0].0 != two[1].0);
        self.sorted.clear();
        self.sorted.push(b'{');
        for (index, (_, start, end)) in fields.iter().enumerate() {
            if index > 0 {
                self.sorted.push(b',');
            }
            self.sorted.extend_from_slice(&self.text[*start..*end]);
        }
        self.sorted.push(b'}');
        self.text.truncate(open);
        self.text.extend_from_slice(&self.sorted);
        self.fields.truncate(first);
        once
    }
}

/// Writes a value as [`super::canonical`] does.
struct Canonical<'p, 'de> {
    pass: &'p mut Pass<'de>,
    outermost: bool,
}

impl<'de> DeserializeSeed<'de> for Canonical<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Canonical<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        append(&value, &mut self.pass.text);
        Ok(())
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        append(&value, &mut self.pass.text);
        Ok(())
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        append(&value, &mut self.pass.text);
        Ok(())
    }

    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        append(&value, &mut self.pass.text);
        Ok(())
    }

    fn visit_str<E>(self, value: &str) -> Result<(), E> {
        append(value, &mut self.pass.text);
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        append(&(), &mut self.pass.text);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        self.pass.text.push(b'[');
        let mut comma = self.pass.text.len();
        while items
            .next_element_seed(Canonical { pass: &mut *self.pass, outermost: false })?
            .is_some()
        {
            comma = self.pass.text.len();
            self.pass.text.push(b',');
        }
        self.pass.text.truncate(comma);
        self.pass.text.push(b']');
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let (first, open) = (self.pass.fields.len(), self.pass.text.len());
        while let Some(name) = map.next_key_seed(Name)? {
            if self.outermost && name == SEAL {
                let written = map.next_value()?;
                if self.pass.seal.replace(written).is_some() {
                    return Err(A::Error::duplicate_field(SEAL));
                }
                continue;
            }
            let start = self.pass.text.len();
            append(&*name, &mut self.pass.text);
            self.pass.text.push(b':');
            if self.outermost && name == "schema" {
                let schema = map.next_value()?;
                append(&schema, &mut self.pass.text);
                self.pass.schema = Some(schema);
            } else {
                map.next_value_seed(Canonical { pass: &mut *self.pass, outermost: false })?;
            }
            let end = self.pass.text.len();
            self.pass.fields.push((name, start, end));
        }
        // Duplicate fields are left to the slower parser.
        if self.pass.close(first, open) { Ok(()) } else { Err(A::Error::custom("a name twice")) }
    }
}

/// Name of a field, borrowed from the file unless it contains escapes.
struct Name;

impl<'de> DeserializeSeed<'de> for Name {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Name {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(name))
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(name.to_owned()))
    }
}

/// Deserializer of an object that ignores the checksum field.
struct Unsealed<T>(T);

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Unsealed<D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_map(Unsealed(visitor))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Unsealed<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(f)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        self.0.visit_map(Unsealed(map))
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Unsealed<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        loop {
            match self.0.next_key_seed(Name)? {
                Some(name) if name == SEAL => {
                    self.0.next_value::<IgnoredAny>()?;
                }
                Some(name) => return seed.deserialize(CowStrDeserializer::new(name)).map(Some),
                None => return Ok(None),
            }
        }
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.0.next_value_seed(seed)
    }
}
