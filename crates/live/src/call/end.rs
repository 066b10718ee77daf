//! One end of a call on a socket, and its loop.

use crate::call::CallError;
use crate::call::carrier::Carrier;
use crate::call::liveness::{EndReason, Liveness, Notice, Step};
use crate::call::observer::{CallObserver, EndCounters, EndSummary, LivePacket, PacketTotals, rate_bps};
use crate::call::stats::{CpuMeter, Part};
use crate::clock::Clock;
use crate::srtp::SrtpSession;
use crate::udp::{UdpConfig, UdpPort, Waker};
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use weir_session::{Endpoint, Outcome, Refusal};
use weir_units::{DataSize, TimeDelta, Timestamp};
use weir_wire::{DatagramKind, kind_of};

/// Interval at which the stop flag is checked.
const MAX_WAIT: TimeDelta = TimeDelta::from_millis(20);
/// Minimum wait after a turn without events, so that a deadline in the past cannot keep a core busy.
const MIN_WAIT: TimeDelta = TimeDelta::from_micros(20);
/// Maximum datagrams sent before the socket is read again.
const MAX_BURST: u32 = 256;
/// Maximum batches received before timers are run again.
const MAX_BATCHES: u32 = 8;
/// Time for a DCCP connection to close.
const CLOSING: TimeDelta = TimeDelta::from_millis(500);
/// Consecutive socket failures after which the call ends.
const MAX_FAILURES: u32 = 1_000;
/// The kernel may delay a deadline by this, to save wake-ups: pacing needs it small (the usual value is 50 us).
const TIMER_SLACK_NS: u64 = 1_000;

/// The other end's address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Peer {
    /// As it was signalled; datagrams from elsewhere are not of this call.
    At(SocketAddr),
    /// As signalled until a packet of the call arrives from elsewhere, as through a NAT (symmetric RTP, RFC 4961). With
    /// SRTP only authentic packets count; without it, any host may take over the call.
    Follow(SocketAddr),
}

impl Peer {
    /// The destination address.
    pub const fn addr(self) -> SocketAddr {
        match self {
            Self::At(a) | Self::Follow(a) => a,
        }
    }
}

/// What ends [`LiveEnd::run`].
#[derive(Clone, Debug)]
pub struct RunUntil<'a> {
    /// This time; `None` for none.
    pub at: Option<Timestamp>,
    /// This flag, when it is raised.
    pub stop: &'a AtomicBool,
    /// This flag, after all queued packets were sent: the media has ended.
    pub ended: Option<&'a AtomicBool>,
    /// The other end's BYE, for all of its streams.
    pub bye: bool,
    /// Nothing of the call received for this time; `None` for no limit.
    pub silence: Option<TimeDelta>,
}

impl<'a> RunUntil<'a> {
    /// Until the flag is raised.
    pub const fn stopped(stop: &'a AtomicBool) -> Self {
        Self { at: None, stop, ended: None, bye: false, silence: None }
    }
}

/// One end of a call on a socket.
pub struct LiveEnd {
    port: UdpPort,
    carrier: Carrier,
    peer: Peer,
    srtp: Option<SrtpSession>,
    waker: Option<Arc<Waker>>,
    out: Vec<u8>,
    /// The latest time passed to the session.
    last_now: Timestamp,
    started: Option<Timestamp>,
    failures: u32,
    counters: EndCounters,
    sent: PacketTotals,
    received: PacketTotals,
    cpu: CpuMeter,
    liveness: Liveness,
    ended: Option<EndReason>,
}

impl std::fmt::Debug for LiveEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LiveEnd").field("peer", &self.peer).field("counters", &self.counters).finish_non_exhaustive()
    }
}

