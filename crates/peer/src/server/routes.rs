//! Requests.

use super::problem::Problem;
use super::save;
use super::sessions::{Accepted, Joining, ListedRoom, Sessions};
use super::{Visit, page};
use crate::call::{BrowserNumbers, Fragment, FragmentError, LinkChange, Settings, Snapshot, suits};
use crate::sdp::{Direction, Wanted};
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, Query, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::set_header::SetResponseHeaderLayer;
use tower_http::timeout::TimeoutLayer;
use weir_cc::Limits;
use weir_media::VideoCodec;
use weir_units::DataRate;

const SDP: &str = "application/sdp";
const FRAGMENT: &str = "application/trickle-ice-sdpfrag";

pub(super) fn router(sessions: Arc<Sessions>) -> Router {
    let header = |name: &'static str, value: &'static str| {
        SetResponseHeaderLayer::if_not_present(HeaderName::from_static(name), HeaderValue::from_static(value))
    };
    let limits = sessions.config.limits;
    Router::new()
        .route("/call", post(call).options(accepts))
        .route("/whip", post(whip).options(accepts))
        .route("/whep", post(whep).options(accepts))
        .route("/rooms", get(rooms))
        .route("/rooms/{name}", post(join).options(accepts))
        .route("/calls", get(list))
        .route("/calls/{id}", get(show).delete(end).patch(patch))
        .route("/calls/{id}/settings", post(change))
        .route("/calls/{id}/browser", post(note_browser))
        .route("/calls/{id}/report.html", get(save::report))
        .route("/calls/{id}/scenario.toml", get(save::scenario))
        .route("/calls/{id}/packets.pcapng", get(save::packets))
        .route("/controllers", get(controllers))
        .layer(from_fn_with_state(Arc::clone(&sessions), authorised))
        .merge(page::routes())
        .fallback(|| async { Problem::new(StatusCode::NOT_FOUND, "there is no such resource") })
        .layer(DefaultBodyLimit::max(limits.body))
        .layer(TimeoutLayer::with_status_code(StatusCode::REQUEST_TIMEOUT, limits.request_time))
        .layer(CatchPanicLayer::custom(|_| {
            Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "an error of the service").into_response()
        }))
        .layer(header("cache-control", "no-store"))
        .layer(header("x-content-type-options", "nosniff"))
        .layer(header("content-security-policy", "default-src 'none'"))
        .with_state(sessions)
}

/// All but the page's files need the token.
async fn authorised(State(sessions): State<Arc<Sessions>>, request: Request, next: Next) -> Response {
    // The answer to OPTIONS is the same for everybody.
    if request.method() == Method::OPTIONS {
        return next.run(request).await;
    }
    let bearer = request.headers().get(header::AUTHORIZATION).and_then(|v| v.to_str().ok());
    let token = bearer.and_then(|v| v.split_once(' ')).filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    if token.is_some_and(|(_, token)| sessions.admits(token.trim())) {
        if let Some(visit) = request.extensions().get::<Arc<Visit>>() {
            visit.prove();
        }
        return next.run(request).await;
    }
    Problem::new(StatusCode::UNAUTHORIZED, "needs the token that the service has printed: Authorization: Bearer ...")
        .into_response()
}

async fn accepts() -> Response {
    ([("accept-post", SDP), ("allow", "OPTIONS, POST")], ()).into_response()
}

/// Parameters in the address of an offer.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Choice {
    controller: Option<String>,
    max_kbps: Option<u64>,
    codec: Option<String>,
    /// `off`: not behind the emulated link.
    link: Option<String>,
    /// The name of a room's member.
    name: Option<String>,
}

impl Choice {
    fn by_link(&self) -> Result<bool, Problem> {
        match self.link.as_deref() {
            None | Some("on") => Ok(true),
            Some("off") => Ok(false),
            Some(_) => Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "link: expected on or off")),
        }
    }
    fn settings(&self, like: &Settings) -> Result<Settings, Problem> {
        let bad = |detail: String| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail);
        let mut settings = like.clone();
        if let Some(controller) = &self.controller {
            settings.controller.clone_from(controller);
        }
        if let Some(kbps) = self.max_kbps {
            if !(100..=50_000).contains(&kbps) {
                return Err(bad(format!("max_kbps: {kbps}; expected 100 to 50000")));
            }
            let ceiling = DataRate::from_kbps(kbps);
            settings.limits = Limits { floor: settings.limits.floor.min(ceiling), ceiling };
        }
        Ok(settings)
    }
    fn codec(&self, like: VideoCodec) -> Result<VideoCodec, Problem> {
        match self.codec.as_deref() {
            None => Ok(like),
            Some("vp8") => Ok(VideoCodec::Vp8),
            Some("h264") => Ok(VideoCodec::H264),
            Some(other) => {
                let other: String = other.chars().take(40).collect();
                Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, format!("codec: {other:?}; expected vp8 or h264")))
            }
        }
    }
}

