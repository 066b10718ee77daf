//! UDP with batched system calls, ECN both ways and the kernel's receive times.
//!
//! Datagrams of one length and one mark to one destination are sent by one system call (UDP GSO); up to
//! [`quinn_udp::BATCH_SIZE`] are received by one. Coalescing on receipt (UDP GRO) is switched off: quinn-udp's control
//! buffer has no room for its message besides ECN, address and time, and the kernel then omits the mark; also, a
//! congestion controller needs each packet's own time.
//!
//! UDP's receive offload is off: coalesced packets lose their ECN marks.

mod error;

pub use error::PathError;

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::socket::{setsockopt, sockopt};
use nix::sys::time::TimeSpec;
use quinn_udp::{BATCH_SIZE, EcnCodepoint, RecvMeta, Transmit, UdpSocketState};
use std::io::{self, ErrorKind, IoSliceMut};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::time::Duration;
use weir_units::Ecn;

/// Bytes that a received datagram may have: a jumbo frame's.
const MAX_DATAGRAM: usize = 9_216;
/// Maximum bytes per system call; the kernel accepts one IP packet's worth.
const MAX_BATCH: usize = 64_000;
/// How long a full send buffer is waited for before datagrams are dropped.
const SEND_PATIENCE: Duration = Duration::from_millis(5);

/// How a port works.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UdpConfig {
    /// Whether datagrams of one length may be sent as one and segmented by the kernel (UDP GSO). Taps that see a link's
    /// packets before segmentation need it off.
    pub segmentation: bool,
    /// Bytes of the kernel's buffers per direction; `None` leaves them unchanged. The kernel may grant less.
    pub buffer: Option<usize>,
    /// Whether ICMP errors are kept for [`UdpPort::poll_error`]. They then have to be read, or else
    /// [`UdpPort::wait_ready`] no longer waits.
    pub errors: bool,
}

impl Default for UdpConfig {
    fn default() -> Self {
        Self { segmentation: true, buffer: Some(1 << 20), errors: false }
    }
}

/// Counters of a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UdpCounters {
    /// Datagrams given to the kernel.
    pub sent: u64,
    /// System calls for them.
    pub send_calls: u64,
    /// Datagrams thrown away because the kernel's buffer stayed full.
    pub send_dropped: u64,
    /// Datagrams that the kernel refused.
    pub send_errors: u64,
    /// Datagrams received.
    pub received: u64,
    /// System calls for them.
    pub receive_calls: u64,
    /// Datagrams received that were longer than any packet of a call.
    pub too_long: u64,
}

impl std::ops::Add for UdpCounters {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            sent: self.sent + other.sent,
            send_calls: self.send_calls + other.send_calls,
            send_dropped: self.send_dropped + other.send_dropped,
            send_errors: self.send_errors + other.send_errors,
            received: self.received + other.received,
            receive_calls: self.receive_calls + other.receive_calls,
            too_long: self.too_long + other.too_long,
        }
    }
}

/// A datagram as it was received.
#[derive(Clone, Copy, Debug)]
pub struct Received<'a> {
    /// Its bytes.
    pub bytes: &'a [u8],
    /// Its source.
    pub from: SocketAddr,
    /// The destination address, if the system reports it.
    pub to: Option<IpAddr>,
    /// The ECN field on arrival.
    pub ecn: Ecn,
    /// When the kernel received it, as time of day since 1970.
    pub kernel_time: Option<Duration>,
}

/// A bound UDP socket that sends and receives in batches, without ever blocking.
#[derive(Debug)]
pub struct UdpPort {
    socket: UdpSocket,
    state: UdpSocketState,
    segments: usize,
    out: Batch,
    buffers: Box<[u8]>,
    metas: [RecvMeta; BATCH_SIZE],
    counters: UdpCounters,
    last_error: Option<io::Error>,
    errors: bool,
}

/// Result of a wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ready {
    /// A datagram to receive.
    pub datagram: bool,
    /// An error to poll.
    pub error: bool,
}

