//! Files of lines, a record each.

use crate::input::{Input, Taken};
use crate::recording::Recording;
use crate::schema::Stop;

/// Why a line is no record.
pub(crate) struct Unread {
    /// The fault that is counted.
    pub(crate) what: &'static str,
    /// The reason.
    pub(crate) why: String,
    /// The reason for which it can be one that was cut, if it can.
    pub(crate) cut: Option<String>,
}

impl Unread {
    /// A line without the columns of its format: fewer than they are, where it was cut.
    pub(crate) fn columns(of: &str) -> Self {
        let cut = Some("the last line is cut".into());
        Self { what: "lines that cannot be read", why: format!("a line without the {of}'s columns"), cut }
    }

    /// A line that is no JSON: one that ends too early, where it was cut.
    pub(crate) fn json(e: &serde_json::Error) -> Self {
        let cut = e.is_eof().then(|| format!("the last line is cut: {e}"));
        Self { what: "lines that are not JSON", why: format!("a line that is not JSON: {e}"), cut }
    }
}

/// Reads all lines but blank ones, each of `most` bytes at most. Those that are no record are counted, and the last one ends the file
/// where it can have been cut.
pub(crate) fn each(
    input: &mut Input<'_>,
    out: &mut Recording,
    most: usize,
    mut record: impl FnMut(&mut Recording, &[u8]) -> Result<(), Unread>,
) -> Option<Stop> {
    let mut line = Vec::new();
    loop {
        let (offset, cost) = (input.offset(), out.cost());
        match input.line(most, &mut line) {
            Taken::Whole => {}
            Taken::End => return None,
            Taken::Cut(why) => return Some(Stop { offset, why }),
        }
        if !line.trim_ascii().is_empty()
            && let Err(unread) = record(out, &line)
        {
            if let Some(why) = unread.cut
                && input.peek(1).is_ok_and(<[u8]>::is_empty)
            {
                return Some(Stop { offset, why });
            }
            out.damage(offset, unread.what, || unread.why);
        }
        out.charge(cost);
        if let Some(why) = out.full() {
            return Some(Stop { offset, why });
        }
    }
}
