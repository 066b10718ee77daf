use super::*;
use std::sync::atomic::AtomicBool;

/// One run of a call with frames.
fn result() -> (Scenario, RunResult) {
    let registry = Registry::builtin();
    let text = "title = \"x\"\nduration = \"10 s\"\n[links.b]\nrate = \"1 Mbps\"\ndelay = \"20 ms\"\n[rtp.v]\n\
                controller = \"gcc\"\nplayout_deadline = \"300 ms\"\n";
    let file = ScenarioFile::parse("x", text, Path::new("."), &registry).expect("a scenario");
    let scenario = file.one(None, None, &registry).expect("one");
    let stop = AtomicBool::new(false);
    let options = RunOptions { registry: &registry, series: true, stop: &stop, progress: &|_| {} };
    let result = run(&scenario, 1, &options).expect("runs");
    assert_eq!(check(&scenario, &result).1, []);
    (scenario, result)
}

#[test]
fn each_kind_of_contradiction_is_found() {
    let (scenario, sound) = result();
    let found = |change: &dyn Fn(&mut RunResult), says: &str| {
        let mut result = sound.clone();
        change(&mut result);
        let all = check(&scenario, &result).1;
        assert!(all.iter().any(|f| f.says.contains(says)), "{says}: {all:#?}");
    };
    found(&|r| r.flows[0].rates.goodput_bps = 1.2 * r.flows[0].rates.sent_bps, "goodput in bit/s");
    found(&|r| r.flows[0].utilisation_goodput = Some(1.1), "above the whole 1");
    found(&|r| r.flows[0].packets.received = r.flows[0].packets.sent + 1, "packets received or dropped");
    found(&|r| r.flows[0].loss += 0.01, "differs from packets dropped");
    found(&|r| r.flows[0].one_way_delay_ms.as_mut().expect("some").min = 19.9, "the path's delay in ms 20 above");
    found(&|r| r.flows[0].one_way_delay_ms.as_mut().expect("some").p50 = 1e4, "delay's median");
    found(&|r| r.flows[0].rtt_ms = Some(30.0), "the path's round trip");
    found(&|r| r.flows[0].rates.sent_bps = f64::NAN, "NaN");
    found(&|r| r.flows[0].frames.as_mut().expect("some").lost += 1, "frames with a known fate");
    found(
        &|r| r.flows[0].frames.as_mut().expect("some").delay_ms.as_mut().expect("some").min = 1.0,
        "delay of a frame",
    );
    found(&|r| r.series.as_mut().expect("some").flows[0].goodput_bps.fill(1.0), "bits of the series of goodput");
    found(&|r| r.links[0].capacity_bps = Some(1e5), "those that the link carries");
}
