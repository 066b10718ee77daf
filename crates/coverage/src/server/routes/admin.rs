//! Keys.

use super::extract::Json;
use super::updates::ask;
use crate::WallTime;
use crate::server::jobs::Job;
use crate::server::keys::{KeyError, issue, note_is_valid};
use crate::server::problem::Problem;
use crate::server::shared::{Caller, Shared};
use crate::server::store::{KeyRecord, Role};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, PoisonError};

/// A key, without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct KeyInfo {
    /// Public part.
    pub id: String,
    /// Its permissions.
    pub role: Role,
    /// Its purpose.
    pub note: String,
    /// When it was made.
    pub created_ms: WallTime,
    /// From when on it is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_ms: Option<WallTime>,
    /// When it was revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_ms: Option<WallTime>,
    /// The key itself: in the answer that makes it only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

impl From<&KeyRecord> for KeyInfo {
    fn from(record: &KeyRecord) -> Self {
        Self {
            id: record.id.clone(),
            role: record.role,
            note: record.note.clone(),
            created_ms: record.created,
            expires_ms: record.expires,
            revoked_ms: record.revoked,
            key: None,
        }
    }
}

/// A key to be made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewKey {
    /// Its permissions.
    pub role: Role,
    /// Its purpose.
    #[serde(default)]
    pub note: String,
    /// From when on it is refused.
    #[serde(default)]
    pub expires_ms: Option<WallTime>,
}

/// Lists all keys
#[utoipa::path(get, path = "/v1/admin/keys", tag = "keys", responses(
    (status = 200, description = "All keys, revoked ones too", body = Vec<KeyInfo>),
    (status = 403, description = "Not an administrator's key"),
))]
pub(crate) async fn list_keys(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
) -> Result<axum::Json<Vec<KeyInfo>>, Problem> {
    caller.must(caller.role == Role::Admin)?;
    let keys = shared.keys.read().unwrap_or_else(PoisonError::into_inner);
    Ok(axum::Json(keys.all().map(KeyInfo::from).collect()))
}

/// Makes a key
#[utoipa::path(post, path = "/v1/admin/keys", request_body = NewKey, tag = "keys", responses(
    (status = 201, description = "The key, which is shown this once", body = KeyInfo),
    (status = 403, description = "Not an administrator's key"),
))]
pub(crate) async fn add_key(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Json(new): Json<NewKey>,
) -> Result<(StatusCode, axum::Json<KeyInfo>), Problem> {
    caller.must(caller.role == Role::Admin)?;
    if !note_is_valid(&new.note) {
        return Err(Problem::bad(KeyError::Note.to_string()));
    }
    let failed = |e: KeyError| Problem::new(StatusCode::SERVICE_UNAVAILABLE, e.to_string());
    let issued = issue(new.role, &new.note, shared.now(), new.expires_ms).map_err(failed)?;
    let info = KeyInfo { key: Some(issued.text), ..KeyInfo::from(&issued.record) };
    ask(&shared, |reply| Job::AddKey { record: issued.record, reply }).await?;
    tracing::info!(id = info.id, role = ?info.role, by = caller.key, "a key was made");
    Ok((StatusCode::CREATED, axum::Json(info)))
}

/// Revokes a key
///
/// It is refused from the moment of the answer on; what it reported is kept.
#[utoipa::path(delete, path = "/v1/admin/keys/{id}", tag = "keys",
    params(("id" = String, Path, description = "The key's public part")),
    responses(
        (status = 204, description = "Revoked"),
        (status = 403, description = "Not an administrator's key"),
        (status = 404, description = "No such key, or revoked before"),
    ),
)]
pub(crate) async fn revoke_key(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    caller.must(caller.role == Role::Admin)?;
    let wanted = id.clone();
    if !ask(&shared, |reply| Job::RevokeKey { id: wanted, reply }).await? {
        return Err(Problem::new(StatusCode::NOT_FOUND, "no such key, or revoked before"));
    }
    tracing::info!(id, by = caller.key, "a key was revoked");
    Ok(StatusCode::NO_CONTENT)
}
