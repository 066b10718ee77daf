use core::fmt;
use core::str::FromStr;

/// The service of the application on a port, given when a connection is opened (RFC 4340, section 8.1.2; RFC 5595).
///
/// Its text form is one to four characters after `SC:`, a decimal number after `SC=` or a hexadecimal one after `SC=x`:
///
/// ```
/// use weir_dccp::packet::ServiceCode;
/// for text in ["SC:fdpz", "SC=1717858426", "SC=x6664707A"] {
///     assert_eq!(text.parse::<ServiceCode>().map(|c| c.to_string()), Ok("SC:fdpz".to_owned()));
/// }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ServiceCode(pub u32);

impl ServiceCode {
    /// No meaning.
    pub const UNSPECIFIED: Self = Self(0);
    /// An RTP audio session: `RTPA` (RFC 5762, section 5.2, as all that follow).
    pub const RTP_AUDIO: Self = Self(u32::from_be_bytes(*b"RTPA"));
    /// An RTP video session: `RTPV`.
    pub const RTP_VIDEO: Self = Self(u32::from_be_bytes(*b"RTPV"));
    /// An RTP session of text: `RTPT`.
    pub const RTP_TEXT: Self = Self(u32::from_be_bytes(*b"RTPT"));
    /// An RTP session of other media: `RTPO`.
    pub const RTP_OTHER: Self = Self(u32::from_be_bytes(*b"RTPO"));
    /// RTCP in a connection of its own: `RTCP`.
    pub const RTCP: Self = Self(u32::from_be_bytes(*b"RTCP"));
    /// The one value that no service may have.
    pub const INVALID: Self = Self(u32::MAX);

    /// Whether a service may have it.
    pub const fn is_valid(self) -> bool {
        self.0 != Self::INVALID.0
    }

    /// The four characters if the `SC:` form can express them: spaces are at the end only.
    fn characters(self) -> Option<[u8; 4]> {
        let b = self.0.to_be_bytes();
        let used = b.iter().rposition(|&c| c != b' ')? + 1;
        b[..used].iter().all(|&c| is_character(c)).then_some(b)
    }
}

/// Whether the `SC:` form may have it: letters, digits and `-_+.*/?@`.
fn is_character(c: u8) -> bool {
    c.is_ascii_alphanumeric() || b"-_+.*/?@".contains(&c)
}

impl fmt::Display for ServiceCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.characters() {
            Some(b) => {
                f.write_str("SC:")?;
                b.iter().filter(|&&c| c != b' ').try_for_each(|&c| write!(f, "{}", char::from(c)))
            }
            None => write!(f, "SC={}", self.0),
        }
    }
}

/// A service code that cannot be read from its text.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("\"{text}\" is no service code: {reason} (as SC:RTPV, SC=1381257302 or SC=x52545056)")]
pub struct ServiceCodeError {
    /// The text.
    pub text: String,
    /// The reason.
    pub reason: &'static str,
}

impl FromStr for ServiceCode {
    type Err = ServiceCodeError;
    fn from_str(text: &str) -> Result<Self, ServiceCodeError> {
        let wrong = |reason| ServiceCodeError { text: text.to_owned(), reason };
        if let Some(characters) = text.strip_prefix("SC:") {
            if !(1..=4).contains(&characters.len()) || !characters.bytes().all(is_character) {
                return Err(wrong("SC: is followed by one to four letters, digits or characters of -_+.*/?@"));
            }
            let mut bytes = [b' '; 4];
            bytes[..characters.len()].copy_from_slice(characters.as_bytes());
            return Ok(Self(u32::from_be_bytes(bytes)));
        }
        let number = text.strip_prefix("SC=").ok_or_else(|| wrong("it begins with SC: or SC="))?;
        let (digits, radix) = match number.strip_prefix(['x', 'X']) {
            Some(digits) => (digits, 16),
            None => (number, 10),
        };
        // A sign is no digit, although number parsing would accept it.
        if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
            return Err(wrong("SC= is followed by decimal digits, SC=x by hexadecimal ones"));
        }
        // The remaining error is the size.
        let code = u32::from_str_radix(digits, radix).map_or(Self::INVALID, Self);
        if code.is_valid() { Ok(code) } else { Err(wrong("numbers end at 4294967294")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_registered_codes() {
        // The numbers of RFC 5762, section 5.2.
        for (code, number, text) in [
            (ServiceCode::RTP_AUDIO, 1_381_257_281, "SC:RTPA"),
            (ServiceCode::RTP_VIDEO, 1_381_257_302, "SC:RTPV"),
            (ServiceCode::RTP_TEXT, 1_381_257_300, "SC:RTPT"),
            (ServiceCode::RTP_OTHER, 1_381_257_295, "SC:RTPO"),
            (ServiceCode::RTCP, 1_381_253_968, "SC:RTCP"),
        ] {
            assert_eq!((code.0, code.to_string().as_str()), (number, text));
        }
    }

    #[test]
    fn short_names_are_padded_with_spaces() {
        let code: ServiceCode = "SC:a?".parse().expect("two characters");
        assert_eq!((code.0, code.to_string().as_str()), (0x613f_2020, "SC:a?"));
        // Spaces in between and alone, and characters outside the set, leave only the number.
        for n in [0x6120_6161, 0x2020_2020, 0x6161_6122, 0x2061_6161, 0, 0x6161_617e] {
            assert_eq!(ServiceCode(n).to_string(), format!("SC={n}"));
        }
    }

    #[test]
    fn invalid_codes_are_refused() {
        for text in [
            "",
            "RTPV",
            "sc:RTPV",
            "SC:",
            "SC:RTPVX",
            "SC:RT V",
            "SC:é",
            "SC=",
            "SC=x",
            "SC=-1",
            "SC=+1",
            "SC=12a",
            "SC=xg",
            "SC=4294967295",
            "SC=4294967296",
            "SC=xFFFFFFFF",
            "SC=99999999999999999999",
        ] {
            let e = text.parse::<ServiceCode>().expect_err(text);
            assert!(e.to_string().starts_with(&format!("{text:?} is no service code: ")) || !text.is_ascii(), "{e}");
        }
        for (text, n) in [("SC=4294967294", u32::MAX - 1), ("SC=000000000000000007", 7), ("SC=X000000000fF", 255)] {
            assert_eq!(text.parse(), Ok(ServiceCode(n)));
        }
    }
}
