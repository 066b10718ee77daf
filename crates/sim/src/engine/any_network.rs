//! Random networks with random traffic: all packets are accounted for, nothing hangs, and runs are repeatable.

use super::tests::{sink, source};
use super::*;
use crate::observer::StreamHash;
use crate::tcp::{Receiver, Sender, TcpConfig, Variant, Workload};
use crate::{Distribution, Endpoint, Packet, Place, Route, udp};
use proptest::prelude::*;
use std::collections::BTreeMap;
use weir_path::queue::drop_tail;
use weir_path::{
    Capacity, Discipline, DropReason, Jitter, JitterShape, Limit, Loss, LossPosition, Reordering, Schedule, Step,
};
use weir_units::{DataRate, DataSize, TimeDelta};

fn any_link() -> impl Strategy<Value = LinkConfig> {
    let rate = || prop_oneof![1 => Just(0u64), 8 => 20_000u64..50_000_000].prop_map(DataRate::from_bps);
    let step = move |(first, second, third): (DataRate, DataRate, DataRate)| {
        let at = |ms, rate| Step { at: TimeDelta::from_millis(ms), rate };
        let steps = vec![at(0, first), at(700, second), at(1_900, third)];
        Capacity::Schedule(Schedule::new(steps, Some(TimeDelta::from_secs(3))).expect("valid"))
    };
    let capacity = prop_oneof![
        4 => rate().prop_map(Capacity::Constant),
        2 => (rate(), rate(), rate()).prop_map(step),
        1 => Just(Capacity::Unlimited),
    ];
    let limit = prop_oneof![
        Just(Limit::Unlimited),
        (1u64..100_000).prop_map(|b| Limit::Size(DataSize::from_bytes(b))),
        (1u32..200).prop_map(Limit::Packets),
        (1i64..500).prop_map(|ms| Limit::Time(TimeDelta::from_millis(ms))),
    ];
    let loss = prop_oneof![2 => Just(Loss::None), 1 => (0.0..0.3).prop_map(|share| Loss::Independent { share })];
    let jitter = (1i64..100, any::<bool>()).prop_map(|(ms, may_reorder)| Jitter {
        shape: JitterShape::Uniform { max: TimeDelta::from_millis(ms) },
        may_reorder,
    });
    let reordering =
        (0.0..0.5, 1i64..200).prop_map(|(share, ms)| Reordering { share, extra: TimeDelta::from_millis(ms) });
    let rare = |p| prop::option::weighted(p, 1u32..100);
    let discipline = prop_oneof![
        3 => Just(Discipline::default()),
        1 => (1u32..100).prop_map(|n| Discipline::DropTail(drop_tail::Config { ecn_threshold: Limit::Packets(n) })),
        4 => prop::sample::select(Discipline::all()),
    ];
    let chance = (loss, any::<bool>(), prop::option::weighted(0.3, jitter), prop::option::weighted(0.3, reordering));
    (capacity, limit, 0i64..200, rare(0.3), discipline, chance).prop_map(
        |(capacity, limit, ms, copies, discipline, (loss, entry, jitter, reordering))| {
            let mut c = LinkConfig::constant(DataRate::ZERO, TimeDelta::from_millis(ms));
            (c.capacity, c.limit, c.loss, c.jitter, c.reordering) = (capacity, limit, loss, jitter, reordering);
            c.loss_position = if entry { LossPosition::Entry } else { LossPosition::Exit };
            c.discipline = discipline;
            c.duplication = copies.map_or(0.0, |k| f64::from(k) / 200.0);
            c
        },
    )
}

#[derive(Clone, Debug)]
struct Flow {
    kind: u8,
    start_ms: i64,
    stop_ms: Option<i64>,
    turned: bool,
    seed: u64,
}

fn any_flow() -> impl Strategy<Value = Flow> {
    (0u8..6, 0i64..3_000, prop::option::weighted(0.3, 0i64..10_000), any::<bool>(), any::<u64>())
        .prop_map(|(kind, start_ms, stop_ms, turned, seed)| Flow { kind, start_ms, stop_ms, turned, seed })
}

fn ends(flow: &Flow) -> (Endpoint, Endpoint) {
    let variant = Variant::ALL[flow.seed as usize % Variant::ALL.len()];
    let tcp = |workload| {
        let c = TcpConfig {
            ecn: if flow.seed & 2 == 0 { variant.with_ecn() } else { variant.ecn() },
            sack: flow.seed & 12 != 0 || variant.models_path(),
            hystart: flow.seed & 64 == 0,
            prr: flow.seed & 12 != 0 && flow.seed & 128 == 0,
            ..TcpConfig::of(variant)
        };
        let sender = Sender::new(c, workload).expect("valid");
        (Endpoint::TcpSender(Box::new(sender)), Endpoint::TcpReceiver(Receiver::new(c).expect("valid")))
    };
    let exponential = |mean| Distribution::Exponential { mean };
    match flow.kind {
        0 => (source(500), sink()),
        1 => {
            let config = udp::OnOff { on: exponential(0.5), off: exponential(0.5), seed: flow.seed };
            let s = udp::Source::on_off(DataRate::from_mbps(1), DataSize::from_bytes(700), config).expect("valid");
            (Endpoint::UdpSource(s), sink())
        }
        2 => tcp(Workload::Transfer { size: DataSize::from_bytes(flow.seed % 1_000_000) }),
        3 => tcp(Workload::OnOff {
            size: exponential(20_000.0),
            off: exponential(0.2),
            starts_on: false,
            persistent: false,
            seed: flow.seed,
        }),
        _ => tcp(Workload::Bulk),
    }
}

