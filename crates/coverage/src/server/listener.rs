//! Connections: accepted, limited, served, and ended.

mod watched;

use super::clock::Clock;
use super::config::{ConfigError, ServerConfig};
use super::connections::{Place, stopped};
use super::jobs::Job;
use super::keys::Keys;
use super::logs::Repeated;
use super::routes;
use super::shared::Shared;
use super::store::{Store, StoreError};
use super::tls::{Identity, identity};
use super::writer::Writer;
use crate::{Map, WallTime};
use axum::Router;
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;
use watched::Watched;
use weir_admission::{Hall, Source};

/// Batches that wait to be written: more wait than updates are permitted to, so that the bound on updates decides.
const MAX_JOBS: usize = 4_096;
/// Time for requests in progress at the end.
const GRACE: Duration = Duration::from_secs(10);
/// Wait after a connection could not be accepted.
const SHORTAGE: Duration = Duration::from_millis(5);
/// Longest head of a request, in bytes.
const MAX_HEAD: usize = 16 * 1024;
/// Most header fields.
const MAX_FIELDS: usize = 64;

/// Why the service did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The configuration must not run.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The database cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A certificate cannot be used.
    #[error("TLS: {0}")]
    Tls(String),
    /// The address cannot be used.
    #[error("listening at {0}: {1}")]
    Listen(SocketAddr, io::Error),
}

/// A service that runs in the current tokio runtime, until it is stopped.
#[derive(Debug)]
pub struct RunningServer {
    /// Where it listens.
    pub address: SocketAddr,
    /// SHA-256 of the certificate, if connections are protected.
    pub fingerprint: Option<String>,
    /// Updates that were in the database.
    pub loaded: u64,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
    writing: Option<std::thread::JoinHandle<()>>,
}

struct Loaded {
    store: Box<dyn Store>,
    map: Map,
    keys: Keys,
    updates: u64,
}

fn load(mut store: Box<dyn Store>, mut map: Map, now: WallTime) -> Result<Loaded, StoreError> {
    let updates = store.replay(&mut |device, update| {
        map.insert(device, &update, now);
    })?;
    let keys = Keys::new(store.keys()?);
    Ok(Loaded { store, map, keys, updates })
}

/// Loads the map from a database, then listens.
///
/// # Errors
/// See [`ServeError`].
pub async fn serve(config: ServerConfig, clock: Clock, store: Box<dyn Store>) -> Result<RunningServer, ServeError> {
    let listener = bind(&config)?;
    serve_on(listener, config, clock, store).await
}

/// The socket of a service, before its database is opened or made. Who connects meanwhile waits.
///
/// # Errors
/// The configuration must not run, or the address cannot be used.
pub fn bind(config: &ServerConfig) -> Result<std::net::TcpListener, ServeError> {
    config.check()?;
    std::net::TcpListener::bind(config.listen).map_err(|e| ServeError::Listen(config.listen, e))
}

/// As [`serve`], on a socket by [`bind`].
///
/// # Errors
/// See [`ServeError`].
pub async fn serve_on(
    listener: std::net::TcpListener,
    config: ServerConfig,
    clock: Clock,
    store: Box<dyn Store>,
) -> Result<RunningServer, ServeError> {
    let failed = |e| ServeError::Listen(config.listen, e);
    listener.set_nonblocking(true).map_err(failed)?;
    let listener = TcpListener::from_std(listener).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let identity = identity(&config.tls).map_err(ServeError::Tls)?;
    let (map, begin) = (Map::new(config.map.clone()), clock.wall());
    let loading = tokio::task::spawn_blocking(move || load(store, map, begin));
    let Loaded { store, map, keys, updates: loaded } =
        loading.await.map_err(|e| StoreError::Database(format!("reading it: {e}")))??;
    let (jobs, queue) = mpsc::channel(MAX_JOBS);
    let shared = Arc::new(Shared::new(config, clock, map, keys, jobs));
    let writer = Writer::new(store, Arc::clone(&shared), queue);
    let writing = std::thread::spawn(move || writer.run());
    let fingerprint = identity.as_ref().map(|i| i.fingerprint.clone());
    tracing::info!(%address, updates = loaded, tls = identity.is_some(), "listening");
    let accepting = tokio::spawn(accept(listener, identity, Arc::clone(&shared)));
    Ok(RunningServer { address, fingerprint, loaded, shared, accepting, writing: Some(writing) })
}

