//! Requests, one at a time over one connection.

use crate::lookahead::{Area, Route};
use crate::{Accepted, Batch, CachedPart, CapacityVector, Cell, Filter, Technology};
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, RETRY_AFTER};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Write as _;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use weir_units::TimeDelta;

/// Longest answer, in bytes: a part of a map.
const MAX_ANSWER: usize = 16 * 1024 * 1024;

/// Where a service is: `http://HOST:PORT`, or `https://HOST:PORT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Whether the connection is protected.
    pub tls: bool,
    /// Name or address.
    pub host: String,
    /// Port.
    pub port: u16,
}

/// A text that is no endpoint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no service: expected http://HOST:PORT or https://HOST:PORT")]
pub struct EndpointError(String);

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, EndpointError> {
        let error = || EndpointError(text.chars().take(120).collect());
        let (tls, rest) = match (text.strip_prefix("http://"), text.strip_prefix("https://")) {
            (Some(rest), _) => (false, rest),
            (_, Some(rest)) => (true, rest),
            _ => return Err(error()),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (host, port) = match rest.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port.parse().map_err(|_| error())?),
            _ => (rest, if tls { 443 } else { 80 }),
        };
        let host = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
        let valid = !host.is_empty() && host.bytes().all(|b| b.is_ascii_alphanumeric() || b".-:_".contains(&b));
        if valid { Ok(Self { tls, host: host.to_owned(), port }) } else { Err(error()) }
    }
}

/// Certificates that are believed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// None: plain connections only.
    #[default]
    Nothing,
    /// Those of an authority, or the service's own, as PEM.
    Certificates(Vec<u8>),
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The service cannot be reached, or the connection was lost.
    #[error("no connection: {0}")]
    Connection(String),
    /// It took too long.
    #[error("no answer in time")]
    Timeout,
    /// The service did not do it.
    #[error("the service answered {status}: {detail}")]
    Refused {
        /// Status code of HTTP.
        status: u16,
        /// Its answer.
        detail: String,
        /// When to come again, if it said so.
        wait: Option<TimeDelta>,
    },
    /// An answer that is none.
    #[error("the answer cannot be read: {0}")]
    Answer(String),
}

impl ClientError {
    /// Whether the same request would be refused again.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Refused { status: 400 | 413 | 422, .. })
    }
}

/// An answer as it came.
#[derive(Clone, Debug)]
pub struct Response {
    /// Status code of HTTP.
    pub status: u16,
    /// Its body.
    pub body: Bytes,
    /// When to come again, in seconds, if it said so.
    pub retry_after: Option<u64>,
}

/// A client of a service, within a tokio runtime. It makes one request at a time, and connects again when it has to.
#[derive(Debug)]
pub struct Client {
    endpoint: Endpoint,
    key: String,
    tls: Option<Arc<ClientConfig>>,
    timeout: Duration,
    open: Option<SendRequest<Full<Bytes>>>,
}

