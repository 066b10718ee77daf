//! Beginnings by which files that Weir itself has written are recognised.

use crate::ReadError;

/// Beginnings of the list of columns of series.
pub(crate) const FLOWS: &str = "time_s,flow,";
pub(crate) const LINKS: &str = "time_s,link,";
/// Titles of pages of calls with browsers.
const TITLES: [&[u8]; 2] = [b"<title>A call with a browser</title>", b"<title>Calls with browsers</title>"];
/// Longest name of a schema.
const MAX_SCHEMA: usize = 40;

/// Whether a line is the list of columns of series.
pub(crate) fn is_series(line: &[u8]) -> bool {
    [FLOWS, LINKS].iter().any(|begin| line.starts_with(begin.as_bytes()))
}

/// Whether a page is one of calls with browsers.
pub(crate) fn is_page(head: &[u8]) -> bool {
    TITLES.iter().any(|title| head.windows(title.len()).any(|w| w == *title))
}

/// Whether it is a report of a run or a call, by the schema that it states. Errors: it is another report of Weir.
pub(crate) fn is_report(head: &[u8]) -> Result<bool, ReadError> {
    match schema(head) {
        None => Ok(false),
        Some("run:1" | "call:1") => Ok(true),
        Some(other) => Err(ReadError::Unknown(format!(
            "a report of Weir, weir:{other}: of its JSON those of one run (weir:run:1) and of a call (weir:call:1) are read"
        ))),
    }
}

fn schema(head: &[u8]) -> Option<&str> {
    let key = b"\"schema\"";
    let at = head.windows(key.len()).position(|w| w == key)? + key.len();
    let rest = head.get(at..)?.trim_ascii_start().strip_prefix(b":")?.trim_ascii_start().strip_prefix(b"\"weir:")?;
    let end = rest.iter().take(MAX_SCHEMA).position(|b| *b == b'"')?;
    std::str::from_utf8(&rest[..end]).ok()
}
