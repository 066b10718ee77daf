//! Addresses of this end's sockets as STUN servers see them, and those that TURN servers lend, before a call is described; and
//! what is kept of ICE until the call begins.

use crate::call::lent::Lent;
use crate::call::path_sockets::{BoundPath, use_own_route};
use crate::call::{CallError, random_failure};
use crate::clock::Clock;
use crate::ice::{Candidate, CandidateKind, Credentials, Gather, IceConfig, Relay, RelayServer, Secret, is_check_for};
use crate::sdp::IceDescription;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use weir_units::{TimeDelta, Timestamp};

/// Longest wait for the answers of servers; later ones are announced in-band (calibrated).
const PATIENCE: TimeDelta = TimeDelta::from_secs(1);
const TURN: Duration = Duration::from_millis(2);
/// Servers that are asked for each socket.
const MAX_STUN: usize = 4;
const MAX_RELAYS: usize = 2;

/// How a call finds its paths through NATs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct IceOptions {
    /// STUN servers, at most four.
    pub stun: Vec<SocketAddr>,
    /// TURN servers, at most two.
    pub relays: Vec<RelayServer>,
    /// Whether this end is reached by relays alone: the other one sees none of its addresses.
    pub relay_only: bool,
}

/// Asks the servers, one for each socket at least, for the sockets' addresses, of which the first that is seen counts, and
/// for relays.
///
/// # Errors
/// There is no randomness, or a socket cannot be used.
pub(super) fn gather(paths: &mut [BoundPath], options: &IceOptions, stop: &AtomicBool) -> Result<(), CallError> {
    let clock = Clock::starting_now();
    let mut asked = Vec::new();
    for (n, path) in paths.iter_mut().enumerate() {
        path.socket.set_nonblocking(true).map_err(CallError::socket("preparing a socket"))?;
        let fits = |s: &SocketAddr| s.is_ipv4() == path.address.is_ipv4();
        // Asked by the route of another interface, a server would see that one's NAT.
        let mut servers = options.stun.iter().copied().chain(options.relays.iter().map(|r| r.address));
        if let Some(server) = servers.find(fits) {
            use_own_route(&path.socket, server);
        }
        let stun = options.stun.iter().filter(|s| fits(s) && !options.relay_only).take(MAX_STUN);
        for server in stun {
            let mut id = [0; 12];
            getrandom::fill(&mut id).map_err(random_failure)?;
            asked.push((n, Gather::new(*server, id, clock.now())));
        }
        let relays = options.relays.iter().filter(|r| fits(&r.address)).take(MAX_RELAYS);
        path.lent = Lent::new(relays.map(|r| Relay::new(path.address, r, clock.now())).collect(), clock);
    }
    let mut buffer = [0; 1_500];
    let is_waiting = |asked: &[(usize, Gather)], paths: &[BoundPath]| {
        asked.iter().any(|(_, g)| !g.is_over()) || paths.iter().any(|p| p.lent.is_asking())
    };
    while is_waiting(&asked, paths) && !stop.load(Ordering::Relaxed) {
        let now = clock.now();
        if now.saturating_since(Timestamp::ZERO) > PATIENCE {
            break;
        }
        for (n, g) in &mut asked {
            if let Some(request) = g.poll_transmit(now) {
                // A server that cannot be reached does not answer.
                let _ = paths[*n].socket.send_to(&request, g.server());
            }
        }
        for (n, path) in paths.iter_mut().enumerate() {
            path.lent.turn(&path.socket);
            while let Ok((length, from)) = path.socket.recv_from(&mut buffer) {
                let mut is_answer = false;
                for (_, g) in asked.iter_mut().filter(|(of, _)| *of == n) {
                    if g.handle_datagram(from, &buffer[..length]) {
                        path.reflexive = path.reflexive.or(g.mapped());
                        is_answer = true;
                    }
                }
                if !is_answer {
                    path.lent.take(from, &buffer[..length]);
                }
            }
        }
        std::thread::sleep(TURN);
    }
    Ok(())
}

/// This end's part in ICE, from its description to the call.
#[derive(Clone, Debug)]
pub(super) struct PreparedIce {
    secret: Secret,
    options: IceOptions,
    /// Of each path's socket, as a server has seen it.
    pub(super) reflexive: Vec<Option<SocketAddr>>,
}

impl PreparedIce {
    /// # Errors
    /// There is no randomness.
    pub(super) fn new(paths: &[BoundPath], options: &IceOptions) -> Result<Self, CallError> {
        if options.relay_only && !paths.iter().any(|p| p.lent.addresses().next().is_some()) {
            let servers = options.relays.iter().map(|r| r.address.to_string()).collect::<Vec<_>>().join(", ");
            return Err(CallError::NoRelay { servers });
        }
        let secret = Secret::random().map_err(random_failure)?;
        let reflexive = paths.iter().map(|p| p.reflexive).collect();
        Ok(Self { secret, options: options.clone(), reflexive })
    }
    /// Whether this end is reached by relays alone.
    pub(super) const fn is_relay_only(&self) -> bool {
        self.options.relay_only
    }
    fn credentials(&self) -> Credentials {
        Credentials::of(&mut self.secret.clone())
    }
    pub(super) fn description(&self, paths: &[BoundPath]) -> IceDescription {
        let of = |(path, n): (&BoundPath, u8)| {
            let host = Candidate::new(path.address, CandidateKind::Host, n);
            let seen = path.reflexive.filter(|at| *at != path.address);
            let seen = seen.and_then(|at| Candidate::new(at, CandidateKind::ServerReflexive, n));
            let direct = [host, seen].into_iter().flatten().filter(|_| !self.options.relay_only);
            let relayed = path.lent.addresses().filter_map(move |at| Candidate::new(at, CandidateKind::Relayed, n));
            direct.chain(relayed).collect::<Vec<_>>()
        };
        let candidates = paths.iter().zip(0..).flat_map(of).collect();
        IceDescription { credentials: self.credentials(), candidates }
    }
    /// Whether a datagram is an authentic check for this end.
    pub(super) fn is_check(&self, datagram: &[u8]) -> bool {
        is_check_for(&self.credentials(), datagram)
    }
    pub(super) fn config(&self, is_controlling: bool) -> IceConfig {
        IceConfig {
            secret: self.secret.clone(),
            is_controlling,
            servers: self.options.stun.clone(),
            relays: self.options.relays.clone(),
            relay_only: self.options.relay_only,
            agent: crate::ice::AgentConfig::default(),
        }
    }
}