fn tls_config(trust: &Trust) -> Result<Arc<ClientConfig>, String> {
    let mut roots = RootCertStore::empty();
    if let Trust::Certificates(pem) = trust {
        for certificate in CertificateDer::pem_slice_iter(pem) {
            roots.add(certificate.map_err(|e| e.to_string())?).map_err(|e| e.to_string())?;
        }
    }
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|e| e.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

impl Client {
    /// A client with a key. Each request may take `timeout`.
    ///
    /// # Errors
    /// The certificates cannot be used.
    pub fn new(endpoint: Endpoint, key: &str, trust: &Trust, timeout: Duration) -> Result<Self, ClientError> {
        let tls = if endpoint.tls { Some(tls_config(trust).map_err(ClientError::Connection)?) } else { None };
        Ok(Self { endpoint, key: key.to_owned(), tls, timeout, open: None })
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, String> {
        let text = |e: std::io::Error| e.to_string();
        let stream = TcpStream::connect((self.endpoint.host.as_str(), self.endpoint.port)).await.map_err(text)?;
        let _ = stream.set_nodelay(true);
        match &self.tls {
            None => {
                let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(|e| e.to_string())?;
                tokio::spawn(connection);
                Ok(sender)
            }
            Some(config) => {
                let name = ServerName::try_from(self.endpoint.host.clone()).map_err(|e| e.to_string())?;
                let stream = TlsConnector::from(Arc::clone(config)).connect(name, stream).await.map_err(text)?;
                let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(|e| e.to_string())?;
                tokio::spawn(connection);
                Ok(sender)
            }
        }
    }

    async fn exchange(&mut self, method: Method, path: &str, body: Bytes) -> Result<Response, ClientError> {
        let failed = |e: String| ClientError::Connection(e);
        let mut sender = None;
        if let Some(mut open) = self.open.take()
            && open.ready().await.is_ok()
        {
            sender = Some(open);
        }
        let mut sender = match sender {
            Some(open) => open,
            None => self.connect().await.map_err(failed)?,
        };
        let mut request = Request::builder().method(method).uri(path).header(HOST, self.host());
        if !self.key.is_empty() {
            request = request.header(AUTHORIZATION, format!("Bearer {}", self.key));
        }
        if !body.is_empty() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        let request = request.body(Full::new(body)).map_err(|e| failed(e.to_string()))?;
        let answer = sender.send_request(request).await.map_err(|e| failed(e.to_string()))?;
        let status = answer.status().as_u16();
        let retry_after = answer.headers().get(RETRY_AFTER).and_then(|v| v.to_str().ok()?.parse().ok());
        let body = Limited::new(answer.into_body(), MAX_ANSWER).collect().await;
        let body = body.map_err(|e| ClientError::Answer(e.to_string()))?.to_bytes();
        self.open = Some(sender);
        Ok(Response { status, body, retry_after })
    }

    fn host(&self) -> String {
        let Endpoint { host, port, .. } = &self.endpoint;
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    }

    /// Makes a request and returns what came, whatever its status is.
    ///
    /// # Errors
    /// Nothing came.
    pub async fn request(&mut self, method: &str, path: &str, body: Vec<u8>) -> Result<Response, ClientError> {
        let method = Method::from_bytes(method.as_bytes()).map_err(|e| ClientError::Connection(e.to_string()))?;
        let time = self.timeout;
        match tokio::time::timeout(time, self.exchange(method, path, body.into())).await {
            Ok(done) => done,
            Err(_) => {
                // Its answer may still come, and would be taken for the next one's.
                self.open = None;
                Err(ClientError::Timeout)
            }
        }
    }

    async fn ask<T: DeserializeOwned>(&mut self, method: &str, path: &str, body: Vec<u8>) -> Result<T, ClientError> {
        let answer = self.request(method, path, body).await?;
        if answer.status != StatusCode::OK && answer.status != StatusCode::CREATED {
            let problem: serde_json::Value = serde_json::from_slice(&answer.body).unwrap_or_default();
            let detail = problem["detail"].as_str().unwrap_or_default().chars().take(300).collect();
            let wait = answer.retry_after.map(|s| TimeDelta::from_secs(i64::try_from(s.min(86_400)).unwrap_or(0)));
            return Err(ClientError::Refused { status: answer.status, detail, wait });
        }
        serde_json::from_slice(&answer.body).map_err(|e| ClientError::Answer(e.to_string()))
    }

    async fn post<T: DeserializeOwned>(&mut self, path: &str, body: &impl Serialize) -> Result<T, ClientError> {
        let body = serde_json::to_vec(body).map_err(|e| ClientError::Answer(e.to_string()))?;
        self.ask("POST", path, body).await
    }

    /// Reports a batch. What is acknowledged is durable.
    ///
    /// # Errors
    /// It is not acknowledged.
    pub async fn report(&mut self, batch: &Batch) -> Result<Accepted, ClientError> {
        self.post("/v1/updates", batch).await
    }

    /// Looks ahead along a route.
    ///
    /// # Errors
    /// There is no answer.
    pub async fn look_route(&mut self, route: &Route) -> Result<CapacityVector, ClientError> {
        self.post("/v1/lookahead/route", route).await
    }

    /// Looks ahead in the sector of a moving end.
    ///
    /// # Errors
    /// There is no answer.
    pub async fn look_area(&mut self, area: &Area) -> Result<CapacityVector, ClientError> {
        self.post("/v1/lookahead/area", area).await
    }

    /// Downloads what is known of the cells inside a coarser one.
    ///
    /// # Errors
    /// There is no answer.
    pub async fn part(&mut self, area: Cell, network: &Filter) -> Result<CachedPart, ClientError> {
        let mut path = format!("/v1/map/{area}?");
        if let Some(operator) = &network.operator {
            let _ = write!(path, "operator={operator}&");
        }
        if let Some(technology) = network.technology {
            let _ = write!(path, "technology={}", technology_name(technology));
        }
        self.ask("GET", &path, Vec::new()).await
    }
}

fn technology_name(technology: Technology) -> String {
    let name = serde_json::to_value(technology).unwrap_or_default();
    name.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_read() {
        let read = |text: &str| text.parse::<Endpoint>().map(|e| (e.tls, e.host, e.port)).ok();
        let is = |tls, host: &str, port| Some((tls, host.to_owned(), port));
        assert_eq!(read("http://127.0.0.1:6580"), is(false, "127.0.0.1", 6580));
        assert_eq!(read("https://map.example/"), is(true, "map.example", 443));
        assert_eq!(read("https://[::1]:7000"), is(true, "::1", 7000));
        assert_eq!(read("http://[::1]"), is(false, "::1", 80));
        for wrong in ["map.example", "ftp://a", "http://", "http://a:b", "http://a/b", "http://a:70000", "http://a b"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
