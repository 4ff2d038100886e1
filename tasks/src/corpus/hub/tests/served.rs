//! Tests of the real client with a local server that answers as the hub does.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};

use super::*;

/// Behaviour of the server.
#[derive(Clone, Copy, PartialEq)]
enum Conduct {
    Whole,
    /// The server closes the connection in the middle of the second file.
    Cut,
    /// The server has no data set.
    Empty,
}

/// Serves until the test ends; returns its address.
fn serve(conduct: Conduct) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            // Errors of clients that disconnect are ignored.
            let _ = answer(stream, conduct);
        }
    });
    address
}

fn answer(mut stream: TcpStream, conduct: Conduct) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines().map_while(Result::ok);
    let request = lines.next().unwrap_or_default();
    let headers = lines.take_while(|line| !line.is_empty()).collect::<Vec<_>>();
    let path = request.split(' ').nth(1).unwrap_or_default();
    let files = BTreeMap::from(FILES);
    let file = path.strip_prefix("/datasets/owner/name/resolve/c0ffee/");
    if conduct == Conduct::Empty {
        return write!(
            stream,
            "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        );
    }
    let Some(text) = file.and_then(|file| files.get(file)) else {
        let names = files.keys().map(|file| format!("{{\"rfilename\": \"{file}\"}}"));
        let names = names.collect::<Vec<_>>().join(", ");
        let body = format!("{{\"sha\": \"c0ffee\", \"siblings\": [{names}]}}");
        let length = body.len();
        return write!(
            stream,
            "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        );
    };
    let range = headers.iter().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("range").then(|| value.trim().strip_prefix("bytes="))?
    });
    let (first, last) = range.and_then(|range| range.split_once('-')).unwrap_or(("0", ""));
    let first = first.parse::<usize>().unwrap();
    let end = last.parse::<usize>().map_or(text.len(), |last| (last + 1).min(text.len()));
    let body = &text[first..end];
    write!(
        stream,
        "HTTP/1.1 206 Partial Content\r\nContent-Length: {}\r\nContent-Range: bytes {first}-{}/{}\r\n\
         ETag: \"{}\"\r\nX-Repo-Commit: c0ffee\r\nConnection: close\r\n\r\n",
        body.len(),
        end - 1,
        text.len(),
        sha256_hex(text.as_bytes()),
    )?;
    let cut = conduct == Conduct::Cut && file == Some("data/train-1.jsonl") && body.len() > 1;
    stream.write_all(if cut { &body.as_bytes()[..1] } else { body.as_bytes() })
}

fn fetched_from(address: &str, cache: &Path) -> Result<PathBuf, HubError> {
    let client = |work: &Path| api::Hub::at(work, Some(address.to_owned()));
    fetch_into(&set(), cache, client, &mut |_| ())
}

#[test]
fn the_client_brings_what_a_hub_serves() {
    let cache = TempDir::new().unwrap();
    let path = fetched_from(&serve(Conduct::Whole), cache.path()).unwrap();
    let parts = crate::data::read(&path, None).unwrap();
    assert_eq!(parts.texts(Part::Train).collect::<Vec<_>>(), ["one", "two", "three"]);
    assert_eq!(parts.texts(Part::Validation).collect::<Vec<_>>(), ["four"]);
    // The stored data set is found without a server.
    assert_eq!(fetched_from("http://127.0.0.1:1", cache.path()).unwrap(), path);
    assert_eq!(entries(cache.path()), 1);
}

#[test]
fn a_hub_that_fails_leaves_nothing_and_is_quoted() {
    let cache = TempDir::new().unwrap();
    for (address, why) in [
        ("http://127.0.0.1:1".to_owned(), "cannot list hf:owner/name: "),
        (serve(Conduct::Empty), "404"),
        (serve(Conduct::Cut), "data/train-1.jsonl"),
    ] {
        let said = fetched_from(&address, cache.path()).unwrap_err().to_string();
        assert!(said.contains(why) && said.contains("--data PATH"), "{said}");
        assert_eq!(entries(cache.path()), 0, "{said}");
    }
}