impl RunningServer {
    /// Ends it: no new connections, requests in progress have ten seconds, all that waits is written.
    pub async fn stop(mut self) {
        tracing::info!("stopping");
        self.shared.stopping.send_replace(true);
        let _ = (&mut self.accepting).await;
        let _ = self.shared.jobs.send(Job::Stop).await;
        if let Some(writing) = self.writing.take() {
            let _ = tokio::task::spawn_blocking(move || writing.join()).await;
        }
        tracing::info!("stopped");
    }
}

async fn accept(listener: TcpListener, identity: Option<Identity>, shared: Arc<Shared>) {
    let acceptor = identity.map(|i| TlsAcceptor::from(i.config));
    let router = routes::router(Arc::clone(&shared));
    let hall = Hall::new(shared.config.admission());
    let mut stopping = shared.stopping.subscribe();
    let mut serving = JoinSet::new();
    let mut failures = Repeated::default();
    let mut tick = tokio::time::interval(Duration::from_secs(1));
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopping.changed() => break,
            Some(_) = serving.join_next() => continue,
            _ = tick.tick() => {
                // A full queue is no matter: housekeeping follows each transaction.
                let _ = shared.jobs.try_send(Job::Tick);
                continue;
            }
        };
        match accepted {
            Ok((stream, address)) => {
                let place = Place::enter(&hall, Source::from(address.ip()), &shared);
                let serve =
                    connection(stream, Arc::new(place), acceptor.clone(), router.clone(), shared.stopping.subscribe());
                serving.spawn(serve);
            }
            Err(e) => {
                // Too many open files, for example.
                if let Some(count) = failures.note(shared.clock.elapsed()) {
                    tracing::warn!(error = %e, count, "accepting a connection");
                }
                hall.shed();
                tokio::time::sleep(SHORTAGE).await;
            }
        }
    }
    drop(listener);
    let all = async { while serving.join_next().await.is_some() {} };
    if tokio::time::timeout(GRACE + Duration::from_secs(2), all).await.is_err() {
        serving.abort_all();
    }
}

async fn connection(
    stream: TcpStream,
    place: Arc<Place>,
    acceptor: Option<TlsAcceptor>,
    router: Router,
    stopping: watch::Receiver<bool>,
) {
    let _ = stream.set_nodelay(true);
    let (idle, head) = (place.shared.config.idle_timeout, place.shared.config.head_timeout);
    let stream = Watched::new(stream, idle);
    let served = async {
        match acceptor {
            None => requests(stream, &place, router, stopping).await,
            Some(acceptor) => {
                if let Ok(Ok(stream)) = tokio::time::timeout(head, acceptor.accept(stream)).await {
                    place.progress();
                    requests(stream, &place, router, stopping).await;
                }
            }
        }
    };
    tokio::select! {
        () = served => {}
        () = place.gives_way() => {}
    }
}

async fn requests<T>(stream: T, place: &Arc<Place>, router: Router, stopping: watch::Receiver<bool>)
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let peer = place.peer;
    let held = Arc::clone(place);
    let inner = TowerToHyperService::new(router);
    let service = hyper::service::service_fn(move |mut request: hyper::Request<hyper::body::Incoming>| {
        held.progress();
        request.extensions_mut().insert(peer);
        request.extensions_mut().insert(Arc::clone(&held));
        inner.call(request)
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(place.shared.config.head_timeout)
        .max_buf_size(MAX_HEAD)
        .max_headers(MAX_FIELDS);
    let connection = http.serve_connection(TokioIo::new(stream), service).with_upgrades();
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stopped(stopping) => {
            connection.as_mut().graceful_shutdown();
            match tokio::time::timeout(GRACE, connection).await {
                Ok(ended) => ended,
                Err(_) => Ok(()),
            }
        }
    };
    if let Err(e) = ended {
        tracing::debug!(error = %e, "a connection ended");
    }
}
