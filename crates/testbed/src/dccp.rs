//! DCCP on real sockets: flows without RTP, with a source and a sink, and the carriers of calls.

use super::error::LiveError;
use super::flow_run::FlowRun;
use super::samples::SharedSamples;
use super::start::sleep_until;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::Ordering;
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;
use weir_dccp::connection::{Config, State};
use weir_dccp::packet::ServiceCode;
use weir_lab::run::RunError;
use weir_lab::run::parts::{SAMPLING_INTERVAL, dccp_config, dccp_session_config};
use weir_lab::scenario::{DccpFlow, DccpSettings, Flow, RtpFlow};
use weir_live::call::Carrier;
use weir_live::dccp::{DccpError, DccpListener, DccpPort, DccpSocket, Interest, ListenerConfig, PortConfig};
use weir_live::realtime::request_realtime;
use weir_live::tun::MTU;
use weir_live::udp::UdpConfig;
use weir_session::Endpoint;
use weir_session::dccp::DccpEnd;
use weir_sim::mix;
use weir_units::{DataSize, TimeDelta, Timestamp};

/// Real-time priority of the ports' threads and the source.
const PRIORITY: u8 = 1;
/// Longest interval of checks for the end.
const TICK: Duration = Duration::from_millis(20);
/// Datagrams passed to the socket at a time.
const BATCH: usize = 16;

/// Size of an IP packet that the emulator's devices accept.
const DEVICE_MTU: DataSize = DataSize::from_bytes(MTU as u64);
/// Application data of a packet that fits, with 28 bytes of IP and UDP headers and all options that DCCP may add.
const MAX_DATA: DataSize = DataSize::from_bytes(MTU as u64 - 28 - 92);

/// Application data per packet of a live flow: as in the scenario, or what fits.
pub(super) fn live_payload(d: &DccpFlow) -> DataSize {
    d.payload.min(MAX_DATA)
}

/// Both ends, with their sockets.
pub(super) struct LiveDccp {
    name: String,
    client: DccpPort,
    listener: DccpListener,
    to: SocketAddr,
    config: Config,
    payload: usize,
    interval: Option<TimeDelta>,
}

impl LiveDccp {
    /// Ends on bound sockets, the source's first; `seed` is used only for what the connection does not draw itself.
    pub(super) fn new(flow: &Flow, d: &DccpFlow, seed: u64, sockets: [UdpSocket; 2]) -> Result<Self, LiveError> {
        let error = |e: DccpError| LiveError::from(RunError::Live { what: format!("flow `{}`: {e}", flow.name) });
        // No state remains after the run.
        let (time_wait, give_up_after) = (TimeDelta::from_millis(1), TimeDelta::from_secs(10));
        let payload = live_payload(d);
        let config = dccp_config(&d.connection, payload, seed);
        let (initial_mtu, max_mtu) = (DEVICE_MTU, DEVICE_MTU);
        let config = Config { time_wait, give_up_after, initial_mtu, max_mtu, ..config };
        // Segmentation offload would create packets on the link that are not the connection's.
        let udp = UdpConfig { segmentation: false, ..UdpConfig::default() };
        let port = PortConfig { udp, realtime: Some(PRIORITY), ..PortConfig::default() };
        let [left, right] = sockets;
        let client = DccpPort::of(left, port).map_err(error)?;
        let server = DccpPort::of(right, port).map_err(error)?;
        let listener = server.listen(ListenerConfig::new(config.clone(), [0; 32])).map_err(error)?;
        Ok(Self {
            name: flow.name.clone(),
            client,
            to: listener.local_addr(),
            listener,
            config,
            payload: payload.as_bytes() as usize,
            interval: d.rate.and_then(|r| r.time_for(payload)),
        })
    }

