//! A description as it is received, part by part.

use super::wire::{Wire, is_early};
use super::{PRESENTED, REFUSED, SignalError, Token, io_error};
use crate::sdp::{Description, MAX_LENGTH};
use std::io::Read;

/// A reason is shown up to this length, in characters.
const MAX_REASON: usize = 200;

/// The received part of a description.
#[derive(Debug, Default)]
pub(super) struct Incoming {
    text: Vec<u8>,
}

impl Incoming {
    /// Reads available bytes; `None` if the description is not complete yet. With `token`, one that does not present it is
    /// not looked at.
    ///
    /// # Errors
    /// The other end closes the connection, sends anything but a description, or another token.
    pub(super) fn read(
        &mut self,
        wire: &mut Wire,
        who: &str,
        token: Option<&Token>,
    ) -> Result<Option<Description>, SignalError> {
        let peer = |what: String| SignalError::Peer { who: who.into(), what };
        let mut part = [0; 4_096];
        loop {
            match wire.read(&mut part) {
                Ok(0) => break,
                Ok(n) => {
                    self.text.extend_from_slice(&part[..n]);
                    if self.text.len() > MAX_LENGTH {
                        let what = format!("it sent more than {MAX_LENGTH} bytes: that is no session description");
                        return Err(peer(what));
                    }
                    if self.text.ends_with(b"\n\r\n") || self.text.ends_with(b"\n\n") {
                        break;
                    }
                }
                Err(e) if is_early(&e) => return Ok(None),
                // TLS without close_notify: the other end has closed the connection.
                Err(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => break,
                Err(e) if e.kind() == std::io::ErrorKind::InvalidData => return Err(peer(format!("no TLS: {e}"))),
                Err(e) => return Err(io_error(format!("reading from {who}"))(e)),
            }
        }
        if self.text.is_empty() {
            return Err(peer("it hung up without a description".into()));
        }
        let mut text = &self.text[..];
        let mut presented = None;
        if let Some(rest) = text.strip_prefix(PRESENTED.as_bytes()) {
            let end = rest.iter().position(|b| *b == b'\n').map_or(rest.len(), |at| at + 1);
            let (line, others) = rest.split_at(end);
            (presented, text) = (Some(line.trim_ascii()), others);
        }
        if token.is_some_and(|token| !presented.is_some_and(|p| token.is(p))) {
            return Err(SignalError::WrongToken);
        }
        parse(text, who).map(Some)
    }
}

/// A complete description, or the reason why there is none.
pub(super) fn parse(text: &[u8], who: &str) -> Result<Description, SignalError> {
    let Ok(text) = std::str::from_utf8(text) else {
        return Err(SignalError::Peer { who: who.into(), what: "it sent bytes that are not text".into() });
    };
    if let Some(reason) = text.strip_prefix(REFUSED) {
        // Text of another machine: only printable characters are shown.
        let reason = reason.trim().chars().take(MAX_REASON).map(|c| if c.is_control() { ' ' } else { c }).collect();
        return Err(SignalError::Refused { who: who.into(), reason });
    }
    Ok(Description::parse(text.trim_end_matches(['\r', '\n']))?)
}
