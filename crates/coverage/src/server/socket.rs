//! What subscribers' WebSockets have in common: bounds, and the end of what they count for.

use super::connections::stopped;
use super::problem::Problem;
use super::shared::{Caller, Shared};
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use weir_units::{TimeDelta, Timestamp};

/// Longest message of a subscriber, in bytes.
const MAX_MESSAGE: usize = 4_096;
/// Time for a subscriber to take a message.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);
/// Without a sign of life for this long, a subscriber is gone. A ping is sent with each look at the map.
const GONE: TimeDelta = TimeDelta::from_secs(60);

/// A subscription as its key's limit counts it. It ends when this is dropped, also where the upgrade never happens.
pub(super) struct Counted {
    shared: Arc<Shared>,
    caller: Caller,
}

impl Counted {
    pub(super) fn begin(shared: &Arc<Shared>, caller: &Caller) -> Result<Self, Problem> {
        shared.begin_subscription(caller)?;
        Ok(Self { shared: Arc::clone(shared), caller: caller.clone() })
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.shared.end_subscription(&self.caller);
    }
}

/// An upgrade to this service's protocol, with short messages.
pub(super) fn bounded(upgrade: WebSocketUpgrade) -> WebSocketUpgrade {
    let upgrade = upgrade.protocols(["weir.coverage"]).max_message_size(MAX_MESSAGE).max_frame_size(MAX_MESSAGE);
    upgrade.read_buffer_size(MAX_MESSAGE).write_buffer_size(0)
}

/// One end of a subscription: its socket, and when the other end was last heard.
pub(super) struct Line<'a> {
    pub(super) socket: WebSocket,
    pub(super) shared: &'a Shared,
    pub(super) caller: &'a Caller,
    pub(super) heard: Timestamp,
}

/// A subscriber's message.
pub(super) enum Heard {
    Text(axum::extract::ws::Utf8Bytes),
    /// A sign of life.
    Nothing,
    Binary,
    Closed,
}

impl<'a> Line<'a> {
    pub(super) fn new(socket: WebSocket, shared: &'a Shared, caller: &'a Caller) -> Self {
        Self { socket, shared, caller, heard: shared.clock.elapsed() }
    }

    /// Resolves when the service stops.
    pub(super) fn stopping(&self) -> impl Future<Output = ()> + use<> {
        stopped(self.shared.stopping.subscribe())
    }

    pub(super) fn hear(&mut self, message: Message) -> Heard {
        self.heard = self.shared.clock.elapsed();
        match message {
            Message::Text(text) => Heard::Text(text),
            Message::Close(_) => Heard::Closed,
            Message::Ping(_) | Message::Pong(_) => Heard::Nothing,
            Message::Binary(_) => Heard::Binary,
        }
    }

    /// Whether the subscriber is there and its key valid; it is pinged.
    pub(super) async fn is_alive(&mut self) -> bool {
        let is_gone = self.shared.clock.elapsed().saturating_since(self.heard) > GONE;
        if is_gone || !self.shared.is_valid(self.caller) {
            return false;
        }
        let ping = self.socket.send(Message::Ping(Default::default()));
        matches!(timeout(SEND_TIMEOUT, ping).await, Ok(Ok(())))
    }

    /// Sends an answer; `false` if the subscriber does not take it.
    pub(super) async fn send(&mut self, answer: &impl Serialize) -> bool {
        let Ok(text) = serde_json::to_string(answer) else { return false };
        matches!(timeout(SEND_TIMEOUT, self.socket.send(Message::Text(text.into()))).await, Ok(Ok(())))
    }

    pub(super) async fn close(mut self) {
        let _ = timeout(Duration::from_secs(1), self.socket.send(Message::Close(None))).await;
    }
}
