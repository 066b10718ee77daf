//! Repair packets (FlexFEC-03, and ULPFEC in RED) for a browser that requests nothing again.

use crate::browser::Browser;
use crate::{codecs, config};
use serde_json::{Value, json};
use std::sync::Arc;
use weir_cc::Registry;
use weir_media::VideoCodec;
use weir_path::{LinkConfig, Loss};
use weir_peer::call::LinkPlan;
use weir_peer::server::{ServerConfig, serve};
use weir_units::{DataRate, TimeDelta};

/// A call of a browser, as in the table of other programs' calls.
const CALL: &str = include_str!("../../examples/interop/browser_peer.js");

/// Share of packets lost.
const LOSS: f64 = 0.01;
/// With it packets 28, 81, 153, 222 and so on are lost, at least 45 apart: no two that one repair packet is for.
const SEED: u64 = 45;

/// Through a link that loses packets, without retransmissions.
pub(crate) async fn replaces_what_nobody_requests(browser: &mut Browser) {
    call(browser, true).await;
    // There is no ULPFEC with H.264.
    if codecs()[0].0 == VideoCodec::Vp8 {
        call(browser, false).await;
    }
}

async fn call(browser: &mut Browser, flexfec: bool) {
    let (codec, name) = codecs()[0];
    let constant = LinkConfig::constant(DataRate::from_mbps(10), TimeDelta::from_millis(20));
    let lossy = LinkConfig { loss: Loss::Independent { share: LOSS }, ..constant.clone() };
    let link = LinkPlan { forward: vec![lossy], reverse: vec![constant], seed: SEED, network: None };
    let config = ServerConfig { link: Some(link), ..config(codec, false) };
    let service = serve(config, Arc::new(Registry::builtin())).await.expect("started");
    browser.open("about:blank", 1280, 900).await;
    browser.open(&service.page(), 1280, 900).await;
    browser.until("document.body.dataset.ready === 'yes'").await;
    let told = json!({
        "token": service.token, "way": "whep", "codec": name, "seconds": 4, "size": [320, 180], "nack": false, "fec": true,
        "flexfec": flexfec,
    });
    let said = browser.eval(&format!("({CALL})({told})")).await;
    let said: Value = serde_json::from_str(said.as_str().expect("text")).expect("JSON");
    let calls = service.stop().await;
    let t = calls[0].1.totals;
    let more = |name: &str| said["more"][name].as_u64().expect("counted");
    assert_eq!((&said["error"], t.retransmitted, t.key_frame_requests), (&Value::Null, 0, 0), "{said} {t:?}");
    // One in eight, or in four of key frames.
    if !flexfec {
        // Chromium counts no repair packets that are in RED: pictures go on by nothing else.
        eprintln!("ULPFEC: {said} {t:?}");
        let answer = said["answer"].as_str().expect("text");
        assert!(answer.contains("ulpfec/90000") && !answer.contains("flexfec"), "{answer}");
        assert!(t.fec_sent > 15 && t.packets_sent / 12 < t.fec_sent, "{t:?}");
        assert!(
            more("packetsLost") > 1 && said["frames"].as_u64().is_some_and(|n| n > t.frames_sent / 2),
            "{said} {t:?}"
        );
        return;
    }
    let received = said["fec"].as_u64().expect("counted");
    assert!(t.fec_sent >= received && received > 15 && t.packets_sent / 12 < t.fec_sent, "{received} {t:?}");
    assert!(more("fecBytesReceived") > 100 * received && t.fec_bytes_sent > 100 * t.fec_sent, "{said} {t:?}");
    // Packets were lost, none was sent again, and pictures went on.
    assert!(more("packetsLost") > 1 && said["frames"].as_u64().is_some_and(|n| n > t.frames_sent / 2), "{said} {t:?}");
}
