//! A PostgreSQL database with PostGIS.
//!
//! The store has a runtime and one connection of its own. After any error the connection is closed, and the next call makes
//! another. If a connection is lost while a transaction is committed, nobody knows whether it was: the next call finds out, and
//! takes it back before it does anything else, since the sender was answered that nothing was kept.

mod changes;
mod config;
mod error;
mod link;
mod memory;
mod migrations;
mod rows;

pub use config::PostgresConfig;
pub use migrations::VERSION as POSTGRES_VERSION;

use super::{AppendOutcome, KeyRecord, Reports, Role, Store, StoreError, millis, time};
use crate::server::clock::Clock;
use crate::{Update, WallTime};
use error::failed;
use link::Link;
use memory::Memory;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio_postgres::Row;
use weir_units::{TimeDelta, Timestamp};

/// Longest time of a call. A transaction of 20,000 updates takes less than a second.
const CALL: Duration = Duration::from_secs(20);
/// Longest time of the deletion of a key's reports, and of a migration.
const LONG: Duration = Duration::from_secs(600);
/// After a failure to connect, calls fail at once for this long.
const PAUSE: TimeDelta = TimeDelta::from_millis(500);
/// Updates that are read at a time.
const READ: i32 = 10_000;

/// A database of a server.
#[derive(Debug)]
pub struct PostgresStore {
    /// Always there, until it is dropped.
    runtime: Option<Runtime>,
    state: State,
}

#[derive(Debug)]
struct State {
    config: PostgresConfig,
    clock: Clock,
    link: Option<Link>,
    memory: Memory,
    /// Calls fail before this.
    paused: Timestamp,
}

/// Runs what blocks: on a thread of its own where the caller is a task, that must not.
fn outside<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    if tokio::runtime::Handle::try_current().is_err() {
        return work();
    }
    std::thread::scope(|scope| scope.spawn(work).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
}

fn no_answer(within: Duration) -> StoreError {
    StoreError::Database(format!("no answer within {} s", within.as_secs()))
}

impl State {
    /// Takes the connection, or makes another.
    async fn link(&mut self) -> Result<Link, StoreError> {
        if let Some(link) = self.link.take().filter(|link| !link.is_closed()) {
            return Ok(link);
        }
        if self.clock.elapsed() < self.paused {
            return Err(StoreError::Database("it could not be reached a moment ago".to_owned()));
        }
        let made = Link::connect(&self.config, &mut self.memory).await;
        if made.is_err() {
            self.paused = self.clock.elapsed() + PAUSE;
        }
        made
    }

    /// Does something with the connection, which is closed if that fails.
    async fn call<T>(
        &mut self,
        within: Duration,
        work: impl AsyncFnOnce(&mut Link, &mut Memory) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let connecting = tokio::time::timeout(CALL, self.link()).await;
        let mut link = connecting.unwrap_or_else(|_| Err(no_answer(CALL)))?;
        let done = tokio::time::timeout(within, work(&mut link, &mut self.memory)).await;
        let done = done.unwrap_or_else(|_| Err(no_answer(within)))?;
        self.link = Some(link);
        Ok(done)
    }
}

impl PostgresStore {
    /// Connects to a database and brings it to this program's version.
    ///
    /// # Errors
    /// It cannot be reached, has no PostGIS, or was made by a later version.
    pub fn open(config: &PostgresConfig) -> Result<Self, StoreError> {
        Self::open_version(config, POSTGRES_VERSION)
    }

    /// As [`PostgresStore::open`], but no further than to a version: for tests of migrations.
    ///
    /// # Errors
    /// As there.
    pub fn open_version(config: &PostgresConfig, version: i64) -> Result<Self, StoreError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|e| StoreError::Database(format!("a runtime: {e}")))?;
        let clock = Clock::system();
        let paused = clock.elapsed();
        let config = config.clone();
        let state = State { config, clock, link: None, memory: Memory::default(), paused };
        let mut store = Self { runtime: Some(runtime), state };
        let partitions = store.state.config.partitions();
        store.call(LONG, async |link, _| {
            migrations::migrate(link.client(), partitions, version).await?;
            // A server that does not flush is the operator's decision.
            if link.flushes().await? {
                return Ok(());
            }
            tracing::warn!("the database server has fsync = off: a crash of its machine may lose acknowledged updates");
            Ok(())
        })?;
        Ok(store)
    }

    fn call<T: Send>(
        &mut self,
        within: Duration,
        work: impl AsyncFnOnce(&mut Link, &mut Memory) -> Result<T, StoreError> + Send,
    ) -> Result<T, StoreError> {
        let Some(runtime) = &self.runtime else { return Err(StoreError::Database("closed".to_owned())) };
        let state = &mut self.state;
        outside(|| runtime.block_on(state.call(within, work)))
    }
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        self.state.link = None;
        if let Some(runtime) = self.runtime.take() {
            // Waits for nothing, as a task must not.
            runtime.shutdown_background();
        }
    }
}

