//! One path's agent: connectivity checks by the library, bounds on what they may cause, and consent.

use super::candidate::{Candidate, MAX_CANDIDATES};
use super::checks::{Checks, PairMeasure};
use super::credentials::{Credentials, Hmac};
use super::guard::{Guard, Refusal};
use super::stun::{TransactionId, is_binding_request, transaction_of};
use is::stun::{StunMessage, StunPacket};
use is::{IceAgent, IceAgentEvent, Protocol};
use serde::Serialize;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use weir_units::{TimeDelta, Timestamp};

/// Pause before all pairs are checked again after none has answered, doubled up to the second value (calibrated).
const FIRST_PAUSE: TimeDelta = TimeDelta::from_secs(2);
const LONGEST_PAUSE: TimeDelta = TimeDelta::from_secs(60);
/// Pairs that are checked.
const MAX_PAIRS: usize = 32;
/// Messages and events that wait to be taken.
const MAX_WAITING: usize = 64;

/// Times of an agent.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AgentConfig {
    /// Least time between two checks (Ta; RFC 8445, section 14.2: 50 ms).
    pub pace: TimeDelta,
    /// Interval of the checks of a pair that has answered, which are its consent and its measurement. RFC 7675 has 5 s.
    pub interval: TimeDelta,
    /// A path whose pair does not answer for this time is lost. RFC 7675 demands it after 30 s.
    pub lost_after: TimeDelta,
}

impl Default for AgentConfig {
    fn default() -> Self {
        Self {
            pace: TimeDelta::from_millis(50),
            interval: TimeDelta::from_secs(1),
            lost_after: TimeDelta::from_secs(5),
        }
    }
}

/// How certain a pair of addresses is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Stage {
    /// A check of the other end has arrived on it.
    Heard,
    /// A check of this end was answered on it.
    Valid,
    /// Both ends are to use it.
    Nominated,
}

/// The pair that a path is to use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Selection {
    /// This end's address: that of the socket.
    pub local: SocketAddr,
    /// The other end's.
    pub remote: SocketAddr,
    /// How certain it is.
    pub stage: Stage,
}

/// An event of an agent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathEvent {
    /// The path is to use this pair from now on, or it is more certain than before.
    Selected(Selection),
    /// The other end no longer consents (RFC 7675): nothing may be sent there but checks.
    Lost,
}

/// A datagram to be sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transmit {
    /// This end's address.
    pub from: SocketAddr,
    /// The other end's, or a server's.
    pub to: SocketAddr,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// Messages received by agents.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IceCounters {
    /// Checks of the other end that were answered.
    pub requests: u64,
    /// Answers to checks of this end.
    pub answers: u64,
    /// Messages that are no valid STUN, or longer than any that is expected.
    pub malformed: u64,
    /// Messages without the password.
    pub unauthentic: u64,
    /// Answers that no check waits for, or from elsewhere than it was sent to.
    pub unexpected: u64,
    /// Copies of checks from other addresses.
    pub replayed: u64,
    /// Copies of checks that were answered just before, from the same address, and those beyond half of the greatest rate:
    /// retransmissions that arrive together, as after a pause of this end, or somebody's copies.
    pub repeated: u64,
    /// Checks beyond the greatest rate.
    pub too_often: u64,
    /// Messages that would have made more addresses than an end can have.
    pub too_many: u64,
}

impl std::ops::AddAssign for IceCounters {
    fn add_assign(&mut self, o: Self) {
        self.requests += o.requests;
        self.answers += o.answers;
        self.malformed += o.malformed;
        self.unauthentic += o.unauthentic;
        self.unexpected += o.unexpected;
        self.replayed += o.replayed;
        self.repeated += o.repeated;
        self.too_often += o.too_often;
        self.too_many += o.too_many;
    }
}

/// The agent of one path.
#[derive(Debug)]
pub struct PathAgent {
    agent: IceAgent,
    /// The library's time at [`Timestamp::ZERO`]. No result depends on it.
    zero: Instant,
    config: AgentConfig,
    local: Vec<SocketAddr>,
    /// The socket's address, unless the agent is at relays alone.
    host: Option<SocketAddr>,
    announced: Vec<Candidate>,
    /// Those of which checks were answered by a check at once.
    triggered: Vec<SocketAddr>,
    checks: Checks,
    guard: Guard,
    selection: Option<(Selection, Timestamp)>,
    /// When pairs are checked again, and the pause after that.
    retry: Option<Timestamp>,
    pause: TimeDelta,
    out: VecDeque<Transmit>,
    events: VecDeque<PathEvent>,
    counters: IceCounters,
}

#[expect(clippy::disallowed_methods, reason = "the library's time needs an origin, which nothing depends on")]
fn any_instant() -> Instant {
    Instant::now()
}

