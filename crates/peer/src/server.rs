//! The service: the page, WHIP (RFC 9725), WHEP, and the calls' JSON.

mod limits;
mod page;
mod problem;
mod routes;
mod save;
mod sessions;

pub use limits::Limits;
pub use sessions::ClipConfig;

use crate::call::{LinkPlan, Settings};
use crate::dtls::Identity;
use axum::Router;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use sessions::Sessions;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};
use weir_admission::{Guest, Hall, Source};
use weir_cc::Registry;
use weir_live::clock::Clock;
use weir_media::VideoCodec;
use weir_units::DataRate;

/// Time for requests in progress at the end.
const GRACE: Duration = Duration::from_secs(2);

/// Wait after a connection could not be accepted.
const SHORTAGE: Duration = Duration::from_millis(5);

/// A connection's place, which requests carry.
struct Visit {
    guest: Guest,
    clock: Clock,
}

impl Visit {
    /// It has presented the token.
    fn prove(&self) {
        self.guest.prove(self.clock.now());
    }
}

/// Configuration of the service.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Where it listens.
    pub listen: SocketAddr,
    /// The address named in answers, if it is another: that of a call's sockets.
    pub media: Option<IpAddr>,
    /// Token that requests have to present; made at random where it is left out.
    pub token: Option<String>,
    /// Of calls that name no others.
    pub settings: Settings,
    /// The first media rate.
    pub start_rate: DataRate,
    /// The codec of choice.
    pub codec: VideoCodec,
    /// The video for those who call.
    pub clip: ClipConfig,
    /// An emulated link between this end and each browser.
    pub link: Option<LinkPlan>,
    /// Bounds.
    pub limits: Limits,
}

/// Why the service did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The address cannot be used.
    #[error("listening at {0}: {1}")]
    Listen(SocketAddr, io::Error),
    /// No certificate.
    #[error("making a certificate: {0}")]
    Identity(String),
    /// No random numbers.
    #[error("the system gives no random numbers: {0}")]
    Random(getrandom::Error),
    /// The clip cannot be drawn.
    #[error("the clip: {0}")]
    Clip(weir_media::MediaError),
    /// The controller is not one for browsers.
    #[error(transparent)]
    Controller(#[from] crate::call::ControllerError),
    /// Calls from other machines need an address that they can reach.
    #[error("listening at {0}: name the address of this machine that others reach, instead of all of them")]
    Unspecified(SocketAddr),
}

/// A service that runs in the current tokio runtime, until it is stopped.
pub struct RunningServer {
    /// Where it listens.
    pub address: SocketAddr,
    /// Token that requests have to present.
    pub token: String,
    sessions: Arc<Sessions>,
    stopping: watch::Sender<bool>,
    accepting: JoinHandle<()>,
}

impl RunningServer {
    /// The page's address, which contains the token.
    pub fn page(&self) -> String {
        format!("http://{}/#token={}", self.address, self.token)
    }
    /// The calls that there have been, the oldest first: what was seen of each.
    pub fn calls(&self) -> Vec<(String, crate::call::Snapshot)> {
        self.sessions.snapshots()
    }
    /// Ends it, and all calls; returns what was seen of each, without samples.
    pub async fn stop(self) -> Vec<(String, crate::call::Snapshot)> {
        let (calls, _) = self.stop_and_report().await;
        calls
    }
    /// Ends it, and all calls; returns what was seen of each, without samples, and all of it as a page.
    pub async fn stop_and_report(mut self) -> (Vec<(String, crate::call::Snapshot)>, Report) {
        self.stopping.send_replace(true);
        let _ = (&mut self.accepting).await;
        let sessions = Arc::clone(&self.sessions);
        let records = tokio::task::spawn_blocking(move || sessions.finish()).await.unwrap_or_default();
        let seen = |(id, record): &(String, crate::call::Record)| {
            (id.clone(), crate::call::Snapshot { samples: Vec::new(), ..record.snapshot.clone() })
        };
        let seen = records.iter().map(seen).collect();
        let records = records.into_iter().map(|(_, record)| record).collect();
        (seen, Report { sessions: self.sessions, records })
    }
}

