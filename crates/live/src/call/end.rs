//! One end of a call on a socket, and its loop.

use crate::call::CallError;
use crate::call::carrier::Carrier;
use crate::call::ice_state::LiveIce;
use crate::call::leaving::Leaving;
use crate::call::liveness::{EndReason, Liveness, Notice, Step};
use crate::call::observer::{
    CallObserver, CallPathSummary, EndCounters, EndSummary, LivePacket, PacketTotals, rate_bps,
};
use crate::call::path_sockets::Roaming;
use crate::call::routes::{Peer, Route, Routes};
use crate::call::stats::{CpuMeter, Part};
use crate::clock::Clock;
use crate::srtp::SrtpSession;
use crate::udp::{UdpConfig, UdpCounters, UdpPort, Waker};
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use weir_session::{Endpoint, HeaderExtensions};
use weir_units::{DataSize, PathId, TimeDelta, Timestamp};
use weir_wire::DatagramKind;

/// Interval at which the stop flag is checked.
const MAX_WAIT: TimeDelta = TimeDelta::from_millis(20);
/// Minimum wait after a turn without events, so that a deadline in the past cannot keep a core busy.
const MIN_WAIT: TimeDelta = TimeDelta::from_micros(20);
/// Maximum datagrams sent before the socket is read again.
const MAX_BURST: u32 = 256;
/// The kernel may delay a deadline by this, to save wake-ups: pacing needs it small (the usual value is 50 us).
const TIMER_SLACK_NS: u64 = 1_000;

/// Conditions that end [`LiveEnd::run`].
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
    /// One or more; a path may share that of another.
    pub(super) ports: Vec<UdpPort>,
    pub(super) routes: Routes,
    /// Finds the routes, if both ends take part.
    pub(super) ice: Option<Box<LiveIce>>,
    /// The header extension that names the path of a packet, if there are several.
    pub(super) subflow_id: u8,
    pub(super) roaming: Roaming,
    /// This end's addresses by path, as the other end knows them.
    pub(super) offered: Vec<SocketAddr>,
    /// Counters of sockets that were replaced.
    pub(super) retired: UdpCounters,
    pub(super) carrier: Carrier,
    pub(super) srtp: Option<SrtpSession>,
    waker: Option<Arc<Waker>>,
    pub(super) out: Vec<u8>,
    /// The latest time passed to the session.
    pub(super) last_now: Timestamp,
    started: Option<Timestamp>,
    pub(super) failures: u32,
    pub(super) counters: EndCounters,
    sent: PacketTotals,
    pub(super) received: PacketTotals,
    pub(super) cpu: CpuMeter,
    pub(super) liveness: Liveness,
    ended: Option<EndReason>,
}

