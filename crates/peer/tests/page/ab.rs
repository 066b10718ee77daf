//! Two calls beside each other on one page.

use super::browser::Browser;
use super::{CAMERA, NO_BROWSER, choose, click, coloured, config, run};
use std::sync::Arc;
use weir_cc::Registry;
use weir_media::VideoCodec;
use weir_path::{Limit, LinkConfig};
use weir_peer::call::LinkPlan;
use weir_peer::server::{ServerConfig, serve};
use weir_units::{DataRate, DataSize, TimeDelta};

#[test]
fn two_calls_run_beside_each_other_and_are_saved() {
    run(async {
        let profile = tempfile::tempdir().expect("a folder");
        let Some(mut browser) = Browser::start(profile.path(), &CAMERA).await else {
            println!("{NO_BROWSER}");
            return;
        };
        let plain = LinkConfig::constant(DataRate::from_kbps(700), TimeDelta::from_millis(25));
        let forward = LinkConfig { limit: Limit::Size(DataSize::from_bytes(40_000)), ..plain.clone() };
        let link = LinkPlan { forward: vec![forward], reverse: vec![plain], seed: 3, network: None };
        let config = ServerConfig { link: Some(link), ..config(VideoCodec::H264, false) };
        let service = serve(config, Arc::new(Registry::builtin())).await.expect("started");
        // The setting is in the address, the token in its fragment.
        let page = service.page().replace("/#", "/ab?ab=gcc,scream&max=1200#");
        browser.open(&page, 1280, 900).await;
        browser.until("document.body.dataset.ready === 'yes'").await;
        assert_eq!(browser.eval("location.hash + location.search").await, "?ab=gcc,scream&max=1200");
        click(&mut browser, "start").await;
        browser
            .until("Number(document.body.dataset.decodedA) > 60 && Number(document.body.dataset.decodedB) > 60")
            .await;
        let mut names: Vec<_> = service.calls().into_iter().map(|(_, c)| (c.controller, c.max_bps)).collect();
        names.sort();
        assert_eq!(names, [("gcc".to_owned(), 1_200_000), ("scream".to_owned(), 1_200_000)]);
        choose(&mut browser, "controller-b", "nada").await;
        browser.until("document.getElementById('text-b').innerText.startsWith('nada')").await;
        assert_eq!(browser.eval("location.search").await, "?ab=gcc%2Cnada&max=1200");
        for plot in ["rates", "delays"] {
            let count = browser.eval(&coloured(plot)).await.as_u64().expect("a number");
            assert!(count > 50, "{plot}: {count} pixels");
        }
        browser.picture("ab", true).await;
        click(&mut browser, "save").await;
        browser.until("Number(document.body.dataset.saved) > 10000").await;
        click(&mut browser, "start").await;
        browser.until("document.body.dataset.idle === 'yes'").await;
        assert_eq!(browser.complaints, Vec::<String>::new());
        service.stop().await;
    });
}
