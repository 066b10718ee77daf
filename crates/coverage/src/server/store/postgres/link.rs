//! One connection.

use super::config::PostgresConfig;
use super::error::failed;
use super::memory::{Memory, Unknown};
use super::rows;
use crate::server::store::StoreError;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::FromSqlOwned;
use tokio_postgres::{Client, NoTls, Statement};

/// Settings of each connection. Tables have a schema of their own; PostGIS is where the database has it.
const SESSION: &str = "SELECT set_config('search_path', 'weir_coverage,' || current_setting('search_path'), false);
    SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') IN ('off', 'local');
    SET idle_in_transaction_session_timeout = '60s';
    SET client_min_messages = warning";

#[derive(Debug)]
pub(super) struct Link {
    client: Client,
    pub(super) process: i32,
    insert: Option<Statement>,
    partitions: Option<Vec<String>>,
}

impl Link {
    pub(super) async fn connect(config: &PostgresConfig, memory: &mut Memory) -> Result<Self, StoreError> {
        let failed = |e| failed(&e);
        let client = match config.tls()? {
            None => {
                let (client, connection) = config.connection().connect(NoTls).await.map_err(failed)?;
                // Its error is the client's as well.
                tokio::spawn(async { drop(connection.await) });
                client
            }
            Some(tls) => {
                let (client, connection) = config.connection().connect(tls).await.map_err(failed)?;
                tokio::spawn(async { drop(connection.await) });
                client
            }
        };
        client.batch_execute(SESSION).await.map_err(failed)?;
        let process: i32 = client.query_one("SELECT pg_backend_pid()", &[]).await.map_err(failed)?.get(0);
        let mut link = Self { client, process, insert: None, partitions: None };
        if let Some(unknown) = &memory.unknown {
            link.take_back(unknown).await?;
            memory.unknown = None;
        }
        Ok(link)
    }

    pub(super) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    pub(super) fn client(&mut self) -> &mut Client {
        &mut self.client
    }

    /// The statement that adds updates.
    pub(super) async fn insert(&mut self) -> Result<Statement, StoreError> {
        if let Some(statement) = &self.insert {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare(rows::INSERT).await.map_err(|e| failed(&e))?;
        Ok(self.insert.insert(statement).clone())
    }

    /// The tables that updates are in.
    pub(super) async fn partitions(&mut self) -> Result<Vec<String>, StoreError> {
        if let Some(names) = &self.partitions {
            return Ok(names.clone());
        }
        let all = self.client.query(rows::PARTITIONS, &[]).await.map_err(|e| failed(&e))?;
        Ok(self.partitions.insert(all.iter().map(|row| row.get(0)).collect()).clone())
    }

    /// The one value that a query is about.
    pub(super) async fn one<T: FromSqlOwned>(&self, query: &str) -> Result<T, StoreError> {
        let row = self.client.query_one(query, &[]).await.map_err(|e| failed(&e))?;
        row.try_get(0).map_err(|e| failed(&e))
    }

    /// Whether what is committed is on the disk.
    pub(super) async fn flushes(&self) -> Result<bool, StoreError> {
        self.one("SELECT current_setting('fsync') = 'on'").await
    }

    /// Takes a transaction back of which nobody knows whether it was committed.
    async fn take_back(&mut self, unknown: &Unknown) -> Result<(), StoreError> {
        let failed = |e| failed(&e);
        let status = "SELECT pg_xact_status($1::text::xid8)";
        let status: Option<String> = match self.client.query_one(status, &[&unknown.transaction]).await {
            Ok(row) => row.get(0),
            // "In the future": the server has crashed before anything of the transaction was on its disk, and has not used the number again.
            Err(e) if e.code() == Some(&SqlState::INVALID_PARAMETER_VALUE) => return Ok(()),
            Err(e) => return Err(failed(e)),
        };
        match status.as_deref() {
            Some("aborted") => return Ok(()),
            Some("in progress") => {
                // Its connection is lost: the server will notice later.
                let end = "SELECT pg_terminate_backend($1)";
                self.client.query_one(end, &[&unknown.process]).await.map_err(failed)?;
                return Err(StoreError::Database("a transaction before is still in progress".to_owned()));
            }
            // Committed, or so long ago that the server does not know.
            _ => {}
        }
        let devices: Vec<i32> = unknown.added.iter().map(|place| place.0).collect();
        let ids: Vec<i64> = unknown.added.iter().map(|place| place.1).collect();
        let parents: Vec<i64> = unknown.added.iter().map(|place| place.2).collect();
        let gone = self.client.execute(rows::TAKE_BACK, &[&devices, &ids, &parents]).await.map_err(failed)?;
        tracing::warn!(
            updates = gone,
            "a transaction without an answer was taken back: its senders will send it again"
        );
        Ok(())
    }
}
