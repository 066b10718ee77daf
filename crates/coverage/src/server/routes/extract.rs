//! Parts of a request that handlers take.

use crate::server::bodies::Part;
use crate::server::connections::Place;
use crate::server::problem::Problem;
use crate::server::shared::{Caller, Shared};
use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use http_body_util::BodyExt;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use weir_units::TimeDelta;

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
        // The budget is given back once the body is parsed.
        let (part, given_up) = shared.bodies.begin(key_of(request.headers()).unwrap_or_default());
        let read = read(request.into_body(), most, &part);
        let body = tokio::select! {
            read = tokio::time::timeout(time, read) => read,
            _ = given_up => Ok(Err(Unread::Crowded)),
        };
        let body = match body {
            Ok(Ok(body)) => body,
            Ok(Err(Unread::TooLong)) => return Err(too_long()),
            Ok(Err(Unread::Ended)) => return Err(Problem::bad("the body ended before its time")),
            Ok(Err(Unread::Crowded)) => {
                return Err(Problem::busy("too many bodies at a time, most of them with this key", CROWDED));
            }
            Err(_) => return Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "the body took too long")),
        };
        serde_json::from_slice(&body).map(Self).map_err(|e| Problem::bad(format!("the body: {e}")))
    }
}

/// Why there is no body.
enum Unread {
    TooLong,
    Ended,
    /// It was given up for others.
    Crowded,
}

/// Wait for a caller whose body was given up.
const CROWDED: TimeDelta = TimeDelta::from_secs(1);

/// All of a body, as it comes.
async fn read(mut body: Body, most: usize, part: &Part) -> Result<Vec<u8>, Unread> {
    let mut all = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| Unread::Ended)?.into_data() else { continue };
        if all.len() + data.len() > most {
            return Err(Unread::TooLong);
        }
        if !part.grow(data.len()) {
            return Err(Unread::Crowded);
        }
        all.extend_from_slice(&data);
    }
    Ok(all)
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
        let caller = shared.authenticate(key_of(&parts.headers))?;
        if let Some(place) = parts.extensions.get::<Arc<Place>>() {
            place.prove();
        }
        Ok(caller)
    }
}

impl Caller {
    /// Whether this is permitted.
    pub(in crate::server) fn must(&self, permitted: bool) -> Result<(), Problem> {
        let refused = || Problem::new(StatusCode::FORBIDDEN, "this key does not permit that");
        if permitted { Ok(()) } else { Err(refused()) }
    }
}