/// Datagrams waiting to be sent together.
#[derive(Debug, Default)]
struct Batch {
    bytes: Vec<u8>,
    to: Option<SocketAddr>,
    from: Option<IpAddr>,
    ecn: Ecn,
    /// Length of each but the last.
    segment: usize,
    count: usize,
    /// The last one is shorter: nothing can follow it.
    closed: bool,
}

fn codepoint(ecn: Ecn) -> Option<EcnCodepoint> {
    EcnCodepoint::from_bits(ecn.bits())
}

/// An address as the socket reports it if it serves both families.
fn canonical(a: SocketAddr) -> SocketAddr {
    match a.ip() {
        IpAddr::V6(ip) => ip.to_ipv4_mapped().map_or(a, |v4| SocketAddr::new(v4.into(), a.port())),
        IpAddr::V4(_) => a,
    }
}

fn state_of(socket: &UdpSocket) -> io::Result<UdpSocketState> {
    let state = UdpSocketState::new(socket.into())?;
    // See the module documentation. Kernels before 5.0 have no coalescing to switch off.
    let _ = setsockopt(socket, sockopt::UdpGroSegment, &false);
    Ok(state)
}

impl UdpPort {
    /// Takes over a bound socket and makes it non-blocking.
    ///
    /// # Errors
    /// The system refuses what batches, marks and timestamps need.
    pub fn new(socket: UdpSocket, config: UdpConfig) -> io::Result<Self> {
        let state = state_of(&socket)?;
        if config.errors {
            error::enable(&socket)?;
        }
        if let Some(bytes) = config.buffer {
            // Beyond the system's limit if the process has the privilege, otherwise as much as is allowed.
            if setsockopt(&socket, sockopt::RcvBufForce, &bytes).is_err() {
                let _ = setsockopt(&socket, sockopt::RcvBuf, &bytes);
            }
            if setsockopt(&socket, sockopt::SndBufForce, &bytes).is_err() {
                let _ = setsockopt(&socket, sockopt::SndBuf, &bytes);
            }
        }
        let segments = if config.segmentation { state.max_gso_segments() } else { 1 };
        Ok(Self {
            socket,
            state,
            segments,
            out: Batch::default(),
            buffers: vec![0; BATCH_SIZE * MAX_DATAGRAM].into_boxed_slice(),
            metas: [RecvMeta::default(); BATCH_SIZE],
            counters: UdpCounters::default(),
            last_error: None,
            errors: config.errors,
        })
    }

    /// The same socket again, with separate batches, buffers and counters: for one thread that sends and another that
    /// receives.
    ///
    /// # Errors
    /// The system has no descriptors left.
    pub fn twin(&self) -> io::Result<Self> {
        let config = UdpConfig { segmentation: self.segments > 1, buffer: None, errors: self.errors };
        Self::new(self.socket.try_clone()?, config)
    }

    /// The address that it is bound to.
    ///
    /// # Errors
    /// The system does not report it.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }
    /// Its counters.
    pub fn counters(&self) -> UdpCounters {
        self.counters
    }
    /// The last refusal of a datagram.
    pub fn last_error(&self) -> Option<&io::Error> {
        self.last_error.as_ref()
    }

    /// Adds a datagram to those sent with the next [`Self::flush`], or earlier.
    pub fn send(&mut self, to: SocketAddr, ecn: Ecn, bytes: &[u8]) {
        self.send_from(None, to, ecn, bytes);
    }

    /// Likewise from one of several addresses of this host; from the system's choice if there is none.
    pub fn send_from(&mut self, from: Option<IpAddr>, to: SocketAddr, ecn: Ecn, bytes: &[u8]) {
        let b = &self.out;
        let joins = b.to == Some(to)
            && b.from == from
            && b.ecn == ecn
            && !b.closed
            && bytes.len() <= b.segment
            && b.count < self.segments
            && b.bytes.len() + bytes.len() <= MAX_BATCH;
        if !joins {
            self.flush();
            self.out.to = Some(to);
            self.out.from = from;
            self.out.ecn = ecn;
            self.out.segment = bytes.len();
        }
        let b = &mut self.out;
        b.bytes.extend_from_slice(bytes);
        b.count += 1;
        b.closed = bytes.len() < b.segment || bytes.is_empty();
    }