impl std::fmt::Debug for LiveEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LiveEnd")
            .field("routes", &self.routes)
            .field("counters", &self.counters)
            .finish_non_exhaustive()
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
            ports: vec![port],
            routes: Routes::new(peer),
            ice: None,
            subflow_id: HeaderExtensions::default().subflow_id,
            roaming: Roaming::default(),
            offered: Vec::new(),
            retired: UdpCounters::default(),
            carrier: carrier.into(),
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

    /// Adds the call's next path, to this address of the other end: on this socket, or on the first path's. The endpoint
    /// must have as many paths.
    ///
    /// # Errors
    /// The socket lacks what batches, marks or timestamps need.
    pub fn add_route(&mut self, socket: Option<UdpSocket>, udp: UdpConfig, peer: Peer) -> Result<(), CallError> {
        let mut index = 0;
        if let Some(socket) = socket {
            let port = UdpPort::new(socket, udp).map_err(CallError::socket("preparing the UDP socket of a path"))?;
            index = self.ports.len();
            self.ports.push(port);
        }
        self.routes.push(index, peer);
        Ok(())
    }
    /// Adds a socket without a path.
    pub(super) fn add_port(&mut self, socket: UdpSocket, udp: UdpConfig) -> Result<(), CallError> {
        self.ports.push(UdpPort::new(socket, udp).map_err(CallError::socket("preparing the UDP socket of a path"))?);
        Ok(())
    }
    /// The header extension identifier of the subflow number; that of [`HeaderExtensions`]'s default at first.
    pub fn set_subflow_id(&mut self, id: u8) {
        self.subflow_id = id;
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
    /// The other end's address on the first path.
    pub fn peer(&self) -> Peer {
        self.routes.first().peer
    }
    /// Its addresses by path.
    pub fn peers(&self) -> impl Iterator<Item = Peer> + '_ {
        self.routes.iter().map(|r| r.peer)
    }

    /// Runs the call until one of `until`'s conditions holds, and sends a BYE: by UDP up to three times within 40 ms, until the
    /// other end's own is received. It sleeps between events.
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
        let mut leaving: Option<Leaving> = None;
        loop {
            self.cpu.enter(Part::Session);
            let now = self.advance(clock.now());
            let end = self.end_by(until, now).or_else(|| self.check_liveness(until, now, observer));
            if let Some(end) = end.filter(|_| leaving.is_none()) {
                self.carrier.leave(&end);
                self.ended = Some(end);
                leaving = Some(Leaving::begin(now));
            }
            if leaving.as_mut().is_some_and(|l| l.repeats(now, &self.carrier))
                && let Some(end) = &self.ended
            {
                self.carrier.leave(end);
            }
            self.carrier.handle_timeout(now);
            let roaming = self.roam(now).into_iter().chain(self.turn_ice(now)).min();
            self.cpu.enter(Part::Observer);
            observer.on_turn(now, self.carrier.endpoint_mut());
            let sent = self.transmit(now, observer);
            if leaving.is_some_and(|l| l.is_over(now, &self.carrier, self.counters.byes > 0)) {
                self.leave_relays(clock);
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
            let deadline = until.at.into_iter().chain(roaming).fold(deadline, Timestamp::min);
            let least = if sent > 0 { TimeDelta::ZERO } else { MIN_WAIT };
            let wait = if sent >= MAX_BURST {
                TimeDelta::ZERO
            } else {
                (deadline.saturating_since(clock.now())).min(MAX_WAIT).max(least)
            };
            let wait = Duration::from_nanos(u64::try_from(wait.as_nanos()).unwrap_or(0));
            self.cpu.enter(Part::Socket);
            let ready = UdpPort::wait_any(&self.ports, wait, self.waker.as_deref());
            let ready = ready.map_err(CallError::socket("waiting for the call's UDP socket"))?;
            for port in (0..self.ports.len()).filter(|n| ready & 1 << n != 0) {
                self.receive(port, clock, observer)?;
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
        if until.bye && self.counters.byes > 0 && self.endpoint().remote().has_left() {
            let reason = self.endpoint().remote().goodbye().map(printable);
            return Some(EndReason::Goodbye { reason });
        }
        if has_ended() && self.endpoint().stats().queue(now).0 == DataSize::ZERO {
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
        match self.liveness.look(now, until.silence, self.carrier.endpoint().stats().tripped()) {
            Step::None => None,
            Step::End(end) => Some(end),
            Step::Notice(notice) => {
                observer.on_notice(&notice);
                None
            }
            Step::Restart => {
                if self.carrier.endpoint_mut().path_mut(PathId::FIRST).is_some_and(|mut p| p.restart_after_trip(now)) {
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
        // Nothing is sent before the other end has consented, or after (RFC 7675).
        if self.ice.as_ref().is_some_and(|ice| !ice.is_any_open()) {
            return 0;
        }
        while count < MAX_BURST {
            self.cpu.enter(Part::Session);
            let Some(t) = self.carrier.poll_transmit(now, &mut self.out) else { break };
            count += 1;
            let consents = self.ice.as_ref().is_none_or(|ice| ice.remote(t.path).is_some());
            let Some(&Route { port, peer, .. }) = self.routes.get(t.path).filter(|_| consents) else {
                self.counters.unrouted += 1;
                continue;
            };
            // A model's payload has a length and no content.
            self.out.resize(self.out.len() + t.payload as usize, 0);
            let mut size = self.out.len();
            self.cpu.enter(Part::Srtp);
            let protected = self.srtp.as_mut().filter(|_| !self.carrier.is_dccp()).map(|s| s.protect(&self.out));
            self.cpu.enter(Part::Socket);
            match protected {
                None => {
                    let out = std::mem::take(&mut self.out);
                    if !self.send_by_relay(t.path, peer.addr(), t.ecn, &out, now) {
                        self.ports[port].send(peer.addr(), t.ecn, &out);
                    }
                    self.out = out;
                }
                Some(Ok(bytes)) => {
                    size = bytes.len();
                    if !self.send_by_relay(t.path, peer.addr(), t.ecn, &bytes, now) {
                        self.ports[port].send(peer.addr(), t.ecn, &bytes);
                    }
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
        self.ports.iter_mut().for_each(UdpPort::flush);
        count
    }

    /// The statistics of each path, if there are several.
    fn path_summaries(&self, time: TimeDelta) -> Vec<CallPathSummary> {
        let path = |(route, number): (&Route, u8)| {
            let stats = self.endpoint().path(PathId::new(number)).and_then(|p| p.stats())?;
            let relay = self.ice.as_ref().and_then(|ice| ice.relay(PathId::new(number)));
            let local = relay.map_or_else(|| self.ports[route.port].local_addr(), Ok);
            let local = local.map_or_else(|e| e.to_string(), |a| a.to_string());
            Some(CallPathSummary {
                local,
                remote: route.peer.addr().to_string(),
                sent_packets: stats.sent_packets,
                sent_rate_bps: rate_bps(stats.sent_bytes, time),
                received_packets: stats.received_packets,
                received_rate_bps: rate_bps(stats.received_bytes, time),
                target_bps: stats.target.as_bps(),
                rtt_ms: stats.rtt.map(TimeDelta::as_millis_f64),
                loss: stats.loss,
            })
        };
        self.routes.iter().zip(0..).filter_map(path).collect()
    }

    /// The statistics of the call, during it or at its end.
    pub fn summary(&self, now: Timestamp) -> EndSummary {
        let time = self.started.map_or(TimeDelta::ZERO, |s| now.saturating_since(s));
        let (e, counters) = (self.endpoint(), self.endpoint().stats().counters());
        EndSummary {
            duration_s: time.as_secs_f64(),
            sent: self.sent,
            received: self.received,
            frames_sent: e.stats().send_counters().frames,
            sent_rate_bps: rate_bps(self.sent.rtp_bytes, time),
            received_rate_bps: rate_bps(self.received.rtp_bytes, time),
            loss: None,
            target_bps: e.target().map(|t| t.media_rate.as_bps()),
            rtt_ms: e.stats().rtt().map(TimeDelta::as_millis_f64),
            malformed: counters.malformed,
            unknown_source: counters.unknown_source,
            counters: self.counters,
            udp: self.ports.iter().map(UdpPort::counters).fold(self.retired, |sum, c| sum + c),
            paths: self.path_summaries(time),
            srtp: self.srtp.as_ref().map(SrtpSession::counters),
            ice: self.ice_summary(),
            dccp: self.carrier.summary(),
            cpu: self.cpu.shares(time),
            last_send_error: self.ports.iter().find_map(UdpPort::last_error).map(ToString::to_string),
            ended: self.ended.clone(),
        }
    }
}

/// Text of another machine, without characters that could harm a terminal.
fn printable(words: &str) -> String {
    words.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
