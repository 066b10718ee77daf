//! Speed of datagrams over this machine's loopback device: DCCP over UDP, compared with plain UDP and the kernel's TCP.
//!
//! The sender's threads share one core and the receiver's another, if there are two.

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::socket::{setsockopt, sockopt};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use serde::Serialize;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;
use weir_dccp::connection::{Ccids, Config};
use weir_dccp::queue::QueueConfig;
use weir_live::clock::Clock;
use weir_live::dccp::{DccpError, DccpListener, DccpSocket};
use weir_live::udp::{UdpConfig, UdpPort};
use weir_units::{DataSize, Ecn, TimeDelta};

/// The transport measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transport {
    /// The kernel's TCP, optionally with a limited segment size.
    Tcp {
        /// Payload of a segment in bytes.
        segment: Option<u32>,
    },
    /// UDP without congestion control: as fast as one core can send.
    Udp,
    /// DCCP over UDP.
    Dccp {
        /// Congestion control.
        ccid: u8,
    },
}

/// The result of a measurement.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Speed {
    /// Application data received, bit/s.
    pub goodput_bps: f64,
    /// Datagrams received a second; for TCP, the number that its data would fill.
    pub datagrams_per_s: f64,
    /// CPU time of both ends per datagram, including the kernel's, in ns.
    pub cpu_ns_per_datagram: f64,
    /// Share of the datagrams sent that were not received.
    pub loss: f64,
}

/// Time before counting begins.
const WARM_UP: Duration = Duration::from_millis(500);
/// Datagrams passed to the socket at a time.
const BATCH: usize = 32;
/// Interval of checks for the end.
const TICK: Duration = Duration::from_millis(20);

#[derive(Default)]
struct Counts {
    stop: AtomicBool,
    sent: AtomicU64,
    came: AtomicU64,
    bytes: AtomicU64,
}

impl Counts {
    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
    fn came(&self, bytes: usize) {
        self.came.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }
    fn now(&self) -> (u64, u64, u64) {
        let n = |c: &AtomicU64| c.load(Ordering::Relaxed);
        (n(&self.sent), n(&self.came), n(&self.bytes))
    }
}

/// Pins the calling thread, and those that it starts, to the `n`th core available to this process.
fn pin(n: usize) {
    let own = Pid::from_raw(0);
    let Ok(all) = sched_getaffinity(own) else { return };
    let cores = (0..CpuSet::count()).filter(|c| all.is_set(*c).unwrap_or(false));
    let mut one = CpuSet::new();
    if let Some(core) = cores.take(2).nth(n)
        && one.set(core).is_ok()
    {
        // Otherwise the scheduler places the threads.
        let _ = sched_setaffinity(own, &one);
    }
}

fn cpu_time() -> Duration {
    clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

/// Sends for a time in datagrams of one length, with both ends in this process.
///
/// # Errors
/// If sockets or threads cannot be created, or the connection breaks.
pub fn speed(transport: Transport, datagram: usize, time: Duration) -> Result<Speed, DccpError> {
    let counts = Counts::default();
    let measured = thread::scope(|scope| {
        let (sender, receiver) = match transport {
            Transport::Tcp { segment } => tcp(scope, &counts, segment),
            Transport::Udp => udp(scope, &counts, datagram),
            Transport::Dccp { ccid } => dccp(scope, &counts, datagram, ccid),
        }?;
        thread::sleep(WARM_UP);
        let clock = Clock::starting_now();
        let (before, cpu) = (counts.now(), cpu_time());
        thread::sleep(time);
        let (after, cpu, seconds) = (counts.now(), cpu_time() - cpu, clock.now().as_nanos() as f64 / 1e9);
        counts.stop.store(true, Ordering::Relaxed);
        for end in [sender, receiver] {
            end.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        }
        Ok::<_, DccpError>((before, after, cpu, seconds))
    });
    let (before, after, cpu, seconds) = measured.inspect_err(|_| counts.stop.store(true, Ordering::Relaxed))?;
    let bytes = (after.2 - before.2) as f64;
    let came =
        if matches!(transport, Transport::Tcp { .. }) { bytes / datagram as f64 } else { (after.1 - before.1) as f64 };
    let sent = (after.0 - before.0) as f64;
    Ok(Speed {
        goodput_bps: bytes * 8.0 / seconds,
        datagrams_per_s: came / seconds,
        cpu_ns_per_datagram: cpu.as_nanos() as f64 / came.max(1.0),
        loss: if sent > 0.0 { (1.0 - came / sent).max(0.0) } else { 0.0 },
    })
}

type End<'s> = thread::ScopedJoinHandle<'s, Result<(), DccpError>>;
type Ends<'s> = Result<(End<'s>, End<'s>), DccpError>;
type Scope<'s, 'e> = &'s thread::Scope<'s, 'e>;

/// A system error, with the failed operation.
fn socket_error(what: &'static str) -> impl FnOnce(io::Error) -> DccpError {
    move |source| DccpError::Socket { what: what.into(), source }
}

fn tcp<'s>(scope: Scope<'s, '_>, counts: &'s Counts, segment: Option<u32>) -> Ends<'s> {
    let error = || socket_error("TCP over the loopback device");
    let listener = TcpListener::bind("127.0.0.1:0").map_err(error())?;
    if let Some(segment) = segment {
        // The listener's option applies to the sender by the handshake.
        setsockopt(&listener, sockopt::TcpMaxSeg, &segment).map_err(|e| error()(e.into()))?;
    }
    let to = listener.local_addr().map_err(error())?;
    let receiver = scope.spawn(move || {
        pin(1);
        let (mut stream, _) = listener.accept().map_err(error())?;
        let mut buffer = vec![0; 1 << 18];
        loop {
            match stream.read(&mut buffer) {
                Ok(n) if n > 0 => counts.came(n),
                _ => return Ok(()),
            }
        }
    });
    let sender = scope.spawn(move || {
        pin(0);
        let mut stream = TcpStream::connect(to).map_err(error())?;
        let data = vec![0; 1 << 16];
        while !counts.is_over() {
            stream.write_all(&data).map_err(error())?;
        }
        Ok(())
    });
    Ok((sender, receiver))
}

