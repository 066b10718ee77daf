//! Random numbers from the system.

use super::error::DccpError;

/// Random bits from the system.
pub(super) fn random() -> Result<u64, DccpError> {
    getrandom::u64().map_err(|e| DccpError::Random(e.to_string()))
}
