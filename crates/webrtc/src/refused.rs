//! Why a controller cannot be had in the chain.

use std::fmt;
use weir_cc::tunable::SetupError;

/// A controller cannot take the slot of congestion control.
#[derive(Clone, PartialEq, Debug)]
pub enum Refused {
    /// The name, or a parameter.
    Setup(SetupError),
    /// It needs more than per-packet feedback: a receiver half, receiver reports or another transport.
    NeedsMore {
        /// Its name.
        name: String,
        /// The controllers that need no more.
        known: Vec<String>,
    },
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Setup(e) => e.fmt(f),
            Self::NeedsMore { name, known } => {
                write!(f, "`{name}` needs more than per-packet feedback; these do not: {}", known.join(", "))
            }
        }
    }
}

impl std::error::Error for Refused {}

impl From<SetupError> for Refused {
    fn from(e: SetupError) -> Self {
        Self::Setup(e)
    }
}
