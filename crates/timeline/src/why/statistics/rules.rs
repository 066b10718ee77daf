//! Rules over one-second statistics.

use super::evidence::Evidence;
use crate::why::episodes::Span;
use crate::why::{Cause, EpisodeKind};

/// Share of packets lost from which loss is a cause: GCC's loss controller stops growing there
/// (draft-ietf-rmcat-gcc-02, section 6). Below `CLEAN` there is none.
const LOSSY: f64 = 0.02;
const CLEAN: f64 = 0.01;
/// Growth of the round-trip time, in ms, from which a queue has stood, and below which there was none.
const QUEUE: f64 = 60.0;
const NO_QUEUE: f64 = 30.0;
/// Growth of the floor of round-trip times beyond which no jitter makes it, in ms.
const HIGH: f64 = 100.0;
/// Share lost with which less growth is a queue too: a short one, that was full.
const FULL: f64 = 0.25;
/// Share of a second's packets of which an outage of less than two seconds takes most.
const ALL: f64 = 0.85;
/// Share of a second from which its loss may be a queue's that no round-trip time has told of.
const HALF: f64 = 0.5;
/// A queue of a second and more is deep: RFC 7567 calls standing queues beyond a round trip harmful.
const DEEP: f64 = 1000.0;
/// Share of the estimate left, above which the estimator saw nothing, and below which it saw something.
const UNMOVED: f64 = 0.9;
const MOVED: f64 = 0.85;
/// Rate left, as a share of that before, of a source that is off: sound and pictures without content.
const PAUSED: f64 = 0.05;
/// Rate left of a sender that is limited, where the fall is taken for no accident of the picture.
const LIMITED: f64 = 0.7;
/// Frames left, as a share of those before, of a source that stopped.
const STOPPED: f64 = 0.2;
/// Seconds of the same estimate to the bit, of a limit that holds it.
const HELD: usize = 4;
/// Growth of the floor of round-trip times that stays, in ms.
const LONGER: f64 = 15.0;
/// Most that the median of a longer way's round-trip times is above the least: so many ms, and a share of the growth.
const STEADY: f64 = 5.0;
const STEADY_SHARE: f64 = 0.05;
/// Shares of that between which it is open: reports a third of a second apart, of the same call, lie on both sides of it.
const OPEN: std::ops::Range<f64> = 0.4..2.0;
/// Most that round-trip times that are longer for good may lie apart, over their growth.
const WANDERS: f64 = 1.5;
/// Peaks of the round-trip time, apart from each other, that a link makes which stands still now and then.
const STALLS: u32 = 2;
/// Pictures asked for around the begin from which it is a storm: one each second is usual after loss.
const STORM: f64 = 6.0;

fn cause(name: &'static str, confidence: f64, evidence: Vec<String>) -> Option<Cause> {
    Some(Cause { name: name.into(), confidence, evidence })
}

/// The causes of an episode, in no order.
pub(super) fn causes(e: &Evidence, span: &Span) -> Vec<Cause> {
    let rules: [fn(&Evidence, &Span) -> Option<Cause>; 15] = [
        outage,
        feedback_lost,
        feedback_late,
        loss,
        capacity,
        crossed,
        longer,
        jitter,
        stalls,
        pictures,
        held,
        paused,
        limited,
        layer_paused,
        freeze_of_source,
    ];
    rules.iter().filter_map(|rule| rule(e, span)).collect()
}

fn rtts(e: &Evidence) -> String {
    e.rtt.map_or("no round-trip times".into(), |(before, longest)| {
        format!("round-trip time {longest:.0} ms at most, {before:.0} before")
    })
}

fn losses(e: &Evidence) -> String {
    format!("{:.1} % of packets lost, {:.1} % before", e.loss * 100.0, e.loss_before * 100.0)
}

