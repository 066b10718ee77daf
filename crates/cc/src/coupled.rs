//! Coupled congestion control: flows over one bottleneck share it as one flow would, in the proportions wanted.
//!
//! | type | follows |
//! |---|---|
//! | [`FlowStateExchange`] | RFC 8699: rates of several flows, divided among them at each update |
//! | [`Detector`] | RFC 8382: which flows share a bottleneck, from the shape of their delays |
//! | [`DelayCorrelation`] | which flows of one sender share a bottleneck, from delays that change together |
//! | [`Link`] | RFC 6356: how far the windows of a connection's subflows grow together |
//!
//! A flow is one path of a call, or one of several calls from a host. All see numbers only.

mod correlation;
mod flow_state;
mod linked_increase;
mod shared_bottleneck;

pub use correlation::DelayCorrelation;
pub use flow_state::{Division, FlowNumber, FlowStateExchange, Group, Update};
pub use linked_increase::{Link, Subflow};
pub use shared_bottleneck::{Config as DetectorConfig, Detector, Summary};

#[cfg(test)]
mod tests {
    use crate::{Controller, Coupled, Limits, Registry, Setup};
    use weir_units::{DataRate, Timestamp};

    #[test]
    fn every_controller_with_a_rate_continues_from_the_one_that_its_group_leaves_it() {
        let registry = Registry::builtin();
        let limits = Limits { floor: DataRate::from_kbps(100), ceiling: DataRate::from_mbps(3) };
        let start_rate = DataRate::from_kbps(500);
        let mut coupled = 0;
        // Sluice measures its rate, so that another would not last: the share alone moves it.
        for spec in registry.specs().filter(|s| s.name != "sluice") {
            let setup = Setup { limits, start_rate, now: Timestamp::ZERO, seed: 1, params: vec![] };
            let mut sender = registry.make(&spec.name, &setup).expect("the defaults are valid").sender;
            if sender.coupled_rate().is_none() {
                continue;
            }
            coupled += 1;
            for (given, kept) in [(900, 900), (300, 300), (9_000, 3_000), (20, 100)] {
                let rate = Some(DataRate::from_kbps(given));
                sender.on_coupled(&Coupled { rate, increase: 0.5 }, Timestamp::ZERO);
                assert_eq!(sender.coupled_rate(), Some(DataRate::from_kbps(kept)), "{}", spec.name);
            }
        }
        assert!(coupled >= 9, "{coupled}");
    }
}
