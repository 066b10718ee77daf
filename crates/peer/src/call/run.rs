//! A call's loop.

use super::ends::{CallStart, Ends};
use super::link::Chain;
use super::sampler::Sampler;
use super::samples::INTERVAL;
use super::{Command, LinkPlan, Shared, StartError};
use crate::transport::{Received, Transport, TransportError};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};
use weir_cc::Registry;
use weir_live::call::{CallError, CallObserver, LivePacket};
use weir_live::clock::Clock;
use weir_live::udp::UdpPort;
use weir_session::{Datagram, Outcome};
use weir_units::{DataSize, Ecn, PathId, TimeDelta, Timestamp};
use weir_wire::{DatagramKind, kind_of};

/// Interval at which the stop flag is looked at.
const MAX_WAIT: TimeDelta = TimeDelta::from_millis(20);
/// Least wait after a turn without events, so that a deadline in the past cannot keep a core busy.
const MIN_WAIT: TimeDelta = TimeDelta::from_micros(20);
/// Most datagrams sent before the socket is read again.
const MAX_BURST: u32 = 256;
/// Now, for the libraries and for Weir: the first is at the second's zero.
pub(super) fn instant(clock: &Clock) -> (Instant, Timestamp) {
    let now = clock.now();
    let since = Duration::from_nanos(u64::try_from(now.as_nanos()).unwrap_or(0));
    #[expect(clippy::disallowed_methods, reason = "an Instant has no other origin")]
    let instant = Instant::now();
    // A clock starts within the second before.
    (instant.checked_sub(since).unwrap_or(instant), now)
}

/// Why a call's thread ends.
enum End {
    Stopped,
    Goodbye,
    Transport(TransportError),
    Call(CallError),
    Session(StartError),
    Link(weir_path::ConfigError),
}

impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Stopped => f.write_str("stopped"),
            Self::Goodbye => f.write_str("the other end has left"),
            Self::Transport(e) => e.fmt(f),
            Self::Call(e) => e.fmt(f),
            Self::Session(e) => e.fmt(f),
            Self::Link(e) => e.fmt(f),
        }
    }
}

pub(super) struct Work {
    port: UdpPort,
    transport: Transport,
    clock: Clock,
    shared: Arc<Shared>,
    commands: Receiver<Command>,
    registry: Arc<Registry>,
    start: Option<CallStart>,
    ends: Option<Ends>,
    /// Both directions of an emulated link, to the browser and back.
    link: Option<[Chain; 2]>,
    /// When the link's time began, and whether its packets are IPv6's.
    connected: Option<(Timestamp, bool)>,
    out: Vec<u8>,
    inbox: Vec<u8>,
    last_now: Timestamp,
    /// When media or reports of the other end last came.
    heard: Timestamp,
    look: Timestamp,
    sampler: Sampler,
}

impl Work {
    pub(super) fn new(
        port: UdpPort,
        transport: Transport,
        clock: Clock,
        shared: Arc<Shared>,
        commands: Receiver<Command>,
        registry: Arc<Registry>,
        start: CallStart,
    ) -> Self {
        Self {
            port,
            transport,
            clock,
            shared,
            commands,
            registry,
            start: Some(start),
            ends: None,
            link: None,
            connected: None,
            out: Vec::with_capacity(2_048),
            inbox: Vec::with_capacity(2_048),
            last_now: Timestamp::ZERO,
            heard: Timestamp::ZERO,
            look: Timestamp::ZERO,
            sampler: Sampler::default(),
        }
    }

    pub(super) fn run(mut self) {
        let end = loop {
            if let Err(end) = self.turn() {
                break end;
            }
        };
        self.leave();
        let mut log = self.shared.log();
        log.totals = self.sampler.totals;
        log.end(end.to_string());
    }

    fn now(&mut self) -> Timestamp {
        self.last_now = self.last_now.max(self.clock.now());
        self.last_now
    }

