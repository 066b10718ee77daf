//! The schema, as the steps that lead to it. Steps are only added: a database goes forward from any version.

use super::error::{failed, text};
use crate::server::store::StoreError;
use tokio_postgres::{Client, Transaction};

/// The version that this program works with.
pub const VERSION: i64 = 1;

/// Of the lock that one migration holds: "weircov" in ASCII.
const LOCK: i64 = 0x0077_6569_7263_6f76;

/// Step 0 leads to version 1. The first columns are those of eight bytes, so that rows have no gaps.
///
/// Updates are spread by the hash of a cell: one that is sent again is at the same place, but not always at the same time,
/// since the service corrects times by the sender's clock. A unique key needs the column that decides the partition.
fn step_0(partitions: u16) -> String {
    let mut sql = "CREATE TABLE keys (
            id text PRIMARY KEY, hash bytea NOT NULL, role text NOT NULL, note text NOT NULL,
            created_ms bigint NOT NULL, expires_ms bigint, revoked_ms bigint
        );
        CREATE TABLE changes (keys bigint NOT NULL);
        INSERT INTO changes VALUES (0);
        CREATE TABLE devices (
            id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, key text NOT NULL, name text NOT NULL, UNIQUE (key, name)
        );
        CREATE TABLE updates (
            id bigint NOT NULL, time_ms bigint NOT NULL, parent bigint NOT NULL, h3 bigint NOT NULL, bps bigint NOT NULL,
            cell bigint, device integer NOT NULL, accuracy_m real NOT NULL, rtt_ms real, loss real,
            technology smallint NOT NULL, limited boolean NOT NULL, operator text NOT NULL,
            place geography(Point, 4326) NOT NULL, PRIMARY KEY (device, id, parent)
        ) PARTITION BY HASH (parent);
        CREATE INDEX updates_time ON updates (time_ms);"
        .to_owned();
    for n in 0..partitions {
        sql.push_str(&format!(
            "CREATE TABLE updates_{n} PARTITION OF updates FOR VALUES WITH (MODULUS {partitions}, REMAINDER {n});"
        ));
    }
    sql
}

/// PostGIS, which only some may install.
async fn postgis(transaction: &Transaction<'_>) -> Result<(), StoreError> {
    let there = "SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'postgis')";
    if transaction.query_one(there, &[]).await.map_err(|e| failed(&e))?.get(0) {
        return Ok(());
    }
    transaction.batch_execute("CREATE EXTENSION postgis").await.map_err(|e| {
        let said = text(&e);
        StoreError::Database(format!(
            "PostGIS is missing ({said}): install it (Debian: postgresql-15-postgis-3), and let a superuser of the database \
            run CREATE EXTENSION postgis"
        ))
    })
}

async fn version(transaction: &Transaction<'_>) -> Result<i64, tokio_postgres::Error> {
    let there = "SELECT to_regclass('weir_coverage.version') IS NOT NULL";
    if !transaction.query_one(there, &[]).await?.get::<_, bool>(0) {
        return Ok(0);
    }
    Ok(transaction.query_one("SELECT version FROM weir_coverage.version", &[]).await?.get(0))
}

/// Takes the steps from the database's version to `to`, each whole or not at all.
///
/// # Errors
/// The database is newer than this program, or cannot be written.
pub(super) async fn migrate(client: &mut Client, partitions: u16, to: i64) -> Result<(), StoreError> {
    let failed = |e| failed(&e);
    loop {
        let transaction = client.transaction().await.map_err(failed)?;
        transaction.query_one("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await.map_err(failed)?;
        let found = version(&transaction).await.map_err(failed)?;
        if found > VERSION {
            return Err(StoreError::TooNew { found, known: VERSION });
        }
        if found >= to {
            return Ok(());
        }
        let step = match found {
            0 => {
                postgis(&transaction).await?;
                let begin = "CREATE SCHEMA IF NOT EXISTS weir_coverage;
                    CREATE TABLE weir_coverage.version (version bigint NOT NULL);
                    INSERT INTO weir_coverage.version VALUES (0);";
                transaction.batch_execute(begin).await.map_err(failed)?;
                step_0(partitions)
            }
            // All versions that are known have a step.
            _ => return Ok(()),
        };
        transaction.batch_execute(&step).await.map_err(failed)?;
        transaction.execute("UPDATE version SET version = version + 1", &[]).await.map_err(failed)?;
        transaction.commit().await.map_err(failed)?;
    }
}
