//! A room of two pages, one of them behind a link that gets slow.

use super::browser::Browser;
use super::{CAMERA, NO_BROWSER, click, coloured, config, run, saves};
use std::sync::Arc;
use std::time::Duration;
use weir_cc::Registry;
use weir_media::VideoCodec;
use weir_path::{Capacity, Limit, LinkConfig, Loss, Schedule, Step};
use weir_peer::call::{LinkPlan, Snapshot};
use weir_peer::server::{RunningServer, ServerConfig, serve};
use weir_units::{DataRate, DataSize, TimeDelta};

/// The link has room for the higher layer and sound, later for the lower one (150 kbit/s) and sound, also where a busy machine codes
/// the higher one at less than it may.
const WIDE: DataRate = DataRate::from_mbps(3);
const NARROW: DataRate = DataRate::from_kbps(280);
/// Share of what that page sends that is lost.
const LOSS: f64 = 0.03;
const NARROW_FROM: TimeDelta = TimeDelta::from_secs(15);
fn link() -> LinkPlan {
    let at = |at, rate| Step { at, rate };
    let steps = vec![at(TimeDelta::ZERO, WIDE), at(NARROW_FROM, NARROW)];
    let capacity = Capacity::Schedule(Schedule::new(steps, None).expect("a schedule"));
    let plain = LinkConfig::constant(DataRate::from_mbps(10), TimeDelta::from_millis(20));
    let limit = Limit::Size(DataSize::from_bytes(60_000));
    let forward = LinkConfig { capacity, limit, ..plain.clone() };
    let reverse = LinkConfig { loss: Loss::Independent { share: LOSS }, ..plain };
    LinkPlan { forward: vec![forward], reverse: vec![reverse], seed: 3, network: None }
}

async fn join(browser: &mut Browser, service: &RunningServer, rest: &str) {
    let page = service.page().replace("/#", "/room#");
    browser.open("about:blank", 1280, 900).await;
    browser.open(&format!("{page}&sends=2&{rest}"), 1280, 900).await;
    browser.until("document.body.dataset.ready === 'yes'").await;
    click(browser, "join").await;
}

/// Of the other member's tile.
fn tile(expression: &str) -> String {
    format!(
        "(() => {{ const tile = document.querySelector('#tiles figure[data-member]').dataset; return {expression}; }})()"
    )
}

#[test]
fn pages_see_each_other_and_a_slow_one_the_lower_layer() {
    run(async {
        let folders = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
        let Some(mut slow) = Browser::start(folders[0].path(), &CAMERA).await else {
            println!("{NO_BROWSER}");
            return;
        };
        let mut fast = Browser::start(folders[1].path(), &CAMERA).await.expect("as the other");
        let config = ServerConfig { link: Some(link()), ..config(VideoCodec::H264, false) };
        let service = serve(config, Arc::new(Registry::builtin())).await.expect("started");
        join(&mut fast, &service, "room=test&link=off").await;
        fast.until("document.body.dataset.members === '1'").await;
        join(&mut slow, &service, "room=test&link=on").await;
        // Pictures and sound of the other, in the higher layer.
        for browser in [&mut slow, &mut fast] {
            browser.until(&tile("Number(tile.decoded) > 10 && Number(tile.heard) > 50")).await;
        }
        slow.until(&tile("tile.width === '640' && tile.encoding === '1'")).await;
        fast.until(&tile("tile.width === '640'")).await;
        slow.picture("room-wide", true).await;
        // The link gets slow: the lower layer, for that page alone.
        slow.until(&tile("tile.width === '320' && tile.encoding === '0'")).await;
        let decoded = slow.eval(&tile("Number(tile.decoded)")).await.as_f64().expect("a number");
        slow.until(&tile(&format!("Number(tile.decoded) > {decoded} + 30"))).await;
        assert_eq!(fast.eval(&tile("[tile.width, tile.encoding].join()")).await, "640,1");
        let heard = slow.eval(&tile("Number(tile.energy)")).await.as_f64().expect("a number");
        assert!(heard > 0.0, "the other's microphone is heard");
        assert!(slow.eval(&coloured("rates")).await.as_u64().expect("a number") > 50);
        slow.picture("room-narrow", true).await;
        saves::of_a_member(&mut slow).await;
        slow.size(420, 800, true).await;
        slow.picture("room-phone", true).await;
        // One leaves: the other sees it.
        click(&mut fast, "join").await;
        fast.until("document.body.dataset.idle === 'yes'").await;
        slow.until("document.body.dataset.members === '1' && !document.querySelector('#tiles figure[data-member]')")
            .await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        // Another room, in H.264.
        for browser in [&mut slow, &mut fast] {
            join(browser, &service, "room=other&link=off&codec=h264").await;
        }
        for browser in [&mut slow, &mut fast] {
            browser.until("document.getElementById('state').innerText.includes('H264')").await;
            browser.until(&tile("tile.width === '640' && Number(tile.decoded) > 10 && Number(tile.heard) > 20")).await;
        }
        let complaints = [&slow, &fast].map(|b| b.complaints.clone()).concat();
        assert_eq!(complaints, Vec::<String>::new());
        let seconds = service.calls().iter().flat_map(|(_, c)| c.samples.last()).map(|s| s.t_s).fold(0.0, f64::max);
        check(&service.stop().await, seconds);
    });
}

fn check(calls: &[(String, Snapshot)], seconds: f64) {
    assert_eq!(calls.len(), 4);
    for (_, call) in &calls[..2] {
        let cpu = call.totals.cpu_ms.unwrap_or(0) as f64 / seconds / 10.0;
        let rooms = call.room.as_ref().map(|r| (&r.encodings, r.key_frames_requested, r.frames_lost, r.overflows));
        println!("{:?}: {cpu:.2} % of a core for a camera of two layers and sound each way, {rooms:?}", call.reason);
        assert!(call.totals.refused < 20, "{:?}", call.totals);
    }
    // Retransmissions of encodings have sources of their own, which their packets name.
    let slow = &calls[1].1;
    assert!(slow.totals.recovered > 0, "{:?}", slow.totals);
}
