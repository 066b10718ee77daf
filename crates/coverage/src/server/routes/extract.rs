//! Parts of a request that handlers take.

use crate::server::problem::Problem;
use crate::server::shared::{Caller, Peer, Shared};
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;
use std::sync::Arc;

/// A body in JSON, within the limits of length and time.
pub(in crate::server) struct Json<T>(pub(in crate::server) T);

impl<T: DeserializeOwned> FromRequest<Arc<Shared>> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, shared: &Arc<Shared>) -> Result<Self, Problem> {
        let (most, time) = (shared.config.max_body, shared.config.body_timeout);
        let too_long = || Problem::new(StatusCode::PAYLOAD_TOO_LARGE, format!("a body has {most} bytes at most"));
        let length = request.headers().get(header::CONTENT_LENGTH).and_then(|v| v.to_str().ok()?.parse::<u64>().ok());
        if length.is_some_and(|n| n > most as u64) {
            return Err(too_long());
        }
        let body = Limited::new(request.into_body(), most).collect();
        let body = match tokio::time::timeout(time, body).await {
            Ok(Ok(body)) => body.to_bytes(),
            Ok(Err(e)) if e.is::<LengthLimitError>() => return Err(too_long()),
            Ok(Err(_)) => return Err(Problem::bad("the body ended before its time")),
            Err(_) => return Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "the body took too long")),
        };
        serde_json::from_slice(&body).map(Self).map_err(|e| Problem::bad(format!("the body: {e}")))
    }
}

/// The key of a request: of its `Authorization`, or of a WebSocket's subprotocols as `bearer.KEY`, since browsers' scripts set
/// no header there.
pub(in crate::server) fn key_of(headers: &HeaderMap) -> Option<&str> {
    let text = |name| headers.get(name).and_then(|v| v.to_str().ok());
    let bearer = text(header::AUTHORIZATION).and_then(|v| v.strip_prefix("Bearer "));
    let protocols = || text(header::SEC_WEBSOCKET_PROTOCOL)?.split(',').find_map(|p| p.trim().strip_prefix("bearer."));
    bearer.or_else(protocols)
}

impl FromRequestParts<Arc<Shared>> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, shared: &Arc<Shared>) -> Result<Self, Problem> {
        let peer = parts.extensions.get::<Peer>().copied();
        let peer = peer.ok_or_else(|| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "a request without a peer"))?;
        shared.authenticate(peer, key_of(&parts.headers))
    }
}

impl Caller {
    /// Whether this is permitted.
    pub(in crate::server) fn must(&self, permitted: bool) -> Result<(), Problem> {
        let refused = || Problem::new(StatusCode::FORBIDDEN, "this key does not permit that");
        if permitted { Ok(()) } else { Err(refused()) }
    }
}
