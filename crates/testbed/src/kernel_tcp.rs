//! Traffic by the kernel's TCP other than a single bulk transfer: objects with idle times between them, short flows,
//! and data at a rate.
//!
//! Each object is sent as its length followed by its bytes; the receiver responds with one byte once it has them all,
//! which ends the transfer as the last acknowledgement does a simulated one.

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::sockopt::{ReuseAddr, SendTimeout, TcpCongestion};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn, bind, connect, setsockopt, socket};
use nix::sys::time::{TimeVal, TimeValLike};
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::Scope;
use std::time::Duration;
use weir_live::clock::Clock;
use weir_live::netns::{Namespace, SetupError};
use weir_sim::{Distribution, LogHistogram, Random};
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

/// Longest interval of checks for the end.
const TICK: Duration = Duration::from_millis(20);
/// Most short flows at a time; more are rejected and counted.
const MAX_AT_ONCE: u64 = 64;
/// Bytes written at a time.
const CHUNK: usize = 16_384;
/// Length that means endless data.
const ENDLESS: u64 = u64::MAX;
/// Interval of a stream's writes.
const STREAM_TICK: TimeDelta = TimeDelta::from_millis(10);

/// Data to send.
#[derive(Clone, Debug)]
pub(super) enum Workload {
    /// Data at a rate; data not accepted by the network waits.
    Stream(DataRate),
    /// Consecutive objects, sizes in bytes and idle times in s.
    Objects {
        /// Sizes.
        size: Distribution,
        /// Idle time after each.
        idle: Distribution,
        /// Whether the first begins at once, or after an idle time.
        starts_on: bool,
        /// Whether all go over one connection.
        persistent: bool,
    },
    /// Objects that arrive as a Poisson process, each on its own connection.
    Short {
        /// Objects a second.
        arrivals_per_s: f64,
        /// Sizes.
        size: Distribution,
    },
}

/// Result of the transfers.
#[derive(Clone, Debug, Default)]
pub(super) struct TransferStats {
    /// Objects received completely.
    pub(super) completed: u64,
    /// Objects in progress at the end.
    pub(super) unfinished: u64,
    /// Objects rejected because too many were in progress.
    pub(super) refused: u64,
    /// Connections that failed.
    pub(super) failed: u64,
    /// Bytes of completed objects.
    pub(super) size: DataSize,
    /// Sum of their times.
    pub(super) active: TimeDelta,
    /// Sum of each one's size over its time, in bit/s.
    pub(super) rates: f64,
    /// Their times.
    pub(super) times: LogHistogram,
}

/// Configuration of TCP traffic.
#[derive(Clone, Debug)]
pub(super) struct TrafficConfig {
    /// The source's address.
    pub(super) from: Ipv4Addr,
    /// The sink's listening address.
    pub(super) to: SocketAddrV4,
    /// The kernel's name of the congestion control, known to exist.
    pub(super) congestion: String,
    /// Data to send.
    pub(super) workload: Workload,
    /// Seed of sizes and times.
    pub(super) seed: u64,
}

/// A source of TCP traffic and its sink, with the sink's socket open.
#[derive(Debug)]
pub(super) struct TcpTraffic {
    config: TrafficConfig,
    listener: TcpListener,
    at_once: AtomicU64,
    stats: Mutex<TransferStats>,
}

/// The time span of the traffic, and its end condition.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span<'a> {
    /// The clock.
    pub(super) clock: &'a Clock,
    /// When it begins.
    pub(super) start: Timestamp,
    /// When it ends.
    pub(super) stop: Timestamp,
    /// Set to end it earlier.
    pub(super) ended: &'a AtomicBool,
}

impl Span<'_> {
    fn over(&self) -> bool {
        self.clock.now() >= self.stop || self.ended.load(Ordering::Relaxed)
    }
    /// Sleeps until `at`, or until the span is over; returns whether it is over.
    fn sleep_until(&self, at: Timestamp) -> bool {
        while !self.over() {
            let wait = at.saturating_since(self.clock.now());
            if wait <= TimeDelta::ZERO {
                return false;
            }
            std::thread::sleep(Duration::from_nanos(wait.as_nanos().max(0).unsigned_abs()).min(TICK));
        }
        true
    }
}

