//! The secret by which a listener knows its callers.

use super::SignalError;
use sha2::{Digest, Sha256};
use std::fmt;
use std::str::FromStr;

/// Least letters and digits of a token.
pub(super) const LEAST: usize = 16;
/// Most of them: a line of a description holds no more.
const MOST: usize = 512;

/// A secret that a listener and its callers share.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// Whether this is it. Hashes are compared: how long it takes says nothing of the token.
    pub(super) fn is(&self, presented: &[u8]) -> bool {
        Sha256::digest(presented) == Sha256::digest(self.0.as_bytes())
    }

    pub(super) fn text(&self) -> &str {
        &self.0
    }
}

impl FromStr for Token {
    type Err = SignalError;

    /// At least 16 letters and digits, and at most 512.
    fn from_str(text: &str) -> Result<Self, SignalError> {
        let fits = (LEAST..=MOST).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric());
        if fits { Ok(Self(text.into())) } else { Err(SignalError::Token) }
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(secret)")
    }
}
