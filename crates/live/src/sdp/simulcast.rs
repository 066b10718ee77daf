//! Encodings of a simulcast: `a=rid` (RFC 8851) and `a=simulcast` (RFC 8853).

use super::lines::Block;
use super::{Encoding, EncodingLimits, MAX_ENCODINGS, Payload, SdpError, wrong};
use std::fmt::Write as _;
use weir_session::Label;

impl EncodingLimits {
    fn fields(&mut self) -> [(&'static str, &mut Option<u32>); 4] {
        [
            ("max-width", &mut self.max_width),
            ("max-height", &mut self.max_height),
            ("max-fps", &mut self.max_fps),
            ("max-br", &mut self.max_br),
        ]
    }

    /// Whether everything within `self` is within `other` too. Bit rates are ignored: the sender keeps to any.
    pub(super) fn is_within(mut self, other: Self) -> bool {
        let mut other = Self { max_br: None, ..other };
        let fits = |own: Option<u32>, limit: Option<u32>| limit.is_none_or(|limit| own.is_some_and(|own| own <= limit));
        self.fields().into_iter().zip(other.fields()).all(|(own, limit)| fits(*own.1, *limit.1))
    }
}

/// The encodings that the describing end sends, and those that it receives: of `a=simulcast`, as described by `a=rid`.
/// Invalid lines are ignored (RFC 8851, section 6.2.2; RFC 8853, section 5.3.2).
///
/// # Errors
/// There are too many.
pub(super) fn read_simulcast(
    block: &Block<'_>,
    payloads: &[(u8, Payload)],
) -> Result<(Vec<Encoding>, Vec<Encoding>), SdpError> {
    if let Some((line, _)) = block.attributes("rid").nth(MAX_ENCODINGS) {
        let value = format!("more than {MAX_ENCODINGS}");
        return Err(wrong("number of encodings (a=rid)", line, value, format!("{MAX_ENCODINGS} at most")));
    }
    let rids: Vec<(&str, Encoding)> =
        block.attributes("rid").filter_map(|(_, value)| read_rid(value, payloads)).collect();
    let is_unique = |e: &Encoding| rids.iter().filter(|(_, other)| other.rid == e.rid).count() == 1;
    let mut all = block.attributes("simulcast");
    let (Some((line, value)), None) = (all.next(), all.next()) else { return Ok((Vec::new(), Vec::new())) };
    let listed = |direction: &str| {
        let mut words = value.split_whitespace();
        let list = words.by_ref().find(|w| *w == direction).and(words.next()).unwrap_or_default();
        let known = |name: &str| {
            let name = name.trim_start_matches('~');
            let of =
                |(d, e): &&(&str, Encoding)| *d == direction && e.rid.as_bytes() == name.as_bytes() && is_unique(e);
            rids.iter().find(of).map(|(_, e)| e.clone())
        };
        // The first known one of alternatives.
        list.split(';').filter_map(|alternatives| alternatives.split(',').find_map(known)).collect::<Vec<_>>()
    };
    let (send, receive) = (listed("send"), listed("recv"));
    if send.len().max(receive.len()) > MAX_ENCODINGS {
        return Err(wrong("a=simulcast", line, value, format!("{MAX_ENCODINGS} encodings at most")));
    }
    Ok((send, receive))
}

/// `ID send|recv RESTRICTIONS` (RFC 8851, section 10); its direction and the encoding.
fn read_rid<'a>(value: &'a str, payloads: &[(u8, Payload)]) -> Option<(&'a str, Encoding)> {
    let mut words = value.split_whitespace();
    let rid = words.next().and_then(Label::new)?;
    let direction = words.next().filter(|d| matches!(*d, "send" | "recv"))?;
    let mut e = Encoding { rid, formats: Vec::new(), limits: EncodingLimits::default() };
    for pair in words.next().unwrap_or_default().split(';').filter(|p| !p.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        if name == "pt" {
            let known = |pt: &u8| payloads.iter().any(|(n, _)| n == pt);
            e.formats = value.split(',').filter_map(|n| n.parse().ok()).filter(known).take(payloads.len()).collect();
            if e.formats.is_empty() {
                return None;
            }
        } else if let Some((_, limit)) = e.limits.fields().into_iter().find(|(n, _)| *n == name) {
            // A name alone requests a value from the other end, which is optional.
            *limit = if value.is_empty() { None } else { Some(value.parse().ok()?) };
        } else if direction == "recv" {
            // An unknown restriction cannot be met.
            return None;
        }
    }
    Some((direction, e))
}

/// The values of `a=rid` of these encodings.
pub(super) fn rid_values<'a>(direction: &'a str, all: &'a [Encoding]) -> impl Iterator<Item = String> + 'a {
    all.iter().map(move |e| {
        let mut limits = e.limits;
        let mut pairs: Vec<String> = Vec::new();
        if !e.formats.is_empty() {
            let formats: Vec<String> = e.formats.iter().map(u8::to_string).collect();
            pairs.push(format!("pt={}", formats.join(",")));
        }
        pairs.extend(limits.fields().into_iter().filter_map(|(name, v)| v.map(|v| format!("{name}={v}"))));
        let space = if pairs.is_empty() { "" } else { " " };
        format!("{} {direction}{space}{}", e.rid, pairs.join(";"))
    })
}

/// The value of `a=simulcast`; `None` without encodings.
pub(super) fn simulcast_value(send: &[Encoding], receive: &[Encoding]) -> Option<String> {
    let mut text = String::new();
    for (direction, list) in [("send", send), ("recv", receive)].into_iter().filter(|(_, l)| !l.is_empty()) {
        let names: Vec<String> = list.iter().map(|e| e.rid.to_string()).collect();
        let space = if text.is_empty() { "" } else { " " };
        let _ = write!(text, "{space}{direction} {}", names.join(";"));
    }
    (!text.is_empty()).then_some(text)
}