/// A digest of what each place sees, in its order: of both ends of each link, and of each agent.
#[derive(Default)]
struct PlaceHash {
    all: StreamHash,
    places: BTreeMap<(u8, usize), StreamHash>,
}

impl PlaceHash {
    fn at(&mut self, kind: u8, index: usize) -> &mut StreamHash {
        self.places.entry((kind, index)).or_default()
    }
}

impl Observer for PlaceHash {
    fn on_sent(&mut self, now: Timestamp, from: AgentId, packet: &Packet) {
        self.all.on_sent(now, from, packet);
        self.at(0, from.index()).on_sent(now, from, packet);
    }
    fn on_enqueued(&mut self, now: Timestamp, link: LinkId, from: AgentId, packet: &Packet) {
        self.all.on_enqueued(now, link, from, packet);
        self.at(1, link.index()).on_enqueued(now, link, from, packet);
    }
    fn on_forwarded(&mut self, now: Timestamp, link: LinkId, from: AgentId, packet: &Packet, queued_for: TimeDelta) {
        self.all.on_forwarded(now, link, from, packet, queued_for);
        self.at(2, link.index()).on_forwarded(now, link, from, packet, queued_for);
    }
    fn on_dropped(&mut self, now: Timestamp, place: Place, from: AgentId, packet: &Packet) {
        self.all.on_dropped(now, place, from, packet);
        // Before a link and behind it are different places.
        let kind = match place {
            Place::Link(_, DropReason::Queue | DropReason::Policer) => 3,
            Place::Link(_, DropReason::RandomLoss) => 4,
            Place::Agent(_) => 7,
            Place::Link(_, DropReason::Aqm) => 6,
        };
        let index = match place {
            Place::Link(link, _) => link.index(),
            Place::Agent(agent) => agent.index(),
        };
        self.at(kind, index).on_dropped(now, place, from, packet);
    }
    fn on_delivered(&mut self, now: Timestamp, to: AgentId, from: AgentId, packet: &Packet) {
        self.all.on_delivered(now, to, from, packet);
        self.at(5, to.index()).on_delivered(now, to, from, packet);
    }
}

/// The digest of everything, those of the places, totals, and whether the network was divided.
type Seen = (u64, BTreeMap<(u8, usize), StreamHash>, Totals, bool);

fn run(links: &[(LinkConfig, LinkConfig)], flows: &[Flow], seed: u64, may_divide: bool) -> Result<Seen, TestCaseError> {
    let mut sim = Simulator::with_observer(seed, PlaceHash::default());
    let mut route = Route::default();
    for (forward, reverse) in links {
        let hop = Route {
            forward: vec![sim.add_link(forward).expect("valid")],
            reverse: vec![sim.add_link(reverse).expect("valid")],
        };
        route = route.then(&hop);
    }
    for flow in flows {
        let (a, b) = ends(flow);
        let start = Timestamp::from_millis(flow.start_ms);
        let (a, b) = (sim.add_agent(a, start), sim.add_agent(b, Timestamp::ZERO));
        sim.connect(a, b, &if flow.turned { route.turned() } else { route.clone() });
        if let Some(ms) = flow.stop_ms {
            sim.stop_agent(a, Timestamp::from_millis(ms));
        }
    }
    let is_divided = may_divide && sim.divide();
    for s in 1..=8 {
        prop_assert_eq!(sim.run_until(Timestamp::from_secs(s)), Outcome::Reached);
        let t = sim.totals();
        prop_assert_eq!(t.sent + t.duplicated, t.delivered + t.dropped + t.inside);
        // A copy that has not reached the end of its link is counted by the link.
        let (mut held, mut copies) = (0, 0);
        for k in 0..sim.link_count() {
            let link = sim.link(LinkId(k as u32));
            held += link.packets_inside() as u64;
            copies += link.stats().duplicated.packets;
        }
        prop_assert_eq!(t.inside + copies - t.duplicated, held);
    }
    let totals = sim.totals();
    let seen = sim.into_observer();
    Ok((seen.all.value(), seen.places, totals, is_divided))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn books_balance_and_twice_is_the_same(
        links in prop::collection::vec((any_link(), any_link()), 1..4), flows in prop::collection::vec(any_flow(), 1..6), seed: u64,
    ) {
        let once = run(&links, &flows, seed, false)?;
        prop_assert_eq!(&once, &run(&links, &flows, seed, false)?);
        // Simulated apart, each place sees the same.
        let apart = run(&links, &flows, seed, true)?;
        prop_assert_eq!(once.1, apart.1, "divided: {}", apart.3);
        // A timer that is too early is an event, and is set at other times there.
        prop_assert_eq!(Totals { events: 0, ..once.2 }, Totals { events: 0, ..apart.2 });
    }
}
