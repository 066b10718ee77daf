//! Routes for operators and their programs.

use super::extract::key_of;
use crate::server::problem::Problem;
use crate::server::shared::Shared;
use crate::server::store::Role;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Whether the process answers
#[utoipa::path(get, path = "/health/live", tag = "operation", security(()), responses((status = 200, description = "It does")))]
pub(crate) async fn live() -> &'static str {
    "live\n"
}

/// Whether updates are taken
#[utoipa::path(get, path = "/health/ready", tag = "operation", security(()), responses(
    (status = 200, description = "They are"),
    (status = 503, description = "The database does not answer, the service is stopping, or too many wait to be written"),
))]
pub(crate) async fn ready(State(shared): State<Arc<Shared>>) -> Response {
    let stopping = *shared.stopping.borrow() || shared.jobs.is_closed();
    let busy = shared.queued.load(Ordering::Relaxed) >= shared.config.max_queued;
    let detail = match (stopping, busy, shared.has_database()) {
        (true, ..) => Some("stopping"),
        (_, true, _) => Some("too many updates wait to be written"),
        (.., false) => Some("the database does not answer"),
        _ => None,
    };
    if let Some(detail) = detail {
        return Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail).into_response();
    }
    "ready\n".into_response()
}

/// Metrics in Prometheus's text format
///
/// Without a key for callers on the service's own machine, if it listens on the loopback device.
#[utoipa::path(get, path = "/metrics", tag = "operation", responses(
    (status = 200, description = "Metrics", content_type = "application/openmetrics-text"),
    (status = 401, description = "No valid key"),
))]
pub(crate) async fn metrics(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Result<Response, Problem> {
    if !shared.config.listen.ip().is_loopback() {
        let caller = shared.authenticate(key_of(&headers))?;
        caller.must(matches!(caller.role, Role::Admin | Role::Reader))?;
    }
    let stats = shared.map().stats();
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([("content-type", kind)], shared.metrics.text(stats)).into_response())
}
