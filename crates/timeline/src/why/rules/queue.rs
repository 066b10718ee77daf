//! A queue that stands: less capacity, a share taken by others, a deep buffer.

use super::cause;
use super::delay::{self, STEADY, STEADY_SHARE};
use crate::why::Cause;
use crate::why::episodes::Span;
use crate::why::evidence::{Evidence, ROUGH};

/// Least time for which a queue stands, in s, so that no burst of frames is taken for it.
const LEAST_STANDING: f64 = 1.0;
/// Rate of service below which capacity fell, as a share of that before.
const SLOWER: f64 = 0.8;
/// Below this share one half second of queue is enough: what is sent in the others is lost in it.
const COLLAPSED: f64 = 0.3;
/// Share of the fastest service that arrives where others have the rest.
const SHARED: f64 = 0.85;
/// Ratio of the fastest to the slowest service in queues near the episode, from which capacity varies.
const VARIES: f64 = 2.5;
/// Confidence in less capacity where a coarse clock hides how evenly packets follow each other.
const COARSE: f64 = 0.6;
/// A queue of a second and more is deep: RFC 7567 calls standing queues beyond a round trip harmful.
const DEEP: f64 = 1000.0;
/// Share of the fastest service in queues near the episode that the slowest one has where one link made all of them.
const SAME_LINK: f64 = 0.9;
/// Least rate of others, as a share of what the call sent before, and in kbit/s.
const OTHERS: f64 = 0.15;
const LEAST_OTHERS: f64 = 150.0;

/// Services in a queue that differ by less, as the middle half of them over their median, are those of one link for the call alone.
const EVEN: f64 = 0.25;
/// Most loss, and most delay in ms, beside delays that are drawn one by one where packets are served as before.
const NO_LOSS: f64 = 0.01;
const HIGH: f64 = 250.0;
/// The same of a link that most packets of a queue have waited for.
const EVEN_LINK: f64 = 0.1;
/// Losses in a queue of this height in ms are its overflow, however short it stood.
const FULL: f64 = 60.0;

/// Rate at which the path served before: where packets were never close enough to tell, what arrived is a lower bound.
fn before(e: &Evidence) -> f64 {
    e.service.0.max(e.arrived_before)
}

/// Whether a queue stood, or overflowed at once.
fn queued(e: &Evidence) -> bool {
    // Delays that are drawn one by one make no queue.
    let as_before = e.loss < NO_LOSS && e.peak < HIGH && e.service.1 > SLOWER * e.service.0 && e.service.0 > 0.0;
    if e.rough > ROUGH && (e.uneven >= EVEN || as_before) {
        return false;
    }
    let full = e.loss > 0.01 && e.peak > FULL && e.uneven < EVEN;
    let much = e.service.1 < COLLAPSED * before(e) && e.uneven < EVEN;
    e.standing_s >= LEAST_STANDING || full || much
}

fn slower(e: &Evidence) -> bool {
    queued(e) && ((e.service.1 > 0.0 && e.service.1 < SLOWER * before(e)) || all_slow(e))
}

/// Whether each queue near the begin was served evenly by a slower link, although packets from before it are among those of the first one.
fn all_slow(e: &Evidence) -> bool {
    e.services.is_some_and(|(slowest, fastest)| fastest < SLOWER * before(e) && slowest > SAME_LINK * fastest)
}

fn others(e: &Evidence) -> f64 {
    e.other.1 - e.other.0
}

fn seen_others(e: &Evidence) -> bool {
    others(e) > (OTHERS * e.arrived_before).max(LEAST_OTHERS) && (e.standing_s >= LEAST_STANDING || e.loss > 0.01)
}

/// Whether others are between the call's packets: the fastest of them follow each other as before, and yet less arrives. Where
/// packets were never close enough before, services that differ tell it.
fn between(e: &Evidence) -> bool {
    let as_before = if e.service.0 > 0.0 { e.fastest >= SLOWER * e.service.0 } else { e.uneven >= EVEN };
    // Most packets are served evenly and slower by a slower link.
    let one_link = all_slow(e) || (e.uneven < EVEN_LINK && e.service.1 > 0.0 && e.service.1 < COLLAPSED * e.service.0);
    // A longer way is longer by the same all the time.
    let wanders = e.floor.1 >= STEADY.max(STEADY_SHARE * e.floor.0);
    queued(e)
        && e.standing_s >= LEAST_STANDING
        && as_before
        && !one_link
        && !delay::stood_still(e)
        && e.fastest > 0.0
        && e.arrived.0 < SHARED * e.fastest
        && wanders
}

fn standing(e: &Evidence) -> String {
    format!("a queue stood for {:.1} s, {:.0} ms at most", e.standing_s, e.peak)
}

pub(super) fn capacity_fell(e: &Evidence, _: &Span) -> Option<Cause> {
    if !slower(e) || seen_others(e) || between(e) {
        return None;
    }
    let served = format!("packets were served at {:.0} kbit/s, {:.0} before", e.service.1, before(e));
    let arrived = format!("{:.0} kbit/s arrived", e.arrived.0);
    let near = e.services.filter(|(slowest, fastest)| *fastest > VARIES * slowest);
    if near.is_none() && e.uneven > EVEN && (e.slow_even || e.coarse) {
        return cause("capacity-fell", if e.coarse { COARSE } else { 0.7 }, vec![standing(e), served, arrived]);
    }
    if near.is_some() || e.uneven > EVEN {
        let varies = match near {
            Some((slowest, fastest)) => format!("queues near it were served at {slowest:.0} to {fastest:.0} kbit/s"),
            None => format!("services differ by {:.0} %", e.uneven * 100.0),
        };
        return cause("capacity-varies", 0.75, vec![standing(e), served, varies]);
    }
    cause("capacity-fell", 0.85, vec![standing(e), served, arrived])
}

pub(super) fn deep_queue(e: &Evidence, _: &Span) -> Option<Cause> {
    let deep = e.standing_s >= LEAST_STANDING && e.peak >= DEEP;
    deep.then(|| cause("deep-queue", if slower(e) { 0.8 } else { 0.6 }, vec![standing(e)]))?
}

pub(super) fn cross_traffic(e: &Evidence, _: &Span) -> Option<Cause> {
    if seen_others(e) {
        let seen =
            format!("other traffic of the sender's host rose to {:.0} kbit/s, {:.0} before", e.other.1, e.other.0);
        return cause("cross-traffic", 0.9, vec![standing(e), seen]);
    }
    let served = format!("packets still followed each other at {:.0} kbit/s, {:.0} arrived", e.fastest, e.arrived.0);
    let is_clear = e.service.0 > 0.0 && !e.coarse && !e.taken_together();
    let sure = if is_clear { 0.8 } else { 0.45 };
    between(e).then(|| cause("cross-traffic", sure, vec![standing(e), served]))?
}
