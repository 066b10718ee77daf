//! Capacity vectors: the content of APP packets after their name, and a sender that follows them.
#![no_main]

use std::sync::OnceLock;
use weir_cc::{Limits, Registry, Setup};
use weir_media::PerfectCodec;
use weir_session::{CallPlan, Control, Datagram, EndConfig, EndName};
use weir_units::{DataRate, Ecn, TimeDelta, Timestamp};
use weir_wire::rtcp::{App, CAPACITY_NAME, CapacityVector};

const LIMITS: Limits = Limits { floor: DataRate::from_kbps(50), ceiling: DataRate::from_kbps(2_000) };
/// The longest vector whose values may be followed, and the parts in which longer inputs are read.
const PART: usize = 12 + 8 * CapacityVector::MAX_ENTRIES;

fn follow(packets: &[Vec<u8>]) {
    static REGISTRY: OnceLock<Registry> = OnceLock::new();
    let setup = Setup {
        limits: LIMITS,
        start_rate: DataRate::from_kbps(500),
        now: Timestamp::ZERO,
        seed: 1,
        params: vec![],
    };
    let control = Control::new(REGISTRY.get_or_init(Registry::builtin), "sluice+map", &setup).expect("built in");
    let source = PerfectCodec::frames(TimeDelta::from_millis(40), Timestamp::ZERO).into();
    let config = EndConfig { ssrc: 2, remote_ssrc: 7, capacity_vectors: true, ..EndConfig::default() };
    let plan = CallPlan::of_source(control, source, config, EndName { cname: "b".into(), seed: 2 });
    let (mut end, _) = plan.into_ends(Timestamp::ZERO).expect("two sources");
    for (packet, second) in packets.iter().zip(1..) {
        let now = Timestamp::from_secs(second);
        end.handle_datagram(now, &Datagram::new(packet, Ecn::NotEct));
        end.handle_timeout(now);
        let rate = end.target().expect("it sends").media_rate;
        assert!(rate >= LIMITS.floor && rate <= LIMITS.ceiling, "{rate}");
    }
    let c = end.stats().counters().vectors;
    let heard = c.accepted + c.repeated + c.stale + c.foreign + c.faulty;
    assert!(heard <= packets.len() as u64 && c.contradicted <= c.accepted && c.not_agreed == 0);
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let data = &data[..data.len() & !3];
    let mut packets = Vec::new();
    for data in [data].into_iter().chain(data.chunks(PART).skip(usize::from(data.len() <= PART))) {
        let app = App { subtype: 0, ssrc: 7, name: CAPACITY_NAME, data };
        let mut packet = Vec::new();
        app.write_into(&mut packet);
        weir_fuzz::rtcp(&packet);
        if let Some(vector) = CapacityVector::from_app(&app).filter(|v| v.check().is_ok()) {
            assert!(vector.entries.len() <= CapacityVector::MAX_ENTRIES && packet.len() <= 12 + PART);
            assert!(vector.entries.iter().all(|e| e.confidence == 0 || e.median.rate() <= CapacityVector::MAX_RATE));
        }
        packets.push(packet);
    }
    follow(&packets);
});