fn duration(d: TimeDelta) -> Duration {
    Duration::from_nanos(u64::try_from(d.as_nanos()).unwrap_or(0))
}

impl PathAgent {
    /// An agent with these credentials. `tie_breaker` is random; it decides if both ends want to nominate.
    pub fn new(config: AgentConfig, own: &Credentials, is_controlling: bool, tie_breaker: u64, now: Timestamp) -> Self {
        let mut agent = IceAgent::with_hmac(own.library(), &Hmac);
        agent.set_controlling(is_controlling);
        agent.set_control_tie_breaker(tie_breaker);
        agent.set_timing_advance(duration(config.pace));
        agent.set_max_stun_rto(duration(config.interval));
        agent.set_max_candidate_pairs(MAX_PAIRS);
        let mut agent = Self {
            agent,
            zero: any_instant(),
            config,
            local: Vec::new(),
            host: None,
            announced: Vec::new(),
            triggered: Vec::new(),
            checks: Checks::default(),
            guard: Guard::default(),
            selection: None,
            retry: None,
            pause: FIRST_PAUSE,
            out: VecDeque::new(),
            events: VecDeque::new(),
            counters: IceCounters::default(),
        };
        agent.handle_timeout(now);
        agent
    }

    /// The other end's credentials.
    pub fn set_remote(&mut self, theirs: &Credentials) {
        self.agent.set_remote_credentials(theirs.library());
    }
    /// An address of a socket of this end. Returns `false` for one that no end can be reached at.
    pub fn add_host(&mut self, at: SocketAddr) -> bool {
        let Ok(candidate) = is::Candidate::host(at, Protocol::Udp) else { return false };
        self.local.push(at);
        self.host = Some(at);
        self.agent.add_local_candidate(candidate);
        true
    }
    /// Whether the agent is at this socket.
    pub(super) fn is_host(&self, at: SocketAddr) -> bool {
        self.host == Some(at)
    }
    /// An address of a relay for this end's socket `base`.
    pub fn add_relayed(&mut self, at: SocketAddr, base: SocketAddr) {
        if let Ok(candidate) = is::Candidate::relayed(at, base, Protocol::Udp) {
            self.local.push(at);
            self.agent.add_local_candidate(candidate);
        }
    }
    /// The address of this end's socket `base` as seen by a STUN server.
    pub fn add_reflexive(&mut self, at: SocketAddr, base: SocketAddr) {
        if let Ok(candidate) = is::Candidate::server_reflexive(at, base, Protocol::Udp) {
            self.local.push(at);
            self.agent.add_local_candidate(candidate);
        }
    }
    /// A candidate of the other end. Returns `false` if it is known, or one too many.
    pub fn add_remote(&mut self, candidate: &Candidate) -> bool {
        if self.is_announced(candidate.address) || self.announced.len() >= MAX_CANDIDATES {
            return false;
        }
        self.announced.push(*candidate);
        self.agent.add_remote_candidate(candidate.remote());
        true
    }

    /// Whether the other end has announced this address.
    pub fn is_announced(&self, address: SocketAddr) -> bool {
        self.announced.iter().any(|c| c.address == address)
    }
    /// The pair that the path uses.
    pub fn selection(&self) -> Option<Selection> {
        self.selection.map(|s| s.0)
    }
    /// The measurements by the checks of each pair.
    pub fn measures(&self) -> &[PairMeasure] {
        self.checks.pairs()
    }
    /// Messages received.
    pub fn counters(&self) -> IceCounters {
        self.counters
    }
    /// Whether a message is an answer to one of its checks.
    pub(super) fn awaits(&self, id: TransactionId, local: SocketAddr, from: SocketAddr) -> bool {
        self.checks.awaits(id, local, from)
    }

    fn instant(&self, now: Timestamp) -> Instant {
        self.zero + duration(now - Timestamp::ZERO)
    }

