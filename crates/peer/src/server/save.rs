//! Calls as files.

use super::problem::Problem;
use super::sessions::Sessions;
use crate::call::Record;
use crate::saved::{self, SaveError};
use axum::extract::{Path, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Files that are made at a time: each takes a while and some memory.
static TURNS: Semaphore = Semaphore::const_new(2);

/// A page of these calls.
pub(super) fn page(sessions: &Sessions, records: Vec<Record>) -> Result<String, SaveError> {
    let material = sessions.material();
    // A call that is no scenario has a report without one.
    let with = |record: Record| {
        let scenario = saved::scenario(&record, &material, &sessions.registry).ok();
        (record, scenario)
    };
    saved::report(&records.into_iter().map(with).collect::<Vec<_>>())
}

/// Makes a file, apart from the threads that serve requests.
async fn file(
    sessions: Arc<Sessions>,
    id: String,
    (kind, ending): (&'static str, &'static str),
    make: impl FnOnce(&Sessions, &crate::call::Call) -> Result<Vec<u8>, SaveError> + Send + 'static,
) -> Result<Response, Problem> {
    let call = sessions.get(&id)?;
    let failed = |_| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "an error of the service");
    let turn = TURNS.acquire().await.map_err(|_| Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the service ends"))?;
    let made = tokio::task::spawn_blocking(move || {
        let made = make(&sessions, &call);
        drop(turn);
        made
    });
    let bytes = made.await.map_err(failed)?.map_err(|e| {
        let status = match &e {
            SaveError::Report(_) | SaveError::Capture(_) => StatusCode::INTERNAL_SERVER_ERROR,
            _ => StatusCode::CONFLICT,
        };
        Problem::new(status, e.to_string())
    })?;
    let short: String = id.chars().take(6).collect();
    let mut response = bytes.into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    if let Ok(value) = HeaderValue::try_from(format!("attachment; filename=\"weir-call-{short}.{ending}\"")) {
        headers.insert(header::CONTENT_DISPOSITION, value);
    }
    Ok(response)
}

pub(super) async fn report(State(sessions): State<Arc<Sessions>>, Path(id): Path<String>) -> Result<Response, Problem> {
    let kind = ("text/html; charset=utf-8", "html");
    file(sessions, id, kind, |sessions, call| page(sessions, vec![call.record()]).map(String::into_bytes)).await
}

pub(super) async fn scenario(
    State(sessions): State<Arc<Sessions>>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    file(sessions, id, ("application/toml", "toml"), |sessions, call| {
        saved::scenario(&call.record(), &sessions.material(), &sessions.registry).map(String::into_bytes)
    })
    .await
}

pub(super) async fn packets(
    State(sessions): State<Arc<Sessions>>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    file(sessions, id, ("application/x-pcapng", "pcapng"), |_, call| {
        saved::capture(&call.record(), &call.packets(), |at| call.time_of_day(at))
    })
    .await
}
