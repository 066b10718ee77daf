//! Changes of updates and devices.

use super::error::failed;
use super::link::Link;
use super::memory::{Memory, Place, Unknown};
use super::rows::{self, Columns};
use crate::server::store::{AppendOutcome, Reports, StoreError};
use std::collections::{BTreeMap, BTreeSet};
use tokio_postgres::Transaction;

type Names = BTreeMap<(String, String), i32>;

/// The numbers of devices, made on first use; those that their keys may not have are missing.
async fn devices(
    transaction: &Transaction<'_>,
    wanted: BTreeSet<(&str, &str)>,
    most: u32,
) -> Result<Names, tokio_postgres::Error> {
    let mut known = Names::new();
    if wanted.is_empty() {
        return Ok(known);
    }
    let columns = |of: &[(&str, &str)]| {
        let (keys, names): (Vec<String>, Vec<String>) =
            of.iter().map(|(key, name)| ((*key).to_owned(), (*name).to_owned())).unzip();
        (keys, names)
    };
    let all: Vec<(&str, &str)> = wanted.into_iter().collect();
    let (keys, names) = columns(&all);
    for row in transaction.query(rows::FIND_DEVICES, &[&keys, &names]).await? {
        known.insert((row.get(0), row.get(1)), row.get(2));
    }
    let mut missing: Vec<(&str, &str)> = Vec::new();
    let mut left: BTreeMap<&str, i64> = BTreeMap::new();
    for (key, name) in all {
        if known.contains_key(&(key.to_owned(), name.to_owned())) {
            continue;
        }
        if !left.contains_key(key) {
            let count: i64 = transaction.query_one(rows::COUNT_DEVICES, &[&key]).await?.get(0);
            left.insert(key, i64::from(most) - count);
        }
        if let Some(left) = left.get_mut(key).filter(|left| **left > 0) {
            *left -= 1;
            missing.push((key, name));
        }
    }
    if !missing.is_empty() {
        let (keys, names) = columns(&missing);
        for row in transaction.query(rows::ADD_DEVICES, &[&keys, &names]).await? {
            known.insert((row.get(0), row.get(1)), row.get(2));
        }
    }
    Ok(known)
}

pub(super) async fn append(
    link: &mut Link,
    memory: &mut Memory,
    reports: &[Reports<'_>],
    most: u32,
) -> Result<Vec<AppendOutcome>, StoreError> {
    let failed = |e| failed(&e);
    let insert = link.insert().await?;
    let process = link.process;
    let transaction = link.client().transaction().await.map_err(failed)?;
    let unknown = reports.iter().map(|r| (r.key, r.device)).filter(|(key, name)| memory.device(key, name).is_none());
    let made = devices(&transaction, unknown.collect(), most).await.map_err(failed)?;
    let number = |report: &Reports<'_>| {
        let made = || made.get(&(report.key.to_owned(), report.device.to_owned())).copied();
        memory.device(report.key, report.device).or_else(made)
    };
    let numbers: Vec<Option<i32>> = reports.iter().map(number).collect();
    let mut columns = Columns::default();
    let mut places: Vec<Vec<Place>> = Vec::with_capacity(reports.len());
    for (report, number) in reports.iter().zip(&numbers) {
        let one = |number: i32| report.updates.iter().map(|u| columns.add(number, u)).collect();
        places.push(number.map_or_else(Vec::new, one));
    }
    let parameters = columns.parameters();
    let (inserted, named) = tokio::try_join!(
        transaction.query(&insert, &parameters),
        transaction.query_one("SELECT pg_current_xact_id()::text", &[]),
    )
    .map_err(failed)?;
    let added: Vec<Place> = inserted.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect();
    let mut new: BTreeSet<Place> = added.iter().copied().collect();
    // Until the answer is here, nobody knows.
    memory.unknown = Some(Unknown { transaction: named.get(0), process, added });
    if let Err(e) = transaction.commit().await {
        if e.as_db_error().is_some() {
            // The server says no, as opposed to nothing.
            memory.unknown = None;
        }
        return Err(failed(e));
    }
    memory.unknown = None;
    memory.add_devices(made);
    let kept = numbers.into_iter().zip(places).map(|(number, places)| match number.map(u32::try_from) {
        Some(Ok(device)) => {
            AppendOutcome::Stored { device, new: places.iter().map(|place| new.remove(place)).collect() }
        }
        _ => AppendOutcome::TooManyDevices,
    });
    Ok(kept.collect())
}

pub(super) async fn forget(
    link: &mut Link,
    memory: &mut Memory,
    key: &str,
    name: Option<&str>,
) -> Result<(u64, Vec<u32>), StoreError> {
    let failed = |e| failed(&e);
    let transaction = link.client().transaction().await.map_err(failed)?;
    let gone = transaction.query(rows::FORGET_DEVICES, &[&key, &name]).await.map_err(failed)?;
    let gone: Vec<(String, String, i32)> = gone.iter().map(|r| (r.get(0), r.get(1), r.get(2))).collect();
    let numbers: Vec<i32> = gone.iter().map(|device| device.2).collect();
    let deleted = transaction.execute(rows::FORGET_UPDATES, &[&numbers]).await.map_err(failed)?;
    memory.begin_forgetting(&gone);
    transaction.commit().await.map_err(failed)?;
    Ok((deleted, memory.end_forgetting(key, name)))
}

/// Deletes up to `most` updates measured before a time.
pub(super) async fn expire(link: &mut Link, before_ms: i64, most: i64) -> Result<u64, StoreError> {
    let oldest: Option<i64> = link.one("SELECT min(time_ms) FROM updates").await?;
    if oldest.is_none_or(|oldest| oldest >= before_ms) {
        return Ok(0);
    }
    let mut deleted = 0;
    for partition in link.partitions().await? {
        let left = most - i64::try_from(deleted).unwrap_or(i64::MAX);
        if left <= 0 {
            break;
        }
        // The name comes from the database's catalogue, quoted where needed.
        let delete = format!(
            "DELETE FROM {partition} WHERE ctid = ANY (ARRAY(
                SELECT ctid FROM {partition} WHERE time_ms < $1 ORDER BY time_ms LIMIT $2))"
        );
        deleted += link.client().execute(&delete, &[&before_ms, &left]).await.map_err(|e| failed(&e))?;
    }
    Ok(deleted)
}
