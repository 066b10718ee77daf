//! A scenario's flows on real sockets.

use super::dccp::{LiveDccp, carriers, live_payload};
use super::end_sampler::{CallSide, EndSampler};
use super::error::LiveError;
use super::flow_run::FlowRun;
use super::iperf::{Bulk, BulkServer, check_congestion};
use super::kernel_tcp::{Span, TcpTraffic as Traffic, TrafficConfig, Workload};
use super::start::{TICK, sleep_until};
use super::udp::{UdpRun, drive_udp};
use std::io::Read;
use std::net::{SocketAddr, SocketAddrV4, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use weir_cc::Registry;
use weir_lab::results::{Distribution, PictureQuantiles, QualitySummary, TransferSummary};
use weir_lab::run::RunError;
use weir_lab::run::parts::{
    EndClock, ForecastFeeds, Foresight, Viewer, call, distribution, flow_seed, foresight, udp_agent,
};
use weir_lab::scenario::{Flow, FlowKind, Scenario, TcpAlgorithm, TcpFlow, TcpTraffic};
use weir_live::call::{LiveEnd, Peer, RunUntil};
use weir_live::dccp::DCCP_UDP_PORT;
use weir_live::netns::{Namespace, Process, SetupError};
use weir_live::realtime::request_realtime;
use weir_live::tun::{MTU, Side};
use weir_live::udp::UdpConfig;
use weir_report::pcap::RTP_PORT;
use weir_session::Endpoint;
use weir_sim::Agent;
use weir_units::{DataRate, PathId, TimeDelta, Timestamp};

/// Base of the receivers' ports, to which the flow's number is added.
const TCP_PORT: u16 = 5_201;
const UDP_PORT: u16 = 9;
/// Most short flows a second.
const MAX_ARRIVALS: f64 = 50.0;
/// Bytes of IPv4 and TCP headers.
const TCP_HEADERS: u64 = 40;
/// Size of TCP timestamps, which the kernel subtracts from a segment's payload.
const TIMESTAMPS: u64 = 12;

/// A flow with its sockets and programs.
pub(super) enum LiveFlow {
    Call { ends: Box<[LiveEnd; 2]>, viewer: Option<Box<Viewer>>, forecasts: [Option<ForecastFeeds>; 2] },
    Bulk { bulk: Bulk, left: Arc<Namespace>, _server: BulkServer },
    Traffic { traffic: Box<Traffic>, left: Arc<Namespace> },
    Dccp(Box<LiveDccp>),
    Udp { source: Box<dyn Agent + Send>, socket: UdpSocket, to: SocketAddr, _sink: UdpSocket },
}

/// Makes the flows of a run, with their sockets and programs.
pub(super) struct FlowFactory<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) registry: &'a Registry,
    pub(super) seed: u64,
    /// Congestion control of every TCP flow, replacing the scenario's.
    pub(super) congestion: Option<&'a str>,
    pub(super) left: &'a Arc<Namespace>,
    pub(super) right: &'a Arc<Namespace>,
}

