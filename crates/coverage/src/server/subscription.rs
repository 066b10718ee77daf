//! Subscriptions to poor regions, over a WebSocket.

use super::connections::{Place, stopped};
use super::problem::Problem;
use super::shared::{Caller, Shared};
use crate::lookahead::{Fence, FenceEvent, FenceRequest};
use crate::{Position, WallTime};
use axum::Extension;
use axum::extract::State;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::response::Response;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval, timeout};
use weir_units::{TimeDelta, Timestamp};

/// Longest message of a subscriber, in bytes.
const MAX_MESSAGE: usize = 4_096;
/// Positions that a subscriber may send in a second; more are answered by the last one.
const LEAST_BETWEEN: TimeDelta = TimeDelta::from_millis(200);
/// Time for a subscriber to take an event.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);
/// Most events of one message.
const MAX_EVENTS: usize = 500;
/// Without a sign of life for this long, a subscriber is gone. A ping is sent with each look at the map.
const GONE: TimeDelta = TimeDelta::from_secs(60);

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
    shared.begin_subscription(&caller)?;
    let ends = End { shared: Arc::clone(&shared), caller: caller.clone() };
    let upgrade = upgrade
        .protocols(["weir.coverage"])
        .max_message_size(MAX_MESSAGE)
        .max_frame_size(MAX_MESSAGE)
        .read_buffer_size(MAX_MESSAGE)
        .write_buffer_size(0);
    Ok(upgrade.on_upgrade(move |socket| async move {
        Subscriber::new(socket, &shared, caller).run().await;
        drop((ends, place));
    }))
}

/// Ends the subscription, also where the upgrade never happens.
struct End {
    shared: Arc<Shared>,
    caller: Caller,
}

impl Drop for End {
    fn drop(&mut self) {
        self.shared.end_subscription(&self.caller);
    }
}

struct Subscriber<'a> {
    socket: WebSocket,
    shared: &'a Shared,
    caller: Caller,
    fence: Option<Fence>,
    /// The last position, if it was not looked at yet.
    waiting: Option<Position>,
    looked: Timestamp,
    heard: Timestamp,
}

impl<'a> Subscriber<'a> {
    fn new(socket: WebSocket, shared: &'a Shared, caller: Caller) -> Self {
        let now = shared.clock.elapsed();
        Self { socket, shared, caller, fence: None, waiting: None, looked: now, heard: now }
    }

    /// Serves until the subscriber or the service ends it.
    async fn run(mut self) {
        let stopping = stopped(self.shared.stopping.subscribe());
        tokio::pin!(stopping);
        let mut refresh = interval(self.shared.config.refresh);
        refresh.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let goes_on = tokio::select! {
                message = self.socket.recv() => match message {
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
        let _ = timeout(Duration::from_secs(1), self.socket.send(Message::Close(None))).await;
    }

    async fn hear(&mut self, message: Message) -> bool {
        self.heard = self.shared.clock.elapsed();
        let text = match message {
            Message::Text(text) => text,
            Message::Close(_) => return false,
            Message::Ping(_) | Message::Pong(_) => return true,
            Message::Binary(_) => return self.send(&Answered::Error { detail: "messages are text".into() }).await,
        };
        match serde_json::from_str(&text) {
            Ok(Said::Subscribe(request)) => match Fence::new(request) {
                Ok(fence) => {
                    self.fence = Some(fence);
                    self.send(&Answered::Subscribed).await
                }
                Err(e) => self.send(&Answered::Error { detail: e.to_string() }).await,
            },
            Ok(Said::Position { position }) => {
                self.waiting = Some(position);
                if self.heard.saturating_since(self.looked) < LEAST_BETWEEN {
                    return true;
                }
                self.look().await
            }
            Err(e) => self.send(&Answered::Error { detail: e.to_string() }).await,
        }
    }

    async fn refresh(&mut self) -> bool {
        let is_gone = self.shared.clock.elapsed().saturating_since(self.heard) > GONE;
        if is_gone || !self.shared.is_valid(&self.caller) {
            return false;
        }
        let ping = self.socket.send(Message::Ping(Default::default()));
        matches!(timeout(SEND_TIMEOUT, ping).await, Ok(Ok(()))) && self.look().await
    }

    async fn look(&mut self) -> bool {
        self.looked = self.shared.clock.elapsed();
        let Some(fence) = &mut self.fence else { return true };
        let now = self.shared.now();
        let events = {
            let map = self.shared.map();
            fence.update(&self.shared.recent(&map), self.waiting.take(), now)
        };
        for some in events.chunks(MAX_EVENTS) {
            if !self.send(&Answered::Events { at_ms: now, events: some.to_vec() }).await {
                return false;
            }
        }
        true
    }

    async fn send(&mut self, answer: &Answered) -> bool {
        let Ok(text) = serde_json::to_string(answer) else { return false };
        matches!(timeout(SEND_TIMEOUT, self.socket.send(Message::Text(text.into()))).await, Ok(Ok(())))
    }
}
