//! Capacity vectors: the content of APP packets after their name, and a sender that follows them, over one path and over two.
#![no_main]

use std::sync::OnceLock;
use weir_cc::{Limits, Registry, Setup};
use weir_media::PerfectCodec;
use weir_session::{CallPlan, Control, Datagram, EndConfig, EndName};
use weir_units::{DataRate, Ecn, TimeDelta, Timestamp};
use weir_wire::rtcp::mprtcp::Writer;
use weir_wire::rtcp::{App, CAPACITY_NAME, CapacityVector};

const LIMITS: Limits = Limits { floor: DataRate::from_kbps(50), ceiling: DataRate::from_kbps(2_000) };
/// The longest vector whose values may be followed, and the parts in which longer inputs are read.
const PART: usize = 12 + 8 * CapacityVector::MAX_ENTRIES;

fn control() -> Control {
    static REGISTRY: OnceLock<Registry> = OnceLock::new();
    let setup = Setup {
        limits: LIMITS,
        start_rate: DataRate::from_kbps(500),
        now: Timestamp::ZERO,
        seed: 1,
        params: vec![],
    };
    Control::new(REGISTRY.get_or_init(Registry::builtin), "sluice+map", &setup).expect("built in")
}

/// A sender hears the packets a second after each other; over two paths each in a block of a path that is there or not.
fn follow(packets: &[Vec<u8>], paths: u8) {
    let source = PerfectCodec::frames(TimeDelta::from_millis(40), Timestamp::ZERO).into();
    let config = EndConfig { ssrc: 2, remote_ssrc: 7, capacity_vectors: true, ..EndConfig::default() };
    let mut plan = CallPlan::of_source(control(), source, config, EndName { cname: "b".into(), seed: 2 });
    for _ in 1..paths {
        plan.add_path(control());
    }
    let (mut end, _) = plan.into_ends(Timestamp::ZERO).expect("two sources");
    for (packet, second) in packets.iter().zip(1..) {
        let now = Timestamp::from_secs(second);
        let mut block = Vec::new();
        let mut writer = Writer::new(&mut block, 7, 2);
        for subflow in 0..=u16::from(paths) {
            writer.reports(subflow, |out| out.extend_from_slice(packet));
        }
        writer.finish();
        let heard = if paths > 1 { &block } else { packet };
        end.handle_datagram(now, &Datagram::new(heard, Ecn::NotEct));
        end.handle_timeout(now);
        let rate = end.target().expect("it sends").media_rate;
        assert!(rate >= LIMITS.floor && rate.as_bps() <= LIMITS.ceiling.as_bps() * u64::from(paths), "{rate}");
    }
    let c = end.stats().counters().vectors;
    let heard = c.accepted + c.repeated + c.stale + c.foreign + c.faulty;
    assert!(heard <= u64::from(paths) * packets.len() as u64 && c.contradicted <= c.accepted);
    assert!(c.not_agreed == 0 && c.of_no_path == 0);
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
    follow(&packets, 1);
    follow(&packets, 2);
});
