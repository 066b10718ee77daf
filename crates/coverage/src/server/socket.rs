//! The common part of subscribers' WebSockets: bounds, events, and the end of what they count for.

use super::connections::{Place, stopped};
use super::problem::Problem;
use super::shared::{Caller, Reported, Shared};
use axum::extract::ws::{Message, Utf8Bytes, WebSocket, WebSocketUpgrade};
use serde::Serialize;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Interval, MissedTickBehavior, interval, timeout};
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

/// A subscriber's message or a time to act.
pub(super) enum Event {
    Text(Utf8Bytes),
    /// Reports that devices sent, on a line that follows them.
    Reported(Arc<Reported>),
    /// Time to look at the map again.
    Refresh,
}

/// An answer to a message that was not understood.
#[derive(Serialize)]
#[serde(tag = "type", rename = "error")]
struct Refusal<'a> {
    detail: &'a str,
}

/// One end of a subscription: its socket, its clock, and when the other end was last heard.
pub(super) struct Line<'a> {
    socket: WebSocket,
    pub(super) shared: &'a Shared,
    pub(super) caller: &'a Caller,
    place: &'a Place,
    pub(super) heard: Timestamp,
    refresh: Interval,
    reports: Option<broadcast::Receiver<Arc<Reported>>>,
    /// Resolves when the service stops.
    stopping: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl<'a> Line<'a> {
    pub(super) fn new(socket: WebSocket, shared: &'a Shared, caller: &'a Caller, place: &'a Place) -> Self {
        let mut refresh = interval(shared.config.refresh);
        refresh.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let stopping = Box::pin(stopped(shared.stopping.subscribe()));
        Self { socket, shared, caller, place, heard: shared.clock.elapsed(), refresh, reports: None, stopping }
    }

    /// Follows what devices report.
    pub(super) fn with_reports(mut self) -> Self {
        self.reports = Some(self.shared.reports.subscribe());
        self
    }

    /// Waits for the next event; `None` when the subscriber is gone or the service stops.
    pub(super) async fn next(&mut self) -> Option<Event> {
        loop {
            tokio::select! {
                message = self.socket.recv() => {
                    if let Some(text) = self.hear(message?.ok()?).await? {
                        return Some(Event::Text(text));
                    }
                }
                reported = next_report(&mut self.reports) => match reported {
                    Ok(reported) => return Some(Event::Reported(reported)),
                    // A slow subscriber misses some.
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return None,
                },
                _ = self.refresh.tick() => return self.is_alive().await.then_some(Event::Refresh),
                () = &mut self.stopping => return None,
            }
        }
    }

    /// The text of a message, if it has one; `None` at the end of the line.
    async fn hear(&mut self, message: Message) -> Option<Option<Utf8Bytes>> {
        self.heard = self.shared.clock.elapsed();
        self.place.progress();
        match message {
            Message::Text(text) => Some(Some(text)),
            Message::Close(_) => None,
            // Signs of life.
            Message::Ping(_) | Message::Pong(_) => Some(None),
            Message::Binary(_) => self.refuse("messages are text").await.then_some(None),
        }
    }

    /// Whether the subscriber is there and its key valid; it is pinged.
    async fn is_alive(&mut self) -> bool {
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

    /// Says why a message gets no answer; `false` if the subscriber does not take it.
    pub(super) async fn refuse(&mut self, detail: &str) -> bool {
        self.send(&Refusal { detail }).await
    }

    pub(super) async fn close(mut self) {
        let _ = timeout(Duration::from_secs(1), self.socket.send(Message::Close(None))).await;
    }
}

/// The next report; never, on a line that follows none.
async fn next_report(reports: &mut Option<broadcast::Receiver<Arc<Reported>>>) -> Result<Arc<Reported>, RecvError> {
    match reports {
        Some(reports) => reports.recv().await,
        None => std::future::pending().await,
    }
}