fn outage(e: &Evidence, _: &Span) -> Option<Cause> {
    // An outage of a second lies in two of them.
    if e.dark_s == 0 && e.both_ends && e.worst >= ALL && e.lossy_s <= 2 {
        let text = format!("{:.0} % of a second's packets were lost, and next to none behind it", e.worst * 100.0);
        return cause("outage", 0.62, vec![text]);
    }
    let text = format!("for {} s packets were sent and none arrived", e.dark_s);
    (e.dark_s >= 1 && e.both_ends).then(|| cause("outage", 0.85, vec![text]))?
}

fn feedback_lost(e: &Evidence, _: &Span) -> Option<Cause> {
    let mut evidence = vec![format!("for {} s the sender received next to nothing", e.silent_s)];
    let sure = match e.silent_arrived {
        Some(share) if share > 0.5 => {
            evidence.push(format!("{:.0} % of the packets sent in it arrived", share.min(1.0) * 100.0));
            0.85
        }
        Some(_) => return None,
        None => 0.45,
    };
    (e.silent_s >= 2 && e.dark_s == 0).then(|| cause("feedback-lost", sure, evidence))?
}

/// Growth of the way back, in ms, where that of the sender's reports is known: round trips are longer, and the way there is not.
fn back(e: &Evidence) -> Option<f64> {
    let ((before, longest), (past, most, behind)) = (e.rtt?, e.way?);
    let (rise, there) = (e.stays.map_or(longest, |s| s.1) - before, behind - past);
    (rise - there >= QUEUE && there < NO_QUEUE && most - past < QUEUE).then_some(rise - there)
}

fn feedback_late(e: &Evidence, _: &Span) -> Option<Cause> {
    let back = back(e)?;
    let text = format!("the way back rose by {back:.0} ms: the sender's reports came as soon as before");
    cause("feedback-late", 0.75, vec![text, rtts(e)])
}

/// Loss with no sign of a queue.
fn loss(e: &Evidence, _: &Span) -> Option<Cause> {
    if e.loss < LOSSY || e.dark_s > 0 || queued(e) {
        return None;
    }
    let mut evidence = vec![losses(e), rtts(e)];
    // Without round-trip times, or where one second has all losses, it may have been a full queue.
    let sure = if e.rtt.is_some() && e.rise() < NO_QUEUE && e.worst < HALF && e.lossy_s > 1 { 0.65 } else { 0.4 };
    if let Some((spread, _)) = e.policed.filter(|(spread, _)| *spread < 0.08 && e.lossy > 0.5) {
        evidence.push(format!("in seconds with loss as much arrives, ±{:.0} %, whatever is sent", spread * 100.0));
        return cause("policer", sure, evidence);
    }
    evidence.push(format!("{:.0} % of the seconds have losses", e.lossy * 100.0));
    cause(if e.lossy >= 0.7 { "random-loss" } else { "burst-loss" }, sure, evidence)
}

fn queued(e: &Evidence) -> bool {
    e.rise() >= QUEUE || (e.worst >= FULL && e.rise() >= NO_QUEUE)
}

/// Whether the round-trip time is longer for good, and by so many ms: no queue stays as it is while the rate changes.
fn stays(e: &Evidence) -> Option<(f64, f64)> {
    let (before, (least, middle, most)) = (e.rtt?.0, e.stays?);
    let rise = least - before;
    (e.has_past && rise >= LONGER && e.loss < CLEAN && most - least < WANDERS * rise.max(LONGER))
        .then_some((rise, middle - least))
}

/// How much round-trip times that are longer wander, as a share of the bound below which they are longer by the same time.
fn unsteady((rise, wander): (f64, f64)) -> f64 {
    wander / (STEADY + STEADY_SHARE * rise)
}

/// Whether round-trip times that are longer are so by the same time.
fn is_steady(stays: (f64, f64)) -> bool {
    unsteady(stays) < 1.0
}

/// Whether a few milliseconds more or less would make a longer way of jitter, or jitter of a longer way: then neither is sure.
fn is_open(stays: (f64, f64)) -> bool {
    OPEN.contains(&unsteady(stays))
}