    fn turn(&mut self) -> Result<(), End> {
        let now = self.now();
        if self.shared.stop.load(Ordering::Relaxed) {
            return Err(End::Stopped);
        }
        while let Ok(command) = self.commands.try_recv() {
            let (settings, controller) = match command {
                Command::Change(settings, controller) => (settings, controller),
                Command::Link(plan) => {
                    self.set_link(plan)?;
                    continue;
                }
                Command::Restart(own, remote) => {
                    self.transport.restart(own, &remote);
                    continue;
                }
            };
            if let Some(ends) = &mut self.ends {
                ends.endpoint.set_limits(settings.limits, now);
                if let Some(mut path) = ends.endpoint.path_mut(PathId::FIRST) {
                    path.set_controller(controller, now);
                }
            } else if let Some(start) = &mut self.start {
                (start.controller, start.settings) = (controller, settings.clone());
            }
            self.shared.log().set_settings(settings, now);
        }
        self.transport.handle_timeout(now).map_err(End::Transport)?;
        if let Some(ends) = &mut self.ends {
            if let Some(member_call) = &mut ends.member_call {
                member_call.on_heard(self.transport.last_consent().map_or(self.heard, |at| at.max(self.heard)), now);
                member_call.on_turn(now, &mut ends.endpoint);
            }
            ends.endpoint.handle_timeout(now);
            if let Some(sound) = &mut ends.sound {
                sound.on_turn(now, &mut ends.endpoint);
            }
            if let Some(receiving) = &mut ends.receiving {
                receiving.on_turn(now, &mut ends.endpoint);
            }
            // A pause of the circuit breaker has passed, and the other end consents still.
            if ends.endpoint.stats().tripped().is_some_and(|trip| now >= trip.earliest_restart())
                && ends.endpoint.path_mut(PathId::FIRST).is_some_and(|mut p| p.restart_after_trip(now))
            {
                self.sampler.totals.media_stops += 1;
            }
            if ends.endpoint.remote().has_left() {
                return Err(End::Goodbye);
            }
        }
        let sent = self.transmit(now);
        if now >= self.look {
            self.sample(now);
            self.look = now + INTERVAL;
        }
        let session = self.ends.as_mut().and_then(|e| e.endpoint.poll_timeout(now)).unwrap_or(Timestamp::MAX);
        let link = self.link.iter_mut().flatten().map(Chain::next_event).min().unwrap_or(Timestamp::MAX);
        let member_call =
            self.ends.as_ref().and_then(|e| Some(e.member_call.as_ref()?.poll_timeout())).unwrap_or(Timestamp::MAX);
        let deadline = session.min(self.transport.poll_timeout()).min(self.look).min(link).min(member_call);
        let least = if sent > 0 { TimeDelta::ZERO } else { MIN_WAIT };
        let wait = deadline.saturating_since(self.clock.now()).min(MAX_WAIT).max(least);
        let wait = if sent >= MAX_BURST { TimeDelta::ZERO } else { wait };
        let wait = Duration::from_nanos(u64::try_from(wait.as_nanos()).unwrap_or(0));
        let failed = |source| End::Call(CallError::Socket { what: "using a call's UDP socket".into(), source });
        if self.port.wait(wait, Some(&self.shared.waker)).map_err(failed)? {
            self.receive()?;
        }
        let now = self.now();
        while let Some((at, ecn, inside)) = self.link.as_mut().and_then(|[_, back]| back.pop(now)) {
            self.arrive(at, inside.address, ecn, &inside.bytes)?;
        }
        Ok(())
    }

    /// To the socket, or into the emulated link.
    fn put(&mut self, now: Timestamp, to: SocketAddr, ecn: Ecn, bytes: &[u8]) {
        match &mut self.link {
            Some([forth, _]) => forth.push(now, to, ecn, bytes),
            None => self.port.send(to, ecn, bytes),
        }
    }

    fn transmit(&mut self, now: Timestamp) -> u32 {
        let mut count = 0;
        while let Some((to, bytes)) = self.transport.poll_transmit() {
            self.put(now, to, Ecn::NotEct, &bytes);
            count += 1;
        }
        let to = self.transport.destination(now);
        while let (Some(ends), Some(to)) = (self.ends.as_mut().filter(|_| count < MAX_BURST), to) {
            self.out.clear();
            let Some(t) = ends.endpoint.poll_transmit(now, &mut self.out) else { break };
            count += 1;
            // Padding has a length and no content.
            self.out.resize(self.out.len() + t.payload as usize, 0);
            let Ok(protected) = self.transport.protect(&self.out) else { continue };
            match &mut self.link {
                Some([forth, _]) => forth.push(now, to, t.ecn, &protected),
                None => self.port.send(to, t.ecn, &protected),
            }
            self.shared.packets().push(now, true, t.ecn, t.is_rtp(), &self.out);
            let size = DataSize::from_bytes(protected.len() as u64);
            if t.is_rtp() {
                self.sampler.on_sent(protected.len());
            }
            let packet = LivePacket { at: now, sent: true, bytes: &self.out, size, ecn: t.ecn, is_rtp: t.is_rtp() };
            if let Some(sending) = &mut ends.sending {
                sending.on_packet(&packet);
            }
        }
        while let Some((_, ecn, inside)) = self.link.as_mut().and_then(|[forth, _]| forth.pop(now)) {
            self.port.send(inside.address, ecn, &inside.bytes);
        }
        self.port.flush();
        count
    }

