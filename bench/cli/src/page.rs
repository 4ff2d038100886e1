//! Pages that commands write.

use std::path::{Component, Path};

use analysis::PageLink;
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

/// Option of commands that write pages for a site.
#[derive(Args, Clone, Default)]
pub(crate) struct LinkArgs {
    /// Link at the foot of every page, such as Guide=../index.html; may be repeated. A relative address starts at the output folder.
    #[arg(long = "link", value_name = "NAME=ADDRESS", value_parser = link)]
    pub(super) links: Vec<PageLink>,
}

fn link(text: &str) -> Result<PageLink, String> {
    let parts =
        text.split_once('=').filter(|(name, address)| !name.is_empty() && !address.is_empty());
    let (name, address) =
        parts.ok_or_else(|| "expected NAME=ADDRESS, such as Guide=../index.html".to_owned())?;
    let is_web = ["https://", "http://"].iter().any(|start| address.starts_with(start));
    if address.contains(':') && !is_web {
        return Err(format!(
            "the address is `{address}`, expected a relative path or an address that begins with https://"
        ));
    }
    Ok(PageLink { name: name.to_owned(), address: address.to_owned() })
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
    use super::*;

    #[test]
    fn a_link_has_a_name_and_an_address_that_runs_nothing() {
        let plan = link("Plan=../zoo/plan.html?a=b").unwrap();
        assert_eq!((&*plan.name, &*plan.address), ("Plan", "../zoo/plan.html?a=b"));
        assert!(link("Guide=https://example.org").is_ok());
        for wrong in ["Plan", "=x", "Plan=", "Plan=javascript:alert(1)"] {
            let said = link(wrong).unwrap_err();
            assert!(said.contains("expected"), "{said}");
        }
    }

    #[test]
    fn an_address_has_no_character_that_ends_it() {
        let address = address("/a b/100 %/index.html".as_ref());
        assert_eq!(address, "file:///a%20b/100%20%25/index.html");
    }
}