    /// Passes waiting datagrams to the kernel.
    pub fn flush(&mut self) {
        let mut out = std::mem::take(&mut self.out);
        if let (Some(to), true) = (out.to, out.count > 0) {
            let segment = (out.count > 1).then_some(out.segment);
            let ends = (out.from, to);
            if let Err(e) = self.transmit(ends, out.ecn, &out.bytes, segment) {
                match (e.kind(), segment) {
                    (ErrorKind::WouldBlock, _) => self.counters.send_dropped += out.count as u64,
                    (_, Some(size)) => self.one_by_one(ends, out.ecn, &out.bytes, size),
                    _ => self.refused(e),
                }
            } else {
                self.counters.sent += out.count as u64;
            }
        }
        out.bytes.clear();
        self.out = Batch { bytes: out.bytes, ..Batch::default() };
    }

    /// The device or the path cannot segment batches: from now on every datagram is sent separately. quinn-udp has
    /// stopped writing ECN marks with the refusal, so its state is created again.
    fn one_by_one(&mut self, ends: Ends, ecn: Ecn, bytes: &[u8], size: usize) {
        self.segments = 1;
        if let Ok(state) = state_of(&self.socket) {
            self.state = state;
        }
        for datagram in bytes.chunks(size.max(1)) {
            match self.transmit(ends, ecn, datagram, None) {
                Ok(()) => self.counters.sent += 1,
                Err(e) if e.kind() == ErrorKind::WouldBlock => self.counters.send_dropped += 1,
                Err(e) => self.refused(e),
            }
        }
    }

    fn refused(&mut self, e: io::Error) {
        self.counters.send_errors += 1;
        self.last_error = Some(e);
    }

    fn transmit(&mut self, ends: Ends, ecn: Ecn, contents: &[u8], segment_size: Option<usize>) -> io::Result<()> {
        let t = Transmit { destination: ends.1, ecn: codepoint(ecn), contents, segment_size, src_ip: ends.0 };
        self.counters.send_calls += 1;
        match self.state.try_send((&self.socket).into(), &t) {
            // An earlier datagram's error, reported once instead of sending this one.
            Err(e) if self.errors && error::is_reported_by_icmp(&e) => self.state.try_send((&self.socket).into(), &t),
            Err(e) if e.kind() == ErrorKind::WouldBlock => {
                let mut fds = [PollFd::new(self.socket.as_fd(), PollFlags::POLLOUT)];
                // Interrupted or not, the second try decides.
                let _ = ppoll(&mut fds, Some(TimeSpec::from(SEND_PATIENCE)), None);
                self.state.try_send((&self.socket).into(), &t)
            }
            other => other,
        }
    }

    /// Receives pending datagrams, up to one batch; returns how many [`Self::datagram`] can return.
    ///
    /// # Errors
    /// The system reports anything but that no datagram is pending.
    pub fn receive(&mut self) -> io::Result<usize> {
        let mut chunks = self.buffers.chunks_exact_mut(MAX_DATAGRAM);
        let mut slices: [IoSliceMut<'_>; BATCH_SIZE] =
            std::array::from_fn(|_| IoSliceMut::new(chunks.next().unwrap_or_default()));
        self.counters.receive_calls += 1;
        match self.state.recv((&self.socket).into(), &mut slices, &mut self.metas) {
            Ok(n) => {
                self.counters.received += n as u64;
                Ok(n)
            }
            Err(e) if e.kind() == ErrorKind::WouldBlock => Ok(0),
            Err(e) => Err(e),
        }
    }

    /// A datagram of the last received batch; `None` if it was too long to be received whole.
    pub fn datagram(&mut self, index: usize) -> Option<Received<'_>> {
        let meta = self.metas.get(index)?;
        if meta.len >= MAX_DATAGRAM {
            self.counters.too_long += 1;
            return None;
        }
        let start = index * MAX_DATAGRAM;
        Some(Received {
            bytes: self.buffers.get(start..start + meta.len)?,
            from: canonical(meta.addr),
            to: meta.dst_ip.map(|ip| ip.to_canonical()),
            ecn: Ecn::from_bits(meta.ecn.map_or(0, |e| e as u8)),
            kernel_time: meta.timestamp,
        })
    }