fn capacity(e: &Evidence, span: &Span) -> Option<Cause> {
    if !queued(e)
        || e.dark_s > 0
        || back(e).is_some()
        || stays(e).is_some_and(|s| is_steady(s) || s.0 < QUEUE)
        || stalls(e, span).is_some()
    {
        return None;
    }
    let evidence = vec![rtts(e), losses(e), format!("down to {:.0} kbit/s", span.least_kbps)];
    if e.rise() >= DEEP {
        return cause("deep-queue", 0.65, evidence);
    }
    // A queue that is over within a second may be a stall, or an outage.
    let over = e.high_s < 2 || (e.lossy_s < 2 && e.worst >= HALF);
    // A queue that stands as high all the time may be jitter.
    let shaken = stays(e).is_some_and(|s| s.0 < HIGH);
    let open = e.silent_s >= 2 || e.rise() < QUEUE || over || shaken;
    cause("capacity-fell", if open { 0.45 } else { 0.6 }, evidence)
}

/// Others take their share of the same queue: one second cannot tell it from less capacity.
fn crossed(e: &Evidence, span: &Span) -> Option<Cause> {
    let fell = capacity(e, span)?;
    let text = "statistics cannot tell others' traffic from less capacity".into();
    cause("cross-traffic", fell.confidence * 0.5, vec![rtts(e), text])
}

fn longer(e: &Evidence, _: &Span) -> Option<Cause> {
    let (rise, wander) = stays(e).filter(|_| back(e).is_none())?;
    let text = format!("the least round-trip time rose by {rise:.0} ms and stayed (median {wander:.0} ms above it)");
    let sure = match (is_steady((rise, wander)), is_open((rise, wander))) {
        (true, false) => 0.7,
        (true, true) => 0.45,
        (false, true) => 0.35,
        (false, false) => return None,
    };
    cause("delay-step", sure, vec![text, losses(e)])
}

fn jitter(e: &Evidence, _: &Span) -> Option<Cause> {
    if e.loss >= CLEAN || e.dark_s > 0 || e.silent_s >= 2 || e.estimate_left().is_some_and(|left| left > MOVED) {
        return None;
    }
    // A queue stands higher.
    let wanders = stays(e).filter(|s| (!is_steady(*s) || is_open(*s)) && s.0 < QUEUE);
    let uneven = e.frames.filter(|(before, now)| *now > 1.5 * before + 5.0);
    let arrivals = e.jitter.filter(|(before, now)| *now > 1.25 * before + 2.0);
    let mut evidence = vec![rtts(e)];
    if let Some((before, now)) = uneven {
        evidence.push(format!("frames came ±{now:.0} ms apart, {before:.0} before"));
    }
    if let Some((before, now)) = arrivals {
        evidence.push(format!("jitter {now:.0} ms, {before:.0} before"));
    }
    if let Some(stays) = wanders {
        let sure = match (is_steady(stays), is_open(stays)) {
            (false, false) => 0.6,
            (false, true) => 0.45,
            (true, _) => 0.4,
        };
        evidence
            .push(format!("the least round-trip time rose by {:.0} ms, and they wander by {:.0} ms", stays.0, stays.1));
        return cause("jitter", sure, evidence);
    }
    let held = e.same_s >= HELD && e.estimate_left().is_some_and(|left| left < MOVED);
    let shaken = e.rtt.is_some() && e.rise() < NO_QUEUE && uneven.is_some() && arrivals.is_some() && !held;
    shaken.then(|| cause("stalls", 0.55, evidence))?
}

/// The round-trip time rises again and again, and is back at once: a queue that others or less capacity make lasts.
fn stalls(e: &Evidence, _: &Span) -> Option<Cause> {
    let is = e.peaks >= STALLS && e.loss < CLEAN && e.dark_s == 0 && e.silent_s < 2;
    let sure = if e.peaks > STALLS { 0.6 } else { 0.45 };
    is.then(|| cause("stalls", sure, vec![rtts(e), format!("it rose {} times, and was back in between", e.peaks)]))?
}

