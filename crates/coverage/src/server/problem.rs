//! Answers to requests that fail: RFC 9457.

use super::store::StoreError;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use weir_units::TimeDelta;

/// A request that failed.
#[derive(Debug)]
pub(super) struct Problem {
    status: StatusCode,
    detail: String,
    retry_after: Option<u64>,
}

impl Problem {
    pub(super) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into(), retry_after: None }
    }

    pub(super) fn detail(&self) -> &str {
        &self.detail
    }

    pub(super) fn bad(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    /// Too much for now: again after a time, rounded up to seconds.
    pub(super) fn busy(detail: impl Into<String>, wait: TimeDelta) -> Self {
        let seconds = libm::ceil(wait.as_secs_f64()).clamp(1.0, 3_600.0) as u64;
        Self { retry_after: Some(seconds), ..Self::new(StatusCode::TOO_MANY_REQUESTS, detail) }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        let status = match error {
            StoreError::Full => StatusCode::INSUFFICIENT_STORAGE,
            _ => StatusCode::SERVICE_UNAVAILABLE,
        };
        // SQLite's message goes to the log and not to strangers.
        let detail = match error {
            StoreError::Full => "the service has no space left: nothing of this request was kept",
            _ => "the database does not answer: nothing of this request was kept",
        };
        Self { retry_after: Some(10), ..Self::new(status, detail) }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = serde_json::json!({
            "title": self.status.canonical_reason().unwrap_or("error"),
            "status": self.status.as_u16(),
            "detail": self.detail,
        });
        let mut response = (self.status, body.to_string()).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
