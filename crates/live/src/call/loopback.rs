//! Both ends of a call in one process, each on a thread and a socket of its own.

use crate::call::config::{CallConfig, endpoints};
use crate::call::end::{LiveEnd, Peer, RunUntil};
use crate::call::observer::{CallObserver, EndSummary};
use crate::call::{CallError, random};
use crate::clock::Clock;
use crate::srtp::{SrtpKey, SrtpSession};
use serde::Serialize;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use weir_cc::Registry;
use weir_units::TimeDelta;

/// How long the receiving end stays after the sending one has gone, for what is under way.
const LINGER: TimeDelta = TimeDelta::from_millis(200);
/// How often it is looked at meanwhile.
const LOOK: Duration = Duration::from_millis(2);

/// What both ends tell.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct LoopbackSummary {
    /// The sending end.
    pub sender: EndSummary,
    /// The receiving end.
    pub receiver: EndSummary,
}

/// Keys for both directions, and protection for both ends.
pub(crate) fn protection(config: &CallConfig) -> Result<Option<(SrtpSession, SrtpSession)>, CallError> {
    let Some(suite) = config.srtp else { return Ok(None) };
    let (a, b) = (SrtpKey::random(suite)?, SrtpKey::random(suite)?);
    Ok(Some((SrtpSession::new(&a, &b)?, SrtpSession::new(&b, &a)?)))
}

/// Runs a call between two sockets of this machine's loopback device for a time, or until the flag is raised. Each end is
/// seen by its own observer.
///
/// # Errors
/// Where the controller, the sockets or the protection cannot be had.
pub fn loopback<A: CallObserver, B: CallObserver + Send>(
    config: &CallConfig,
    registry: &Registry,
    duration: Option<TimeDelta>,
    stop: &AtomicBool,
    (sending, receiving): (&mut A, &mut B),
) -> Result<LoopbackSummary, CallError> {
    let clock = Clock::of_day();
    let (a, b) = endpoints(config, registry, &clock, random()?)?;
    let address = if config.v6 { "[::1]:0" } else { "127.0.0.1:0" };
    let bind = || UdpSocket::bind(address).map_err(CallError::socket(format!("binding a UDP socket to {address}")));
    let (socket_a, socket_b) = (bind()?, bind()?);
    let told = |s: &UdpSocket| s.local_addr().map_err(CallError::socket("asking for a socket's address"));
    let (at_a, at_b) = (told(&socket_a)?, told(&socket_b)?);
    let mut a = LiveEnd::new(socket_a, config.udp, Peer::At(at_b), a)?;
    let mut b = LiveEnd::new(socket_b, config.udp, Peer::At(at_a), b)?;
    if let Some((srtp_a, srtp_b)) = protection(config)? {
        a.set_srtp(Some(srtp_a));
        b.set_srtp(Some(srtp_b));
    }
    let at = duration.map(|d| clock.now() + d);
    let receiver = &mut b;
    let stop_receiving = AtomicBool::new(false);
    let stop_receiving = &stop_receiving;
    thread::scope(|scope| -> Result<(), CallError> {
        let other = thread::Builder::new()
            .name("receiver".into())
            .spawn_scoped(scope, move || {
                let until = RunUntil { at: None, stop: stop_receiving, bye: true };
                receiver.run(&clock, &until, receiving)
            })
            .map_err(CallError::socket("starting a thread"))?;
        let done = a.run(&clock, &RunUntil { at, stop, bye: false }, sending);
        // The BYE may be lost.
        let patience = clock.now() + LINGER;
        while !other.is_finished() && done.is_ok() && clock.now() < patience {
            thread::sleep(LOOK);
        }
        stop_receiving.store(true, Ordering::Relaxed);
        let other = other.join().map_err(|_| CallError::Thread("receiver".into()))?;
        done.and(other)
    })?;
    let now = clock.now();
    let mut summary = LoopbackSummary { sender: a.summary(now), receiver: b.summary(now) };
    let (left, came) = (summary.sender.sent.rtp_packets, summary.receiver.received.rtp_packets);
    summary.receiver.loss = (left > 0).then(|| 1.0 - came as f64 / left as f64);
    Ok(summary)
}
