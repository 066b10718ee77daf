use super::{AppendOutcome, KeyRecord, Reports, Role, Store, StoreError, VERSION, migrate, millis, time};
use crate::{Position, Technology, Update, WallTime};
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, Transaction, params};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use weir_units::DataRate;

/// Devices whose numbers are remembered.
const MAX_KNOWN_DEVICES: usize = 100_000;

/// Where and how a database is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqliteConfig {
    /// The file. Its log (`-wal`) and index (`-shm`) are beside it.
    pub path: PathBuf,
    /// Greatest size in bytes, or none.
    pub max_bytes: Option<u64>,
    /// Most devices of one key.
    pub max_devices_per_key: u32,
}

/// A database in a file.
#[derive(Debug)]
pub struct SqliteStore {
    connection: Connection,
    devices: BTreeMap<(String, String), u32>,
    max_devices_per_key: u32,
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::Full,
            _ => Self::Database(error.to_string()),
        }
    }
}

/// Makes the file, where there is none, readable by its owner alone: it has the places of reporters. SQLite gives its log and
/// index the same mode.
fn make_private(path: &Path) -> Result<(), StoreError> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists => {
            Err(StoreError::Database(format!("{}: {e}", path.display())))
        }
        _ => Ok(()),
    }
}

impl SqliteStore {
    /// Opens a database, made on first use, and brings it to this program's version.
    ///
    /// # Errors
    /// The file cannot be opened, is no database, or was made by a later version.
    pub fn open(config: &SqliteConfig) -> Result<Self, StoreError> {
        make_private(&config.path)?;
        let mut connection = Connection::open(&config.path)?;
        connection.busy_timeout(Duration::from_secs(10))?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        // Durable when a transaction returns, whatever happens to the process or to the machine.
        connection.pragma_update(None, "synchronous", "FULL")?;
        // Deleted rows are overwritten.
        connection.pragma_update(None, "secure_delete", "ON")?;
        connection.pragma_update(None, "cache_size", -65_536)?;
        connection.pragma_update(None, "wal_autocheckpoint", 4_000)?;
        migrate(&mut connection, VERSION)?;
        if let Some(bytes) = config.max_bytes {
            let page: i64 = connection.query_row("PRAGMA page_size", [], |row| row.get(0))?;
            let pages = (i64::try_from(bytes).unwrap_or(i64::MAX) / page.max(1)).max(1);
            connection.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(()))?;
        }
        connection.set_prepared_statement_cache_capacity(32);
        Ok(Self { connection, devices: BTreeMap::new(), max_devices_per_key: config.max_devices_per_key })
    }
}

/// The number of a device, made on first use; `None` if the key has as many as it may have.
fn device(transaction: &Transaction<'_>, key: &str, name: &str, most: u32) -> rusqlite::Result<Option<u32>> {
    let mut find = transaction.prepare_cached("SELECT id FROM devices WHERE key = ?1 AND name = ?2")?;
    if let Some(number) = find.query_row(params![key, name], |row| row.get(0)).optional()? {
        return Ok(Some(number));
    }
    let mut count = transaction.prepare_cached("SELECT count(*) FROM devices WHERE key = ?1")?;
    if count.query_row([key], |row| row.get::<_, u32>(0))? >= most {
        return Ok(None);
    }
    let mut insert = transaction.prepare_cached("INSERT INTO devices (key, name) VALUES (?1, ?2)")?;
    insert.execute(params![key, name])?;
    Ok(u32::try_from(transaction.last_insert_rowid()).ok())
}

/// Selects those of a device's updates that are new.
fn insert(transaction: &Transaction<'_>, device: u32, updates: &[Update]) -> rusqlite::Result<Vec<bool>> {
    let mut insert = transaction.prepare_cached(
        "INSERT OR IGNORE INTO updates
            (device, id, time_ms, lat, lon, accuracy_m, operator, technology, cell, bps, rtt_ms, loss, limited)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
    )?;
    let mut one = |update: &Update| {
        let rows = insert.execute(params![
            device,
            update.id.cast_signed(),
            millis(update.time_ms),
            update.position.lat(),
            update.position.lon(),
            update.accuracy_m,
            update.operator.as_str(),
            update.technology.number(),
            update.cell_id.map(u64::cast_signed),
            update.throughput.as_bps().cast_signed(),
            update.rtt_ms,
            update.loss,
            update.app_limited,
        ])?;
        Ok(rows == 1)
    };
    updates.iter().map(&mut one).collect()
}