    /// Waits until a datagram or a wake-up is pending, or the time is over; returns whether a datagram may be pending.
    ///
    /// # Errors
    /// The system cannot wait.
    pub fn wait(&self, time: Duration, waker: Option<&Waker>) -> io::Result<bool> {
        self.wait_ready(time, waker).map(|r| r.datagram || r.error)
    }

    /// Likewise, distinguishing them.
    ///
    /// # Errors
    /// The system cannot wait.
    pub fn wait_ready(&self, time: Duration, waker: Option<&Waker>) -> io::Result<Ready> {
        let other = waker.map_or(self.socket.as_fd(), |w| w.0.as_fd());
        let mut fds = [self.socket.as_fd(), other].map(|fd| PollFd::new(fd, PollFlags::POLLIN));
        let count = 1 + usize::from(waker.is_some());
        match ppoll(&mut fds[..count], Some(TimeSpec::from(time)), None) {
            Ok(_) => {}
            Err(nix::Error::EINTR) => return Ok(Ready { datagram: true, error: self.errors }),
            Err(e) => return Err(e.into()),
        }
        let is_set = |fd: &PollFd<'_>| fd.revents().is_some_and(|r| !r.is_empty());
        if let Some(w) = waker.filter(|_| is_set(&fds[1])) {
            // It counts wake-ups; reading resets it. It is no failure if another thread has read it first.
            let _ = w.0.read();
        }
        let error = fds[0].revents().is_some_and(|r| r.contains(PollFlags::POLLERR));
        let datagram = if self.errors && error {
            fds[0].revents().is_some_and(|r| r.contains(PollFlags::POLLIN))
        } else {
            is_set(&fds[0])
        };
        Ok(Ready { datagram, error })
    }

    /// Waits until one of several sockets, at most 64, has a datagram, a wake-up is pending, or the time is over. Returns
    /// the sockets that may have one, the first in the lowest bit.
    ///
    /// # Errors
    /// The system cannot wait.
    pub fn wait_any(ports: &[Self], time: Duration, waker: Option<&Waker>) -> io::Result<u64> {
        if let [port] = ports {
            return port.wait(time, waker).map(u64::from);
        }
        let others = waker.into_iter().map(|w| w.0.as_fd());
        let fds = ports.iter().map(|p| p.socket.as_fd()).chain(others);
        let mut fds: Vec<_> = fds.map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
        match ppoll(&mut fds, Some(TimeSpec::from(time)), None) {
            Ok(_) => {}
            Err(nix::Error::EINTR) => return Ok(u64::MAX),
            Err(e) => return Err(e.into()),
        }
        let is_set = |fd: &PollFd<'_>| fd.revents().is_some_and(|r| !r.is_empty());
        if let Some(w) = waker.filter(|_| fds.last().is_some_and(is_set)) {
            let _ = w.0.read();
        }
        Ok(fds.iter().take(ports.len().min(64)).zip(0..).filter(|(fd, _)| is_set(fd)).map(|(_, n)| 1 << n).sum())
    }

    /// The error reported by a router or host about an earlier datagram, oldest first; `None` if there is none, or
    /// [`UdpConfig::errors`] is off.
    pub fn poll_error(&mut self) -> Option<PathError> {
        if self.errors { error::poll(&self.socket) } else { None }
    }
}

/// A datagram's source, if it has to be one of several addresses, and its destination.
type Ends = (Option<IpAddr>, SocketAddr);

/// Wakes a thread that waits in [`UdpPort::wait`], from any other.
#[derive(Debug)]
pub struct Waker(EventFd);

