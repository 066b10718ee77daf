//! State of ICE at an end of a call, and its report.

use crate::call::path_sockets::PathAddress;
use crate::ice::{Arrival, IceCounters, IcePaths, RelayCounters, RelayState};
use crate::udp::UdpConfig;
use serde::Serialize;
use std::net::{IpAddr, SocketAddr};
use weir_session::PathConfig;
use weir_session::multipath::MAX_PATHS;
use weir_units::{PathId, TimeDelta, Timestamp};

/// Makes the configuration of a further path.
pub(super) type NewPath = Box<dyn FnMut(usize, Timestamp) -> Option<PathConfig> + Send>;

/// Where a path of this end begins, and its agent while the address is there.
pub(super) struct Watched {
    pub(super) at: PathAddress,
    pub(super) now: Option<(IpAddr, usize)>,
    /// Its last socket's address, and its path, once it was there.
    pub(super) last: Option<(SocketAddr, usize)>,
}

/// ICE of one end.
pub(super) struct LiveIce {
    pub(super) paths: IcePaths,
    pub(super) new_path: NewPath,
    pub(super) watched: Vec<Watched>,
    pub(super) next_look: Timestamp,
    pub(super) udp: UdpConfig,
    /// The address of each socket.
    pub(super) locals: Vec<SocketAddr>,
    /// This end's address, which may be one of a relay, and the other end's, by path, while it consents.
    pub(super) open: Vec<Option<(SocketAddr, SocketAddr)>>,
    /// Paths that the session has.
    pub(super) added: Vec<bool>,
    pub(super) announced: Vec<SocketAddr>,
    pub(super) announced_restarts: [u16; MAX_PATHS],
    /// Whether the addresses have changed and are not announced yet.
    pub(super) is_untold: bool,
    pub(super) events: IceEvents,
}

/// Events of paths by ICE.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IceEvents {
    /// Paths that got a pair of addresses.
    pub opened: u64,
    /// Paths whose pair no longer answered (RFC 7675).
    pub lost: u64,
    /// Interfaces of this end that have appeared in mid-call.
    pub appeared: u64,
    /// Interfaces of this end that have disappeared.
    pub disappeared: u64,
    /// Times that this end's addresses were sent to the other end in-band.
    pub offers: u64,
    /// Paths that this end has restarted under other credentials, since no pair answered or an interface has another address.
    pub restarts: u64,
    /// Restarts of the other end that this one has followed.
    pub followed: u64,
}

/// State of ICE at an end, units in the names.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IceSummary {
    /// Events.
    pub events: IceEvents,
    /// Messages received.
    pub messages: IceCounters,
    /// Every pair of addresses that was checked.
    pub pairs: Vec<IcePairSummary>,
    /// Addresses at relays that were asked for.
    pub relays: Vec<IceRelaySummary>,
}

/// An address of this end at a relay.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IceRelaySummary {
    /// The path.
    pub path: usize,
    /// The server's address.
    pub server: String,
    /// The address there; `None` if the server has lent none, or no longer does.
    pub relayed: Option<String>,
    /// How far it is.
    pub state: RelayState,
    /// Datagrams.
    pub datagrams: RelayCounters,
}

/// The measurements by the checks of one pair of addresses, whether or not it carries media.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IcePairSummary {
    /// The path.
    pub path: usize,
    /// This end's address.
    pub local: String,
    /// The other end's.
    pub remote: String,
    /// Whether the path uses it.
    pub is_selected: bool,
    /// Whether this end's address is one of a relay.
    pub is_relayed: bool,
    /// Checks sent.
    pub sent: u64,
    /// Those that were answered.
    pub answered: u64,
    /// Last round-trip time.
    pub rtt_ms: Option<f64>,
    /// Share of the last 32 checks that was not answered, since the first that was.
    pub loss: Option<f64>,
}

impl LiveIce {
    pub(super) fn new(paths: IcePaths, new_path: NewPath, udp: UdpConfig) -> Self {
        Self {
            paths,
            new_path,
            watched: Vec::new(),
            next_look: Timestamp::ZERO,
            udp,
            locals: Vec::new(),
            open: Vec::new(),
            added: vec![true],
            announced: Vec::new(),
            announced_restarts: [0; MAX_PATHS],
            is_untold: false,
            events: IceEvents::default(),
        }
    }
    /// The other end's address on a path that may be used.
    pub(super) fn remote(&self, path: PathId) -> Option<SocketAddr> {
        self.open.get(path.index()).copied().flatten().map(|o| o.1)
    }
    /// This end's address at a relay, if a path uses one.
    pub(super) fn relay(&self, path: PathId) -> Option<SocketAddr> {
        let (local, _) = self.open.get(path.index()).copied().flatten()?;
        (!self.locals.contains(&local)).then_some(local)
    }
    pub(super) fn is_any_open(&self) -> bool {
        self.open.iter().any(Option::is_some)
    }
    /// Takes a datagram if it is of ICE or a relay.
    pub(super) fn handle_datagram(&mut self, now: Timestamp, port: usize, from: SocketAddr, bytes: &[u8]) -> Arrival {
        let local = self.locals.get(port);
        local.map_or(Arrival::Other, |&local| self.paths.handle_datagram(now, local, from, bytes))
    }

    pub(super) fn summary(&self) -> IceSummary {
        let of = |path: usize| {
            let selected = self.paths.selection(path);
            self.paths.measures(path).iter().map(move |m| IcePairSummary {
                path,
                local: m.local.to_string(),
                remote: m.remote.to_string(),
                is_selected: selected.is_some_and(|s| (s.local, s.remote) == (m.local, m.remote)),
                is_relayed: !self.locals.contains(&m.local),
                sent: m.sent,
                answered: m.answered,
                rtt_ms: m.rtt.map(TimeDelta::as_millis_f64),
                loss: m.loss(),
            })
        };
        let pairs = (0..self.paths.path_count()).flat_map(of).collect();
        let relays = self.paths.relays().map(|(path, r)| IceRelaySummary {
            path,
            server: r.server().to_string(),
            relayed: r.relayed().map(|at| at.to_string()),
            state: r.state(),
            datagrams: r.counters(),
        });
        let events = IceEvents { followed: self.paths.followed(), ..self.events };
        IceSummary { events, messages: self.paths.counters(), pairs, relays: relays.collect() }
    }
}
