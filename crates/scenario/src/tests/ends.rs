//! Flows between the ends of a program.

use super::*;
use weir_media::resilience::{Choice, Mechanisms};
use weir_session::{FrameRepair, ReceiverModel, RepairChoice, SenderModel};

fn flow(fields: &str) -> RtpFlow {
    only(&format!("{SMALL}{fields}")).flows[0].rtp().expect("a media flow").clone()
}

fn rise(stream: &RtpStream) -> Option<TimeDelta> {
    match stream.source {
        StreamSource::Frames { rise, .. } => Some(rise),
        _ => None,
    }
}

#[test]
fn one_field_says_that_both_ends_are_chromium() {
    let f = flow("ends = \"chromium\"");
    assert_eq!((f.receiver, f.sending.sender), (ReceiverModel::Chromium, SenderModel::Chromium));
    assert_eq!(f.resilience, Some(Choice::Pinned(Mechanisms::NACK)));
    assert_eq!(f.sending.repair, RepairChoice::ByFrames(FrameRepair::Libwebrtc));
    assert!(f.sending.repair_within_rate);
    let names: Vec<&str> = f.streams.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(names, ["speech", "camera"]);
    // The same, written out.
    let long = "floor = \"30 kbps\"\nstart_rate = \"300 kbps\"\nceiling = \"5050 kbps\"\nheader_overhead = \"58 B\"\npayload = \"1150 B\"\n\
        receiver = \"chromium\"\nsender = \"chromium\"\nerror_resilience = [\"nack\"]\nrepair = { code = \"libwebrtc\" }\nstreams = [\
        { name = \"speech\", media = \"audio\", least = \"64 kbps\", most = \"64 kbps\", packet_time = \"20 ms\" },\
        { name = \"camera\", least = \"30 kbps\", coded_most = \"2500 kbps\" }]";
    assert_eq!(f, flow(long));
}

#[test]
fn fields_that_are_written_stay() {
    let f = flow(
        "ends = \"chromium\"\nreceiver = \"weir\"\nsender = \"weir\"\nrepair = { code = \"tambur\" }\nerror_resilience = []\n\
         source = { model = \"perfect-frames\", fps = 60 }",
    );
    assert_eq!((f.receiver, f.resilience, f.streams.len()), (ReceiverModel::Weir, None, 0));
    assert_eq!(f.sending.sender, SenderModel::Weir);
    assert!(matches!(f.sending.repair, RepairChoice::ByFrames(FrameRepair::Tambur(_))));
    assert_eq!(f.source, Source::PerfectFrames { fps: 60.0, rise: TimeDelta::ZERO });
    let f = flow("ends = \"chromium\"\nstreams = [{ name = \"one\" }, { name = \"two\", rise = \"1 s\" }]");
    let rises: Vec<_> = f.streams.iter().map(rise).collect();
    assert_eq!(rises, [Some(TimeDelta::ZERO), Some(TimeDelta::from_secs(1))]);
    assert_eq!(flow("ends = \"chromium\"\nsource = \"perfect-packets\"").source, Source::PerfectPackets);
}

#[test]
fn other_programs_are_faults() {
    let e = parse(&format!("{SMALL}ends = \"chrome\"\n")).expect_err("no such program");
    let shown = format!("{e}\n{}", e.help_text().unwrap_or_default());
    assert!(shown.contains("rtp.video.ends") && shown.contains("did you mean `chromium`?"), "{shown}");
}
