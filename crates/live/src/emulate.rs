//! Links in real time: the simulator's network between two namespaces.
//!
//! The [`Emulator`] reads IP packets from a TUN device on either side, passes them through the same links of
//! `weir_path` as simulated runs, in real time, and writes each on the other side when it is due. The engine is the
//! simulator's: its time follows the clock, and its agents are the entries and exits of packets. So routes, random
//! draws, ECN marks and observed events are those of a simulated run.
//!
//! Hosts are distinguished by address (see [`Side::ipv4`]): host `n` of either side belongs to flow `n`, which has its
//! own route.
//!
//! The emulator is the simulator in real time. `live::emulate` runs `sim`'s engine with time from the clock; its
//! agents are the TUN devices, so links, draws and observers are shared.

mod accuracy;
mod exit;
mod header;
mod station;

pub use accuracy::{Accuracy, DelayError, LinkAccuracy, SideCounts};

use crate::clock::Clock;
use crate::netns::{Namespace, SetupError};
use crate::realtime::request_realtime;
use crate::tun::{Side, Tun, overruns};
use exit::Exit;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};
use station::Station;
use std::io;
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use weir_path::{ConfigError, Link, LinkConfig};
use weir_sim::{Agent, AgentId, LinkId, Observer, Packet, Simulator};
use weir_units::{DataSize, Ecn, TimeDelta, Timestamp};

/// Maximum packets inside all links together; further ones are dropped on entry and counted. Bounds the memory of links
/// without a queue limit.
const MAX_INSIDE: u64 = 100_000;
/// Packets read from one side before the other has its turn.
const BATCH: usize = 32;
/// Maximum sleep: how late a stop is noticed.
const MAX_SLEEP: TimeDelta = TimeDelta::from_millis(50);
/// Bytes of the largest IP packet.
const MAX_PACKET: usize = 65_535;

/// The network to emulate.
#[derive(Clone, PartialEq, Debug)]
pub struct Config {
    /// Links by name, one direction each.
    pub links: Vec<(String, LinkConfig)>,
    /// The flows' routes; flow `n` is the traffic between the hosts `n` of both sides.
    pub flows: Vec<Route>,
    /// Fixes every random draw.
    pub seed: u64,
}

/// The links crossed by a flow, in order, as indices into [`Config::links`]; neither direction may be empty.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Route {
    /// From left to right.
    pub forward: Vec<usize>,
    /// From right to left.
    pub reverse: Vec<usize>,
    /// Bytes for which the links count the IP and UDP headers of each UDP datagram; as many as there are, if absent. Other packets
    /// count whole.
    pub headers: Option<DataSize>,
}

/// Why there is no emulator.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmulatorError {
    /// A link cannot be.
    #[error("link `{link}`: {source}")]
    Link {
        /// Its name.
        link: String,
        /// Why not.
        source: ConfigError,
    },
    /// More flows than there are addresses.
    #[error("{flows} flows: an emulated network has 1 to {MAX_FLOWS}")]
    Flows {
        /// The number requested.
        flows: usize,
    },
    /// A route that leads nowhere.
    #[error("flow {flow}: its route is empty or names a link that is not there")]
    Route {
        /// The flow's number.
        flow: usize,
    },
    /// Namespace or device.
    #[error(transparent)]
    Setup(#[from] SetupError),
}

/// Maximum flows of one emulator.
pub const MAX_FLOWS: usize = 1_000;

/// Entry of packets of one flow and direction into the network.
#[derive(Debug, Default)]
pub struct Gate {
    packet: Vec<u8>,
    /// Its size by the account of the links; its length, if absent.
    size: Option<DataSize>,
    ecn: Ecn,
}

impl Agent for Gate {
    fn on_packet(&mut self, _: Timestamp, _: &Packet) {}
    fn on_timeout(&mut self, _: Timestamp) {}
    fn poll_timeout(&mut self) -> Option<Timestamp> {
        None
    }
    fn poll_transmit(&mut self, _: Timestamp, packet: &mut Packet) -> bool {
        if self.packet.is_empty() {
            return false;
        }
        packet.bytes.extend_from_slice(&self.packet);
        packet.size = self.size.unwrap_or(DataSize::from_bytes(self.packet.len() as u64));
        packet.ecn = self.ecn;
        self.packet.clear();
        true
    }
}

/// The flow of an agent as reported to observers, and the side from which its packets come.
pub const fn flow_of(agent: AgentId) -> (usize, Side) {
    (agent.index() / 2, if agent.index().is_multiple_of(2) { Side::Left } else { Side::Right })
}

