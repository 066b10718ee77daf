//! User fragments and passwords of agents, and their HMAC.

use rtc_crypto::{HmacAlgorithm, default_provider};
use sha2::{Digest, Sha256};

/// Bounds of RFC 8839, section 5.4, the upper one less: the names of both ends stand in each check, and the library
/// writes at most 128 bytes.
const FRAGMENT: std::ops::RangeInclusive<usize> = 4..=56;
const PASSWORD: std::ops::RangeInclusive<usize> = 22..=256;
const ICE_CHARS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Random octets of one end, from which its credentials and identifiers follow.
#[derive(Clone)]
pub struct Secret {
    octets: [u8; 32],
    count: u64,
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

impl Secret {
    /// From these octets, which nobody else may know.
    pub const fn new(octets: [u8; 32]) -> Self {
        Self { octets, count: 0 }
    }
    /// From the system's randomness.
    ///
    /// # Errors
    /// The system provides none.
    pub fn random() -> Result<Self, getrandom::Error> {
        let mut octets = [0; 32];
        getrandom::fill(&mut octets)?;
        Ok(Self::new(octets))
    }
    /// The next octets, each time others.
    pub(super) fn next<const N: usize>(&mut self) -> [u8; N] {
        let mut hash = Sha256::new();
        hash.update(self.octets);
        hash.update(self.count.to_be_bytes());
        self.count += 1;
        let digest = hash.finalize();
        std::array::from_fn(|i| digest.get(i).copied().unwrap_or_default())
    }
}

/// Short-term credentials of one end (RFC 8445, section 5.3).
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    fragment: String,
    password: String,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials").field("fragment", &self.fragment).finish_non_exhaustive()
    }
}

impl Credentials {
    /// Those that the other end has sent. `None` if they are too short, too long, or have other characters than letters,
    /// digits, `+` and `/`.
    pub fn new(fragment: &str, password: &str) -> Option<Self> {
        let is_text = |text: &str| text.bytes().all(|b| ICE_CHARS.contains(&b));
        let fits = FRAGMENT.contains(&fragment.len()) && PASSWORD.contains(&password.len());
        (fits && is_text(fragment) && is_text(password))
            .then(|| Self { fragment: fragment.into(), password: password.into() })
    }
    /// New ones: 48 and 144 bits.
    pub fn of(secret: &mut Secret) -> Self {
        let text = |octets: &[u8]| octets.iter().map(|b| char::from(ICE_CHARS[usize::from(b & 63)])).collect();
        Self { fragment: text(&secret.next::<8>()), password: text(&secret.next::<24>()) }
    }
    /// The user fragment.
    pub fn fragment(&self) -> &str {
        &self.fragment
    }
    /// The password.
    pub fn password(&self) -> &str {
        &self.password
    }
    /// Those of a path by its number: the fragment with `+` and the number after it, the first path's without.
    pub fn of_path(&self, path: usize) -> Self {
        if path == 0 {
            return self.clone();
        }
        Self { fragment: format!("{}+{path}", self.fragment), password: self.password.clone() }
    }
    /// Those of a path after this many restarts: `/` and their number after the name, and a password that follows from that of
    /// the description and the name, so that nobody else knows it and it needs not be sent.
    pub(super) fn of_restart(&self, path: usize, restarts: u16) -> Self {
        if restarts == 0 {
            return self.of_path(path);
        }
        let fragment = self.fragment.clone() + &Self::ending(path, restarts);
        let mut hash = Sha256::new();
        for part in ["restart of ICE", &self.password, &fragment] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        let password = hash.finalize().iter().take(24).map(|b| char::from(ICE_CHARS[usize::from(b & 63)])).collect();
        Self { fragment, password }
    }
    /// The path of which a check is, by the name of the end that it is for, and the restarts before it.
    pub(super) fn path_of(&self, fragment: &str) -> Option<(usize, u16)> {
        let rest = fragment.strip_prefix(&self.fragment)?;
        if rest.is_empty() {
            return Some((0, 0));
        }
        let numbers = rest.strip_prefix('+')?;
        let (path, restarts) = numbers.split_once('/').unwrap_or((numbers, "0"));
        let (path, restarts): (usize, u16) = (path.parse().ok()?, restarts.parse().ok()?);
        // Each path has one name.
        (Self::ending(path, restarts) == rest).then_some((path, restarts))
    }
    fn ending(path: usize, restarts: u16) -> String {
        match (path, restarts) {
            (0, 0) => String::new(),
            (_, 0) => format!("+{path}"),
            _ => format!("+{path}/{restarts}"),
        }
    }
    pub(super) fn library(&self) -> is::IceCreds {
        is::IceCreds { ufrag: self.fragment.clone(), pass: self.password.clone() }
    }
}

