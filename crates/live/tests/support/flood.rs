//! Floods by strangers from many addresses of the loopback device, and a newcomer that is far away: the same for each listener.

use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn, bind, connect, socket};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{JoinHandle, sleep};
use std::time::Duration;

/// A flood of connections.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// They say nothing.
    HalfOpen,
    /// They begin with this and go on with a byte at a time, without end: a head or a body that is never whole.
    Slow(Vec<u8>),
    /// They send a whole request and are silent then.
    Finished(Vec<u8>),
    /// This many new ones a second; the last few hundred are kept open.
    Storm(usize),
}

impl Kind {
    /// Its name in the table.
    fn name(&self) -> String {
        match self {
            Self::HalfOpen => "half-open".into(),
            Self::Slow(begun) if begun.windows(4).any(|w| w == b"\r\n\r\n") => "slow bodies".into(),
            Self::Slow(_) => "slow heads".into(),
            Self::Finished(_) => "finished and silent".into(),
            Self::Storm(rate) => format!("{rate} new ones a second"),
        }
    }
}

/// Prints a row of the table that `tools/floods.sh` makes: the time until a newcomer was served, near and 100 ms away.
pub(crate) fn print_row(listener: &str, kind: &Kind, addresses: usize, times: [Duration; 2]) {
    let [near, far] = times.map(|t| t.as_secs_f64());
    println!("flood | {listener} | {} | {addresses} | {near:.2} | {far:.2} |", kind.name());
}

/// Between two bytes of a slow connection.
const DRIP: Duration = Duration::from_millis(200);
/// Connections of a storm that are kept open.
const KEPT: usize = 200;
/// Wait between two turns.
const TURN: Duration = Duration::from_millis(5);

/// The `n`-th address of strangers.
fn stranger(n: usize) -> Ipv4Addr {
    Ipv4Addr::new(127, 1, (n / 250) as u8, 1 + (n % 250) as u8)
}

/// A connection from an address, not yet complete.
pub(crate) fn connect_from(from: Ipv4Addr, to: SocketAddr) -> Option<TcpStream> {
    let SocketAddr::V4(to) = to else { return None };
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let fd = socket(AddressFamily::Inet, SockType::Stream, flags, None).ok()?;
    bind(fd.as_raw_fd(), &SockaddrIn::from(SocketAddrV4::new(from, 0))).ok()?;
    match connect(fd.as_raw_fd(), &SockaddrIn::from(to)) {
        Ok(()) | Err(nix::errno::Errno::EINPROGRESS) => Some(TcpStream::from(fd)),
        Err(_) => None,
    }
}

/// A flood that goes on until it is dropped.
pub(crate) struct Flood {
    stop: Arc<AtomicBool>,
    made: Arc<AtomicUsize>,
    attacker: Option<JoinHandle<()>>,
}

impl Flood {
    /// `count` connections from `addresses`, each made again when it is closed; of a storm it is the count that has to be
    /// there before this returns.
    pub(crate) fn begin(at: SocketAddr, kind: &Kind, addresses: usize, count: usize) -> Self {
        let (stop, made) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let attacker = std::thread::spawn({
            let (stop, made, kind) = (Arc::clone(&stop), Arc::clone(&made), kind.clone());
            move || attack(at, &kind, addresses, count, (&stop, &made))
        });
        let flood = Self { stop, made, attacker: Some(attacker) };
        for _ in 0..2_000 {
            if flood.made() >= count {
                break;
            }
            sleep(TURN);
        }
        assert!(flood.made() >= count, "{} of {count} connections", flood.made());
        flood
    }

    /// Connections made.
    pub(crate) fn made(&self) -> usize {
        self.made.load(Ordering::Relaxed)
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(attacker) = self.attacker.take() {
            let _ = attacker.join();
        }
    }
}

/// Whether the other end has closed it; what it sends is dropped.
fn is_closed(stream: &mut TcpStream) -> bool {
    let mut some = [0; 4_096];
    loop {
        match stream.read(&mut some) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(e) => return !matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a flood has a rate in real time")]
fn attack(at: SocketAddr, kind: &Kind, addresses: usize, count: usize, state: (&AtomicBool, &AtomicUsize)) {
    let (stop, made) = state;
    let begin = std::time::Instant::now();
    let (mut open, mut next, mut drips) = (std::collections::VecDeque::new(), 0_usize, 0);
    while !stop.load(Ordering::Relaxed) {
        let wanted = match kind {
            Kind::Storm(per_second) => {
                let due = (begin.elapsed().as_secs_f64() * *per_second as f64) as usize;
                // A machine that is busy does not catch up in bursts.
                due.saturating_sub(made.load(Ordering::Relaxed)).min(per_second / 50 + 1)
            }
            _ => {
                open.retain_mut(|stream| !is_closed(stream));
                count.saturating_sub(open.len()).min(64)
            }
        };
        for _ in 0..wanted {
            let Some(mut stream) = connect_from(stranger(next % addresses), at) else { continue };
            next += 1;
            if let Kind::Slow(first) | Kind::Finished(first) = kind {
                // On the loopback device the handshake is complete by now, unless the queue is full.
                let _ = stream.write_all(first);
            }
            open.push_back(stream);
            made.fetch_add(1, Ordering::Relaxed);
        }
        if matches!(kind, Kind::Storm(_)) {
            open.drain(..open.len().saturating_sub(KEPT));
        }
        let now = begin.elapsed().as_millis() / DRIP.as_millis();
        if matches!(kind, Kind::Slow(_)) && now > drips {
            drips = now;
            for stream in &mut open {
                let _ = stream.write(b"a");
            }
        }
        sleep(TURN);
    }
}

/// A path to a listener with this delay in each direction, from an address that no stranger has.
pub(crate) struct Away {
    pub(crate) address: SocketAddr,
    stop: Arc<AtomicBool>,
    relay: Option<JoinHandle<()>>,
}

impl Away {
    pub(crate) fn from(listener: SocketAddr, delay: Duration) -> Self {
        let inlet = TcpListener::bind("127.0.0.1:0").expect("a port");
        inlet.set_nonblocking(true).expect("set");
        let address = inlet.local_addr().expect("an address");
        let stop = Arc::new(AtomicBool::new(false));
        let relay = std::thread::spawn({
            let stop = Arc::clone(&stop);
            move || {
                while !stop.load(Ordering::Relaxed) {
                    match inlet.accept() {
                        Ok((near, _)) => pass_on(near, listener, delay),
                        Err(_) => sleep(TURN),
                    }
                }
            }
        });
        Self { address, stop, relay: Some(relay) }
    }
}

impl Drop for Away {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(relay) = self.relay.take() {
            let _ = relay.join();
        }
    }
}

fn pass_on(near: TcpStream, listener: SocketAddr, delay: Duration) {
    let Some(far) = connect_from(Ipv4Addr::new(127, 200, 0, 1), listener) else { return };
    let ready = near.set_nonblocking(false).and_then(|()| far.set_nonblocking(false));
    let halves = ready.and_then(|()| Ok((near.try_clone()?, far.try_clone()?)));
    let Ok((near_too, far_too)) = halves else { return };
    for (mut from, mut to) in [(near, far), (far_too, near_too)] {
        std::thread::spawn(move || {
            let mut some = [0; 16 * 1_024];
            while let Ok(n @ 1..) = from.read(&mut some) {
                sleep(delay);
                if to.write_all(&some[..n]).is_err() {
                    break;
                }
            }
            sleep(delay);
            let _ = to.shutdown(std::net::Shutdown::Write);
        });
    }
}