impl LiveEnd {
    /// An end on a bound socket: an [`Endpoint`] on plain datagrams, or a [`DccpEnd`](weir_session::dccp::DccpEnd) that
    /// connects or listens.
    ///
    /// # Errors
    /// The socket lacks what batches, marks or timestamps need.
    pub fn new(socket: UdpSocket, udp: UdpConfig, peer: Peer, carrier: impl Into<Carrier>) -> Result<Self, CallError> {
        let port = UdpPort::new(socket, udp).map_err(CallError::socket("preparing the call's UDP socket"))?;
        Ok(Self {
            port,
            carrier: carrier.into(),
            peer,
            srtp: None,
            waker: None,
            out: Vec::with_capacity(2_048),
            last_now: Timestamp::ZERO,
            started: None,
            failures: 0,
            counters: EndCounters::default(),
            sent: PacketTotals::default(),
            received: PacketTotals::default(),
            cpu: CpuMeter::default(),
            liveness: Liveness::default(),
            ended: None,
        })
    }

    /// Protects packets sent, and accepts only protected ones. Over DCCP nothing is protected.
    pub fn set_srtp(&mut self, srtp: Option<SrtpSession>) {
        self.srtp = srtp;
    }
    /// Allows other threads to wake the loop when they have frames for it.
    pub fn set_waker(&mut self, waker: Option<Arc<Waker>>) {
        self.waker = waker;
    }
    /// Measures CPU use from now on.
    pub fn meter_cpu(&mut self) {
        self.cpu.switch_on();
    }
    /// The session.
    pub fn endpoint(&self) -> &Endpoint {
        self.carrier.endpoint()
    }
    /// The session, for changes during a call.
    pub fn endpoint_mut(&mut self) -> &mut Endpoint {
        self.carrier.endpoint_mut()
    }
    /// Why [`Self::run`] ended the call, once it has.
    pub fn end_reason(&self) -> Option<&EndReason> {
        self.ended.as_ref()
    }
    /// The other end's address.
    pub fn peer(&self) -> Peer {
        self.peer
    }

    /// Runs the call until one of `until`'s conditions holds, and sends a BYE. It sleeps between events.
    ///
    /// # Errors
    /// A permanent socket failure. Packets that cannot be sent are dropped, which is counted.
    pub fn run<O: CallObserver>(
        &mut self,
        clock: &Clock,
        until: &RunUntil<'_>,
        observer: &mut O,
    ) -> Result<(), CallError> {
        // Without it deadlines are a little late, which is no reason not to call.
        let _ = nix::sys::prctl::set_timerslack(TIMER_SLACK_NS);
        let begin = clock.now();
        self.started.get_or_insert(begin);
        self.liveness.begin(begin);
        let mut look = begin;
        // When this end sent its BYE.
        let mut leaving = None;
        loop {
            self.cpu.enter(Part::Session);
            let now = self.advance(clock.now());
            let end = self.end_by(until, now).or_else(|| self.check_liveness(until, now, observer));
            if let Some(end) = end.filter(|_| leaving.is_none()) {
                self.carrier.leave(&end);
                self.ended = Some(end);
                leaving = Some(now);
            }
            self.carrier.handle_timeout(now);
            self.cpu.enter(Part::Observer);
            observer.on_turn(now, self.carrier.endpoint_mut());
            let sent = self.transmit(now, observer);
            if leaving.is_some_and(|since| self.carrier.has_left() || now - since >= CLOSING) {
                return Ok(());
            }
            self.cpu.enter(Part::Observer);
            if now >= look {
                observer.on_look(now, self.carrier.endpoint_mut());
                look = now + observer.look_interval().max(TimeDelta::from_millis(1));
            }
            self.counters.turns += 1;
            self.cpu.enter(Part::Session);
            let deadline = self.carrier.poll_timeout(now).unwrap_or(Timestamp::MAX).min(look);
            let deadline = until.at.map_or(deadline, |at| deadline.min(at));
            let least = if sent > 0 { TimeDelta::ZERO } else { MIN_WAIT };
            let wait = if sent >= MAX_BURST {
                TimeDelta::ZERO
            } else {
                (deadline.saturating_since(clock.now())).min(MAX_WAIT).max(least)
            };
            let wait = Duration::from_nanos(u64::try_from(wait.as_nanos()).unwrap_or(0));
            self.cpu.enter(Part::Socket);
            let ready = self.port.wait(wait, self.waker.as_deref());
            if ready.map_err(CallError::socket("waiting for the call's UDP socket"))? {
                self.receive(clock, observer)?;
            }
        }
    }