/// The calls of a service that has ended, for a page.
pub struct Report {
    sessions: Arc<Sessions>,
    records: Vec<crate::call::Record>,
}

impl Report {
    /// The page.
    ///
    /// # Errors
    /// Its template fails, which is a bug.
    pub fn html(self) -> Result<String, crate::saved::SaveError> {
        save::page(&self.sessions, self.records)
    }
}

/// A token: 128 bits in hexadecimal.
fn random_token() -> Result<String, ServeError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(ServeError::Random)?;
    Ok(bytes.iter().map(|b| format!("{b:02x}")).collect())
}

/// Listens.
///
/// # Errors
/// See [`ServeError`].
pub async fn serve(config: ServerConfig, registry: Arc<Registry>) -> Result<RunningServer, ServeError> {
    let failed = |e| ServeError::Listen(config.listen, e);
    if config.media.unwrap_or(config.listen.ip()).is_unspecified() {
        return Err(ServeError::Unspecified(config.listen));
    }
    let now = weir_units::Timestamp::ZERO;
    crate::call::controller(&registry, &config.settings, config.start_rate, now)?;
    let identity = Identity::new().map_err(|e| ServeError::Identity(e.to_string()))?;
    let token = match &config.token {
        Some(token) => token.clone(),
        None => random_token()?,
    };
    let reel = sessions::reel(&config.clip).map_err(ServeError::Clip)?;
    let listener = TcpListener::bind(config.listen).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let sessions = Arc::new(Sessions::new(config, registry, identity, reel, token.clone()));
    let (stopping, _) = watch::channel(false);
    let router = routes::router(Arc::clone(&sessions));
    let limits = sessions.config.limits;
    let accepting = tokio::spawn(accept(listener, router, limits, stopping.subscribe()));
    Ok(RunningServer { address, token, sessions, stopping, accepting })
}

async fn accept(listener: TcpListener, router: Router, limits: Limits, mut stopping: watch::Receiver<bool>) {
    let (hall, clock) = (Hall::new(limits.admission()), Clock::starting_now());
    let mut serving = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopping.changed() => break,
            Some(_) = serving.join_next() => continue,
        };
        match accepted {
            Ok((stream, from)) => {
                let (close, closed) = oneshot::channel::<()>();
                let guest = hall.enter(clock.now(), Source::from(from.ip()), move || drop(close));
                let visit = Arc::new(Visit { guest, clock });
                let (router, stopping) = (router.clone(), stopping.clone());
                serving.spawn(connection(stream, visit, closed, router, limits, stopping));
            }
            Err(_) => {
                // Too many open files, for example.
                hall.shed();
                tokio::time::sleep(SHORTAGE).await;
            }
        }
    }
    drop(listener);
    let all = async { while serving.join_next().await.is_some() {} };
    if tokio::time::timeout(GRACE, all).await.is_err() {
        serving.abort_all();
    }
}

async fn connection(
    stream: TcpStream,
    visit: Arc<Visit>,
    closed: oneshot::Receiver<()>,
    router: Router,
    limits: Limits,
    mut stopping: watch::Receiver<bool>,
) {
    let _ = stream.set_nodelay(true);
    let inner = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: hyper::Request<hyper::body::Incoming>| {
        visit.guest.progress(visit.clock.now());
        request.extensions_mut().insert(Arc::clone(&visit));
        inner.call(request)
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits.head_time).max_buf_size(16 * 1024).max_headers(64);
    let connection = http.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    // Stopped also if the sender is gone.
    let stopped = async { stopping.wait_for(|stop| *stop).await.map(|_| ()) };
    let ends = tokio::select! {
        _ = connection.as_mut() => true,
        // It gives way to another one: the sender is dropped.
        _ = closed => true,
        _ = stopped => false,
    };
    if !ends {
        connection.as_mut().graceful_shutdown();
        let _ = tokio::time::timeout(GRACE, connection).await;
    }
}
