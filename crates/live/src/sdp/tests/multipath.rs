//! Interfaces in descriptions, and the paths between two ends.

use super::*;

/// An end with these interfaces, which supports multipath RTP.
fn multihomed(port: u16, interfaces: &[SocketAddr]) -> Description {
    with(end(port), |m| {
        m.extensions.push((6, Extension::Mprtp));
        m.transport.as_mut().unwrap().interfaces = Some(interfaces.to_vec());
    })
}

#[test]
fn paths_join_interfaces_in_order_and_the_first_stands_in() {
    let at = |n: u8, port: u16| SocketAddr::from(([192, 0, 2, n], port));
    let offer = multihomed(5_004, &[at(1, 5_004), at(2, 40_000), at(3, 40_001)]);
    let text = offer.to_sdp();
    for line in [
        "a=mprtp interface:1 192.0.2.1:5004",
        "a=mprtp interface:3 192.0.2.3:40001",
        "a=extmap:6 urn:ietf:params:rtp-hdrext:mprtp",
    ] {
        assert!(text.contains(line), "{text}");
    }
    assert_eq!(parsed(&offer), offer);
    let two = multihomed(5_010, &[at(1, 5_010), at(9, 41_000)]);
    let (answer, there) = two.answer(&parsed(&offer)).unwrap();
    assert_eq!(there.paths, [at(1, 5_004), at(2, 40_000), at(3, 40_001)]);
    let here = offer.accept(&parsed(&answer)).unwrap();
    assert_eq!(here.paths, [at(1, 5_010), at(9, 41_000), at(1, 5_010)]);
    assert_eq!((here.remote, here.extension(Extension::Mprtp)), (at(1, 5_010), Some(6)));
    // An end of one address says so, and one that does not know multipath RTP gets one path.
    let one = multihomed(5_020, &[at(1, 5_020)]);
    let (answer, there) = one.answer(&parsed(&offer)).unwrap();
    assert!(answer.to_sdp().contains("a=mprtp\r\n") && there.paths.len() == 3);
    assert_eq!(offer.accept(&parsed(&answer)).unwrap().paths, [at(1, 5_020); 3]);
    let (answer, there) = end(5_030).answer(&parsed(&offer)).unwrap();
    assert!(!answer.to_sdp().contains("mprtp") && there.paths == [at(1, 5_004)]);
    assert_eq!(offer.accept(&parsed(&answer)).unwrap().paths, [at(1, 5_030)]);
    let (answer, _) = two.answer(&parsed(&end(5_040))).unwrap();
    assert!(!answer.to_sdp().contains("mprtp"), "{}", answer.to_sdp());
}

#[test]
fn interfaces_of_a_stranger_are_hosts_and_at_most_eight() {
    let at = |n: u8| SocketAddr::from(([192, 0, 2, n], 40_000));
    let text = multihomed(5_004, &(1..=200).map(at).collect::<Vec<_>>()).to_sdp();
    let read = Description::parse(&text).unwrap();
    let interfaces = read.media().next().unwrap().transport.as_ref().unwrap().interfaces.clone().unwrap();
    assert_eq!(interfaces.len(), 8);
    let two = multihomed(5_004, &[at(1), at(2)]).to_sdp();
    for bad in ["224.0.0.1:5", "0.0.0.0:5", "192.0.2.2:0", "192.0.2.2", "255.255.255.255:9", "host:9", ""] {
        let error = Description::parse(&two.replace("192.0.2.2:40000", bad)).unwrap_err();
        assert!(error.to_string().contains("a=mprtp interface") && error.to_string().contains("line"), "{error}");
    }
}