/// Two namespaces, a TUN device in each, and the links between them.
///
/// `O` observes packets as in a simulated run: [`flow_of`] gives the flow, [`Packet::bytes`] is the whole IP packet,
/// and times are those planned by the links, by the clock given to [`Emulator::run`].
pub struct Emulator<O = ()> {
    network: Network<O>,
    /// Each flow's agents, left and right alternately.
    gates: Vec<AgentId>,
    /// By flow, [`Route::headers`].
    headers: Vec<Option<DataSize>>,
    left: Arc<Namespace>,
    right: Arc<Namespace>,
    buffer: Vec<u8>,
    read: [u64; 2],
    foreign: [u64; 2],
    refused: u64,
    realtime: bool,
}

/// The running links, for inspection.
pub struct Network<O> {
    sim: Simulator<Gate, Exit<O>>,
    links: Vec<(String, LinkId)>,
    stations: Vec<Station>,
}

impl<O: Observer> Network<O> {
    /// A link by its index in [`Config::links`].
    pub fn link(&mut self, index: usize) -> &mut Link<u32> {
        self.sim.link(self.links[index].1)
    }
    /// How many links there are.
    pub fn link_count(&self) -> usize {
        self.links.len()
    }
    /// The observer.
    pub fn observer_mut(&mut self) -> &mut O {
        &mut self.sim.observer_mut().observer
    }
}

impl<O: Observer> Emulator<O> {
    /// Creates the namespaces, the devices and the links. Nothing is forwarded before [`Self::run`].
    ///
    /// Errors: a link or route that cannot be, or the privilege that is missing.
    pub fn new(config: &Config, observer: O) -> Result<Self, EmulatorError> {
        let hosts = u16::try_from(config.flows.len()).ok().filter(|n| (1..=MAX_FLOWS as u16).contains(n));
        let hosts = hosts.ok_or(EmulatorError::Flows { flows: config.flows.len() })?;
        let known = |ids: &[usize]| !ids.is_empty() && ids.iter().all(|&i| i < config.links.len());
        if let Some(flow) = config.flows.iter().position(|f| !known(&f.forward) || !known(&f.reverse)) {
            return Err(EmulatorError::Route { flow });
        }
        let (left, right) = (Arc::new(Namespace::new("left")?), Arc::new(Namespace::new("right")?));
        let tuns = [Tun::new(&left, Side::Left, hosts)?, Tun::new(&right, Side::Right, hosts)?];
        let mut sim = Simulator::with_observer(config.seed, Exit::new(tuns, config.links.len(), observer));
        let mut links = Vec::new();
        for (name, link) in &config.links {
            let id = sim.add_link(link).map_err(|source| EmulatorError::Link { link: name.clone(), source })?;
            links.push((name.clone(), id));
        }
        let mut gates = Vec::new();
        for flow in &config.flows {
            let ends = [0, 1].map(|_| sim.add_agent(Gate::default(), Timestamp::ZERO));
            let route = |ids: &[usize]| ids.iter().map(|&i| links[i].1).collect::<Vec<_>>();
            sim.set_route(ends[0], &route(&flow.forward), ends[1]);
            sim.set_route(ends[1], &route(&flow.reverse), ends[0]);
            gates.extend(ends);
        }
        Ok(Self {
            network: Network { sim, links, stations: Vec::new() },
            gates,
            headers: config.flows.iter().map(|f| f.headers).collect(),
            left,
            right,
            buffer: vec![0; MAX_PACKET],
            read: [0; 2],
            foreign: [0; 2],
            refused: 0,
            realtime: false,
        })
    }

    /// The namespace of a side, for sockets and programs.
    pub const fn namespace(&self, side: Side) -> &Arc<Namespace> {
        match side {
            Side::Left => &self.left,
            Side::Right => &self.right,
        }
    }

    /// Requests real-time scheduling of the calling thread, on which [`Self::run`] is to be called. Takes some ms.
    pub fn hurry(&mut self) {
        self.realtime = request_realtime(2);
    }