    /// Takes a message that has arrived at one of this end's sockets; returns whether it was authentic and of this agent.
    pub(super) fn handle_message(
        &mut self,
        now: Timestamp,
        (id, message): (TransactionId, StunMessage<'_>),
        local: SocketAddr,
        from: SocketAddr,
    ) -> bool {
        let is_request = message.is_binding_request();
        if !is_request && !self.checks.awaits(id, local, from) {
            self.counters.unexpected += 1;
            return false;
        }
        if !self.agent.accepts_message(&message) {
            self.counters.unauthentic += 1;
            return false;
        }
        let mapped = message.mapped_address().filter(|_| message.is_successful_binding_response());
        let allowed = match mapped {
            _ if is_request => self.guard.on_request(id, from, self.is_announced(from), now),
            Some(mapped) => self.guard.on_answer(mapped, self.local.contains(&mapped)),
            None => Ok(()),
        };
        match allowed {
            Err(Refusal::Replay) => self.counters.replayed += 1,
            Err(Refusal::Repeated) => self.counters.repeated += 1,
            Err(Refusal::TooOften) => self.counters.too_often += 1,
            Err(Refusal::TooMany) => self.counters.too_many += 1,
            Ok(()) if is_request => self.counters.requests += 1,
            Ok(()) => self.counters.answers += 1,
        }
        if allowed.is_err() {
            return false;
        }
        if is_request {
            self.trigger(local, from);
        }
        let packet = StunPacket { proto: Protocol::Udp, source: from, destination: local, message };
        let at = self.instant(now);
        self.agent.handle_packet(at, packet);
        if is_request && self.selection.is_none() {
            self.select(Selection { local, remote: from, stage: Stage::Heard }, now);
        }
        if mapped.is_some() {
            self.checks.on_answer(id, now);
            if self.selection.is_none_or(|(s, _)| s.stage < Stage::Valid) {
                self.select(Selection { local, remote: from, stage: Stage::Valid }, now);
            }
        }
        self.drain(now);
        true
    }

    /// A check has arrived on a pair that has not answered yet: it is checked at once (RFC 8445, section 7.3.1.4), since what
    /// was sent before was lost at the other end's NAT. The library waits for its next retransmission; a candidate that
    /// is announced again starts from the beginning.
    fn trigger(&mut self, local: SocketAddr, from: SocketAddr) {
        let is_waiting = self.checks.pair(local, from).is_some_and(|p| p.answered == 0);
        let announced = self.announced.iter().find(|c| c.address == from);
        if let Some(announced) = announced.filter(|_| is_waiting && !self.triggered.contains(&from)) {
            let candidate = announced.remote();
            self.agent.invalidate_candidate(&candidate);
            self.agent.add_remote_candidate(candidate);
            self.triggered.push(from);
        }
    }

    fn select(&mut self, selection: Selection, now: Timestamp) {
        if self.selection.is_none_or(|(s, _)| s != selection) {
            self.selection = Some((selection, now));
            (self.retry, self.pause) = (None, FIRST_PAUSE);
            self.report(PathEvent::Selected(selection));
        }
    }

    fn report(&mut self, event: PathEvent) {
        if self.events.len() >= MAX_WAITING {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }

    /// When the selected pair is lost if it does not answer before.
    fn consent_ends(&self) -> Option<Timestamp> {
        let (s, since) = self.selection?;
        let answered = self.checks.pair(s.local, s.remote).and_then(|p| p.last_answer);
        Some(answered.map_or(since, |at| at.max(since)) + self.config.lost_after)
    }

    /// Timers that are due.
    pub fn handle_timeout(&mut self, now: Timestamp) {
        self.checks.expire(now);
        if self.consent_ends().is_some_and(|at| now >= at) {
            self.selection = None;
            self.report(PathEvent::Lost);
            self.check_again();
        } else if self.retry.is_some_and(|at| now >= at) {
            self.check_again();
        }
        let at = self.instant(now);
        if self.agent.poll_timeout().is_none_or(|due| at >= due) {
            self.agent.handle_timeout(at);
        }
        if self.selection.is_none() && self.retry.is_none() && self.agent.state().is_disconnected() {
            self.retry = Some(now + self.pause);
            self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        }
        self.drain(now);
    }

    fn check_again(&mut self) {
        self.retry = None;
        self.agent.recreate_candidate_pairs();
    }

    /// When [`Self::handle_timeout`] is due.
    pub fn poll_timeout(&mut self) -> Timestamp {
        let zero = self.zero;
        let at = |due: Instant| {
            let after = due.saturating_duration_since(zero).as_nanos();
            Timestamp::from_nanos(i64::try_from(after).unwrap_or(i64::MAX))
        };
        let library = self.agent.poll_timeout().map(at);
        library.into_iter().chain(self.retry).chain(self.consent_ends()).min().unwrap_or(Timestamp::MAX)
    }

    /// Takes what the library has to say and to send.
    fn drain(&mut self, now: Timestamp) {
        while let Some(t) = self.agent.poll_transmit() {
            let bytes = t.contents.to_vec();
            if let Some(id) = transaction_of(&bytes).filter(|_| is_binding_request(&bytes)) {
                self.checks.on_sent(id, t.source, t.destination, now);
            }
            if self.out.len() >= MAX_WAITING {
                self.out.pop_front();
            }
            self.out.push_back(Transmit { from: t.source, to: t.destination, bytes });
        }
        while let Some(event) = self.agent.poll_event() {
            if let IceAgentEvent::NominatedSend { source, destination, .. } = event {
                self.select(Selection { local: source, remote: destination, stage: Stage::Nominated }, now);
            }
        }
    }

    /// The next datagram to be sent.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.out.pop_front()
    }
    /// The next event.
    pub fn poll_event(&mut self) -> Option<PathEvent> {
        self.events.pop_front()
    }
}
