//! API keys: `wcm_ID_SECRET`, both in hexadecimal. The database has the secret's hash; since a secret is 32 random bytes, a
//! fast hash is as good as a slow one.

use super::store::{KeyRecord, Role};
use crate::WallTime;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use subtle::ConstantTimeEq;

/// Longest note of a key, in bytes.
const MAX_NOTE: usize = 200;

/// A key that was just made. The text is never shown again.
#[derive(Clone, Debug)]
pub struct IssuedKey {
    /// The key as the caller sends it.
    pub text: String,
    /// Its hash, as stored.
    pub record: KeyRecord,
}

/// Why a key was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The system provides no random numbers.
    #[error("the system provides no random numbers")]
    Random,
    /// A note that is too long, or not one line of text.
    #[error("a note has {MAX_NOTE} bytes at most and no control characters")]
    Note,
}

/// Whether a note can be kept with a key.
pub fn note_is_valid(note: &str) -> bool {
    note.len() <= MAX_NOTE && !note.chars().any(char::is_control)
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Makes a key.
///
/// # Errors
/// See [`KeyError`].
pub fn issue(role: Role, note: &str, created: WallTime, expires: Option<WallTime>) -> Result<IssuedKey, KeyError> {
    if !note_is_valid(note) {
        return Err(KeyError::Note);
    }
    let (mut id, mut secret) = ([0_u8; 6], [0_u8; 32]);
    getrandom::fill(&mut id).map_err(|_| KeyError::Random)?;
    getrandom::fill(&mut secret).map_err(|_| KeyError::Random)?;
    let (id, secret) = (hex(&id), hex(&secret));
    let hash = Sha256::digest(secret.as_bytes()).into();
    let text = format!("wcm_{id}_{secret}");
    Ok(IssuedKey { text, record: KeyRecord { id, hash, role, note: note.to_owned(), created, expires, revoked: None } })
}

fn valid(record: &KeyRecord, now: WallTime) -> bool {
    record.revoked.is_none() && record.expires.is_none_or(|at| now < at)
}

/// The keys that are valid, in memory.
#[derive(Debug, Default)]
pub(super) struct Keys(BTreeMap<String, KeyRecord>);

impl Keys {
    pub(super) fn new(records: Vec<KeyRecord>) -> Self {
        Self(records.into_iter().map(|r| (r.id.clone(), r)).collect())
    }

    /// The role and id of a key, or `None` if there is no such key, or it has expired or was revoked. A key that does not
    /// exist takes as long as one with a wrong secret.
    pub(super) fn check(&self, text: &str, now: WallTime) -> Option<(Role, String)> {
        let (id, secret) = text.strip_prefix("wcm_")?.split_once('_')?;
        let record = self.0.get(id);
        let expected = record.map_or([0; 32], |r| r.hash);
        let hash: [u8; 32] = Sha256::digest(secret.as_bytes()).into();
        let same = bool::from(hash.ct_eq(&expected));
        let record = record.filter(|_| same)?;
        valid(record, now).then(|| (record.role, record.id.clone()))
    }

    /// Whether a key that was checked before is valid still.
    pub(super) fn is_valid(&self, id: &str, now: WallTime) -> bool {
        self.0.get(id).is_some_and(|record| valid(record, now))
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &KeyRecord> {
        self.0.values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_valid_as_issued_only() {
        let now = WallTime::from_unix_millis(1_000);
        let later = WallTime::from_unix_millis(2_000);
        let a = issue(Role::Reporter, "a", now, None).expect("made");
        let b = issue(Role::Fleet, "b", now, Some(later)).expect("made");
        let mut revoked = issue(Role::Admin, "c", now, None).expect("made");
        revoked.record.revoked = Some(now);
        assert_eq!(a.text.len(), 4 + 12 + 1 + 64);
        let keys = Keys::new(vec![a.record.clone(), b.record.clone(), revoked.record.clone()]);
        assert_eq!(keys.check(&a.text, now), Some((Role::Reporter, a.record.id.clone())));
        assert_eq!(keys.check(&b.text, now).map(|k| k.0), Some(Role::Fleet));
        assert_eq!((keys.check(&b.text, later), keys.check(&revoked.text, now)), (None, None));
        let still = |of: &IssuedKey, at| keys.is_valid(&of.record.id, at);
        assert!(still(&a, later) && still(&b, now) && !still(&b, later) && !still(&revoked, now));
        let swapped = format!("wcm_{}_{}", a.record.id, b.text.rsplit('_').next().expect("a secret"));
        let mut cut = a.text.clone();
        cut.pop();
        for wrong in
            [swapped.as_str(), &cut, "", "wcm_", "wcm__", "wcm_0_0", &a.text.to_uppercase(), &(a.text.clone() + "0")]
        {
            assert_eq!(keys.check(wrong, now), None, "{wrong}");
        }
        let unknown = format!("wcm_000000000000_{}", hex(&[0; 32]));
        assert_eq!(keys.check(&unknown, now), None);
        assert_eq!(issue(Role::Reader, "two\nlines", now, None).expect_err("refused"), KeyError::Note);
    }
}