/// Settings that may change while a call runs.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Change {
    controller: Option<String>,
    max_kbps: Option<u64>,
    codec: Option<String>,
    /// `on` or `off`: whether the emulated link is in between.
    link: Option<String>,
    /// Share of packets lost in addition, both ways.
    loss: Option<f64>,
}

/// Most packets that are lost in addition.
const MAX_LOSS: f64 = 0.5;

const BOTH: Direction = Direction { sends: true, receives: true };

async fn call(s: State<Arc<Sessions>>, q: Query<Choice>, headers: HeaderMap, body: Bytes) -> Result<Response, Problem> {
    offered(s, q, headers, body, BOTH).await
}
async fn whip(s: State<Arc<Sessions>>, q: Query<Choice>, headers: HeaderMap, body: Bytes) -> Result<Response, Problem> {
    offered(s, q, headers, body, Direction { sends: false, ..BOTH }).await
}
async fn whep(s: State<Arc<Sessions>>, q: Query<Choice>, headers: HeaderMap, body: Bytes) -> Result<Response, Problem> {
    offered(s, q, headers, body, Direction { receives: false, ..BOTH }).await
}

/// The text of a body of this type.
fn text(headers: &HeaderMap, body: &[u8], wanted: &'static str) -> Result<String, Problem> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
    if kind.split(';').next().is_none_or(|k| !k.trim().eq_ignore_ascii_case(wanted)) {
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, format!("expected {wanted}")));
    }
    let text = std::str::from_utf8(body);
    text.map(str::to_owned).map_err(|_| Problem::new(StatusCode::BAD_REQUEST, "descriptions are text in UTF-8"))
}

async fn join(
    State(sessions): State<Arc<Sessions>>,
    Path(room): Path<String>,
    Query(choice): Query<Choice>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let offer = text(&headers, &body, SDP)?;
    let settings = choice.settings(&sessions.config.settings)?;
    let codec = choice.codec.as_ref().map(|_| choice.codec(VideoCodec::Vp8)).transpose()?;
    let joining = Joining { room, codec, settings, by_link: choice.by_link()?, name: choice.name };
    answered(tokio::task::spawn_blocking(move || sessions.join(&offer, joining)).await)
}

async fn offered(
    State(sessions): State<Arc<Sessions>>,
    Query(choice): Query<Choice>,
    headers: HeaderMap,
    body: Bytes,
    direction: Direction,
) -> Result<Response, Problem> {
    let offer = text(&headers, &body, SDP)?;
    let settings = choice.settings(&sessions.config.settings)?;
    if choice.name.is_some() {
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "name: members of rooms alone have one"));
    }
    let codec = choice.codec(sessions.config.codec)?;
    let wanted = Wanted { codec, built_in: sessions.codecs, direction };
    let by_link = choice.by_link()?;
    answered(tokio::task::spawn_blocking(move || sessions.accept(&offer, wanted, settings, by_link)).await)
}

/// The answer to an offer that was accepted: the call's name, and a description.
fn answered(accepted: Result<Result<Accepted, Problem>, tokio::task::JoinError>) -> Result<Response, Problem> {
    let failed = |_| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "an error of the service");
    let Accepted { id, answer, ice_tag } = accepted.map_err(failed)??;
    let headers = [
        (header::CONTENT_TYPE, SDP.to_owned()),
        (header::LOCATION, format!("/calls/{id}")),
        (header::ETAG, format!("\"{ice_tag}\"")),
    ];
    Ok((StatusCode::CREATED, headers, answer).into_response())
}

async fn rooms(State(sessions): State<Arc<Sessions>>) -> Json<Vec<ListedRoom>> {
    Json(sessions.rooms())
}

#[derive(Deserialize)]
struct Since {
    #[serde(default)]
    from: u64,
    /// The same for the browser's samples.
    #[serde(default)]
    browser_from: u64,
}

#[derive(Serialize)]
struct Listed {
    id: String,
    state: &'static str,
    controller: String,
    codec: String,
    direction: &'static str,
}

async fn list(State(sessions): State<Arc<Sessions>>) -> Json<Vec<Listed>> {
    let listed = |(id, s): (String, Snapshot)| {
        let Snapshot { state, controller, codec, direction, .. } = s;
        Listed { id, state, controller, codec, direction }
    };
    Json(sessions.snapshots().into_iter().map(listed).collect())
}

async fn show(
    State(sessions): State<Arc<Sessions>>,
    Path(id): Path<String>,
    Query(since): Query<Since>,
) -> Result<Json<Snapshot>, Problem> {
    Ok(Json(sessions.get(&id)?.snapshot(since.from, since.browser_from)))
}

