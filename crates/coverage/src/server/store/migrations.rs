//! The schema, as the steps that lead to it. Steps are only added: a database goes forward from any version.

use super::StoreError;
use rusqlite::Connection;

/// Step n leads from version n to n + 1.
const STEPS: [&str; 3] = [
    // The ids of a device's updates rise, so that its rows are written side by side and a second one is found at once.
    "CREATE TABLE keys (
        id TEXT PRIMARY KEY, hash BLOB NOT NULL, role TEXT NOT NULL, note TEXT NOT NULL,
        created_ms INTEGER NOT NULL, revoked_ms INTEGER
    ) WITHOUT ROWID;
    CREATE TABLE devices (id INTEGER PRIMARY KEY, key TEXT NOT NULL, name TEXT NOT NULL, UNIQUE (key, name));
    CREATE TABLE updates (
        device INTEGER NOT NULL, id INTEGER NOT NULL, time_ms INTEGER NOT NULL, lat REAL NOT NULL, lon REAL NOT NULL,
        accuracy_m REAL NOT NULL, operator TEXT NOT NULL, technology INTEGER NOT NULL, cell INTEGER,
        bps INTEGER NOT NULL, rtt_ms REAL, loss REAL, PRIMARY KEY (device, id)
    ) WITHOUT ROWID;
    CREATE INDEX updates_time ON updates (time_ms);",
    "ALTER TABLE updates ADD COLUMN limited INTEGER NOT NULL DEFAULT 0;",
    "ALTER TABLE keys ADD COLUMN expires_ms INTEGER;",
];

/// The version that this program works with.
pub const VERSION: i64 = STEPS.len() as i64;

/// The version of a database; 0 is an empty one.
///
/// # Errors
/// The database cannot be read.
pub fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// Takes the steps from the database's version to `to`, each whole or not at all.
///
/// # Errors
/// The database is newer than this program, or cannot be written.
pub fn migrate(connection: &mut Connection, to: i64) -> Result<(), StoreError> {
    let found = version(connection)?;
    if found > VERSION {
        return Err(StoreError::TooNew { found, known: VERSION });
    }
    for (step, next) in STEPS.iter().zip(1..).filter(|(_, next)| (found + 1..=to).contains(next)) {
        let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        // Another process may have been faster.
        if version(&transaction)? == next - 1 {
            transaction.execute_batch(step)?;
            transaction.pragma_update(None, "user_version", next)?;
        }
        transaction.commit()?;
    }
    Ok(())
}
