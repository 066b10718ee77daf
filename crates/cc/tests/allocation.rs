//! No allocation per packet in steady state, for every built-in controller together with the sent history.

use weir_cc::algorithms::{Fixed, FixedConfig};
use weir_cc::drive::Drive;
use weir_cc::{Pair, Registry, Sender, Spec};

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
    for spec in registry.specs().chain(registry.probing_specs()) {
        for one_lost_of in [None, Some(37)] {
            let count = allocations(&registry, &spec.name, one_lost_of);
            assert_eq!(count, 0, "{} allocates, one lost of {one_lost_of:?}", spec.name);
        }
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
