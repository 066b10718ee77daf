//! A description's lines, with their numbers.

use super::{MAX_LENGTH, MAX_LINE, SdpError, shortened};

/// Attributes of a name that are read; more are ignored.
const MAX_ENTRIES: usize = 64;

struct Line<'a> {
    number: usize,
    kind: u8,
    value: &'a str,
}

/// The lines of the session, or of one of its sections.
pub(super) struct Block<'a> {
    /// Its first line.
    pub(super) line: usize,
    lines: Vec<Line<'a>>,
}

impl<'a> Block<'a> {
    /// The first line of this type: its number and value.
    pub(super) fn first(&self, kind: u8) -> Option<(usize, &'a str)> {
        self.lines.iter().find(|l| l.kind == kind).map(|l| (l.number, l.value))
    }
    /// Attributes of a name, with their lines. A property has an empty value.
    pub(super) fn attributes<'b>(&'b self, name: &'b str) -> impl Iterator<Item = (usize, &'a str)> + 'b {
        let all = self.lines.iter().filter(|l| l.kind == b'a').filter_map(move |l| {
            let (own, value) = l.value.split_once(':').unwrap_or((l.value, ""));
            (own == name).then_some((l.number, value))
        });
        all.take(MAX_ENTRIES)
    }
    /// The first attribute of a name.
    pub(super) fn attribute(&self, name: &str) -> Option<(usize, &'a str)> {
        self.attributes(name).next()
    }
    /// Whether there is an attribute of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.attribute(name).is_some()
    }
    /// Attributes whose value begins with a number: that, and the rest of the value. Others are ignored.
    pub(super) fn numbered<'b>(&'b self, name: &'b str) -> impl Iterator<Item = (usize, u32, &'a str)> + 'b {
        let split = |value: &'a str| value.split_once(' ').and_then(|(n, rest)| Some((n.parse().ok()?, rest.trim())));
        self.attributes(name).filter_map(move |(line, v)| split(v).map(|(n, rest)| (line, n, rest)))
    }
}

fn syntax(line: usize, what: impl Into<String>) -> SdpError {
    SdpError::Syntax { line, what: what.into() }
}

/// The session's lines, and those of each section.
///
/// # Errors
/// The text is too long or a line is invalid in SDP (RFC 8866, section 5).
pub(super) fn split(text: &str) -> Result<(Block<'_>, Vec<Block<'_>>), SdpError> {
    if text.len() > MAX_LENGTH {
        return Err(syntax(0, format!("{} bytes: expected {MAX_LENGTH} at most", text.len())));
    }
    let mut blocks = vec![Block { line: 1, lines: Vec::new() }];
    for (number, line) in (1..).zip(text.trim_end().lines()) {
        if line.len() > MAX_LINE {
            return Err(syntax(number, format!("{} bytes: expected {MAX_LINE} at most", line.len())));
        }
        let (kind, value) = match line.as_bytes() {
            [kind @ b'a'..=b'z', b'=', ..] if !line.contains(|c: char| c.is_control() && c != '\t') => {
                (*kind, &line[2..])
            }
            _ => return Err(syntax(number, format!("{:?}: expected a letter, = and a value", shortened(line)))),
        };
        match (number, kind) {
            (1, b'v') if value == "0" => {}
            (1, _) => return Err(syntax(1, format!("{:?}: expected v=0", shortened(line)))),
            (2, b'o') | (3, b's') => {}
            (2, _) => return Err(syntax(2, "expected the origin (o=)")),
            (3, _) => return Err(syntax(3, "expected the session's name (s=)")),
            _ => {}
        }
        if kind == b'm' {
            blocks.push(Block { line: number, lines: Vec::new() });
        }
        if let Some(block) = blocks.last_mut() {
            block.lines.push(Line { number, kind, value });
        }
    }
    if blocks[0].lines.len() < 3 {
        return Err(syntax(0, "too short: expected v=, o= and s= at least"));
    }
    let session = blocks.remove(0);
    Ok((session, blocks))
}
