//! No allocation per packet in steady state, for every built-in controller together with the sent history.

use weir_cc::algorithms::{Fixed, FixedConfig};
use weir_cc::coupled::{Division, FlowNumber, FlowStateExchange, Update};
use weir_cc::drive::Drive;
use weir_cc::{Controller, Coupled, Pair, Registry, Sender, Spec};
use weir_units::{TimeDelta, Timestamp};

/// Steps of 100 ms: a minute to fill every history, then ten to check for growth.
const WARM_UP: u32 = 600;
const STEADY: u32 = 6_000;

fn allocations(registry: &Registry, name: &str, one_lost_of: Option<u64>) -> u64 {
    let mut drive = Drive::new(registry, name, one_lost_of).expect("the defaults are valid");
    (0..WARM_UP).for_each(|_| drive.step());
    let counted = allocation_counter::measure(|| (0..STEADY).for_each(|_| drive.step()));
    assert_ne!(drive.checksum(), 0, "it ran");
    counted.count_total
}

#[test]
fn nothing_is_allocated_in_steady_state() {
    let registry = Registry::builtin();
    for spec in registry.specs().chain(registry.probing_specs()).chain(registry.filled_specs()) {
        for one_lost_of in [None, Some(37)] {
            let count = allocations(&registry, &spec.name, one_lost_of);
            assert_eq!(count, 0, "{} allocates, one lost of {one_lost_of:?}", spec.name);
        }
    }
}

/// Two flows of one sender in flow state exchange (RFC 8699), which both take up with each step.
fn couple(drives: &mut [Drive; 2], flows: [FlowNumber; 2], exchange: &mut FlowStateExchange, now: Timestamp) {
    for i in 0..2 {
        drives[i].step();
        let Some(rate) = drives[i].sender().coupled_rate() else { continue };
        if exchange.rate(flows[i]) != Some(rate) {
            exchange.update(flows[i], Update { now, rate, desired: None, rtt: TimeDelta::from_millis(100) });
        }
        for (drive, flow) in drives.iter_mut().zip(flows) {
            drive.sender().on_coupled(&Coupled { rate: exchange.rate(flow), increase: 0.5 }, now);
        }
    }
}

#[test]
fn nothing_is_allocated_by_coupled_flows() {
    let registry = Registry::builtin();
    let mut coupled = Vec::new();
    for spec in registry.specs() {
        let mut drives =
            [None, Some(37)].map(|lost| Drive::new(&registry, &spec.name, lost).expect("the defaults are valid"));
        let Some(rate) = drives[0].sender().coupled_rate() else { continue };
        coupled.push(spec.name.clone());
        let mut exchange = FlowStateExchange::new(Division::Active);
        let flows = [0, 1].map(|_| exchange.register(0, 1.0, rate));
        let mut steps = 0i64;
        let mut run = |count| {
            for _ in 0..count {
                steps += 1;
                couple(&mut drives, flows, &mut exchange, Timestamp::from_millis(100 * steps));
            }
        };
        run(WARM_UP);
        let counted = allocation_counter::measure(|| run(STEADY / 10));
        assert_eq!(counted.count_total, 0, "{} allocates", spec.name);
    }
    for name in ["tfrc", "rrtcc", "gcc-remb", "fbra", "bbr-rtc", "gcc", "nada", "scream"] {
        assert!(coupled.iter().any(|c| c == name), "{name} has a rate to couple");
    }
}

#[test]
fn the_counter_counts() {
    let mut registry = Registry::builtin();
    registry.register(Spec::new("wasteful", "", ""), |_, setup| {
        let fixed = Fixed::new(FixedConfig::default(), &setup.start())?;
        Ok(Pair::alone(Sender::Custom(Box::new(wasteful::Wasteful(fixed, Vec::new())))))
    });
    // A controller that allocates with each packet is detected: 25 packets per step.
    assert!(allocations(&registry, "wasteful", None) >= u64::from(STEADY) * 25);
}

mod wasteful {
    use weir_cc::algorithms::Fixed;
    use weir_cc::cue::SentPacket;
    use weir_cc::{Controller, Cue, Limits, Target};
    use weir_units::Timestamp;

    pub(super) struct Wasteful(pub(super) Fixed, pub(super) Vec<u64>);

    impl Controller for Wasteful {
        fn on_packet_sent(&mut self, packet: &SentPacket) {
            self.1 = std::hint::black_box(vec![packet.sequence]);
        }
        fn on_cue(&mut self, cue: &Cue<'_>) {
            self.0.on_cue(cue);
        }
        fn on_limits(&mut self, limits: Limits, now: Timestamp) {
            self.0.on_limits(limits, now);
        }
        fn target(&self) -> Target {
            self.0.target()
        }
    }
}