impl FlowFactory<'_> {
    /// The flow with this index; `hosts` are the flows and paths that have hosts.
    pub(super) fn make(&self, index: usize, flow: &Flow, hosts: &[(usize, PathId)]) -> Result<LiveFlow, LiveError> {
        let host = u16::try_from(index).unwrap_or(u16::MAX);
        let seed = flow_seed(self.seed, index);
        match &flow.kind {
            FlowKind::Rtp(rtp) => {
                let Foresight { rtp, ends } = foresight(self.scenario, flow, rtp, seed);
                let (rtp, forecasts) = (&*rtp, [ends.sender, ends.receiver]);
                let call = call(flow, rtp, seed, self.registry)?;
                let port = if rtp.dccp.is_some() { DCCP_UDP_PORT } else { RTP_PORT };
                let sockets = [Side::Left, Side::Right].map(|side| self.bind(side, host, port));
                let [left, right] = sockets;
                // Segmentation offload would create packets on the link that are not the session's.
                let udp = UdpConfig { segmentation: false, ..UdpConfig::default() };
                let call_error = |e| LiveError::Call { flow: flow.name.clone(), source: Box::new(e) };
                let peer = |side: Side| Peer::At((side.ipv4(host), port).into());
                let [a, b] = match &rtp.dccp {
                    Some(d) => carriers(flow, rtp, d, [call.sender, call.receiver], seed)?,
                    None => [call.sender.into(), call.receiver.into()],
                };
                let mut a = LiveEnd::new(left?, udp, peer(Side::Right), a).map_err(call_error)?;
                let mut b = LiveEnd::new(right?, udp, peer(Side::Left), b).map_err(call_error)?;
                let further = hosts.iter().zip(0u16..).filter(|((f, path), _)| *f == index && *path != PathId::FIRST);
                for (_, host) in further {
                    let peer = |side: Side| Peer::At((side.ipv4(host), port).into());
                    let left = self.bind(Side::Left, host, port)?;
                    a.add_route(Some(left), udp, peer(Side::Right)).map_err(call_error)?;
                    let right = self.bind(Side::Right, host, port)?;
                    b.add_route(Some(right), udp, peer(Side::Left)).map_err(call_error)?;
                }
                Ok(LiveFlow::Call { ends: Box::new([a, b]), viewer: call.viewer, forecasts })
            }
            FlowKind::Tcp(tcp) => self.tcp(host, flow, tcp, seed),
            FlowKind::Dccp(d) => {
                let sockets = [self.bind(Side::Left, host, 0)?, self.bind(Side::Right, host, DCCP_UDP_PORT)?];
                Ok(LiveFlow::Dccp(Box::new(LiveDccp::new(flow, d, seed, sockets)?)))
            }
            FlowKind::Udp(u) => {
                let source = udp_agent(flow, u, seed)?;
                let socket = self.bind(Side::Left, host, 0)?;
                let _sink = self.bind(Side::Right, host, UDP_PORT)?;
                let to = (Side::Right.ipv4(host), UDP_PORT).into();
                Ok(LiveFlow::Udp { source, socket, to, _sink })
            }
        }
    }

    fn bind(&self, side: Side, host: u16, port: u16) -> Result<UdpSocket, LiveError> {
        let namespace = if side == Side::Left { self.left } else { self.right };
        let address = (side.ipv4(host), port);
        let socket = namespace.run(move || UdpSocket::bind(address))?;
        socket.map_err(|source| {
            let what = format!("cannot open a UDP socket at {}:{port}", address.0);
            LiveError::Setup(SetupError::System { what, source })
        })
    }

    fn tcp(&self, host: u16, flow: &Flow, tcp: &TcpFlow, seed: u64) -> Result<LiveFlow, LiveError> {
        let congestion = self.congestion.unwrap_or(kernel_name(tcp.algorithm));
        check_congestion(self.left, congestion)?;
        let drawn = |d| distribution(d).map_err(|message| RunError::Traffic { flow: flow.name.clone(), message });
        let workload = match tcp.traffic {
            TcpTraffic::Bulk => return self.bulk(host, tcp, congestion),
            TcpTraffic::Stream { rate } => Workload::Stream(rate),
            TcpTraffic::Short { arrivals, .. } if arrivals > MAX_ARRIVALS => {
                let what = format!(
                    "flow `{}`: {arrivals} short flows a second are more than the {MAX_ARRIVALS} that run live",
                    flow.name
                );
                return Err(LiveError::Cannot { what });
            }
            TcpTraffic::Short { arrivals, size } => Workload::Short { arrivals_per_s: arrivals, size: drawn(size)? },
            TcpTraffic::OnOff { size, idle, starts_on, persistent } => {
                Workload::Objects { size: drawn(size)?, idle: drawn(idle)?, starts_on, persistent }
            }
        };
        let (from, to) = (Side::Left.ipv4(host), SocketAddrV4::new(Side::Right.ipv4(host), TCP_PORT + host));
        let congestion = congestion.to_owned();
        let traffic = Traffic::new(self.right, TrafficConfig { from, to, congestion, workload, seed })?;
        Ok(LiveFlow::Traffic { traffic: Box::new(traffic), left: self.left.clone() })
    }

    fn bulk(&self, host: u16, tcp: &TcpFlow, congestion: &str) -> Result<LiveFlow, LiveError> {
        let own = u64::from(MTU) - TCP_HEADERS - TIMESTAMPS;
        let segment = tcp.segment.as_bytes();
        let bulk = Bulk {
            from: Side::Left.ipv4(host),
            to: Side::Right.ipv4(host),
            port: TCP_PORT + host,
            congestion: congestion.to_owned(),
            segment: (segment < own).then_some(segment + TIMESTAMPS),
            window: tcp.max_window.map(|w| u64::from(w) * segment),
        };
        let _server = bulk.serve(self.right)?;
        Ok(LiveFlow::Bulk { bulk, left: self.left.clone(), _server })
    }
}