fn udp<'s>(scope: Scope<'s, '_>, counts: &'s Counts, datagram: usize) -> Ends<'s> {
    let error = || socket_error("UDP over the loopback device");
    let config = UdpConfig { buffer: Some(4 << 20), ..UdpConfig::default() };
    let port = || UdpPort::new(UdpSocket::bind("127.0.0.1:0").map_err(error())?, config).map_err(error());
    let (mut from, mut at) = (port()?, port()?);
    let to = at.local_addr().map_err(error())?;
    let receiver = scope.spawn(move || {
        pin(1);
        while !counts.is_over() {
            if at.wait(TICK, None).map_err(error())? {
                for i in 0..at.receive().map_err(error())? {
                    at.datagram(i).into_iter().for_each(|d| counts.came(d.bytes.len()));
                }
            }
        }
        Ok(())
    });
    let sender = scope.spawn(move || {
        pin(0);
        let data = vec![0; datagram];
        while !counts.is_over() {
            (0..BATCH).for_each(|_| from.send(to, Ecn::NotEct, &data));
            from.flush();
            counts.sent.fetch_add(BATCH as u64, Ordering::Relaxed);
        }
        Ok(())
    });
    Ok((sender, receiver))
}

fn dccp<'s>(scope: Scope<'s, '_>, counts: &'s Counts, datagram: usize, ccid: u8) -> Ends<'s> {
    // Headers and options fit beside the data.
    let mtu = DataSize::from_bytes(datagram as u64 + 28 + 200);
    let config = Config {
        ccids: Ccids::both(ccid),
        queue: QueueConfig { capacity: 256, ..QueueConfig::default() },
        sequence_window: 100_000,
        receive_capacity: 8_192,
        initial_mtu: mtu,
        max_mtu: mtu,
        time_wait: TimeDelta::from_millis(10),
        ..Config::default()
    };
    let (address, listening) = std::sync::mpsc::channel();
    let server = config.clone();
    let receiver = scope.spawn(move || {
        // The port's thread inherits the core.
        pin(1);
        let listener = DccpListener::bind(([127, 0, 0, 1], 0).into(), server)?;
        let _ = address.send(listener.local_addr());
        while !counts.is_over() {
            let Ok(socket) = listener.accept_timeout(TICK) else { continue };
            socket.set_read_timeout(Some(TICK));
            let mut buffer = Vec::new();
            while !counts.is_over() {
                match socket.recv_into(&mut buffer) {
                    Ok(_) => counts.came(buffer.len()),
                    Err(e) if e.is_would_block() => {}
                    // The sender may have ended first.
                    Err(_) if counts.is_over() => {}
                    Err(e) => return Err(e),
                }
            }
            socket.abort();
        }
        Ok(())
    });
    let to = listening.recv().map_err(|_| DccpError::Config("the receiver cannot listen".into()))?;
    let sender = scope.spawn(move || {
        pin(0);
        let socket = DccpSocket::connect(to, Config { local_port: 0, ..config })?;
        socket.set_write_timeout(Some(TICK));
        let data = vec![0; datagram];
        let batch = [&data[..]; BATCH];
        while !counts.is_over() {
            match socket.send_many(&batch) {
                Ok(_) => counts.sent.store(socket.counters().data_sent, Ordering::Relaxed),
                Err(e) if e.is_would_block() => {}
                // The receiver may have ended first.
                Err(_) if counts.is_over() => {}
                Err(e) => return Err(e),
            }
        }
        socket.abort();
        Ok(())
    });
    Ok((sender, receiver))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_them_carry_data() {
        for transport in [
            Transport::Tcp { segment: None },
            Transport::Tcp { segment: Some(1_400) },
            Transport::Udp,
            Transport::Dccp { ccid: 2 },
            Transport::Dccp { ccid: 3 },
        ] {
            let s = speed(transport, 1_400, Duration::from_millis(200)).expect("it runs");
            assert!((1e5..1e12).contains(&s.goodput_bps), "{transport:?} {s:?}");
            let by_count = s.datagrams_per_s * 1_400.0 * 8.0;
            assert!((0.99..1.01).contains(&(by_count / s.goodput_bps)), "{transport:?} {s:?}");
            assert!(
                (10.0..1e8).contains(&s.cpu_ns_per_datagram) && (0.0..1.0).contains(&s.loss),
                "{transport:?} {s:?}"
            );
        }
    }
}
