//! Both ends of a call in one process, each on its own thread and socket.

use crate::call::carrier::over_dccp;
use crate::call::config::{CallConfig, endpoints, endpoints_of};
use crate::call::decode::{DecodeSummary, ReceivingVideo, VideoReceive};
use crate::call::encode::{EncodeSummary, SendingVideo, VideoSend};
use crate::call::end::{LiveEnd, RunUntil};
use crate::call::observer::{CallObserver, EndSummary};
use crate::call::routes::Peer;
use crate::call::{CallError, random};
use crate::clock::Clock;
use crate::srtp::{SrtpKey, SrtpSession};
use crate::udp::Waker;
use serde::Serialize;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use weir_cc::{Registry, Transport};
use weir_dccp::connection::Ccids;
use weir_media::Source;
use weir_session::Endpoint;
use weir_session::dccp::DccpEnd;
use weir_units::{TimeDelta, Timestamp};

/// How long the receiving end continues after the sending one has ended, for packets in flight.
const LINGER: TimeDelta = TimeDelta::from_millis(200);
/// How often it is checked meanwhile.
const LOOK: Duration = Duration::from_millis(2);

/// Statistics of camera, encoder and decoder.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VideoSummary {
    /// At the sending end.
    pub sent: EncodeSummary,
    /// At the receiving end.
    pub received: DecodeSummary,
}

/// Statistics of both ends.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoopbackSummary {
    /// The sending end.
    pub sender: EndSummary,
    /// The receiving end.
    pub receiver: EndSummary,
    /// Pictures, if the call had any.
    pub video: Option<VideoSummary>,
}

/// Keys for both directions, and protection for both ends.
pub(crate) fn protection(config: &CallConfig) -> Result<Option<(SrtpSession, SrtpSession)>, CallError> {
    let Some(suite) = config.srtp else { return Ok(None) };
    let (a, b) = (SrtpKey::random(suite)?, SrtpKey::random(suite)?);
    Ok(Some((SrtpSession::new(&a, &b)?, SrtpSession::new(&b, &a)?)))
}

/// Runs a call with modelled frames between two sockets of this machine's loopback device, for a time or until the flag
/// is raised. Each end has its own observer.
///
/// # Errors
/// The controller, the sockets or the protection could not be created.
pub fn loopback<A: CallObserver, B: CallObserver + Send>(
    config: &CallConfig,
    registry: &Registry,
    duration: Option<TimeDelta>,
    stop: &AtomicBool,
    (sending, receiving): (&mut A, &mut B),
) -> Result<LoopbackSummary, CallError> {
    let clock = Clock::of_day();
    let ends = endpoints(config, registry, &clock, random()?)?;
    let (mut a, mut b) = join(config, registry, ends, &clock)?;
    let until =
        RunUntil { at: duration.map(|d| clock.now() + d), stop, ended: None, bye: false, silence: config.silence };
    run_both((&mut a, sending), (&mut b, receiving), &clock, &until)?;
    Ok(summary(&a, &b, clock.now(), None))
}

/// Likewise with pictures, encoded at one end and decoded at the other. It also ends with the camera.
///
/// # Errors
/// As for [`loopback`], or no thread could be started.
pub fn loopback_video<A: CallObserver, B: CallObserver + Send>(
    config: &CallConfig,
    (send, receive): (VideoSend, VideoReceive),
    registry: &Registry,
    duration: Option<TimeDelta>,
    stop: &AtomicBool,
    (sending, receiving): (&mut A, &mut B),
) -> Result<LoopbackSummary, CallError> {
    let clock = Clock::of_day();
    let waker = || Waker::new().map(Arc::new).map_err(CallError::socket("making a descriptor to wake a thread by"));
    let (wake_sender, wake_receiver) = (waker()?, waker()?);
    let keeps = receive.quality;
    let (source, sent) = SendingVideo::start(send, clock, wake_sender.clone(), keeps)?;
    let source = Source::Custom(Box::new(source));
    let ends = endpoints_of(config, registry, &clock, random()?, Some(source))?;
    let (mut a, mut b) = join(config, registry, ends, &clock)?;
    a.set_waker(Some(wake_sender));
    b.set_waker(Some(wake_receiver.clone()));
    a.meter_cpu();
    b.meter_cpu();
    let received = ReceivingVideo::start_beside(receive, clock, wake_receiver, Some(sent.captures().clone()))?;
    let ended = sent.ended();
    let until = RunUntil {
        at: duration.map(|d| clock.now() + d),
        stop,
        ended: Some(&ended),
        bye: false,
        silence: config.silence,
    };
    let (mut sending, mut receiving) = ((sending, sent), (receiving, received));
    run_both((&mut a, &mut sending), (&mut b, &mut receiving), &clock, &until)?;
    let end = clock.now();
    let video = VideoSummary { sent: sending.1.finish()?, received: receiving.1.finish()? };
    Ok(summary(&a, &b, end, Some(video)))
}

