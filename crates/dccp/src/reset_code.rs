//! Why a connection was reset.

use core::fmt;

/// Why a connection was reset (RFC 4340, section 5.6; 12 is RFC 6773's).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ResetCode(pub u8);

macro_rules! reset_codes {
    ($($(#[$doc:meta])* $name:ident = $n:literal, $text:literal;)*) => {
        impl ResetCode {
            $($(#[$doc])* pub const $name: Self = Self($n);)*
            /// Its name in the registry; `None` if it has none: 13 to 127 are reserved, those above are the CCIDs'.
            pub const fn name(self) -> Option<&'static str> {
                match self.0 { $($n => Some($text),)* _ => None }
            }
        }
    };
}

reset_codes! {
    /// No meaningful code.
    UNSPECIFIED = 0, "Unspecified";
    /// Normal end.
    CLOSED = 1, "Closed";
    /// No progress.
    ABORTED = 2, "Aborted";
    /// There is no such connection.
    NO_CONNECTION = 3, "No Connection";
    /// A valid packet of a type that was not expected; Data 1 is the type.
    PACKET_ERROR = 4, "Packet Error";
    /// An invalid option; Data 1 to 3 are its type and first bytes.
    OPTION_ERROR = 5, "Option Error";
    /// A mandatory option was not understood; Data as above.
    MANDATORY_ERROR = 6, "Mandatory Error";
    /// No application listens on the port.
    CONNECTION_REFUSED = 7, "Connection Refused";
    /// The port has another service.
    BAD_SERVICE_CODE = 8, "Bad Service Code";
    /// The server accepts no more connections.
    TOO_BUSY = 9, "Too Busy";
    /// The Init Cookie was wrong or missing.
    BAD_INIT_COOKIE = 10, "Bad Init Cookie";
    /// The other end's congestion control misbehaves.
    AGGRESSION_PENALTY = 11, "Aggression Penalty";
    /// Another connection has this UDP pair of addresses and ports (RFC 6773, section 3.8).
    ENCAPSULATED_PORT_REUSE = 12, "Encapsulated Port Reuse";
}

impl fmt::Display for ResetCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "reset code {}", self.0),
        }
    }
}
