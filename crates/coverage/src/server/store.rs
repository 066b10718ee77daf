//! Stored data: updates, devices and keys. [`Store`] is the seam for databases: SQLite in a file is built in, and
//! PostgreSQL is behind a feature.
//! `tests/service/stores.rs` checks the same on all.

mod migrations;
#[cfg(feature = "postgres")]
mod postgres;
mod sqlite;

pub use migrations::{VERSION, migrate, version};
#[cfg(feature = "postgres")]
pub use postgres::{POSTGRES_VERSION, PostgresConfig, PostgresStore};
pub use sqlite::{SqliteConfig, SqliteStore, backup};

use crate::{Update, WallTime};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Permissions of an API key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// One device: reports of its own, and looking ahead.
    Reporter,
    /// A trusted fleet: reports of many devices, which it names, and looking ahead.
    Fleet,
    /// Looking ahead and metrics.
    Reader,
    /// All, and keys.
    Admin,
}

impl Role {
    /// All, in order of their numbers.
    pub const ALL: [Self; 4] = [Self::Reporter, Self::Fleet, Self::Reader, Self::Admin];

    /// The name by which it is stored.
    const fn name(self) -> &'static str {
        match self {
            Self::Reporter => "reporter",
            Self::Fleet => "fleet",
            Self::Reader => "reader",
            Self::Admin => "admin",
        }
    }

    /// The role of a name.
    fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name() == name)
    }

    /// Whether updates are taken from it.
    pub const fn reports(self) -> bool {
        matches!(self, Self::Reporter | Self::Fleet | Self::Admin)
    }
}

/// An API key as it is kept: the secret itself is not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRecord {
    /// Public part, 12 hexadecimal digits.
    pub id: String,
    /// SHA-256 of the secret.
    pub hash: [u8; 32],
    /// Its permissions.
    pub role: Role,
    /// Its purpose, by whoever made it.
    pub note: String,
    /// When it was made.
    pub created: WallTime,
    /// From when on it is refused.
    pub expires: Option<WallTime>,
    /// When it was revoked.
    pub revoked: Option<WallTime>,
}

/// Updates of one device.
#[derive(Clone, Copy, Debug)]
pub struct Reports<'a> {
    /// The key that they were sent with.
    pub key: &'a str,
    /// The device's name under that key; empty for a key of one device.
    pub device: &'a str,
    /// The updates.
    pub updates: &'a [Update],
}

/// Outcome of the updates of one device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AppendOutcome {
    /// They are there.
    Stored {
        /// The number of the device.
        device: u32,
        /// For each: whether it is new, as opposed to one of the same device and id that was there already.
        new: Vec<bool>,
    },
    /// The key has as many devices as it may have, and this is another one.
    TooManyDevices,
}

/// Why a store did not do something. Nothing of the call was done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// No more space, on the disk or by the limit set.
    #[error("no space left for the database")]
    Full,
    /// The database was made by a later version of the program.
    #[error("the database has version {found}: this program knows versions up to {known}")]
    TooNew {
        /// Its version.
        found: i64,
        /// The last that this program knows.
        known: i64,
    },
    /// Anything else; it may pass.
    #[error("database: {0}")]
    Database(String),
}

/// The database, and how it is used.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum StoreConfig {
    /// A file.
    Sqlite(SqliteConfig),
    /// A database of a server.
    #[cfg(feature = "postgres")]
    Postgres(Box<PostgresConfig>),
}

impl StoreConfig {
    /// Opens the database, made on first use, and brings it to this program's version.
    ///
    /// # Errors
    /// It cannot be opened, is no database, or was made by a later version.
    pub fn open(&self) -> Result<Box<dyn Store>, StoreError> {
        match self {
            Self::Sqlite(config) => Ok(Box::new(SqliteStore::open(config)?)),
            #[cfg(feature = "postgres")]
            Self::Postgres(config) => Ok(Box::new(PostgresStore::open(config)?)),
        }
    }
}

