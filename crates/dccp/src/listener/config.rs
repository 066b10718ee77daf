use crate::connection::Config;
use crate::packet::ServiceCode;
use weir_units::TimeDelta;

/// When a Request is answered without keeping state (Init Cookies, RFC 4340, section 8.1.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cookies {
    /// Never: half-open connections take memory, and beyond [`ListenerConfig::most_half_open`] Requests are refused.
    Never,
    /// If at least this many connections are half open.
    From(usize),
    /// Always.
    Always,
}

/// Number of connections per pair of UDP addresses and ports (RFC 6773, section 3.8, allows either).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PairUse {
    /// As many as there are DCCP ports.
    #[default]
    Many,
    /// One; others are reset with Encapsulated Port Reuse.
    One,
}

/// Configuration of a listener.
#[derive(Clone, Debug)]
pub struct ListenerConfig {
    /// Configuration of accepted connections. Its local port and service code are those listened on; the listener sets
    /// the other end's port, the requested code and the seed.
    pub connection: Config,
    /// Service codes accepted besides the connection's.
    pub services: Vec<ServiceCode>,
    /// Maximum half-open connections: a Request was answered and the Response not acknowledged.
    pub most_half_open: usize,
    /// When to keep no state of a Request.
    pub cookies: Cookies,
    /// Lifetime of a cookie; it should cover the time that a client may take from the first Response on.
    pub cookie_lifetime: TimeDelta,
    /// Maximum time for which a connection may be half open (RFC 4340, section 8.1.3: at least 8 minutes).
    pub half_open_timeout: TimeDelta,
    /// Whether connections may share a UDP pair.
    pub pairs: PairUse,
    /// Resets in one second (RFC 4340, section 8.1.3: 1,024 for example).
    pub resets_per_second: u32,
    /// The secret of cookies and initial sequence numbers: 32 random bytes, drawn once.
    pub key: [u8; 32],
}

impl ListenerConfig {
    /// The defaults, for connections of this configuration and with this secret.
    pub fn new(connection: Config, key: [u8; 32]) -> Self {
        Self {
            connection,
            services: Vec::new(),
            most_half_open: 128,
            cookies: Cookies::From(64),
            cookie_lifetime: TimeDelta::from_secs(60),
            half_open_timeout: TimeDelta::from_secs(480),
            pairs: PairUse::default(),
            resets_per_second: 1_024,
            key,
        }
    }
}
