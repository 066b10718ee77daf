//! Reports.

use super::extract::Json;
use crate::server::jobs::{Append, Appended, Job};
use crate::server::problem::Problem;
use crate::server::shared::{Caller, Shared};
use crate::server::store::Role;
use crate::{Accepted, Batch, RefusedUpdate, Update};
use axum::extract::State;
use axum::http::StatusCode;
use serde::Serialize;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::oneshot;
use weir_units::TimeDelta;

/// The name under which a device is kept.
fn device_name(caller: &Caller, device: Option<&str>) -> Result<String, Problem> {
    match (caller.role, device) {
        (Role::Reporter, None) => Ok(String::new()),
        (Role::Reporter, Some(_)) => Err(Problem::bad("this key is of one device, that needs no name")),
        (_, Some(name)) if (1..=64).contains(&name.len()) && !name.chars().any(char::is_control) => Ok(name.to_owned()),
        (_, _) => Err(Problem::bad("a fleet's batch names its device: 1 to 64 bytes without control characters")),
    }
}

/// Reports measurements of one device
///
/// Once this is answered with 200, the updates are durable. A batch that is sent again counts once.
#[utoipa::path(post, path = "/v1/updates", request_body = Batch, tag = "reports", responses(
    (status = 200, description = "Kept", body = Accepted),
    (status = 400, description = "No batch, or clocks that differ by more than five minutes"),
    (status = 401, description = "No valid key"),
    (status = 403, description = "A key that may not report"),
    (status = 408, description = "The body took too long"),
    (status = 413, description = "Too long"),
    (status = 429, description = "Too many: again after Retry-After"),
    (status = 503, description = "The database does not answer: nothing was kept"),
    (status = 507, description = "No space left: nothing was kept"),
))]
pub(crate) async fn report(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Json(batch): Json<Batch>,
) -> Result<axum::Json<Accepted>, Problem> {
    caller.must(caller.role.reports())?;
    let device = device_name(&caller, batch.device.as_deref())?;
    let most = shared.config.max_batch;
    if batch.updates.is_empty() || batch.updates.len() > most {
        return Err(Problem::bad(format!("a batch has 1 to {most} updates")));
    }
    let now = shared.now();
    let correction = shared.config.bounds.correction(batch.sent_ms, now).ok_or_else(|| {
        shared.metrics.count_updates("skewed", batch.updates.len());
        let seconds = now.since(batch.sent_ms).as_secs_f64();
        Problem::bad(format!("the batch was sent {seconds:.0} s ago by its clock: clocks may differ by five minutes"))
    })?;
    shared.take_updates(&caller, batch.updates.len())?;
    let mut refused = Vec::new();
    let mut updates = batch.updates;
    updates.retain_mut(|update| {
        update.time_ms = update.time_ms.plus(correction);
        match shared.config.bounds.check(update, now) {
            Ok(()) => true,
            Err(reason) => {
                refused.push(RefusedUpdate { id: update.id, reason });
                false
            }
        }
    });
    shared.metrics.count_updates("refused", refused.len());
    if updates.is_empty() {
        return Ok(axum::Json(Accepted { refused, ..Accepted::default() }));
    }
    match write(&shared, caller.key, device, updates).await? {
        Appended::Stored { new, duplicates } => {
            shared.metrics.count_updates("duplicate", duplicates);
            Ok(axum::Json(Accepted { accepted: new, duplicates, refused }))
        }
        Appended::TooManyDevices => Err(Problem::new(StatusCode::FORBIDDEN, "this key has too many devices")),
    }
}

/// Waits until updates are written, if they may wait.
async fn write(shared: &Shared, key: String, device: String, updates: Vec<Update>) -> Result<Appended, Problem> {
    let count = updates.len();
    let busy = || Problem::busy("too many updates wait to be written", TimeDelta::from_secs(1));
    let queued = shared.queued.fetch_add(count, Ordering::Relaxed) + count;
    let (reply, answer) = oneshot::channel();
    let sent = if queued > shared.config.max_queued {
        Err(busy())
    } else {
        let job = Job::Append(Append { key, device, updates, reply });
        shared.jobs.try_send(job).map_err(|e| match e {
            TrySendError::Full(_) => busy(),
            TrySendError::Closed(_) => Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the service is stopping"),
        })
    };
    if let Err(problem) = sent {
        shared.queued.fetch_sub(count, Ordering::Relaxed);
        shared.metrics.count_updates("busy", count);
        return Err(problem);
    }
    answer_of(answer).await
}

/// The writer's answer to a job.
pub(super) async fn answer_of<T>(
    answer: oneshot::Receiver<Result<T, crate::server::store::StoreError>>,
) -> Result<T, Problem> {
    let stopping = |_| Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the service is stopping");
    Ok(answer.await.map_err(stopping)??)
}

/// Passes a job to the writer and waits for its answer.
pub(super) async fn ask<T>(
    shared: &Shared,
    job: impl FnOnce(oneshot::Sender<Result<T, crate::server::store::StoreError>>) -> Job,
) -> Result<T, Problem> {
    let (reply, answer) = oneshot::channel();
    let stopping = |_| Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the service is stopping");
    shared.jobs.send(job(reply)).await.map_err(stopping)?;
    answer_of(answer).await
}

/// A choice of reports to delete.
#[derive(Clone, Debug, Default, PartialEq, Eq, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Whose {
    /// One of a fleet's devices; all of the key's if it is missing.
    device: Option<String>,
}

/// Counts of deleted reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub(crate) struct Deleted {
    /// Updates.
    deleted: u64,
}

/// Deletes the reports of one's own key
///
/// They leave the database and the map before this is answered. Backups keep them.
#[utoipa::path(delete, path = "/v1/updates", params(Whose), tag = "reports", responses(
    (status = 200, description = "Deleted", body = Deleted),
    (status = 401, description = "No valid key"),
))]
pub(crate) async fn forget(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    axum::extract::RawQuery(query): axum::extract::RawQuery,
) -> Result<axum::Json<Deleted>, Problem> {
    caller.must(caller.role.reports())?;
    shared.take_look(&caller, 1.0)?;
    let device = match query.as_deref() {
        None | Some("") => None,
        Some(text) => {
            let name = text.strip_prefix("device=").ok_or_else(|| Problem::bad("the only parameter is device"))?;
            Some(decode(name).ok_or_else(|| Problem::bad("device is not percent-encoded UTF-8"))?)
        }
    };
    let deleted = ask(&shared, |reply| Job::Forget { key: caller.key, device, reply }).await?;
    tracing::info!(updates = deleted, "reports deleted by their reporter");
    Ok(axum::Json(Deleted { deleted }))
}

/// Decodes percent-encoded UTF-8.
fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                u8::try_from(digit()? * 16 + digit()?).ok()?
            }
            b'+' => b' ',
            b'&' | b'=' => return None,
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}