/// Pictures are asked for all the time, although nothing is lost.
fn pictures(e: &Evidence, _: &Span) -> Option<Cause> {
    let text = format!("{:.0} pictures were asked for around the begin", e.pictures);
    (e.pictures >= STORM)
        .then(|| cause("keyframe-requests", if quiet(e) { 0.8 } else { 0.3 }, vec![text, losses(e)]))?
}

/// No sign of the path.
fn quiet(e: &Evidence) -> bool {
    e.loss < CLEAN && e.rise() < NO_QUEUE && e.silent_s < 2 && e.dark_s == 0 && stays(e).is_none()
}

/// The estimate fell to a value that does not move.
fn held(e: &Evidence, span: &Span) -> Option<Cause> {
    let (before, least) = e.available?;
    let is = quiet(e) && least < MOVED * before && e.same_s >= HELD && span.kind == EpisodeKind::Fall;
    let text = format!("the estimate is {least:.0} kbit/s for {} s to the bit, {before:.0} before", e.same_s);
    is.then(|| cause("other-end-asked", 0.7, vec![text, rtts(e), losses(e)]))?
}

/// Whether the application sends less than the estimate allows.
fn own(e: &Evidence, span: &Span) -> Option<(f64, Vec<String>)> {
    if !quiet(e) || span.kind != EpisodeKind::Fall {
        return None;
    }
    let mut evidence =
        vec![format!("from {:.0} to {:.0} kbit/s", span.before_kbps, span.least_kbps), rtts(e), losses(e)];
    let sure = match (e.estimate_left(), e.available) {
        (Some(left), Some((_, least))) if left >= UNMOVED && least > 1.2 * span.least_kbps => {
            evidence.push(format!("the estimate stayed at {least:.0} kbit/s"));
            0.75
        }
        (Some(_), _) => return None,
        _ => 0.4,
    };
    Some((sure, evidence))
}

/// Frames a second of a source, or an encoder, that stopped, before and in it.
fn stopped(e: &Evidence) -> Option<(f64, f64)> {
    [e.source, e.encoded].into_iter().flatten().find(|(before, now)| *before > 1.0 && *now < STOPPED * before)
}

fn paused(e: &Evidence, span: &Span) -> Option<Cause> {
    let (sure, mut evidence) = own(e, span)?;
    let stopped = stopped(e);
    if let Some((before, now)) = stopped {
        evidence.push(format!("{now:.0} frames a second, {before:.0} before"));
    }
    let off = span.least_kbps < PAUSED * span.before_kbps || stopped.is_some();
    off.then(|| cause("source-paused", sure + 0.05, evidence))?
}

fn limited(e: &Evidence, span: &Span) -> Option<Cause> {
    let (sure, mut evidence) = own(e, span)?;
    if e.cpu > 0.3 {
        evidence.push(format!("the processor limited the encoder for {:.0} % of the time", e.cpu * 100.0));
        return cause("cpu-limited", sure + 0.05, evidence);
    }
    // A picture that needs less is no limit.
    let deep = span.least_kbps < LIMITED * span.before_kbps && span.to - span.from >= 2.0;
    cause("sender-limited", if deep { sure } else { 0.3 }, evidence)
}

/// A layer stopped, and the picture went on in another one.
fn layer_paused(e: &Evidence, span: &Span) -> Option<Cause> {
    let layer = e.layer.filter(|_| span.kind == EpisodeKind::Fall)?;
    let stopped = format!("a layer of {:.0} kbit/s stopped", layer.kbps);
    let left = format!("{:.0} kbit/s of other layers went on", layer.left_kbps);
    cause("layer-paused", if quiet(e) { 0.82 } else { 0.4 }, vec![stopped, left, rtts(e), losses(e)])
}

/// A picture that stands because its source does.
fn freeze_of_source(e: &Evidence, span: &Span) -> Option<Cause> {
    let (before, now) = stopped(e)?;
    let text = format!("{now:.0} frames a second, {before:.0} before");
    (span.kind == EpisodeKind::Freeze && quiet(e)).then(|| cause("source-paused", 0.7, vec![text]))?
}
