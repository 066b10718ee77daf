//! WRED, weighted random early detection: RED whose thresholds depend on a packet's drop precedence, which its code point states
//! (assured forwarding, RFC 2597). All packets share one queue and one average.
//!
//! A. Clark and W. Fang, "Explicit allocation of best-effort packet delivery service", 1998, is the first of its kind (RIO, two
//! precedences, each with an average of its own). Routers compare one average with thresholds for each precedence, as here.

use super::discipline::{self, Definition, Setup};
use super::parameter::parameters;
use super::queued::{Ledger, Queued};
use super::red;
use crate::dscp::Dscp;
use crate::limit::Limit;
use crate::members::Members;
use crate::stats::DropReason;
use weir_units::Timestamp;

parameters! {
    /// Parameters of WRED. Thresholds are those of [`red::Config`]; the defaults are chosen here, in the order of precedence.
    pub struct Config {
        /// Average queue length from which packets of the first drop precedence (AF11, AF21, AF31, AF41) are dropped at random.
        min_1: Limit = Limit::Packets(33);
        /// The same of the second (AF12, AF22, AF32, AF42).
        min_2: Limit = Limit::Packets(28);
        /// The same of the third (AF13, AF23, AF33, AF43).
        min_3: Limit = Limit::Packets(24);
        /// The same of all other code points.
        min_others: Limit = Limit::Packets(20);
        /// Average queue length from which all packets are dropped.
        max_th: Limit = Limit::Packets(40);
        /// Probability at `max_th`.
        max_p: f64 = 0.1, 0.0 => 1.0;
        /// Weight of the current queue length in its average, for each packet (2^-9).
        w_q: f64 = 0.001_953_125, 0.000_001 => 1.0;
        /// As in RED.
        mean_packet: f64 = 1_000.0, 1.0 => 65_536.0;
        /// Whether packets of ECN-capable flows are marked rather than dropped while the average is below `max_th`.
        ecn: bool = true;
    }
}

/// Number of profiles: three drop precedences, and all else.
const PROFILES: usize = 4;

impl Config {
    /// RED's parameters for each profile.
    fn profiles(&self) -> [red::Config; PROFILES] {
        let Self { max_th, max_p, w_q, mean_packet, ecn, .. } = *self;
        [self.min_1, self.min_2, self.min_3, self.min_others].map(|min_th| red::Config {
            min_th,
            max_th,
            max_p,
            w_q,
            mean_packet,
            gentle: false,
            ecn,
        })
    }
}

impl Definition for Config {
    const NAME: &'static str = "wred";
    const SUMMARY: &'static str = "RED with thresholds for each drop precedence of DSCPs";
    const SOURCE: &'static str = "RFC 2597, Clark and Fang, 1998";
    type Queue<P> = Queue<P>;
    fn queue<P>(&self, setup: Setup) -> Queue<P> {
        let profiles = self.profiles();
        let members = setup.members.clone();
        Queue(Box::new(State { red: profiles[0].queue(setup), members, profiles, counts: [None; PROFILES] }))
    }
}

/// The profile of a code point: that of its drop precedence (RFC 2597, section 6), or that of all others.
const fn profile(dscp: Dscp) -> usize {
    let (class, precedence) = (dscp.bits() >> 3, dscp.bits() & 0b111);
    match (class, precedence) {
        (1..=4, 0b010) => 0,
        (1..=4, 0b100) => 1,
        (1..=4, 0b110) => 2,
        _ => 3,
    }
}

/// A queue under WRED.
// Boxed, so that links under other disciplines are not larger because of this one.
#[derive(Clone, Debug)]
pub struct Queue<P>(Box<State<P>>);

#[derive(Clone, Debug)]
struct State<P> {
    /// The queue and its average.
    red: red::Queue<P>,
    members: Members,
    profiles: [red::Config; PROFILES],
    /// RED's `count` of each profile.
    counts: [Option<u32>; PROFILES],
}

