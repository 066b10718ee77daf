//! Errors of the server and of connections.

use crate::server::store::StoreError;
use std::error::Error as _;
use tokio_postgres::error::SqlState;

/// An error with what it was caused by.
pub(super) fn text(error: &tokio_postgres::Error) -> String {
    if let Some(db) = error.as_db_error() {
        return format!("{}: {} ({})", db.severity(), db.message(), db.code().code());
    }
    error.source().map_or_else(|| error.to_string(), |source| format!("{error}: {source}"))
}

pub(super) fn failed(error: &tokio_postgres::Error) -> StoreError {
    match error.code() {
        Some(code) if *code == SqlState::DISK_FULL => StoreError::Full,
        _ => StoreError::Database(text(error)),
    }
}