/// HMAC-SHA1 by the library that SRTP uses too.
#[derive(Debug)]
pub(super) struct Hmac;

impl is::Sha1HmacProvider for Hmac {
    fn sha1_hmac(&self, key: &[u8], payloads: &[&[u8]]) -> [u8; 20] {
        let mut tag = [0; 20];
        let signed = default_provider().is_ok_and(|provider| {
            let mac = provider.crypto().new_hmac(HmacAlgorithm::Sha1, key);
            mac.is_ok_and(|mut mac| mac.sign(payloads, &mut tag).is_ok())
        });
        if !signed {
            // No tag that anybody could foresee.
            let mut hash = Sha256::new();
            hash.update(key);
            payloads.iter().for_each(|p| hash.update(p));
            let digest = hash.finalize();
            tag = std::array::from_fn(|i| digest[i]);
        }
        tag
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_have_the_lengths_and_characters_of_the_rfc() {
        let mut secret = Secret::new([5; 32]);
        let (a, b) = (Credentials::of(&mut secret), Credentials::of(&mut secret));
        assert_ne!(a, b);
        assert_eq!(Credentials::new(a.fragment(), a.password()), Some(a.clone()));
        assert_eq!((a.fragment().len(), a.password().len()), (8, 24));
        let long = "x".repeat(57);
        for bad in ["abc", "ab:d", "ab d", &long] {
            assert_eq!(Credentials::new(bad, a.password()), None, "{bad}");
        }
        assert_eq!(Credentials::new("abcd", "0123456789012345678901").map(|c| c.fragment.len()), Some(4));
        assert_eq!(Credentials::new("abcd", "012345678901234567890"), None);
    }

    #[test]
    fn a_paths_name_says_its_number() {
        let base = Credentials::of(&mut Secret::new([5; 32]));
        for n in [0, 1, 7] {
            assert_eq!(base.path_of(base.of_path(n).fragment()), Some((n, 0)));
            for restarts in [1, 2, u16::MAX] {
                let after = base.of_restart(n, restarts);
                assert_eq!(base.path_of(after.fragment()), Some((n, restarts)));
                assert!(Credentials::new(after.fragment(), after.password()).is_some(), "{after:?}");
                assert_ne!(after.password(), base.password());
                assert_ne!(after.password(), base.of_restart(n + 1, restarts).password());
            }
        }
        for bad in ["", "+", "+0", "+0/0", "+1/0", "+01", "+1/01", "+1/65536", "+1/2/3", "/1"] {
            assert_eq!(base.path_of(&format!("{}{bad}", base.fragment())).filter(|_| !bad.is_empty()), None, "{bad}");
        }
        assert_eq!(base.path_of("abcdefgh"), None);
    }

    #[test]
    fn the_tag_is_that_of_the_standard() {
        // RFC 2202, section 3, test 1.
        let tag = is::Sha1HmacProvider::sha1_hmac(&Hmac, &[0x0b; 20], &[b"Hi ", b"There"]);
        assert_eq!(tag[..4], [0xb6, 0x17, 0x31, 0x86]);
    }
}
