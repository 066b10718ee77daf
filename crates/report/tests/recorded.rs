//! A run as a recorded call: the same packets as in the result, and causes that the scenario has.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use weir_cc::Registry;
use weir_lab::run::RunOptions;
use weir_lab::scenario::ScenarioFile;
use weir_report::recorded;
use weir_timeline::why::{EpisodeKind, Level, explain};

fn recorded(link: &str) -> (weir_lab::results::RunResult, Vec<recorded::RecordedFlow>) {
    let text = format!(
        "title = \"A call\"\nduration = \"60 s\"\n\n[links.access]\ndelay = \"30 ms\"\n{link}\n\n[rtp.call]\ncontroller = \"gcc\"\n\
         ceiling = \"2500 kbps\"\n\n[udp.other]\nrate = \"100 kbps\"\n"
    );
    let registry = Registry::builtin();
    let stop = AtomicBool::new(false);
    let options = RunOptions { registry: &registry, series: true, stop: &stop, progress: &|_| {} };
    let file = ScenarioFile::parse("call", &text, Path::new("."), &registry).expect("a scenario");
    let scenario = file.one(None, None, &registry).expect("one run");
    recorded::run(&scenario, 1, &options).expect("it runs")
}

#[test]
fn both_ends_see_the_packets_of_the_result() {
    let (result, calls) = recorded("rate = \"2 Mbps\"\nqueue = \"100 ms\"\nloss = 0.02");
    let [call] = &calls[..] else { panic!("{} calls", calls.len()) };
    let [sender, receiver] = &call.call.recordings[..] else { panic!("two ends") };
    let (sent, received) = (sender.counts(), receiver.counts());
    let flow = &result.flows[0];
    assert_eq!((call.name.as_str(), sent.sent, received.received), ("call", flow.packets.sent, flow.packets.received));
    assert!(flow.packets.received < flow.packets.sent && flow.packets.sent > 5_000);
    assert!(sender.reported.len() > 5_000 && !sender.estimates.is_empty());
    // The result is that of a run without a recording.
    assert_eq!(sender.faults.len() + receiver.faults.len(), 0);
}

#[test]
fn a_fall_of_the_capacity_is_named() {
    let steps = "rate.steps = [{ at = \"0 s\", rate = \"3 Mbps\" }, { at = \"30 s\", rate = \"700 kbps\" }]\nqueue = \"300 ms\"";
    let (_, calls) = recorded(steps);
    let found = explain(&calls[0].call);
    assert_eq!(found.level, Level::Packets);
    let fall = found.episodes.iter().find(|e| e.kind == EpisodeKind::Fall && (28_000..33_000).contains(&e.from_ms));
    let fall = fall.unwrap_or_else(|| panic!("{:?}", found.episodes));
    assert_eq!(fall.causes[0].name, "capacity-fell", "{fall:?}");
    assert!(fall.causes[0].confidence > 0.5);
}

#[test]
fn an_outage_is_named_and_a_steady_link_has_no_fall() {
    let outage = "rate.steps = [{ at = \"0 s\", rate = \"3 Mbps\" }, { at = \"30 s\", rate = \"0 bps\" }, { at = \"33 s\", rate = \"3 Mbps\" }]\nqueue = \"300 ms\"";
    let found = explain(&recorded(outage).1[0].call);
    let named = found.episodes.iter().filter(|e| (29_000..34_000).contains(&e.from_ms));
    assert!(named.flat_map(|e| &e.causes).any(|c| c.name == "outage"), "{:?}", found.episodes);
    let steady = explain(&recorded("rate = \"3 Mbps\"\nqueue = \"300 ms\"").1[0].call);
    assert!(steady.episodes.iter().all(|e| e.kind != EpisodeKind::Fall), "{:?}", steady.episodes);
}
