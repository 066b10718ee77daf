//! Subscriptions to poor regions, over a WebSocket.

use super::connections::Place;
use super::problem::Problem;
use super::shared::{Caller, Shared};
use super::socket::{Counted, Heard, Line, bounded};
use crate::lookahead::{Fence, FenceEvent, FenceRequest};
use crate::{Position, WallTime};
use axum::Extension;
use axum::extract::State;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::response::Response;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tokio::time::{MissedTickBehavior, interval};
use weir_units::{TimeDelta, Timestamp};

/// Positions that a subscriber may send in a second; more are answered by the last one.
const LEAST_BETWEEN: TimeDelta = TimeDelta::from_millis(200);
/// Most events of one message.
const MAX_EVENTS: usize = 500;

/// What a subscriber sends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Said {
    /// Begins the subscription, or changes it.
    Subscribe(FenceRequest),
    /// Where the subscriber is.
    Position { position: Position },
}

/// What a subscriber gets.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Answered {
    /// The subscription has begun.
    Subscribed,
    /// What has changed.
    Events { at_ms: WallTime, events: Vec<FenceEvent> },
    /// A message that was not understood.
    Error { detail: String },
}

/// Subscribes to poor regions around a moving end (WebSocket)
///
/// The subscriber sends `{"type": "subscribe", "below_bps": …, "radius_m": …}` and then its position as
/// `{"type": "position", "position": {"lat": …, "lon": …}}`. It gets `{"type": "events", "events": [FenceEvent, …]}`
/// whenever a poor region comes into reach, changes or goes, and when it enters or leaves one. Only the last position is
/// kept, in memory. The key is in `Authorization`, or in the subprotocols as `weir.coverage, bearer.KEY`.
#[utoipa::path(get, path = "/v1/fences", tag = "look-ahead", responses(
    (status = 101, description = "The subscription"),
    (status = 401, description = "No valid key"),
    (status = 429, description = "Too many subscriptions with this key"),
))]
pub(super) async fn fences(
    State(shared): State<Arc<Shared>>,
    Extension(place): Extension<Arc<Place>>,
    caller: Caller,
    upgrade: WebSocketUpgrade,
) -> Result<Response, Problem> {
    let ends = Counted::begin(&shared, &caller)?;
    Ok(bounded(upgrade).on_upgrade(move |socket| async move {
        Subscriber::new(socket, &shared, &caller).run().await;
        drop((ends, place));
    }))
}

struct Subscriber<'a> {
    line: Line<'a>,
    fence: Option<Fence>,
    /// The last position, if it was not looked at yet.
    waiting: Option<Position>,
    looked: Timestamp,
}

impl<'a> Subscriber<'a> {
    fn new(socket: WebSocket, shared: &'a Shared, caller: &'a Caller) -> Self {
        let now = shared.clock.elapsed();
        Self { line: Line::new(socket, shared, caller), fence: None, waiting: None, looked: now }
    }

    /// Serves until the subscriber or the service ends it.
    async fn run(mut self) {
        let stopping = self.line.stopping();
        tokio::pin!(stopping);
        let mut refresh = interval(self.line.shared.config.refresh);
        refresh.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let goes_on = tokio::select! {
                message = self.line.socket.recv() => match message {
                    Some(Ok(message)) => self.hear(message).await,
                    Some(Err(_)) | None => false,
                },
                _ = refresh.tick() => self.refresh().await,
                () = &mut stopping => false,
            };
            if !goes_on {
                break;
            }
        }
        self.line.close().await;
    }

    async fn hear(&mut self, message: Message) -> bool {
        let text = match self.line.hear(message) {
            Heard::Text(text) => text,
            Heard::Closed => return false,
            Heard::Nothing => return true,
            Heard::Binary => return self.line.send(&Answered::Error { detail: "messages are text".into() }).await,
        };
        match serde_json::from_str(&text) {
            Ok(Said::Subscribe(request)) => match Fence::new(request) {
                Ok(fence) => {
                    self.fence = Some(fence);
                    self.line.send(&Answered::Subscribed).await
                }
                Err(e) => self.line.send(&Answered::Error { detail: e.to_string() }).await,
            },
            Ok(Said::Position { position }) => {
                self.waiting = Some(position);
                if self.line.heard.saturating_since(self.looked) < LEAST_BETWEEN {
                    return true;
                }
                self.look().await
            }
            Err(e) => self.line.send(&Answered::Error { detail: e.to_string() }).await,
        }
    }

    async fn refresh(&mut self) -> bool {
        self.line.is_alive().await && self.look().await
    }

    async fn look(&mut self) -> bool {
        self.looked = self.line.shared.clock.elapsed();
        let Some(fence) = &mut self.fence else { return true };
        let now = self.line.shared.now();
        let events = {
            let map = self.line.shared.map();
            fence.update(&self.line.shared.recent(&map), self.waiting.take(), now)
        };
        for some in events.chunks(MAX_EVENTS) {
            if !self.line.send(&Answered::Events { at_ms: now, events: some.to_vec() }).await {
                return false;
            }
        }
        true
    }
}
