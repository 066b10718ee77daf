//! RTP headers and their extensions: parsed packets are written to something that parses equally.
#![no_main]

use weir_wire::ntp::NtpTime;
use weir_wire::rtp::extension::{ntp_56, ntp_64, read_ntp_56, read_ntp_64};
use weir_wire::rtp::mprtp::SubflowNumber;
use weir_wire::rtp::{Header, PacketView, write_padding};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = weir_wire::kind_of(data);
    if let Ok(v) = PacketView::parse_header(data) {
        assert!(v.header_len() + v.payload().len() == data.len());
    }
    let Ok(v) = PacketView::parse(data) else { return };
    let (csrcs, elements): (Vec<_>, Vec<_>) = (v.csrcs().collect(), v.extensions().collect());
    let header = Header {
        payload_type: v.payload_type(),
        marker: v.marker(),
        sequence: v.sequence(),
        timestamp: v.timestamp(),
        ssrc: v.ssrc(),
        csrcs: &csrcs,
        elements: &elements,
        padding: v.padding(),
        ..Header::default()
    };
    let mut out = Vec::new();
    header.write_into(&mut out);
    out.extend_from_slice(v.payload());
    write_padding(&mut out, v.padding());
    let again = PacketView::parse(&out).expect("what is written can be read");
    assert!(again.csrcs().eq(v.csrcs()));
    assert_eq!((again.payload(), again.padding(), again.ssrc()), (v.payload(), v.padding(), v.ssrc()));
    // Growing to the two-byte form can exceed the length field, which then drops elements; this is far beyond any
    // datagram.
    if data.len() < 60_000 {
        assert!(again.extensions().eq(v.extensions()));
    }
    for id in [0, 1, 5, 15, 255] {
        let _ = (v.transport_sequence(id), v.abs_send_time(id));
        let Some(data) = v.extension(id) else { continue };
        if let Some(t) = read_ntp_64(data) {
            assert_eq!((ntp_64(t).as_slice(), read_ntp_56(&ntp_56(t), t)), (data, Some(t)));
        }
        if let Some(number) = SubflowNumber::from_data(data) {
            assert_eq!(number.to_data().as_slice(), data);
        }
        if let Some(t) = read_ntp_56(data, NtpTime::default()) {
            assert_eq!(ntp_56(t).as_slice(), data);
        }
    }
});