    /// Forwards packets by `clock`, whose zero is the links' time zero, until `end` in their time, if given, or until
    /// `stop` becomes true. At every multiple of `every`, `look` sees the links just before it, and may end the run. To
    /// be called once, on its own thread, after [`Self::hurry`].
    ///
    /// Errors: a device cannot be read any more.
    pub fn run(
        &mut self,
        clock: &Clock,
        end: Option<Timestamp>,
        stop: &AtomicBool,
        every: TimeDelta,
        mut look: impl FnMut(Timestamp, &mut Network<O>) -> ControlFlow<()>,
    ) -> io::Result<Accuracy> {
        let every = every.max(TimeDelta::from_millis(1));
        let (began, cpu) = (clock.now(), cpu_time());
        self.network.sim.observer_mut().clock = Some(*clock);
        let mut next_look = Timestamp::ZERO + every;
        let mut ended = false;
        while !ended && !stop.load(Ordering::Relaxed) {
            let mut more = false;
            for side in [Side::Left, Side::Right] {
                more |= self.take(side, clock)?;
            }
            let now = clock.now();
            while next_look <= now && !ended {
                let _ = self.network.sim.run_until(next_look - TimeDelta::from_nanos(1));
                ended = look(next_look, &mut self.network).is_break() || end.is_some_and(|e| next_look >= e);
                next_look += every;
            }
            let _ = self.network.sim.run_until(now);
            if !more && !ended {
                self.sleep(clock, next_look)?;
            }
        }
        let wall = (clock.now() - began).as_secs_f64();
        let share = cpu_time().saturating_sub(cpu).as_secs_f64() / wall.max(1e-9);
        Ok(Accuracy { began_epoch_ms: clock.unix(Timestamp::ZERO).as_secs_f64() * 1e3, ..self.accuracy(wall, share) })
    }

    /// Reads a batch from one side, each packet entering at the time at which it is read; returns whether more may
    /// wait.
    fn take(&mut self, side: Side, clock: &Clock) -> io::Result<bool> {
        for _ in 0..BATCH {
            let sim = &mut self.network.sim;
            let Some(length) = sim.observer().tuns[side.index()].read(&mut self.buffer)? else { return Ok(false) };
            let packet = &self.buffer[..length];
            self.read[side.index()] += 1;
            let gate = header::read(packet)
                .filter(|h| h.from.side == side && h.to.side == side.other())
                .and_then(|h| Some((*self.gates.get(2 * usize::from(h.from.number) + side.index())?, h)));
            let Some((gate, header)) = gate else {
                self.foreign[side.index()] += 1;
                continue;
            };
            let _ = sim.run_until(clock.now());
            if sim.totals().inside >= MAX_INSIDE {
                self.refused += 1;
                continue;
            }
            let counted = self.headers.get(usize::from(header.from.number)).copied().flatten();
            let size = counted.zip(header.udp).map(|(counted, own)| {
                let payload = packet.len().saturating_sub(own);
                counted + DataSize::from_bytes(payload as u64)
            });
            sim.with_agent(gate, |g, _| {
                g.packet.extend_from_slice(packet);
                g.size = size;
                g.ecn = header.ecn;
            });
        }
        Ok(true)
    }

    /// Sleeps until a packet arrives or an event is due.
    fn sleep(&self, clock: &Clock, next_look: Timestamp) -> io::Result<()> {
        let now = clock.now();
        let due = self.network.sim.next_event().unwrap_or(Timestamp::MAX).min(next_look).min(now + MAX_SLEEP);
        let wait = due.saturating_since(now);
        let tuns = &self.network.sim.observer().tuns;
        let mut fds = [0, 1].map(|i: usize| PollFd::new(tuns[i].as_fd(), PollFlags::POLLIN));
        let wait = Duration::from_nanos(wait.as_nanos().max(0).unsigned_abs());
        match ppoll(&mut fds, Some(TimeSpec::from_duration(wait)), None) {
            Ok(_) | Err(nix::Error::EINTR) => Ok(()),
            Err(e) => Err(e.into()),
        }
    }

    fn accuracy(&mut self, wall: f64, cpu_share: f64) -> Accuracy {
        let namespaces = [&self.left, &self.right];
        let sides = [0, 1].map(|i: usize| SideCounts {
            read: self.read[i],
            foreign: self.foreign[i],
            overruns: overruns(namespaces[i]).unwrap_or(0),
            written: self.network.sim.observer().written[i],
            write_errors: self.network.sim.observer().write_errors[i],
        });
        let [left, right] = sides;
        let links = (0..self.network.links.len())
            .map(|i| {
                let stats = self.network.link(i).stats();
                let exit = self.network.sim.observer();
                LinkAccuracy::new(&self.network.links[i].0, &stats, &exit.saturated[i])
            })
            .collect();
        let exit = self.network.sim.observer();
        Accuracy {
            began_epoch_ms: 0.0,
            seconds: wall,
            delay_error: DelayError::of(&exit.errors, exit.late),
            links,
            left,
            right,
            refused: self.refused,
            cpu_share,
            realtime: self.realtime,
        }
    }

    /// Ends the emulator and returns the observer.
    pub fn into_observer(self) -> O {
        self.network.sim.into_observer().observer
    }
}

fn cpu_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

#[cfg(test)]
mod tests;
