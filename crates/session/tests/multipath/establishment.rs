//! How long a second path takes from when an interface appears at the receiving end to media on it: offered in-band (in
//! RTCP), and out of band (in SDP over a signalling path).
//!
//! The thesis (section 6.2) finds in-band quicker, and gives no numbers. Out of band it makes an offer and an answer with
//! the candidates, checks them, and then advertises the interfaces with a second offer and answer; a declarative
//! message, which it asks for, needs one way only.

use super::two_paths::{Paths, media_of, only_first_path, plan_of};
use std::net::SocketAddr;
use weir_cc::{Limits, Registry, Setup};
use weir_session::{Control, ReceivingPath, SendingPath};
use weir_units::{DataRate, PathId, TimeDelta, Timestamp};

const B: PathId = PathId::new(1);
/// One-way delay of both paths.
const DELAY: i64 = 30;

fn controller(now: Timestamp) -> (SendingPath, ReceivingPath) {
    let limits = Limits { floor: DataRate::from_kbps(100), ceiling: DataRate::from_mbps(1) };
    let setup = Setup { limits, start_rate: DataRate::from_kbps(300), now, seed: 5, params: vec![] };
    Control::new(&Registry::builtin(), "gcc", &setup).expect("built in").into_directions()
}

/// A call over one path until an interface appears at the receiving end, which adds it.
fn until_it_appears(seed: u64) -> Paths {
    let mut plan = plan_of("gcc", "earliest", 1_000);
    only_first_path(&mut plan);
    (plan.sender.seed, plan.receiver.seed) = (seed, 100 + seed);
    let mut call = Paths::new(plan, [(1_000, DELAY), (1_000, DELAY)]);
    call.run_until(Timestamp::from_millis(10_000 + seed as i64 * 137 % 1_000));
    let (_, half) = controller(call.now);
    call.b.add_path(half.into(), call.now).expect("room for it");
    call
}

/// The time until the first media packet on the new path has arrived.
fn measure(mut call: Paths, appeared: Timestamp, sender_adds_it: Option<Timestamp>) -> TimeDelta {
    let step = TimeDelta::from_millis(1);
    let mut added = false;
    while call.now - appeared < TimeDelta::from_secs(20) {
        call.run_until(call.now + step);
        let knows = sender_adds_it.map_or(!call.a.remote().offered_addresses().is_empty(), |at| call.now >= at);
        if knows && !added {
            let (sender, _) = controller(call.now);
            call.a.add_path(sender.into(), call.now).expect("room for it");
            added = true;
        }
        if let Some((at, ..)) = call.sent[0].iter().rfind(|(_, _, t)| t.path == B && media_of(t)) {
            return *at + TimeDelta::from_millis(DELAY) - appeared;
        }
    }
    panic!("no media on the second path")
}

fn in_band(seed: u64) -> TimeDelta {
    let mut call = until_it_appears(seed);
    let appeared = call.now;
    let address: SocketAddr = "192.0.2.7:5000".parse().expect("an address");
    call.b.rtcp().offer_addresses(&[address]);
    measure(call, appeared, None)
}

/// `messages` one after the other, each `delay` milliseconds under way, and `checks` round trips of the paths.
fn out_of_band(seed: u64, messages: i64, delay: i64, checks: i64) -> TimeDelta {
    let call = until_it_appears(seed);
    let appeared = call.now;
    let negotiated = messages * delay + checks * 2 * DELAY;
    measure(call, appeared, Some(appeared + TimeDelta::from_millis(negotiated)))
}

/// Least, mean and greatest time in milliseconds.
fn over_seeds(time: impl Fn(u64) -> TimeDelta) -> [i64; 3] {
    let all: Vec<i64> = (1..=20).map(|seed| time(seed).as_millis()).collect();
    let (least, most) = (all.iter().min().expect("some"), all.iter().max().expect("some"));
    [*least, all.iter().sum::<i64>() / 20, *most]
}

#[test]
fn a_path_offered_in_band_is_used_sooner_than_one_negotiated() {
    let early = over_seeds(in_band);
    println!("least, mean and greatest of 20 calls, paths of {DELAY} ms one way");
    println!("in-band: {early:?} ms");
    // One way for the offer, the check's round trip, and one way for the first packet; frames are 33 ms apart.
    assert!(early[0] >= 4 * DELAY && early[2] < 4 * DELAY + 40, "{early:?}");
    for delay in [20, 50, 100, 250] {
        let declared = over_seeds(|seed| out_of_band(seed, 1, delay, 0));
        // An offer and an answer, connectivity checks of both directions, and another offer and answer.
        let negotiated = over_seeds(|seed| out_of_band(seed, 4, delay, 2));
        println!("SDP over {delay} ms one way: declared {declared:?} ms, negotiated {negotiated:?} ms");
        assert!(negotiated[0] > early[2], "{negotiated:?} beside {early:?}");
        assert!((declared[1] - early[1] - (delay - DELAY)).abs() < 10, "{declared:?} beside {early:?}");
    }
}