impl Store for SqliteStore {
    fn append(&mut self, reports: &[Reports<'_>]) -> Result<Vec<AppendOutcome>, StoreError> {
        let transaction = self.connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        let mut kept = Vec::with_capacity(reports.len());
        let mut seen = Vec::new();
        for report in reports {
            let wanted = (report.key.to_owned(), report.device.to_owned());
            let number = match self.devices.get(&wanted) {
                Some(number) => Some(*number),
                None => device(&transaction, report.key, report.device, self.max_devices_per_key)?,
            };
            let Some(number) = number else {
                kept.push(AppendOutcome::TooManyDevices);
                continue;
            };
            kept.push(AppendOutcome::Stored { device: number, new: insert(&transaction, number, report.updates)? });
            seen.push((wanted, number));
        }
        transaction.commit()?;
        // Only now: what was made in a transaction that failed is not there.
        if self.devices.len() + seen.len() > MAX_KNOWN_DEVICES {
            self.devices.clear();
        }
        self.devices.extend(seen);
        Ok(kept)
    }

    fn replay(&mut self, visit: &mut dyn FnMut(u32, Update)) -> Result<u64, StoreError> {
        let mut all = self.connection.prepare(
            "SELECT device, id, time_ms, lat, lon, accuracy_m, operator, technology, cell, bps, rtt_ms, loss, limited
            FROM updates ORDER BY time_ms, device, id",
        )?;
        let mut rows = all.query([])?;
        let mut count = 0;
        while let Some(row) = rows.next()? {
            let operator: String = row.get(6)?;
            let position = Position::new(row.get(3)?, row.get(4)?);
            // A row that is no update was written by something else.
            let (Ok(position), Ok(operator)) = (position, operator.parse()) else { continue };
            let technology = Technology::from_number(row.get(7)?);
            let rate = DataRate::from_bps(row.get::<_, i64>(9)?.cast_unsigned());
            let id = row.get::<_, i64>(1)?.cast_unsigned();
            let mut update = Update::new(id, time(row.get(2)?), position, operator, technology, rate);
            update.accuracy_m = row.get(5)?;
            update.cell_id = row.get::<_, Option<i64>>(8)?.map(i64::cast_unsigned);
            update.rtt_ms = row.get(10)?;
            update.loss = row.get(11)?;
            update.app_limited = row.get(12)?;
            visit(row.get(0)?, update);
            count += 1;
        }
        Ok(count)
    }

    fn forget(&mut self, key: &str, name: Option<&str>) -> Result<(u64, Vec<u32>), StoreError> {
        let transaction = self.connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        let mut numbers: Vec<u32> = Vec::new();
        let mut deleted = 0;
        {
            let mut find = transaction
                .prepare("SELECT id FROM devices WHERE key = ?1 AND (?2 IS NULL OR name = ?2) ORDER BY id")?;
            let mut rows = find.query(params![key, name])?;
            while let Some(row) = rows.next()? {
                numbers.push(row.get(0)?);
            }
            for number in &numbers {
                deleted += transaction.execute("DELETE FROM updates WHERE device = ?1", [number])?;
                transaction.execute("DELETE FROM devices WHERE id = ?1", [number])?;
            }
        }
        transaction.commit()?;
        self.devices.retain(|_, number| !numbers.contains(number));
        Ok((deleted as u64, numbers))
    }

    fn expire(&mut self, before: WallTime, most: u32) -> Result<u64, StoreError> {
        let mut delete = self.connection.prepare_cached(
            "DELETE FROM updates WHERE (device, id) IN
                (SELECT device, id FROM updates WHERE time_ms < ?1 ORDER BY time_ms LIMIT ?2)",
        )?;
        Ok(delete.execute(params![millis(before), most])? as u64)
    }

    fn newest(&mut self) -> Result<Option<WallTime>, StoreError> {
        let mut query = self.connection.prepare_cached("SELECT max(time_ms) FROM updates")?;
        Ok(query.query_row([], |row| row.get::<_, Option<i64>>(0))?.map(time))
    }

    fn keys(&mut self) -> Result<Vec<KeyRecord>, StoreError> {
        let mut all = self
            .connection
            .prepare_cached("SELECT id, hash, role, note, created_ms, expires_ms, revoked_ms FROM keys ORDER BY id")?;
        let rows = all.query_map([], |row| {
            let role: String = row.get(2)?;
            Ok(Role::from_name(&role).map(|role| {
                Ok(KeyRecord {
                    id: row.get(0)?,
                    hash: row.get(1)?,
                    role,
                    note: row.get(3)?,
                    created: time(row.get(4)?),
                    expires: row.get::<_, Option<i64>>(5)?.map(time),
                    revoked: row.get::<_, Option<i64>>(6)?.map(time),
                })
            }))
        })?;
        let known = rows.filter_map(Result::transpose).map(|row: rusqlite::Result<rusqlite::Result<KeyRecord>>| row?);
        Ok(known.collect::<rusqlite::Result<_>>()?)
    }

    fn add_key(&mut self, key: &KeyRecord) -> Result<(), StoreError> {
        self.connection.execute(
            "INSERT INTO keys (id, hash, role, note, created_ms, expires_ms, revoked_ms)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            params![
                key.id,
                key.hash,
                key.role.name(),
                key.note,
                millis(key.created),
                key.expires.map(millis),
                key.revoked.map(millis),
            ],
        )?;
        Ok(())
    }