/// The kernel's name of an algorithm; its `bbr` is version 1, and Google's module of version 3 is `bbr3`.
fn kernel_name(algorithm: TcpAlgorithm) -> &'static str {
    match algorithm {
        TcpAlgorithm::NewReno => "reno",
        TcpAlgorithm::Bbr1 => "bbr",
        TcpAlgorithm::Bbr => "bbr3",
        other => other.name(),
    }
}

/// How a flow differs from the scenario when run live.
pub(super) fn remark(flow: &Flow, congestion: Option<&str>) -> Option<String> {
    let name = &flow.name;
    match &flow.kind {
        FlowKind::Dccp(d) if live_payload(d) != d.payload => {
            let (asked, fits) = (d.payload.as_bytes(), live_payload(d).as_bytes());
            Some(format!(
                "{name}: {fits} bytes of data a packet, which fit with all of DCCP's options, and not {asked}"
            ))
        }
        FlowKind::Tcp(t) => {
            let algorithm = congestion.unwrap_or(kernel_name(t.algorithm));
            let iperf = ", by iperf3, whose data begin some round trips late";
            let by = if t.traffic == TcpTraffic::Bulk { iperf } else { "" };
            Some(format!("{name}: the kernel's own TCP {algorithm}{by}"))
        }
        _ => None,
    }
}

impl LiveFlow {
    /// Number of threads started by [`Self::spawn`].
    pub(super) fn threads(&self) -> usize {
        if matches!(self, Self::Call { .. } | Self::Dccp(_)) { 2 } else { 1 }
    }

    /// Both ends of a call.
    pub(super) fn endpoints(&self) -> Option<(&Endpoint, &Endpoint)> {
        match self {
            Self::Call { ends, .. } => Some((ends[0].endpoint(), ends[1].endpoint())),
            _ => None,
        }
    }

    /// Packets refused by the send queue of a call over DCCP.
    pub(super) fn refused(&self, now: Timestamp) -> Option<u64> {
        match self {
            Self::Call { ends, .. } => ends[0].summary(now).dccp.map(|d| d.rejected),
            _ => None,
        }
    }

    /// The quality at the receiver of a call, if its frames have content.
    pub(super) fn quality(&self) -> Option<(QualitySummary, PictureQuantiles)> {
        match self {
            Self::Call { viewer, .. } => viewer.as_ref().map(|v| v.summary()),
            _ => None,
        }
    }

    /// Transfers of a TCP flow that makes several.
    pub(super) fn transfers(&self, flow: &Flow) -> Option<TransferSummary> {
        let (Self::Traffic { traffic, .. }, FlowKind::Tcp(tcp)) = (self, &flow.kind) else { return None };
        if matches!(tcp.traffic, TcpTraffic::Stream { .. }) {
            return None;
        }
        let s = traffic.stats();
        let over = |time| DataRate::from_size_over(s.size, time).map(DataRate::as_bps_f64);
        let times = &s.times;
        let shape = || {
            let q = |q| times.quantile(q).map(TimeDelta::as_secs_f64);
            let (min, max) = times.range()?;
            let (min, max) = (min.as_secs_f64(), max.as_secs_f64());
            Some(Distribution {
                mean: times.mean()?.as_secs_f64(),
                p50: q(0.5)?,
                p95: q(0.95)?,
                p99: q(0.99)?,
                min,
                max,
            })
        };
        Some(TransferSummary {
            completed: s.completed,
            unfinished: s.unfinished + s.failed,
            refused: s.refused,
            goodput_bps: over(flow.stop - flow.start).unwrap_or(0.0),
            active_bps: over(s.active),
            mean_throughput_bps: (s.completed > 0).then(|| s.rates / s.completed as f64),
            completion_s: matches!(tcp.traffic, TcpTraffic::Short { .. }).then(shape).flatten(),
        })
    }