/// Candidates, which are not needed, or a restart of ICE (RFC 9725, section 4.3).
async fn patch(
    State(sessions): State<Arc<Sessions>>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let call = sessions.get(&id)?;
    let text = text(&headers, &body, FRAGMENT)?;
    let tag = headers.get(header::IF_MATCH).and_then(|v| v.to_str().ok()).map(str::trim);
    let Some(tag) = tag else {
        let detail = "If-Match names the session of ICE: the ETag of the answer, or * for a restart";
        return Err(Problem::new(StatusCode::PRECONDITION_REQUIRED, detail));
    };
    let tag = Some(tag.trim_matches('"')).filter(|tag| *tag != "*");
    let problem = |e: FragmentError| {
        let status = match &e {
            FragmentError::Fragment(_) => StatusCode::UNPROCESSABLE_ENTITY,
            FragmentError::Stale => StatusCode::PRECONDITION_FAILED,
            FragmentError::Busy => StatusCode::CONFLICT,
            FragmentError::Random(_) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Problem::new(status, e.to_string())
    };
    Ok(match call.take_fragment(&text, tag).map_err(problem)? {
        Fragment::Candidates => StatusCode::NO_CONTENT.into_response(),
        Fragment::Restart(fragment, tag) => {
            ([(header::CONTENT_TYPE, FRAGMENT.to_owned()), (header::ETAG, format!("\"{tag}\""))], fragment)
                .into_response()
        }
    })
}

async fn end(State(sessions): State<Arc<Sessions>>, Path(id): Path<String>) -> Result<StatusCode, Problem> {
    sessions.get(&id)?.stop();
    Ok(StatusCode::OK)
}

async fn change(
    State(sessions): State<Arc<Sessions>>,
    Path(id): Path<String>,
    Json(change): Json<Change>,
) -> Result<Json<Snapshot>, Problem> {
    let call = sessions.get(&id)?;
    let bad = |detail: String| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail);
    let Change { controller, max_kbps, codec, link, loss } = change;
    if codec.is_some() {
        return Err(bad("codec: it is part of the offer; call again".into()));
    }
    if let Some(loss) = loss.filter(|loss| !(0.0..=MAX_LOSS).contains(loss)) {
        return Err(bad(format!("loss: {loss}; expected 0 to {MAX_LOSS}")));
    }
    let is_named = controller.is_some() || max_kbps.is_some();
    let is_link = link.is_some() || loss.is_some();
    let choice = Choice { controller, max_kbps, codec: None, link, name: None };
    let (by_link, before) = (choice.by_link()?, call.link());
    if is_named {
        let settings = choice.settings(&call.settings())?;
        call.change(settings).map_err(|e| bad(e.to_string()))?;
    }
    if is_link {
        let is_on = if choice.link.is_some() { by_link } else { before.is_on };
        call.change_link(LinkChange { is_on, loss: loss.unwrap_or(before.loss) });
    }
    Ok(Json(call.snapshot(u64::MAX, u64::MAX)))
}

async fn note_browser(
    State(sessions): State<Arc<Sessions>>,
    Path(id): Path<String>,
    Json(numbers): Json<BrowserNumbers>,
) -> Result<StatusCode, Problem> {
    let noted = sessions.get(&id)?.note_browser(numbers);
    noted.map_err(|e| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, e.to_string()))?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Serialize)]
struct Offered {
    name: String,
    summary: String,
}

#[derive(Serialize)]
struct Menu {
    controllers: Vec<Offered>,
    codecs: Vec<&'static str>,
    controller: String,
    codec: &'static str,
    max_kbps: u64,
    /// Most members of a room.
    members: usize,
    /// Whether there is an emulated link.
    has_link: bool,
}

fn short(codec: VideoCodec) -> &'static str {
    if codec == VideoCodec::H264 { "h264" } else { "vp8" }
}

async fn controllers(State(sessions): State<Arc<Sessions>>) -> Json<Menu> {
    let specs = sessions.registry.specs();
    let offered = specs.filter(|s| suits(s) && !s.name.contains('+'));
    let has = |codec: &VideoCodec| sessions.codecs.has(*codec);
    let config = &sessions.config;
    Json(Menu {
        controllers: offered.map(|s| Offered { name: s.name.clone(), summary: s.summary.clone() }).collect(),
        codecs: [VideoCodec::Vp8, VideoCodec::H264].into_iter().filter(has).map(short).collect(),
        controller: config.settings.controller.clone(),
        codec: short(config.codec),
        max_kbps: config.settings.limits.ceiling.as_bps() / 1_000,
        members: config.limits.members,
        has_link: config.link.is_some(),
    })
}