    fn receive(&mut self) -> Result<(), End> {
        let Ok(count) = self.port.receive() else { return Ok(()) };
        let reading = self.clock.reading();
        for index in 0..count {
            let Some(datagram) = self.port.datagram(index) else { continue };
            let at = self.last_now.max(reading.arrival(datagram.kernel_time));
            let (from, ecn) = (datagram.from, datagram.ecn);
            if let Some([_, back]) = &mut self.link {
                back.push(at, from, ecn, datagram.bytes);
                continue;
            }
            let mut inbox = std::mem::take(&mut self.inbox);
            inbox.clear();
            inbox.extend_from_slice(datagram.bytes);
            let arrived = self.arrive(at, from, ecn, &inbox);
            self.inbox = inbox;
            arrived?;
        }
        Ok(())
    }

    /// A datagram has come from the socket, or through the emulated link.
    fn arrive(&mut self, at: Timestamp, from: SocketAddr, ecn: Ecn, bytes: &[u8]) -> Result<(), End> {
        // Not before what the session has seen.
        let at = self.last_now.max(at);
        match self.transport.handle(at, from, bytes).map_err(End::Transport)? {
            Received::Nothing => {}
            Received::Connected => self.connect(at, from.is_ipv6())?,
            Received::Media(mut bytes) => self.media(at, &mut bytes, ecn),
        }
        self.last_now = at;
        Ok(())
    }

    fn connect(&mut self, now: Timestamp, v6: bool) -> Result<(), End> {
        if let Some(mut start) = self.start.take() {
            self.connected = Some((now, v6));
            self.set_link(start.link.take())?;
            self.ends = Some(start.begin(&self.registry, self.clock, &self.shared.waker, v6).map_err(End::Session)?);
            self.shared.log().connect(now);
        }
        Ok(())
    }

    /// Puts other links between the ends, or keeps them until the ends are connected.
    fn set_link(&mut self, plan: Option<LinkPlan>) -> Result<(), End> {
        let Some((zero, v6)) = self.connected else {
            if let Some(start) = &mut self.start {
                start.link = plan;
            }
            return Ok(());
        };
        let chain = |links, seed| Chain::new(links, seed, zero, v6).map_err(End::Link);
        self.link = match plan {
            Some(plan) => Some([chain(&plan.forward, plan.seed)?, chain(&plan.reverse, !plan.seed)?]),
            None => None,
        };
        Ok(())
    }

    fn media(&mut self, now: Timestamp, bytes: &mut [u8], ecn: Ecn) {
        let Some(ends) = &mut self.ends else { return };
        self.heard = now;
        let is_rtp = kind_of(bytes) == Some(DatagramKind::Rtp);
        self.shared.packets().push(now, false, ecn, is_rtp, bytes);
        if is_rtp {
            self.sampler.on_received(bytes.len());
            if let Some(member_call) = &mut ends.member_call {
                member_call.prepare(bytes, &mut ends.endpoint);
            }
        }
        let datagram = Datagram { bytes, payload: 0, ecn, path: PathId::FIRST };
        let outcome = ends.endpoint.handle_datagram(now, &datagram);
        if let Some(member_call) = &mut ends.member_call {
            member_call.on_datagram(now, &mut ends.endpoint);
        }
        if let Outcome::Rtcp(_) = outcome {
            self.sampler.on_reports(&ends.endpoint);
        }
    }

    fn sample(&mut self, now: Timestamp) {
        let (mut sample, internals) = self.sampler.sample(now, self.ends.as_mut(), &self.transport);
        if let Some([forth, back]) = &mut self.link {
            sample.link = Some(forth.sample(now, INTERVAL));
            sample.link_back = Some(back.sample(now, INTERVAL));
        }
        let room = self.ends.as_mut().and_then(|e| Some(e.member_call.as_mut()?.view(now)));
        let mut log = self.shared.log();
        log.totals = self.sampler.totals;
        if log.ended() {
            return;
        }
        log.internals = internals;
        log.room = room;
        if self.ends.is_some() {
            log.push(now, sample);
        }
    }

    /// Says goodbye, in RTCP and in DTLS, and ends encoder and decoder.
    fn leave(&mut self) {
        let now = self.now();
        self.sample(now);
        // Packets inside an emulated link are lost, and the goodbye does not pass it.
        self.link = None;
        if let Some(ends) = &mut self.ends {
            ends.endpoint.leave(None);
        }
        self.transmit(now);
        self.transport.close(now);
        self.transmit(now);
        if let Some(ends) = self.ends.take() {
            // Their summaries have no reader.
            let _ = ends.sending.map(weir_live::call::SendingVideo::finish);
            let _ = ends.receiving.map(weir_live::call::ReceivingVideo::finish);
        }
    }
}
