//! Requests.

mod admin;
mod extract;
mod look;
mod operations;
mod regions;
mod updates;

pub use admin::{KeyInfo, NewKey};
pub use look::MapPart;

use super::problem::Problem;
use super::shared::Shared;
use super::{docs, live, page, subscription};
use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use std::sync::Arc;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::set_header::SetResponseHeaderLayer;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::{Modify, OpenApi};
use weir_admission::Source;

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Weir's network coverage map",
        description = "Ends report throughput with their position; the service joins reports into regions, and ends look ahead. \
            Times are milliseconds since 1970 UTC, rates bit/s, positions degrees of WGS 84. Errors are RFC 9457 problems. \
            429 and 503 say in Retry-After when to come again. Places of look-aheads are neither kept nor logged.",
    ),
    paths(
        updates::report,
        updates::forget,
        look::route,
        look::area,
        look::part,
        subscription::fences,
        regions::regions,
        live::live,
        admin::list_keys,
        admin::add_key,
        admin::revoke_key,
        operations::live,
        operations::ready,
        operations::metrics,
    ),
    components(schemas(crate::lookahead::FenceEvent, crate::lookahead::FenceRequest, super::shared::Sample)),
    modifiers(&Bearer),
    security(("key" = [])),
)]
struct Api;

struct Bearer;

impl Modify for Bearer {
    fn modify(&self, api: &mut utoipa::openapi::OpenApi) {
        let scheme = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
        api.components.get_or_insert_default().add_security_scheme("key", scheme);
    }
}

/// The description of the interface, as OpenAPI 3.1 in JSON.
pub fn openapi() -> String {
    Api::openapi().to_pretty_json().unwrap_or_default()
}

pub(super) fn router(shared: Arc<Shared>) -> Router {
    let description = openapi();
    let docs = docs::page(&description);
    let header = |name: &'static str, value: &'static str| {
        SetResponseHeaderLayer::if_not_present(HeaderName::from_static(name), HeaderValue::from_static(value))
    };
    let docs = move || async move { ([("content-type", "text/html; charset=utf-8")], docs) };
    Router::new()
        .route("/v1/updates", post(updates::report).delete(updates::forget))
        .route("/v1/lookahead/route", post(look::route))
        .route("/v1/lookahead/area", post(look::area))
        .route("/v1/map/{cell}", get(look::part))
        .route("/v1/fences", get(subscription::fences))
        .route("/v1/regions", post(regions::regions))
        .route("/v1/live", get(live::live))
        .route("/v1/admin/keys", get(admin::list_keys).post(admin::add_key))
        .route("/v1/admin/keys/{id}", delete(admin::revoke_key))
        .route("/health/live", get(operations::live))
        .route("/health/ready", get(operations::ready))
        .route("/metrics", get(operations::metrics))
        .route("/openapi.json", get(move || async move { ([("content-type", "application/json")], description) }))
        .route("/docs", get(docs))
        .merge(page::routes())
        .fallback(|| async { Problem::new(StatusCode::NOT_FOUND, "there is no such resource; see /docs") })
        .method_not_allowed_fallback(|| async {
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, "not possible with this resource; see /docs")
        })
        .layer(from_fn_with_state(Arc::clone(&shared), admit))
        .layer(CatchPanicLayer::custom(|_| {
            tracing::error!("a request panicked");
            Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "an error of the service").into_response()
        }))
        .layer(header("cache-control", "no-store"))
        .layer(header("x-content-type-options", "nosniff"))
        .layer(header("content-security-policy", "default-src 'none'; style-src 'unsafe-inline'"))
        .with_state(shared)
}

/// Limits addresses and counts answers. Paths are counted by route, so that strangers cannot make new ones.
async fn admit(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().map_or("none", MatchedPath::as_str).to_owned();
    // A probe has to be answered whatever else comes from its address.
    let limited = Some(&request).filter(|_| !route.starts_with("/health/"));
    let peer = limited.and_then(|r| r.extensions().get::<Source>()).copied();
    let admitted = peer.map_or(Ok(()), |peer| shared.admit(peer, extract::key_of(request.headers())));
    let response = match admitted {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    };
    let status = response.status().as_u16();
    tracing::debug!(route, status, "answered");
    shared.metrics.requests.get_or_create(&super::metrics::Answer { route, status }).inc();
    response
}
