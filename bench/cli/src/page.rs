//! Pages that commands write.

use std::path::{Component, Path};

use clap::Args;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};

use super::out::{complain, say};

/// Characters that a link cannot have, or that end one in Markdown.
pub(super) const NOT_IN_LINKS: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'=').remove(b',');

/// Option of commands that write a page.
#[derive(Args, Clone, Copy, Default)]
pub(crate) struct OpenArgs {
    /// Open the page in the browser.
    #[arg(long)]
    pub(super) open: bool,
}

impl OpenArgs {
    /// Prints the address of a page after its name, and opens it if that is wanted.
    pub(super) fn show(self, name: &str, page: &Path) {
        say(&format!("{name}: {}", address(page)));
        if self.open
            && let Err(error) = open::that_detached(page)
        {
            complain(&format!("warning: cannot open {} in a browser: {error}", page.display()));
        }
    }
}

/// Address of a file, which terminals and browsers open; its path if it has no absolute one.
fn address(page: &Path) -> String {
    let Ok(page) = std::path::absolute(page) else { return page.display().to_string() };
    let parts = page.components().map(|part| match part {
        Component::RootDir => String::new(),
        Component::Prefix(prefix) => format!("/{}", prefix.as_os_str().display()),
        part => percent_encode(part.as_os_str().as_encoded_bytes(), NOT_IN_LINKS).to_string(),
    });
    format!("file://{}", parts.collect::<Vec<_>>().join("/"))
}

#[cfg(all(test, unix))]
mod tests {
    #[test]
    fn an_address_has_no_character_that_ends_it() {
        let address = super::address("/a b/100 %/index.html".as_ref());
        assert_eq!(address, "file:///a%20b/100%20%25/index.html");
    }
}