    /// Runs the flow on its own threads until its end, or until `ended`; a thread that fails sets that.
    pub(super) fn spawn<'s>(
        &'s mut self,
        scope: &'s std::thread::Scope<'s, '_>,
        run: FlowRun<'s>,
    ) -> Vec<std::thread::ScopedJoinHandle<'s, Result<(), LiveError>>> {
        let FlowRun { scenario, start, ended, .. } = run;
        let flow = run.flow();
        let (begin, stop) = (Timestamp::ZERO + flow.start, Timestamp::ZERO + flow.stop);
        match self {
            Self::Call { ends, viewer, forecasts } => {
                let clocks = flow.rtp().map(|r| &r.clocks);
                let run_end = |(end, side, forecast): (&'s mut LiveEnd, CallSide<'s>, Option<ForecastFeeds>)| {
                    let sends = matches!(side, CallSide::Sender);
                    let own = clocks.and_then(|c| if sends { c.sender.as_ref() } else { c.receiver.as_ref() });
                    let drift = own.map_or(0, |c| c.drift_ppb);
                    let own = own.map(|c| EndClock::new(c, begin));
                    let until = if sends { stop } else { Timestamp::ZERO + scenario.duration };
                    let until = own.as_ref().map_or(until, |c| c.read(until));
                    let mut observer = EndSampler::new(&run, side, forecast, own);
                    scope.spawn(move || {
                        request_realtime(1);
                        let clock = start.wait();
                        sleep_until(&clock, begin, ended);
                        let clock = clock.drifting(drift, begin);
                        let until = RunUntil { at: Some(until), stop: ended, ended: None, bye: false, silence: None };
                        let done = end.run(&clock, &until, &mut observer);
                        done.map_err(|e| {
                            ended.store(true, Ordering::Relaxed);
                            LiveError::Call { flow: flow.name.clone(), source: Box::new(e) }
                        })
                    })
                };
                let [a, b] = &mut **ends;
                let [to_a, to_b] = core::mem::take(forecasts);
                [(a, CallSide::Sender, to_a), (b, CallSide::Receiver(viewer.as_deref_mut()), to_b)]
                    .into_iter()
                    .map(run_end)
                    .collect()
            }
            Self::Bulk { bulk, left, .. } => vec![scope.spawn(move || {
                let clock = start.wait();
                sleep_until(&clock, begin, ended);
                let done = bulk.send(left).map_err(LiveError::Setup).and_then(|mut client| {
                    while clock.now() < stop && !ended.load(Ordering::Relaxed) {
                        std::thread::sleep(TICK);
                        check_client(&mut client, &flow.name)?;
                    }
                    Ok(())
                });
                if done.is_err() {
                    ended.store(true, Ordering::Relaxed);
                }
                done
            })],
            Self::Traffic { traffic, left } => vec![scope.spawn(move || {
                start.wait();
                if let Some(clock) = start.clock.get() {
                    traffic.run(scope, left, Span { clock, start: begin, stop, ended });
                }
                Ok(())
            })],
            Self::Dccp(flow) => flow.spawn(scope, run),
            Self::Udp { source, socket, to, .. } => vec![scope.spawn(move || {
                request_realtime(1);
                let clock = start.wait();
                drive_udp(&mut **source, &UdpRun { socket, to: *to, clock: &clock, start: begin, stop, ended });
                Ok(())
            })],
        }
    }
}

/// Checks that a program that must send until it is stopped still runs.
fn check_client(client: &mut Process, flow: &str) -> Result<(), LiveError> {
    let Ok(Some(status)) = client.try_wait() else { return Ok(()) };
    let mut said = String::new();
    if let Some(out) = client.take_stderr() {
        // Its message only helps to find the cause.
        let _ = out.take(2_000).read_to_string(&mut said);
    }
    let what = format!("flow `{flow}`: iperf3 has ended early with {status}: {}", said.trim());
    Err(RunError::Live { what }.into())
}