    /// Runs both ends until the span is over.
    pub(super) fn spawn<'s>(
        &'s self,
        scope: &'s Scope<'s, '_>,
        run: FlowRun<'s>,
    ) -> Vec<ScopedJoinHandle<'s, Result<(), LiveError>>> {
        let FlowRun { samples, start, ended, .. } = run;
        let (begin, stop) = (Timestamp::ZERO + run.flow().start, Timestamp::ZERO + run.flow().stop);
        let source = scope.spawn(move || {
            request_realtime(PRIORITY);
            let clock = start.wait();
            sleep_until(&clock, begin, ended);
            let over = || clock.now() >= stop || ended.load(Ordering::Relaxed);
            self.send(&over, samples).map_err(|e| {
                ended.store(true, Ordering::Relaxed);
                LiveError::from(RunError::Live { what: format!("flow `{}`: {e}", self.name) })
            })
        });
        let sink = scope.spawn(move || {
            let clock = start.wait();
            let over = || clock.now() >= stop || ended.load(Ordering::Relaxed);
            self.receive(&over);
            Ok(())
        });
        vec![source, sink]
    }

    fn send(&self, over: &dyn Fn() -> bool, samples: &SharedSamples) -> Result<(), DccpError> {
        let socket = self.client.begin_connect(self.to, self.config.clone())?;
        let done = self.send_on(&socket, over, samples);
        // The emulator ends with the run: the peer is no longer reachable for closing.
        socket.abort();
        done
    }

    fn send_on(&self, socket: &DccpSocket, over: &dyn Fn() -> bool, samples: &SharedSamples) -> Result<(), DccpError> {
        let data = vec![0; self.payload];
        let batch = [&data[..]; BATCH];
        let mut next = socket.now();
        let mut next_sample = next;
        socket.set_nonblocking(self.interval.is_some());
        socket.set_write_timeout(Some(TICK));
        while !over() {
            let now = socket.now();
            if now >= next_sample {
                next_sample = now + SAMPLING_INTERVAL;
                samples.set_connection(socket.queue_counters(), socket.rtt());
            }
            let Some(interval) = self.interval else {
                // At most as much as there is room for, so that nothing is refused.
                let room = socket.queue().capacity.saturating_sub(socket.queued().0).min(BATCH);
                if room == 0 {
                    socket.wait(Interest::Room, Some(TICK))?;
                } else {
                    would_block(socket.send_many(&batch[..room]).map(|_| ()))?;
                }
                continue;
            };
            while next <= now {
                next += interval;
                would_block(socket.send(&data))?;
            }
            let wait = next.saturating_since(socket.now()).min(TimeDelta::from_millis(20));
            std::thread::sleep(Duration::from_nanos(wait.as_nanos().max(0).unsigned_abs()));
        }
        Ok(())
    }

    fn receive(&self, over: &dyn Fn() -> bool) {
        let mut buffer = Vec::new();
        while !over() {
            let Ok(socket) = self.listener.accept_timeout(TICK) else { continue };
            socket.set_read_timeout(Some(TICK));
            while !over() && socket.state() != State::Closed {
                match socket.recv_into(&mut buffer) {
                    Err(e) if !e.is_would_block() => break,
                    _ => {}
                }
            }
            socket.abort();
        }
    }
}

/// The carriers of a call over DCCP; `ends` are its media sender, which connects when the flow begins, and its
/// receiver.
pub(super) fn carriers(
    flow: &Flow,
    rtp: &RtpFlow,
    d: &DccpSettings,
    ends: [Endpoint; 2],
    seed: u64,
) -> Result<[Carrier; 2], LiveError> {
    let [sender, receiver] = ends;
    let settings = dccp_session_config(d);
    let config = |side: u64| Config {
        service_code: ServiceCode::RTP_VIDEO,
        ..dccp_config(d, rtp.payload(), mix(seed, 10 + side))
    };
    let end = DccpEnd::connect(sender, config(0), settings, Timestamp::ZERO + flow.start);
    let end = end.map_err(|e| LiveError::from(RunError::Live { what: format!("flow `{}`: {e}", flow.name) }))?;
    Ok([end.into(), DccpEnd::listen(receiver, config(1), settings).into()])
}

/// Packets that a live source cannot send at once are dropped.
fn would_block(done: Result<(), DccpError>) -> Result<(), DccpError> {
    done.or_else(|e| if e.is_would_block() { Ok(()) } else { Err(e) })
}
