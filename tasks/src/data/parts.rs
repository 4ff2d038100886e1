//! Documents, and the rules that divide them into training, validation and test.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::error::DataError;
use crate::files::{hex, sha256_hex};

/// Number of documents from which whole documents are used for evaluation; fewer are each split in two.
const ENOUGH: usize = 10;

/// Treatment of the boundary between two documents.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Borders {
    /// Documents stay separate: no window crosses from one into the next.
    #[default]
    Apart,
    /// The documents of a part are concatenated into one text.
    Joined,
}

/// Part of the data that a document belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The document is used for training.
    Train,
    /// The document is used for evaluation, also while choosing settings.
    Validation,
    /// The document is used for the final evaluation after all choices.
    Test,
}

impl Part {
    /// All parts, in the order of the stored tokens.
    pub const ALL: [Part; 3] = [Part::Train, Part::Validation, Part::Test];

    /// Name in messages and, except for training, as a split of a task.
    pub fn id(self) -> &'static str {
        match self {
            Part::Train => "training",
            Part::Validation => "validation",
            Part::Test => "test",
        }
    }

    /// Part by the last digit of a number: 0 to 7 training, 8 validation, 9 test.
    fn of_digit(digit: usize) -> Self {
        match digit % 10 {
            8 => Part::Validation,
            9 => Part::Test,
            _ => Part::Train,
        }
    }
}

/// Text with a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TextDocument {
    /// Path within the data, with the line or row; empty for a single text.
    pub name: String,
    /// Content of the document.
    pub text: String,
}

impl TextDocument {
    /// Returns a text without a name.
    pub fn unnamed(text: String) -> Self {
        Self { name: String::new(), text }
    }
}

/// Documents divided into parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parts {
    /// Documents sorted by part, in the order of the data within a part.
    pub documents: Vec<(Part, TextDocument)>,
    /// SHA-256 of the data: of the text if a single text is split in two, otherwise of parts, names and texts.
    pub sha256: String,
}

/// Rule that divides documents if the data do not specify their parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SplitRule {
    /// Split by the number of the document in order if there are at least ten; otherwise each
    /// document is split at nine tenths.
    ByNumber,
    /// Split by the year at the start of the document's name.
    ByYear,
}

impl SplitRule {
    /// Divides documents into parts.
    ///
    /// # Errors
    /// [`DataError::NoYear`].
    pub fn parts(self, documents: Vec<TextDocument>) -> Result<Parts, DataError> {
        if let (Self::ByNumber, [only]) = (self, &documents[..]) {
            let sha256 = sha256_hex(only.text.as_bytes());
            return Ok(Parts { sha256, ..Parts::new(cut(only).into()) });
        }
        if self == Self::ByNumber && documents.len() < ENOUGH {
            return Ok(Parts::new(documents.iter().flat_map(cut).collect()));
        }
        let parted = documents.into_iter().enumerate().map(|(number, document)| {
            let digit = match self {
                Self::ByNumber => number,
                Self::ByYear => year(&document.name)?,
            };
            Ok::<_, DataError>((Part::of_digit(digit), document))
        });
        Ok(Parts::new(parted.collect::<Result<_, _>>()?))
    }
}

fn year(name: &str) -> Result<usize, DataError> {
    let digits = name.bytes().take_while(u8::is_ascii_digit).count();
    name[..digits].parse().map_err(|_| DataError::NoYear { name: name.to_owned() })
}

impl Parts {
    /// Sorts documents by part; the sort is stable.
    pub fn new(mut documents: Vec<(Part, TextDocument)>) -> Self {
        documents.sort_by_key(|(part, _)| *part);
        let mut hasher = Sha256::new();
        for (part, TextDocument { name, text }) in &documents {
            // Lengths prevent two different data sets from giving the same input to the hash.
            hasher.update(format!("{}\n{}\n{name}\n{}\n", part.id(), name.len(), text.len()));
            hasher.update(text);
        }
        Self { documents, sha256: hex(&hasher.finalize()) }
    }

    /// Returns the documents with these borders. The hash is unchanged, because it is that of the data.
    #[must_use]
    pub fn with_borders(self, borders: Borders) -> Self {
        if borders == Borders::Apart {
            return self;
        }
        let mut joined: Vec<(Part, TextDocument)> = Vec::new();
        for (part, document) in self.documents {
            match joined.last_mut() {
                Some((last, whole)) if *last == part => whole.text += &document.text,
                _ => joined.push((part, TextDocument { name: part.id().to_owned(), ..document })),
            }
        }
        Self { documents: joined, sha256: self.sha256 }
    }

    /// Texts of one part.
    pub fn texts(&self, part: Part) -> impl Iterator<Item = &str> {
        self.documents.iter().filter(move |(of, _)| *of == part).map(|(_, doc)| doc.text.as_str())
    }

    /// Size of all texts in bytes.
    pub fn bytes(&self) -> usize {
        self.documents.iter().map(|(_, document)| document.text.len()).sum()
    }
}

/// Splits a document at nine tenths of its characters.
fn cut(document: &TextDocument) -> [(Part, TextDocument); 2] {
    let text = &document.text;
    let chars = text.chars().count();
    let front = chars / 10 * 9 + chars % 10 * 9 / 10;
    let at = text.char_indices().nth(front).map_or(text.len(), |(at, _)| at);
    let piece = |text: &str| TextDocument { name: document.name.clone(), text: text.to_owned() };
    [(Part::Train, piece(&text[..at])), (Part::Validation, piece(&text[at..]))]
}

/// Splits a text at two byte offsets, each moved to the next character boundary.
pub(super) fn cut_at(text: &str, cuts: [usize; 2]) -> Parts {
    let [front, back] = cuts.map(|at| text.ceil_char_boundary(at));
    let pieces = [&text[..front], &text[front..back], &text[back..]];
    let document = |text: &str| TextDocument::unnamed(text.to_owned());
    Parts::new(Part::ALL.into_iter().zip(pieces.map(document)).collect())
}
