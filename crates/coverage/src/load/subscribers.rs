//! Subscribers that ride through the city.

use super::Run;
use futures_util::{SinkExt, StreamExt};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;

/// Between two positions of a subscriber.
const POSITION: Duration = Duration::from_secs(5);

pub(super) struct Subscribers {
    tasks: JoinSet<()>,
    open: Arc<AtomicUsize>,
}

impl Subscribers {
    /// How many were still there, after which they leave.
    pub(super) async fn end(mut self, run: &Run) -> usize {
        let open = self.open.load(Ordering::Relaxed);
        run.stop.store(true, Ordering::Relaxed);
        self.tasks.shutdown().await;
        open
    }
}

/// Connects all subscribers.
pub(super) async fn connect(run: &Arc<Run>) -> Subscribers {
    let open = Arc::new(AtomicUsize::new(0));
    let mut tasks = JoinSet::new();
    for number in 0..run.config.subscribers {
        let (run, open) = (Arc::clone(run), Arc::clone(&open));
        tasks.spawn(async move {
            // Spread over the interval, so that they do not all speak at once.
            tokio::time::sleep(POSITION * u32::try_from(number).unwrap_or(0) / 1_000).await;
            // A subscriber that is cut off is missing at the end.
            let _ = ride(&run, number, &open).await;
            open.fetch_sub(1, Ordering::Relaxed);
        });
    }
    while open.load(Ordering::Relaxed) < run.config.subscribers && run.clock.elapsed().as_secs_f64() < 60.0 {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Subscribers { tasks, open }
}

async fn ride(run: &Run, number: usize, open: &AtomicUsize) -> Result<(), String> {
    open.fetch_add(1, Ordering::Relaxed);
    let text = |e: tokio_tungstenite::tungstenite::Error| e.to_string();
    let address = (run.endpoint.host.as_str(), run.endpoint.port);
    let stream = TcpStream::connect(address).await.map_err(|e| e.to_string())?;
    let url = format!("ws://{}:{}/v1/fences", run.endpoint.host, run.endpoint.port);
    let mut request = url.into_client_request().map_err(text)?;
    let bearer = format!("Bearer {}", run.key).parse().map_err(|_| "a key is a header")?;
    request.headers_mut().insert("authorization", bearer);
    let small = WebSocketConfig::default().read_buffer_size(4_096);
    let (mut socket, _) =
        tokio_tungstenite::client_async_with_config(request, stream, Some(small)).await.map_err(text)?;
    let subscribe = r#"{"type":"subscribe","below_bps":500000,"radius_m":800}"#;
    socket.send(Message::text(subscribe)).await.map_err(text)?;
    let way = run.city.ride(2_000_000 + u32::try_from(number).unwrap_or(0), 0, run.clock.wall(), 900);
    let mut tick = tokio::time::interval(POSITION);
    let mut at = 0;
    loop {
        tokio::select! {
            _ = tick.tick() => {
                let position = way.get(at % way.len().max(1)).map(|u| u.position);
                at += 5;
                let position = serde_json::to_string(&position).unwrap_or_default();
                let said = format!(r#"{{"type":"position","position":{position}}}"#);
                socket.send(Message::text(said)).await.map_err(text)?;
            }
            message = socket.next() => match message {
                Some(Ok(Message::Text(_))) => {
                    run.events.fetch_add(1, Ordering::Relaxed);
                }
                Some(Ok(Message::Close(_))) | None => return Ok(()),
                Some(Ok(_)) => {}
                Some(Err(e)) => return Err(e.to_string()),
            },
        }
    }
}
