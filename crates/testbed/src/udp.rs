//! Datagrams without congestion control: the simulator's own sources on a socket.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use weir_live::clock::Clock;
use weir_sim::{Agent, Packet};
use weir_units::{TimeDelta, Timestamp};

/// Longest sleep, which bounds the delay of a stop.
const MAX_SLEEP: TimeDelta = TimeDelta::from_millis(20);
/// Size of IPv4 and UDP headers, included in the simulator's packet sizes.
const HEADERS: usize = 28;

/// Destination and times of a source.
#[derive(Clone, Copy)]
pub(super) struct UdpRun<'a> {
    pub(super) socket: &'a UdpSocket,
    pub(super) to: SocketAddr,
    pub(super) clock: &'a Clock,
    pub(super) start: Timestamp,
    pub(super) stop: Timestamp,
    /// Whether the run has ended.
    pub(super) ended: &'a AtomicBool,
}

/// Sends the packets of a simulated source, at its times by the clock, from `start` to `stop`. Datagrams refused by the
/// kernel are lost.
pub(super) fn drive_udp(source: &mut dyn Agent, run: &UdpRun<'_>) {
    let UdpRun { socket, to, clock, start, stop, ended } = *run;
    let mut packet = Packet::blank();
    let payload = vec![0; 65_507];
    let mut started = false;
    let mut due = start;
    while !ended.load(Ordering::Relaxed) {
        let now = clock.now();
        if now >= stop {
            return;
        }
        if due > now {
            let wait = due.saturating_since(now).min(MAX_SLEEP);
            std::thread::sleep(Duration::from_nanos(wait.as_nanos().max(0).unsigned_abs()));
            continue;
        }
        // The source keeps its own times, so that lateness does not accumulate.
        if started {
            source.on_timeout(due);
        } else {
            source.on_start(due);
            started = true;
        }
        packet.reset(due);
        while source.poll_transmit(due, &mut packet) {
            let length = usize::try_from(packet.size.as_bytes()).unwrap_or(usize::MAX);
            let length = length.saturating_sub(HEADERS).min(payload.len());
            let _ = socket.send_to(&payload[..length], to);
            packet.reset(due);
        }
        match source.poll_timeout() {
            Some(at) => due = at.max(due),
            None => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_units::{DataRate, DataSize};

    #[test]
    fn a_source_keeps_its_rate_by_the_clock() {
        let receiver = UdpSocket::bind("127.0.0.1:0").expect("bound");
        let sender = UdpSocket::bind("127.0.0.1:0").expect("bound");
        receiver.set_read_timeout(Some(Duration::from_millis(100))).expect("set");
        // 1,000 bytes with headers every 10 ms, the first at 20 ms: 13 before 150 ms.
        let mut source = weir_sim::udp::Source::constant(DataRate::from_kbps(800), DataSize::from_bytes(1_000));
        let clock = Clock::starting_now();
        let (start, stop) = (Timestamp::from_millis(20), Timestamp::from_millis(150));
        let (to, ended) = (receiver.local_addr().expect("bound"), AtomicBool::new(false));
        drive_udp(&mut source, &UdpRun { socket: &sender, to, clock: &clock, start, stop, ended: &ended });
        assert!(clock.now() >= stop);
        let mut buffer = [0; 2_000];
        let lengths: Vec<usize> = std::iter::from_fn(|| receiver.recv(&mut buffer).ok()).collect();
        assert!(lengths.iter().all(|l| *l == 972), "{lengths:?}");
        // A busy machine may wake the sender after the end.
        assert!((1..=13).contains(&lengths.len()), "{}", lengths.len());
    }
}
