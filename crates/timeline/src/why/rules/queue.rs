//! A queue that stands: less capacity, a share taken by others, a deep buffer.

use super::cause;
use crate::why::Cause;
use crate::why::episodes::Span;
use crate::why::evidence::Evidence;

/// Least time for which a queue stands, in s, so that no burst of frames is taken for it.
const LEAST_STANDING: f64 = 1.0;
/// Rate of service below which capacity fell, as a share of that before.
const SLOWER: f64 = 0.8;
/// Below this share one half second of queue is enough: what is sent in the others is lost in it.
const COLLAPSED: f64 = 0.3;
/// Ratio of the fastest to the slowest service in queues near the episode, from which capacity varies.
const VARIES: f64 = 2.5;
/// A queue of a second and more is deep: RFC 7567 calls standing queues beyond a round trip harmful.
const DEEP: f64 = 1000.0;
/// Least rate of others, as a share of what the call sent before, and in kbit/s.
const OTHERS: f64 = 0.15;
const LEAST_OTHERS: f64 = 150.0;

/// Rate at which the path served before: where packets were never close enough to tell, what arrived is a lower bound.
fn before(e: &Evidence) -> f64 {
    e.service.0.max(e.arrived_before)
}

fn slower(e: &Evidence) -> bool {
    let much = e.service.1 < COLLAPSED * before(e);
    (e.standing_s >= LEAST_STANDING || much) && e.service.1 > 0.0 && e.service.1 < SLOWER * before(e)
}

fn others(e: &Evidence) -> f64 {
    e.other.1 - e.other.0
}

fn seen_others(e: &Evidence) -> bool {
    others(e) > (OTHERS * e.arrived_before).max(LEAST_OTHERS) && (e.standing_s >= LEAST_STANDING || e.loss > 0.01)
}

fn standing(e: &Evidence) -> String {
    format!("a queue stood for {:.1} s, {:.0} ms at most", e.standing_s, e.peak)
}

pub(super) fn capacity_fell(e: &Evidence, _: &Span) -> Option<Cause> {
    if !slower(e) || seen_others(e) {
        return None;
    }
    let served = format!("packets were served at {:.0} kbit/s, {:.0} before", e.service.1, before(e));
    let arrived = format!("{:.0} kbit/s arrived", e.arrived.0);
    if let Some((slowest, fastest)) = e.services.filter(|(slowest, fastest)| *fastest > VARIES * slowest) {
        let varies = format!("queues near it were served at {slowest:.0} to {fastest:.0} kbit/s");
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
    // The path serves as fast as before, and less arrives than it serves: others have the rest.
    let shared = e.standing_s >= LEAST_STANDING
        && e.service.0 > 0.0
        && e.service.1 >= SLOWER * e.service.0
        && e.arrived.0 < 0.85 * e.service.1
        && e.floor.1 > 5.0 + 0.1 * e.floor.0
        && e.spread.1 < e.spread.0 + 25.0;
    let served = format!("packets were still served at {:.0} kbit/s, {:.0} arrived", e.service.1, e.arrived.0);
    shared.then(|| cause("cross-traffic", 0.7, vec![standing(e), served]))?
}