fn key_of(row: &Row) -> Option<KeyRecord> {
    Some(KeyRecord {
        id: row.get(0),
        hash: row.get::<_, &[u8]>(1).try_into().ok()?,
        role: Role::from_name(row.get(2))?,
        note: row.get(3),
        created: time(row.get(4)),
        expires: row.get::<_, Option<i64>>(5).map(time),
        revoked: row.get::<_, Option<i64>>(6).map(time),
    })
}

/// Visits all updates, some at a time, while the transaction sees none that are added meanwhile.
fn read(runtime: &Runtime, link: &mut Link, visit: &mut dyn FnMut(u32, Update)) -> Result<u64, tokio_postgres::Error> {
    let begin = async {
        let statement = link.client().prepare(rows::ALL).await?;
        let transaction = link.client().transaction().await?;
        let portal = transaction.bind(&statement, &[]).await?;
        Ok::<_, tokio_postgres::Error>((transaction, portal))
    };
    let (transaction, portal) = outside(|| runtime.block_on(begin))?;
    let mut count = 0;
    loop {
        let some = outside(|| runtime.block_on(transaction.query_portal(&portal, READ)))?;
        if some.is_empty() {
            break;
        }
        for (device, update) in some.iter().filter_map(rows::update) {
            visit(device, update);
            count += 1;
        }
    }
    outside(|| runtime.block_on(transaction.commit()))?;
    Ok(count)
}

impl Store for PostgresStore {
    fn append(&mut self, reports: &[Reports<'_>]) -> Result<Vec<AppendOutcome>, StoreError> {
        let most = self.state.config.max_devices_per_key();
        self.call(CALL, async |link, memory| changes::append(link, memory, reports, most).await)
    }

    fn replay(&mut self, visit: &mut dyn FnMut(u32, Update)) -> Result<u64, StoreError> {
        // A connection, and that it is there.
        self.call(CALL, async |_, _| Ok(()))?;
        let (Some(runtime), Some(mut link)) = (&self.runtime, self.state.link.take()) else { return Ok(0) };
        let count = read(runtime, &mut link, visit).map_err(|e| failed(&e))?;
        self.state.link = Some(link);
        Ok(count)
    }

    fn forget(&mut self, key: &str, name: Option<&str>) -> Result<(u64, Vec<u32>), StoreError> {
        self.call(LONG, async |link, memory| changes::forget(link, memory, key, name).await)
    }

    fn expire(&mut self, before: WallTime, most: u32) -> Result<u64, StoreError> {
        self.call(CALL, async |link, _| changes::expire(link, millis(before), i64::from(most)).await)
    }

    fn newest(&mut self) -> Result<Option<WallTime>, StoreError> {
        self.call(CALL, async |link, _| {
            Ok(link.one::<Option<i64>>("SELECT max(time_ms) FROM updates").await?.map(time))
        })
    }

    fn keys(&mut self) -> Result<Vec<KeyRecord>, StoreError> {
        self.call(CALL, async |link, _| {
            let all = "SELECT id, hash, role, note, created_ms, expires_ms, revoked_ms FROM keys ORDER BY id";
            let rows = link.client().query(all, &[]).await.map_err(|e| failed(&e))?;
            Ok(rows.iter().filter_map(key_of).collect())
        })
    }

    fn add_key(&mut self, key: &KeyRecord) -> Result<(), StoreError> {
        self.call(CALL, async |link, _| {
            let add = "WITH counted AS (UPDATE changes SET keys = keys + 1)
                INSERT INTO keys (id, hash, role, note, created_ms, expires_ms, revoked_ms)
                VALUES ($1, $2, $3, $4, $5, $6, $7)";
            let (created, expires, revoked) = (millis(key.created), key.expires.map(millis), key.revoked.map(millis));
            let (hash, role) = (key.hash.as_slice(), key.role.name());
            let done =
                link.client().execute(add, &[&key.id, &hash, &role, &key.note, &created, &expires, &revoked]).await;
            done.map(|_| ()).map_err(|e| failed(&e))
        })
    }

    fn revoke_key(&mut self, id: &str, now: WallTime) -> Result<bool, StoreError> {
        self.call(CALL, async |link, _| {
            let revoke = "WITH counted AS (UPDATE changes SET keys = keys + 1)
                UPDATE keys SET revoked_ms = $2 WHERE id = $1 AND revoked_ms IS NULL";
            let done = link.client().execute(revoke, &[&id, &millis(now)]).await;
            done.map(|rows| rows == 1).map_err(|e| failed(&e))
        })
    }

    fn generation(&mut self) -> Result<i64, StoreError> {
        self.call(CALL, async |link, _| link.one("SELECT keys FROM changes").await)
    }

    fn size(&mut self) -> Result<u64, StoreError> {
        self.call(CALL, async |link, _| {
            let size: i64 = link.one(rows::SIZE).await?;
            Ok(u64::try_from(size).unwrap_or(0))
        })
    }

    fn close(&mut self) -> Result<(), StoreError> {
        // Everything is durable already.
        self.state.link = None;
        Ok(())
    }
}