impl TcpTraffic {
    /// A source, and a sink that listens at once in the namespace `right`.
    ///
    /// Errors: the sink's socket cannot be opened.
    pub(super) fn new(right: &Namespace, config: TrafficConfig) -> Result<Self, SetupError> {
        let to = config.to;
        let listener = right.run(move || TcpListener::bind(to))?;
        let listener = listener.map_err(|source| SetupError::System { what: format!("listening at {to}"), source })?;
        let (at_once, stats) = (AtomicU64::new(0), Mutex::default());
        Ok(Self { config, listener, at_once, stats })
    }

    /// The results so far.
    pub(super) fn stats(&self) -> TransferStats {
        self.stats.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sends until the span's end. The sink and the connections run on threads of `scope`.
    pub(super) fn run<'s>(&'s self, scope: &'s Scope<'s, '_>, left: &'s Namespace, span: Span<'s>) {
        scope.spawn(move || self.sink(scope, span));
        let mut random = Random::new(self.config.seed);
        if span.sleep_until(span.start) {
            return;
        }
        match &self.config.workload {
            Workload::Stream(rate) => self.stream(left, *rate, span),
            Workload::Objects { size, idle, starts_on, persistent } => {
                let mut at = span.start;
                if !starts_on {
                    at += TimeDelta::from_secs_f64(idle.sample(&mut random));
                }
                let mut connection = None;
                while !span.sleep_until(at) {
                    if !persistent {
                        connection = None;
                    }
                    self.object(left, &mut connection, size.sample(&mut random), span);
                    at = span.clock.now() + TimeDelta::from_secs_f64(idle.sample(&mut random));
                }
            }
            Workload::Short { arrivals_per_s, size } => {
                let distance = Distribution::Exponential { mean: 1.0 / arrivals_per_s.max(1e-6) };
                let mut at = span.start;
                loop {
                    at += TimeDelta::from_secs_f64(distance.sample(&mut random));
                    let size = size.sample(&mut random);
                    if span.sleep_until(at) {
                        return;
                    }
                    if self.at_once.fetch_add(1, Ordering::Relaxed) >= MAX_AT_ONCE {
                        self.at_once.fetch_sub(1, Ordering::Relaxed);
                        self.count(|s| s.refused += 1);
                        continue;
                    }
                    scope.spawn(move || {
                        self.object(left, &mut None, size, span);
                        self.at_once.fetch_sub(1, Ordering::Relaxed);
                    });
                }
            }
        }
    }

