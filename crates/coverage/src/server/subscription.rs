//! Subscriptions to poor regions, over a WebSocket.

use super::connections::Place;
use super::problem::Problem;
use super::shared::{Caller, Shared};
use super::socket::{Counted, Event, Line, bounded};
use crate::lookahead::{Fence, FenceEvent, FenceRequest};
use crate::{Position, WallTime};
use axum::Extension;
use axum::extract::State;
use axum::extract::ws::{WebSocket, WebSocketUpgrade};
use axum::response::Response;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use weir_units::{TimeDelta, Timestamp};

/// Positions that a subscriber may send in a second; more are answered by the last one.
const LEAST_BETWEEN: TimeDelta = TimeDelta::from_millis(200);
/// Most events of one message.
const MAX_EVENTS: usize = 500;

/// A subscriber's message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Said {
    /// Begins the subscription, or changes it.
    Subscribe(FenceRequest),
    /// Where the subscriber is.
    Position { position: Position },
}

/// An answer to a subscriber.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Answered {
    /// The subscription has begun.
    Subscribed,
    /// Changes since the last message.
    Events { at_ms: WallTime, events: Vec<FenceEvent> },
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
        tokio::select! {
            () = Subscriber::new(socket, &shared, &caller, &place).run() => {}
            () = place.gives_way() => {}
        }
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
    fn new(socket: WebSocket, shared: &'a Shared, caller: &'a Caller, place: &'a Place) -> Self {
        let now = shared.clock.elapsed();
        Self { line: Line::new(socket, shared, caller, place), fence: None, waiting: None, looked: now }
    }

    /// Serves until the subscriber or the service ends it.
    async fn run(mut self) {
        while let Some(event) = self.line.next().await {
            let goes_on = match event {
                Event::Text(text) => self.hear(&text).await,
                Event::Refresh => self.look().await,
                // The line follows no reports.
                Event::Reported(_) => true,
            };
            if !goes_on {
                break;
            }
        }
        self.line.close().await;
    }

    async fn hear(&mut self, text: &str) -> bool {
        match serde_json::from_str(text) {
            Ok(Said::Subscribe(request)) => match Fence::new(request) {
                Ok(fence) => {
                    self.fence = Some(fence);
                    self.line.send(&Answered::Subscribed).await
                }
                Err(e) => self.line.refuse(&e.to_string()).await,
            },
            Ok(Said::Position { position }) => {
                self.waiting = Some(position);
                if self.line.heard.saturating_since(self.looked) < LEAST_BETWEEN {
                    return true;
                }
                self.look().await
            }
            Err(e) => self.line.refuse(&e.to_string()).await,
        }
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