    fn revoke_key(&mut self, id: &str, now: WallTime) -> Result<bool, StoreError> {
        let sql = "UPDATE keys SET revoked_ms = ?2 WHERE id = ?1 AND revoked_ms IS NULL";
        Ok(self.connection.execute(sql, params![id, millis(now)])? == 1)
    }

    fn generation(&mut self) -> Result<i64, StoreError> {
        let mut query = self.connection.prepare_cached("PRAGMA data_version")?;
        Ok(query.query_row([], |row| row.get(0)).optional()?.unwrap_or(0))
    }

    fn size(&mut self) -> Result<u64, StoreError> {
        let number = |sql: &str| self.connection.query_row(sql, [], |row| row.get::<_, i64>(0));
        let (pages, page) = (number("PRAGMA page_count")?, number("PRAGMA page_size")?);
        Ok(u64::try_from(pages * page).unwrap_or(0))
    }

    fn close(&mut self) -> Result<(), StoreError> {
        self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        Ok(())
    }
}

/// Copies a database that may be in use into a new file, in steps between which others can write (SQLite's backup API). Until
/// it is complete the copy has the name `to` with `.part` added.
///
/// # Errors
/// The database cannot be read, or the copy exists already or cannot be written.
pub fn backup(from: &Path, to: &Path) -> Result<u64, StoreError> {
    let fails = |e: std::io::Error| StoreError::Database(format!("{}: {e}", to.display()));
    if to.exists() {
        return Err(StoreError::Database(format!("{} exists already", to.display())));
    }
    let part = {
        let mut name = to.as_os_str().to_owned();
        name.push(".part");
        PathBuf::from(name)
    };
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let source = Connection::open_with_flags(from, flags)?;
    source.busy_timeout(Duration::from_secs(10))?;
    // One snapshot for all steps: a write by another process would otherwise begin the copy again.
    source.execute_batch("BEGIN; SELECT count(*) FROM sqlite_schema;")?;
    make_private(&part)?;
    let mut copy = Connection::open(&part)?;
    rusqlite::backup::Backup::new(&source, &mut copy)?.run_to_completion(1_000, Duration::ZERO, None)?;
    copy.close().map_err(|(_, e)| e)?;
    std::fs::rename(&part, to).map_err(fails)?;
    std::fs::metadata(to).map(|m| m.len()).map_err(fails)
}
