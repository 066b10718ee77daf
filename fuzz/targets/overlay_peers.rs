//! Control messages of an overlay without a focus; the first byte selects the message.
#![no_main]

use weir_wire::rtcp::App;
use weir_wire::rtcp::overlay_peers::{MAX_ADDRESSES, MAX_PATH, PEERS_NAME, PeerMessage, Peers};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((&subtype, data)) = data.split_first() else { return };
    let data = &data[..data.len() & !3];
    let app = App { subtype: subtype & 0x1f, ssrc: 7, name: PEERS_NAME, data };
    let Some(peers) = Peers::from_app(&app) else { return };
    if let PeerMessage::Kin(kin) = &peers.message {
        assert!(kin.path.as_slice().len() <= MAX_PATH && kin.relatives.as_slice().len() <= MAX_ADDRESSES);
    }
    let mut written = Vec::new();
    peers.write_into(&mut written);
    // The common header, the SSRC and the name.
    let again = App { data: &written[12..], ..app };
    assert_eq!(Peers::from_app(&again), Some(peers));
    weir_fuzz::rtcp(&written);
});
