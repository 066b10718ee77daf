//! Addresses of this end's sockets as STUN servers see them, before a call is described; and what is kept of ICE until the
//! call begins.

use crate::call::path_sockets::BoundPath;
use crate::call::{CallError, random_failure};
use crate::clock::Clock;
use crate::ice::{Candidate, CandidateKind, Credentials, Gather, IceConfig, Secret, is_check_for};
use crate::sdp::IceDescription;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use weir_units::TimeDelta;

/// Longest wait for the answers of servers; later ones are announced in-band (calibrated).
const PATIENCE: TimeDelta = TimeDelta::from_secs(1);
const TURN: Duration = Duration::from_millis(2);

/// Asks the servers, one for each socket at least, for the sockets' addresses; the first that is seen counts.
///
/// # Errors
/// There is no randomness, or a socket cannot be used.
pub(super) fn gather(paths: &mut [BoundPath], servers: &[SocketAddr], stop: &AtomicBool) -> Result<(), CallError> {
    let clock = Clock::starting_now();
    let mut asked = Vec::new();
    for (n, path) in paths.iter().enumerate() {
        path.socket.set_nonblocking(true).map_err(CallError::socket("preparing a socket"))?;
        for server in servers.iter().filter(|s| s.is_ipv4() == path.address.is_ipv4()) {
            let mut id = [0; 12];
            getrandom::fill(&mut id).map_err(random_failure)?;
            asked.push((n, Gather::new(*server, id, clock.now())));
        }
    }
    let mut buffer = [0; 1_500];
    while asked.iter().any(|(_, g)| !g.is_over()) && !stop.load(Ordering::Relaxed) {
        let now = clock.now();
        if now.saturating_since(weir_units::Timestamp::ZERO) > PATIENCE {
            break;
        }
        for (n, g) in &mut asked {
            if let Some(request) = g.poll_transmit(now) {
                // A server that cannot be reached does not answer.
                let _ = paths[*n].socket.send_to(&request, g.server());
            }
        }
        for (n, path) in paths.iter_mut().enumerate() {
            while let Ok((length, from)) = path.socket.recv_from(&mut buffer) {
                for (_, g) in asked.iter_mut().filter(|(of, _)| *of == n) {
                    if g.handle_datagram(from, &buffer[..length]) {
                        path.reflexive = path.reflexive.or(g.mapped());
                    }
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
    servers: Vec<SocketAddr>,
    /// Of each path's socket, as a server has seen it.
    pub(super) reflexive: Vec<Option<SocketAddr>>,
}

impl PreparedIce {
    /// # Errors
    /// There is no randomness.
    pub(super) fn new(paths: &[BoundPath], servers: &[SocketAddr]) -> Result<Self, CallError> {
        let secret = Secret::random().map_err(random_failure)?;
        let reflexive = paths.iter().map(|p| p.reflexive).collect();
        Ok(Self { secret, servers: servers.to_vec(), reflexive })
    }
    fn credentials(&self) -> Credentials {
        Credentials::of(&mut self.secret.clone())
    }
    pub(super) fn description(&self, paths: &[BoundPath]) -> IceDescription {
        let of = |(path, n): (&BoundPath, u8)| {
            let host = Candidate::new(path.address, CandidateKind::Host, n);
            let seen = path.reflexive.filter(|at| *at != path.address);
            [host, seen.and_then(|at| Candidate::new(at, CandidateKind::ServerReflexive, n))]
        };
        let candidates = paths.iter().zip(0..).flat_map(of).flatten().collect();
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
            servers: self.servers.clone(),
            agent: crate::ice::AgentConfig::default(),
        }
    }
}