impl<P> discipline::Queue<P> for Queue<P> {
    #[inline(never)]
    fn admit(&mut self, now: Timestamp, packet: &mut Queued<P>, ledger: &mut Ledger<P>) -> Result<(), DropReason> {
        let State { red, members, profiles, counts } = &mut *self.0;
        let index = profile(members.get(packet.flow()).dscp);
        red.use_profile(profiles[index], counts[index]);
        let admitted = red.admit(now, packet, ledger);
        counts[index] = red.count();
        admitted
    }
    #[inline(never)]
    fn put(&mut self, packet: Queued<P>) {
        self.0.red.put(packet);
    }
    // Out of line, so that it does not burden links under drop tail.
    #[inline(never)]
    fn dequeue(&mut self, now: Timestamp, ledger: &mut Ledger<P>) -> Option<Queued<P>> {
        self.0.red.dequeue(now, ledger)
    }
    fn head_arrival(&self) -> Option<Timestamp> {
        self.0.red.head_arrival()
    }
    fn packets(&self) -> usize {
        self.0.red.packets()
    }
    fn bytes(&self) -> u64 {
        self.0.red.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::discipline::Queue as _;
    use super::super::fifo::Room;
    use super::*;
    use crate::impairment::Draw;
    use crate::members::Member;
    use crate::random::Random;
    use crate::{Capacity, Members};
    use weir_units::{DataRate, Ecn};

    #[test]
    fn precedences_are_those_of_assured_forwarding() {
        for (name, expected) in [("AF11", 0), ("AF43", 2), ("AF32", 1), ("DF", 3), ("EF", 3), ("CS4", 3), ("LE", 3)] {
            assert_eq!(profile(Dscp::by_name(name).expect("known")), expected, "{name}");
        }
    }

    /// The share of 1,000 packets that is dropped of each of three flows, in a queue that stays near `waiting` packets.
    fn dropped(config: Config, waiting: usize) -> [f64; 3] {
        let names = ["AF41", "AF42", "AF43"];
        let members = names.map(|n| Member { dscp: Dscp::by_name(n).expect("known"), ..Member::default() });
        let room = Room::new(Limit::Unlimited, Capacity::Constant(DataRate::from_mbps(8)));
        let setup = Setup { room, random: Random::new(1), members: Members::new(members.to_vec()) };
        let (mut q, mut ledger): (Queue<()>, _) = (config.queue(setup), Ledger::default());
        let mut lost = [0_u32; 3];
        for n in 0..9_000_u32 {
            let flow = n % 3;
            let mut packet = Queued {
                item: (),
                arrived: Timestamp::ZERO,
                bytes: 1_000,
                flow,
                ecn: Ecn::NotEct,
                draw: Draw::default(),
            };
            match q.admit(Timestamp::ZERO, &mut packet, &mut ledger) {
                Ok(()) => q.put(packet),
                // The average takes a while to follow.
                Err(_) => lost[flow as usize] += u32::from(n >= 6_000),
            }
            while q.packets() > waiting {
                q.dequeue(Timestamp::ZERO, &mut ledger);
            }
        }
        lost.map(|n| f64::from(n) / 1_000.0)
    }

    #[test]
    fn higher_precedences_are_dropped_first() {
        let config = Config { max_th: Limit::Packets(50), ..Config::default() };
        assert_eq!(dropped(config, 22), [0.0; 3]);
        let [first, second, third] = dropped(config, 30);
        // At 30 packets: none of the first; 0.1 x 2/22 of the second and 0.1 x 6/26 of the third, spread by their counts.
        assert!(first == 0.0 && (0.005..0.03).contains(&second) && (0.02..0.07).contains(&third), "{second} {third}");
        let [first, second, third] = dropped(config, 36);
        assert!(0.02 < first && first < second && second < third && third < 0.2, "{first} {second} {third}");
        assert_eq!(dropped(config, 60), [1.0; 3]);
    }
}