impl Waker {
    /// One without a pending wake-up.
    ///
    /// # Errors
    /// The system has no descriptors left.
    pub fn new() -> io::Result<Self> {
        Ok(Self(EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?))
    }
    /// Ends the current or the next wait.
    pub fn wake(&self) {
        // The counter is full only if the waiting end is to wake up anyway.
        let _ = self.0.write(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(v6: bool, segmentation: bool) -> Option<(UdpPort, UdpPort)> {
        let bind = if v6 { "[::1]:0" } else { "127.0.0.1:0" };
        let config = UdpConfig { segmentation, ..UdpConfig::default() };
        let port = || UdpSocket::bind(bind).ok().map(|s| UdpPort::new(s, config).unwrap());
        let found = port().zip(port());
        if found.is_none() {
            println!("skipped: no {bind} on this machine");
        }
        found
    }

    type Seen = (Vec<u8>, Ecn, Option<Duration>, SocketAddr);

    fn take(port: &mut UdpPort, count: usize) -> Vec<Seen> {
        let mut all = Vec::new();
        while all.len() < count && port.wait(Duration::from_secs(2), None).unwrap() {
            for i in 0..port.receive().unwrap() {
                let d = port.datagram(i).unwrap();
                all.push((d.bytes.to_vec(), d.ecn, d.kernel_time, d.from));
            }
        }
        all
    }

    /// With UDP GRO on, the marks of datagrams coalesced by the kernel would be lost: it coalesces 40 of one length and
    /// mark, sent as one batch.
    #[test]
    fn every_datagram_keeps_its_mark_and_its_time() {
        for (v6, segmentation) in [(false, true), (false, false), (true, true), (true, false)] {
            let Some((mut a, mut b)) = pair(v6, segmentation) else { continue };
            let (to, from) = (b.local_addr().unwrap(), a.local_addr().unwrap());
            for ecn in [Ecn::Ect0, Ecn::Ect1, Ecn::Ce, Ecn::NotEct] {
                for i in 0..40 {
                    a.send(to, ecn, &[i; 1_200]);
                }
            }
            a.flush();
            let all = take(&mut b, 160);
            assert_eq!(all.len(), 160);
            for (i, (bytes, ecn, time, source)) in all.iter().enumerate() {
                let expected = [Ecn::Ect0, Ecn::Ect1, Ecn::Ce, Ecn::NotEct][i / 40];
                assert_eq!((&bytes[..], *ecn, *source), (&[(i % 40) as u8; 1_200][..], expected, from), "{i} {v6}");
                let age = crate::clock::Clock::starting_now().reading().unix.checked_sub(time.unwrap()).unwrap();
                assert!(age < Duration::from_secs(2), "{age:?}");
            }
            let calls = a.counters().send_calls;
            let bounds = if segmentation { 4..=8 } else { 160..=160 };
            assert!(bounds.contains(&calls), "{calls} calls, segmentation {segmentation}");
        }
    }

    #[test]
    fn lengths_that_differ_stay_apart_and_in_order() {
        let Some((mut a, mut b)) = pair(false, true) else { return };
        let to = b.local_addr().unwrap();
        let lengths = [1_200usize, 1_200, 700, 1_200, 1_300, 12, 0, 40];
        for n in lengths {
            a.send(to, Ecn::NotEct, &vec![7; n]);
        }
        a.flush();
        let got: Vec<usize> = take(&mut b, lengths.len()).iter().map(|d| d.0.len()).collect();
        assert_eq!(got, lengths);
        assert_eq!(a.counters().sent, lengths.len() as u64);
    }

    #[test]
    fn datagrams_that_are_too_long_are_counted_and_passed_over() {
        let Some((mut a, mut b)) = pair(false, true) else { return };
        a.send(b.local_addr().unwrap(), Ecn::NotEct, &vec![0; 20_000]);
        a.flush();
        assert!(b.wait(Duration::from_secs(2), None).unwrap());
        assert_eq!(b.receive().unwrap(), 1);
        assert!(b.datagram(0).is_none());
        assert_eq!(b.counters().too_long, 1);
    }

    #[test]
    fn a_waker_ends_the_wait_once() {
        let Some((a, _)) = pair(false, true) else { return };
        let w = Waker::new().unwrap();
        w.wake();
        w.wake();
        let clock = crate::clock::Clock::starting_now();
        assert!(!a.wait(Duration::from_secs(5), Some(&w)).unwrap());
        assert!(clock.now() < weir_units::Timestamp::from_secs(4));
        assert!(!a.wait(Duration::from_millis(2), Some(&w)).unwrap());
        let waited = clock.now().as_nanos();
        assert!((1_900_000..3_000_000_000).contains(&waited), "{waited}");
    }
}
