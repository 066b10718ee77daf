use crate::connection::Config;
use crate::packet::ServiceCode;
use weir_units::TimeDelta;

/// When a Request is answered without keeping anything of it (Init Cookies, RFC 4340, section 8.1.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cookies {
    /// Never: what is half open takes memory, and past [`ListenerConfig::most_half_open`] Requests are refused.
    Never,
    /// When at least so many connections are half open.
    From(usize),
    /// Always.
    Always,
}

/// How many connections may share a pair of UDP addresses and ports (RFC 6773, section 3.8: either is right).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PairUse {
    /// As many as there are DCCP ports.
    #[default]
    Many,
    /// One; others are reset with Encapsulated Port Reuse.
    One,
}

/// What a listener is made from.
#[derive(Clone, Debug)]
pub struct ListenerConfig {
    /// What accepted connections are made from. Its local port and service code are those listened on; the other end's port, the
    /// code asked for and the seed are put in by the listener.
    pub connection: Config,
    /// Service codes that are taken beside the connection's.
    pub services: Vec<ServiceCode>,
    /// Connections that may be half open: a Request has been answered and the answer has not been acknowledged.
    pub most_half_open: usize,
    /// When to keep nothing of a Request.
    pub cookies: Cookies,
    /// How long a cookie is taken back; it should be as long as a client may take from the first Response on.
    pub cookie_lifetime: TimeDelta,
    /// How long a connection may be half open (RFC 4340, section 8.1.3: at least 8 minutes).
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