    /// Why the call has to end now, by the caller or the other end.
    fn end_by(&self, until: &RunUntil<'_>, now: Timestamp) -> Option<EndReason> {
        let has_ended = || until.ended.is_some_and(|e| e.load(Ordering::Relaxed));
        if until.stop.load(Ordering::Relaxed) {
            return Some(EndReason::Stopped);
        }
        if until.at.is_some_and(|at| now >= at) {
            return Some(EndReason::Duration);
        }
        if until.bye && self.counters.byes > 0 && self.endpoint().remote_left() {
            let reason = self.endpoint().remote_goodbye().map(printable);
            return Some(EndReason::Goodbye { reason });
        }
        if has_ended() && self.endpoint().queue(now).0 == DataSize::ZERO {
            return Some(EndReason::MediaEnded);
        }
        self.carrier.is_over().then_some(EndReason::Connection)
    }

    /// Whether the other end is alive, and media may be sent.
    fn check_liveness<O: CallObserver>(
        &mut self,
        until: &RunUntil<'_>,
        now: Timestamp,
        observer: &mut O,
    ) -> Option<EndReason> {
        match self.liveness.look(now, until.silence, self.carrier.endpoint().tripped()) {
            Step::None => None,
            Step::End(end) => Some(end),
            Step::Notice(notice) => {
                observer.on_notice(&notice);
                None
            }
            Step::Restart => {
                if self.carrier.endpoint_mut().restart_after_trip(now) {
                    self.liveness.on_restarted();
                    observer.on_notice(&Notice::MediaRestarted);
                }
                None
            }
        }
    }

    /// The session's time never decreases.
    fn advance(&mut self, now: Timestamp) -> Timestamp {
        self.last_now = self.last_now.max(now);
        self.last_now
    }

    fn transmit<O: CallObserver>(&mut self, now: Timestamp, observer: &mut O) -> u32 {
        let mut count = 0;
        while count < MAX_BURST {
            self.cpu.enter(Part::Session);
            let Some(t) = self.carrier.poll_transmit(now, &mut self.out) else { break };
            count += 1;
            // A model's payload has a length and no content.
            self.out.resize(self.out.len() + t.payload as usize, 0);
            let mut size = self.out.len();
            self.cpu.enter(Part::Srtp);
            let protected = self.srtp.as_mut().filter(|_| !self.carrier.is_dccp()).map(|s| s.protect(&self.out));
            self.cpu.enter(Part::Socket);
            match protected {
                None => self.port.send(self.peer.addr(), t.ecn, &self.out),
                Some(Ok(bytes)) => {
                    size = bytes.len();
                    self.port.send(self.peer.addr(), t.ecn, &bytes);
                }
                Some(Err(_)) => {
                    self.counters.unprotected += 1;
                    continue;
                }
            }
            let Some(kind) = t.kind else { continue };
            let (size, bytes) = (DataSize::from_bytes(size as u64), &self.out[t.data_at..]);
            let packet = LivePacket { at: now, sent: true, bytes, size, ecn: t.ecn, is_rtp: kind == DatagramKind::Rtp };
            self.sent.add(&packet);
            self.cpu.enter(Part::Observer);
            observer.on_packet(&packet);
        }
        self.cpu.enter(Part::Socket);
        self.port.flush();
        count
    }