/// Two ends on sockets that send to each other.
pub(crate) fn join(
    config: &CallConfig,
    registry: &Registry,
    (a, b): (Endpoint, Endpoint),
    clock: &Clock,
) -> Result<(LiveEnd, LiveEnd), CallError> {
    let address = if config.v6 { "[::1]:0" } else { "127.0.0.1:0" };
    let bind = || UdpSocket::bind(address).map_err(CallError::socket(format!("binding a UDP socket to {address}")));
    let (socket_a, socket_b) = (bind()?, bind()?);
    let address = |s: &UdpSocket| s.local_addr().map_err(CallError::socket("asking for a socket's address"));
    let (at_a, at_b) = (address(&socket_a)?, address(&socket_b)?);
    if let Transport::Dccp { ccid } = config.transport(registry) {
        let [own, theirs] = [(); 2].map(|()| over_dccp(config, Ccids::both(ccid), config.v6));
        let (own, theirs) = (own?, theirs?);
        let a = DccpEnd::connect(a, own.0, own.1, clock.now())?;
        let b = DccpEnd::listen(b, theirs.0, theirs.1);
        let a = LiveEnd::new(socket_a, config.udp, Peer::At(at_b), a)?;
        return Ok((a, LiveEnd::new(socket_b, config.udp, Peer::At(at_a), b)?));
    }
    let mut a = LiveEnd::new(socket_a, config.udp, Peer::At(at_b), a)?;
    let mut b = LiveEnd::new(socket_b, config.udp, Peer::At(at_a), b)?;
    if let Some((srtp_a, srtp_b)) = protection(config)? {
        a.set_srtp(Some(srtp_a));
        b.set_srtp(Some(srtp_b));
    }
    Ok((a, b))
}

/// The second end runs on its own thread until the first has ended.
pub(crate) fn run_both<A: CallObserver, B: CallObserver + Send>(
    (a, sending): (&mut LiveEnd, &mut A),
    (b, receiving): (&mut LiveEnd, &mut B),
    clock: &Clock,
    until: &RunUntil<'_>,
) -> Result<(), CallError> {
    let (stop, silence) = (AtomicBool::new(false), until.silence);
    thread::scope(|scope| {
        let stop = &stop;
        let other = thread::Builder::new()
            .name("receiver".into())
            .spawn_scoped(scope, move || {
                let until = RunUntil { bye: true, silence, ..RunUntil::stopped(stop) };
                b.run(clock, &until, receiving)
            })
            .map_err(CallError::socket("starting a thread"))?;
        let done = a.run(clock, until, sending);
        // The BYE may be lost.
        let patience = clock.now() + LINGER;
        while !other.is_finished() && done.is_ok() && clock.now() < patience {
            thread::sleep(LOOK);
        }
        stop.store(true, Ordering::Relaxed);
        let other = other.join().map_err(|_| CallError::Thread("receiver".into()))?;
        done.and(other)
    })
}

pub(crate) fn summary(a: &LiveEnd, b: &LiveEnd, now: Timestamp, video: Option<VideoSummary>) -> LoopbackSummary {
    let mut summary = LoopbackSummary { sender: a.summary(now), receiver: b.summary(now), video };
    let (left, came) = (summary.sender.sent.rtp_packets, summary.receiver.received.rtp_packets);
    summary.receiver.loss = (left > 0).then(|| 1.0 - came as f64 / left as f64);
    summary
}