impl fmt::Display for StoreConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(config) => write!(f, "{}", config.path.display()),
            #[cfg(feature = "postgres")]
            Self::Postgres(config) => write!(f, "{config}"),
        }
    }
}

fn time(ms: i64) -> WallTime {
    WallTime::from_unix_millis(u64::try_from(ms).unwrap_or(0))
}

fn millis(time: WallTime) -> i64 {
    i64::try_from(time.as_unix_millis()).unwrap_or(i64::MAX)
}

/// A database of updates, devices and keys.
///
/// - **Calls block**, and each is one transaction: all of it is done, or nothing. One thread calls.
/// - **Durable**: what a call that returned `Ok` has written is there after a crash of the process, of the database and of
///   the machine. What a call wrote that returned an error is not there later, so that the sender may be answered "not kept"; but if the
///   process ends before the next call, some of it may be.
/// - **Deduplication**: an update is known by its device and id. One that is there is left as it is, and is not new. A device
///   is known by its key and name, and keeps its number until it is forgotten. A store that is partitioned by place may know
///   an update by its place as well: an update that is sent again is at the same place.
/// - **Failure passes**: after an error the next call tries again, without a restart. No call takes longer than a minute, but
///   [`Store::replay`].
/// - **Deletion** ([`Store::forget`], [`Store::expire`]) is of the database itself. Copies of it and its logs are the
///   operator's.
/// - **Other processes** may make and revoke keys, add updates and copy the database meanwhile.
pub trait Store: Send {
    /// Keeps updates, for all devices together or for none.
    ///
    /// # Errors
    /// See [`StoreError`]. None is kept then.
    fn append(&mut self, reports: &[Reports<'_>]) -> Result<Vec<AppendOutcome>, StoreError>;

    /// Visits all updates, by time, and returns how many. What cannot be one, since something else wrote it, is left out.
    ///
    /// # Errors
    /// See [`StoreError`].
    fn replay(&mut self, visit: &mut dyn FnMut(u32, Update)) -> Result<u64, StoreError>;

    /// Deletes all updates of a key's devices, or of one of them, and returns how many and the devices' numbers. If it failed
    /// and is called again, the numbers are those of both calls.
    ///
    /// # Errors
    /// See [`StoreError`].
    fn forget(&mut self, key: &str, name: Option<&str>) -> Result<(u64, Vec<u32>), StoreError>;

    /// Deletes up to `most` updates measured before a time, and returns how many.
    ///
    /// # Errors
    /// See [`StoreError`].
    fn expire(&mut self, before: WallTime, most: u32) -> Result<u64, StoreError>;

    /// When the newest update was measured, or `None` if there is none.
    ///
    /// # Errors
    /// See [`StoreError`].
    fn newest(&mut self) -> Result<Option<WallTime>, StoreError>;

    /// All keys, revoked ones too.
    ///
    /// # Errors
    /// See [`StoreError`].
    fn keys(&mut self) -> Result<Vec<KeyRecord>, StoreError>;

    /// Keeps a key.
    ///
    /// # Errors
    /// See [`StoreError`].
    fn add_key(&mut self, key: &KeyRecord) -> Result<(), StoreError>;

    /// Revokes a key, and returns whether there was one that was not revoked.
    ///
    /// # Errors
    /// See [`StoreError`].
    fn revoke_key(&mut self, id: &str, now: WallTime) -> Result<bool, StoreError>;

    /// Something that changes whenever another process has changed the keys.
    ///
    /// # Errors
    /// See [`StoreError`].
    fn generation(&mut self) -> Result<i64, StoreError>;

    /// The size of the database in bytes.
    ///
    /// # Errors
    /// See [`StoreError`].
    fn size(&mut self) -> Result<u64, StoreError>;

    /// Writes what is pending to its place, before the end.
    ///
    /// # Errors
    /// See [`StoreError`].
    fn close(&mut self) -> Result<(), StoreError>;
}