    fn receive<O: CallObserver>(&mut self, clock: &Clock, observer: &mut O) -> Result<(), CallError> {
        for _ in 0..MAX_BATCHES {
            self.cpu.enter(Part::Socket);
            let count = match self.port.receive() {
                Ok(count) => count,
                Err(source) => {
                    self.counters.receive_errors += 1;
                    self.failures += 1;
                    if self.failures < MAX_FAILURES {
                        return Ok(());
                    }
                    return Err(CallError::Socket { what: "receiving".into(), source });
                }
            };
            self.failures = 0;
            let reading = clock.reading();
            for index in 0..count {
                let Some(d) = self.port.datagram(index) else { continue };
                let at = reading.arrival(d.kernel_time).max(self.last_now);
                self.last_now = at;
                if d.from != self.peer.addr() && matches!(self.peer, Peer::At(_)) {
                    self.counters.strangers += 1;
                    continue;
                }
                let over_dccp = self.carrier.is_dccp();
                let size = DataSize::from_bytes(d.bytes.len() as u64);
                let (from, ecn) = (d.from, d.ecn);
                let opened;
                let bytes = match &mut self.srtp {
                    Some(srtp) if !over_dccp => {
                        if kind_of(d.bytes).is_none() {
                            self.counters.not_rtp += 1;
                            continue;
                        }
                        self.cpu.enter(Part::Srtp);
                        opened = srtp.open(d.bytes);
                        let Some(bytes) = &opened else {
                            self.liveness.on_unauthentic(at);
                            continue;
                        };
                        &bytes[..]
                    }
                    _ => d.bytes,
                };
                self.cpu.enter(Part::Session);
                let (bytes, outcome) = if over_dccp {
                    let Some(taken) = self.carrier.handle_dccp(at, bytes, ecn) else { continue };
                    taken
                } else {
                    (bytes, self.carrier.handle_udp(at, bytes, ecn, from))
                };
                if outcome == Outcome::Refused(Refusal::NotRtp) {
                    self.counters.not_rtp += 1;
                    continue;
                }
                self.counters.byes += u64::from(outcome.goodbyes());
                if outcome.is_of_call() {
                    self.liveness.on_packet(at);
                }
                let packet = LivePacket { at, sent: false, bytes, size, ecn, is_rtp: outcome.is_rtp() };
                self.received.add(&packet);
                self.cpu.enter(Part::Observer);
                observer.on_packet(&packet);
                if !over_dccp && from != self.peer.addr() {
                    if outcome.is_of_call() {
                        self.peer = Peer::Follow(from);
                    } else {
                        self.counters.strangers += 1;
                    }
                }
            }
            if count < quinn_udp::BATCH_SIZE {
                break;
            }
        }
        Ok(())
    }

    /// The statistics of the call, during it or at its end.
    pub fn summary(&self, now: Timestamp) -> EndSummary {
        let time = self.started.map_or(TimeDelta::ZERO, |s| now.saturating_since(s));
        let (e, counters) = (self.endpoint(), self.endpoint().counters());
        EndSummary {
            duration_s: time.as_secs_f64(),
            sent: self.sent,
            received: self.received,
            frames_sent: e.send_counters().frames,
            sent_rate_bps: rate_bps(self.sent.rtp_bytes, time),
            received_rate_bps: rate_bps(self.received.rtp_bytes, time),
            loss: None,
            target_bps: e.target().map(|t| t.media_rate.as_bps()),
            rtt_ms: e.rtt().map(TimeDelta::as_millis_f64),
            malformed: counters.malformed,
            unknown_source: counters.unknown_source,
            counters: self.counters,
            udp: self.port.counters(),
            srtp: self.srtp.as_ref().map(SrtpSession::counters),
            dccp: self.carrier.summary(),
            cpu: self.cpu.shares(time),
            last_send_error: self.port.last_error().map(ToString::to_string),
            ended: self.ended.clone(),
        }
    }
}

/// Text of another machine, without characters that could harm a terminal.
fn printable(words: &str) -> String {
    words.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
