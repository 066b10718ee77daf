//! Captures of DCCP flows, as tshark reads them.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use weir_cc::Registry;
use weir_lab::run::{CapturePoint, RunOptions};
use weir_lab::scenario::ScenarioFile;
use weir_report::capture::{self, CaptureOptions};

const SCENARIO: &str = r#"
title = "Two DCCP flows and a call over DCCP on a link that loses"
duration = "3 s"

[links.bottleneck]
rate = "2 Mbps"
delay = "20 ms"
queue = "100 ms"
loss = 0.02

[rtp.call]
controller = "ccid3"

[dccp.window]
ccid = 2
connection = { ecn = true, short_sequence_numbers = true }

[dccp.rate]
ccid = 3
"#;

/// Tshark's fields of each packet: source, type, checksum, expert messages, ECN field, length of data.
fn dissected(file: &Path) -> Option<Vec<[String; 6]>> {
    let fields = ["ip.src", "dccp.type", "dccp.checksum.status", "_ws.expert.message", "ip.dsfield.ecn", "data.len"];
    let mut tshark = Command::new("tshark");
    tshark.args(["-o", "dccp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"]);
    tshark.args(["-T", "fields", "-E", "separator=|", "-r"]).arg(file);
    fields.iter().for_each(|f| {
        tshark.args(["-e", f]);
    });
    let Ok(out) = tshark.output() else {
        println!("tshark is not installed (apt-get install tshark): dissection not checked");
        return None;
    };
    let text = String::from_utf8_lossy(&out.stdout);
    let row = |l: &str| {
        let all: Vec<String> = l.split('|').map(str::to_owned).collect();
        all.try_into().unwrap_or_else(|_| panic!("six fields: {l}"))
    };
    Some(text.lines().map(row).collect())
}

#[test]
fn tshark_reads_captures_of_dccp_flows() {
    let registry = Registry::builtin();
    let file = ScenarioFile::parse("two", SCENARIO, Path::new("."), &registry).expect("a scenario");
    let scenario = file.scenario(None, None, &registry).expect("without variants");
    // Senders are 10.0.x.y and receivers 10.1.x.y, x.y being the flow's number plus one.
    let address = |flow: &str, end: u8| {
        let i = scenario.flows.iter().position(|f| f.name == flow).expect("a flow");
        format!("10.{end}.0.{}", i + 1)
    };
    let stop = AtomicBool::new(false);
    let options = RunOptions { registry: &registry, series: false, stop: &stop, progress: &|_| {} };
    let folder = tempfile::tempdir().expect("a folder");
    for zeros in [false, true] {
        let path = folder.path().join("run.pcapng");
        let (_, packets) =
            capture::write(&scenario, 1, &options, &path, CaptureOptions { at: CapturePoint::Receiver, zeros })
                .expect("written");
        let Some(mut rows) = dissected(&path) else { return };
        // The call's announcement.
        assert!(!rows.is_empty() && rows.remove(0)[1].is_empty());
        assert_eq!(rows.len() as u64, packets);
        let mut types: BTreeMap<(&str, &str), u32> = BTreeMap::new();
        let mut capable = 0;
        for [source, packet_type, checksum, expert, ecn, data] in &rows {
            assert_eq!(expert, "", "{source} {packet_type}");
            let is_call = [0, 1].iter().any(|&end| *source == address("call", end));
            // A packet that is cut short cannot be checked. RTCP is not.
            let whole = zeros || !matches!(packet_type.as_str(), "2" | "4");
            let short = if is_call { ["1", "2"] } else { ["2"; 2] };
            let right = if whole { ["1"; 2] } else { short };
            assert!(right.contains(&checksum.as_str()), "{checksum}: {source} {packet_type}");
            assert!(!zeros || packet_type != "2" || data == "1400" || is_call, "{data} bytes of data");
            *types.entry((source, packet_type)).or_default() += 1;
            capable += u32::from(ecn == "2");
        }
        // A Request and a Response each, data in one direction, acknowledgements in the other.
        for (flow, least) in [("call", 30), ("window", 100), ("rate", 20)] {
            for (end, packet_type, least) in [(0, "0", 1), (1, "1", 1), (0, "2", least), (1, "3", least / 2)] {
                let end = address(flow, end);
                let seen = types.get(&(end.as_str(), packet_type)).copied().unwrap_or(0);
                assert!((least..2_000).contains(&seen), "{seen} of type {packet_type} from {flow}'s {end}: {types:?}");
            }
        }
        assert!(capable > 100, "{capable} packets as ECT(0)");
    }
}