    fn count(&self, change: impl FnOnce(&mut TransferStats)) {
        change(&mut self.stats.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// A connection from the left; the socket is made in its namespace, and connected on this thread. Gives up when the
    /// span is over, since without the emulator no response can arrive.
    fn connect(&self, left: &Namespace, span: Span<'_>) -> io::Result<TcpStream> {
        let from = SockaddrIn::from(SocketAddrV4::new(self.config.from, 0));
        let congestion = OsString::from(&self.config.congestion);
        let made = left.run(move || -> nix::Result<OwnedFd> {
            let fd = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
            setsockopt(&fd, ReuseAddr, &true)?;
            setsockopt(&fd, TcpCongestion, &congestion)?;
            // Connecting waits at most this long at a time.
            setsockopt(&fd, SendTimeout, &TimeVal::microseconds(TICK.as_micros() as i64))?;
            bind(fd.as_raw_fd(), &from)?;
            Ok(fd)
        });
        let fd = made.map_err(io::Error::other)??;
        loop {
            match connect(fd.as_raw_fd(), &SockaddrIn::from(self.config.to)) {
                Ok(()) | Err(nix::Error::EISCONN) => break,
                Err(nix::Error::EINPROGRESS | nix::Error::EALREADY | nix::Error::EINTR) if !span.over() => {}
                Err(e) => return Err(e.into()),
            }
        }
        let stream = TcpStream::from(fd);
        stream.set_read_timeout(Some(TICK))?;
        stream.set_write_timeout(Some(TICK))?;
        Ok(stream)
    }

    fn object(&self, left: &Namespace, connection: &mut Option<TcpStream>, size: f64, span: Span<'_>) {
        let size = size.clamp(1.0, 1e12) as u64;
        let began = span.clock.now();
        let stream = match connection.take() {
            Some(stream) => Ok(stream),
            None => self.connect(left, span),
        };
        let Ok(mut stream) = stream else { return self.count(|s| s.failed += 1) };
        if !transfer(&mut stream, size, span).unwrap_or(false) {
            return self.count(|s| s.unfinished += 1);
        }
        let time = span.clock.now() - began;
        self.count(|s| {
            s.completed += 1;
            s.size += DataSize::from_bytes(size);
            s.active += time;
            s.rates += size as f64 * 8.0 / time.as_secs_f64().max(1e-9);
            s.times.add(time);
        });
        *connection = Some(stream);
    }

    fn stream(&self, left: &Namespace, rate: DataRate, span: Span<'_>) {
        let Ok(mut stream) = self.connect(left, span) else { return self.count(|s| s.failed += 1) };
        if !write_all(&mut stream, &ENDLESS.to_be_bytes(), span).unwrap_or(false) {
            return;
        }
        let data = vec![0; CHUNK];
        let (begin, mut written) = (span.clock.now(), 0u64);
        let mut at = begin;
        while !span.sleep_until(at) {
            let owed = rate.size_in(span.clock.now() - begin).as_bytes().saturating_sub(written);
            let part = usize::try_from(owed).unwrap_or(CHUNK).min(CHUNK);
            if !write_all(&mut stream, &data[..part], span).unwrap_or(false) {
                return;
            }
            written += part as u64;
            at = if part == CHUNK { at } else { at + STREAM_TICK };
        }
    }

    /// Accepts connections until the end.
    fn sink<'s>(&'s self, scope: &'s Scope<'s, '_>, span: Span<'s>) {
        while !span.over() {
            let mut fds = [PollFd::new(self.listener.as_fd(), PollFlags::POLLIN)];
            match poll(&mut fds, PollTimeout::from(20u8)) {
                Ok(0) | Err(nix::Error::EINTR) => continue,
                Ok(_) => {}
                Err(_) => return,
            }
            let Ok((stream, _)) = self.listener.accept() else { continue };
            scope.spawn(move || {
                // A broken connection is counted by the sender.
                let _ = receive(stream, span);
            });
        }
    }
}

/// Whether an error is a timeout.
fn is_timeout(e: &io::Error) -> bool {
    matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

/// Writes everything unless the span ends first; returns whether it did.
fn write_all(stream: &mut TcpStream, mut bytes: &[u8], span: Span<'_>) -> io::Result<bool> {
    while !bytes.is_empty() {
        match stream.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => bytes = &bytes[n..],
            Err(e) if is_timeout(&e) && !span.over() => {}
            Err(e) if is_timeout(&e) => return Ok(false),
            Err(e) => return Err(e),
        }
    }
    Ok(true)
}

/// Reads some bytes; `None` if the other end has closed, or the span is over.
fn read_some(stream: &mut TcpStream, buffer: &mut [u8], span: Span<'_>) -> io::Result<Option<usize>> {
    loop {
        match stream.read(buffer) {
            Ok(0) => return Ok(None),
            Ok(n) => return Ok(Some(n)),
            Err(e) if is_timeout(&e) && !span.over() => {}
            Err(e) if is_timeout(&e) => return Ok(None),
            Err(e) => return Err(e),
        }
    }
}

/// Sends one object and waits for the response; returns whether it was received.
fn transfer(stream: &mut TcpStream, size: u64, span: Span<'_>) -> io::Result<bool> {
    let data = [0; CHUNK];
    let mut left = size;
    if !write_all(stream, &size.to_be_bytes(), span)? {
        return Ok(false);
    }
    while left > 0 {
        let part = usize::try_from(left).unwrap_or(CHUNK).min(CHUNK);
        if !write_all(stream, &data[..part], span)? {
            return Ok(false);
        }
        left -= part as u64;
    }
    Ok(read_some(stream, &mut [0], span)?.is_some())
}

/// Receives objects from a connection, and responds to each.
fn receive(mut stream: TcpStream, span: Span<'_>) -> io::Result<()> {
    stream.set_read_timeout(Some(TICK))?;
    stream.set_nodelay(true)?;
    let mut buffer = vec![0; 4 * CHUNK];
    loop {
        let (mut length, mut have) = ([0; 8], 0);
        while have < length.len() {
            match read_some(&mut stream, &mut length[have..], span)? {
                Some(n) => have += n,
                None => return Ok(()),
            }
        }
        let mut left = u64::from_be_bytes(length);
        while left > 0 {
            let part = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
            let Some(n) = read_some(&mut stream, &mut buffer[..part], span)? else { return Ok(()) };
            if left != ENDLESS {
                left -= n as u64;
            }
        }
        stream.write_all(&[1])?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(workload: Workload, seconds: i64) -> Option<TransferStats> {
        let namespace = match Namespace::new("alone") {
            Ok(n) => n,
            Err(e) => {
                println!("skipped: {e}");
                return None;
            }
        };
        let (from, to) = (Ipv4Addr::LOCALHOST, SocketAddrV4::new(Ipv4Addr::LOCALHOST, 5_300));
        let config = TrafficConfig { from, to, congestion: "reno".into(), workload, seed: 1 };
        let traffic = TcpTraffic::new(&namespace, config).expect("listens");
        let (clock, ended) = (Clock::starting_now(), AtomicBool::new(false));
        let stop = Timestamp::from_secs(seconds);
        std::thread::scope(|scope| {
            let span = Span { clock: &clock, start: Timestamp::ZERO, stop, ended: &ended };
            let (traffic, namespace) = (&traffic, &namespace);
            scope.spawn(move || traffic.run(scope, namespace, span));
        });
        let stats = traffic.stats();
        if stats.failed > 0 {
            println!("skipped: no loopback device (Debian package: iproute2)");
            return None;
        }
        Some(stats)
    }

    #[test]
    fn objects_arrive_one_after_the_other() {
        for persistent in [false, true] {
            let size = Distribution::Constant { value: 50_000.0 };
            let idle = Distribution::Constant { value: 0.1 };
            let Some(s) = run(Workload::Objects { size, idle, starts_on: true, persistent }, 1) else { return };
            // Loopback takes hardly any time, a busy machine some.
            assert!((2..=10).contains(&s.completed), "{s:?}");
            assert_eq!(s.size, DataSize::from_bytes(50_000 * s.completed));
            assert_eq!((s.times.count(), s.refused), (s.completed, 0));
        }
    }

    #[test]
    fn short_flows_come_as_often_as_they_should() {
        let size = Distribution::Constant { value: 2_000.0 };
        let Some(s) = run(Workload::Short { arrivals_per_s: 30.0, size }, 2) else { return };
        // 60 on average, 7.7 standard deviation.
        let all = s.completed + s.unfinished + s.refused;
        assert!((30..=95).contains(&all) && s.completed > 0, "{s:?}");
    }

    /// As when the emulator ends before its flows.
    #[test]
    fn a_peer_that_does_not_answer_is_not_waited_for_beyond_the_end() {
        let made = Namespace::new("left").and_then(|l| Ok((l, Namespace::new("right")?)));
        let (left, right) = match made {
            Ok(both) => both,
            Err(e) => return println!("skipped: {e}"),
        };
        let ip = |namespace: &Namespace, args: &str| {
            let mut ip = Namespace::command("ip").ok()?;
            ip.args(args.split(' ')).stderr(std::process::Stdio::null());
            namespace.start(ip).ok()?.wait().ok().filter(|s| s.success())
        };
        // A device that accepts everything and returns nothing.
        let there = ip(&left, "link add d0 type dummy")
            .and_then(|_| ip(&left, "addr add 10.9.0.1/24 dev d0"))
            .and_then(|_| ip(&left, "link set d0 up"))
            .and_then(|_| ip(&right, "addr add 10.9.0.2/32 dev lo"));
        if there.is_none() {
            return println!("skipped: no dummy device on this machine (Debian package: iproute2)");
        }
        let (from, to) = (Ipv4Addr::new(10, 9, 0, 1), SocketAddrV4::new(Ipv4Addr::new(10, 9, 0, 2), 5_300));
        let workload = Workload::Stream(DataRate::from_mbps(1));
        let config = TrafficConfig { from, to, congestion: "reno".into(), workload, seed: 1 };
        let traffic = TcpTraffic::new(&right, config).expect("listens");
        let (clock, ended) = (Clock::starting_now(), AtomicBool::new(false));
        let span = Span { clock: &clock, start: Timestamp::ZERO, stop: Timestamp::from_millis(500), ended: &ended };
        std::thread::scope(|scope| traffic.run(scope, &left, span));
        assert_eq!(traffic.stats().failed, 1);
        let took = clock.now();
        assert!((Timestamp::from_millis(500)..Timestamp::from_secs(20)).contains(&took), "{took}");
    }
}
