//! The files that the page saves a run as.

use super::browser::Browser;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use weir_cc::Registry;
use weir_lab::run::{RunOptions, run};
use weir_lab::scenario::{NetworkText, ScenarioFile};
use weir_path::{Limit, LinkConfig};
use weir_peer::server::ServerConfig;
use weir_timeline::why::curves;
use weir_timeline::{Call, Format};
use weir_units::TimeDelta;

/// The link of the lossy call as a scenario has it.
pub(super) fn network() -> NetworkText {
    let direction = "rate = \"10 Mbps\"\ndelay = \"10 ms\"\nloss = 0.04\n";
    let tables = format!("[links.lossy]\n{direction}[links.lossy.reverse]\n{direction}");
    NetworkText { tables, ..NetworkText::default() }
}

/// Saves the call that runs in all forms, by the keyboard, and looks at them; returns the folder and the report.
pub(super) async fn are_whole(browser: &mut Browser, config: &ServerConfig) -> (tempfile::TempDir, PathBuf) {
    let folder = downloads(browser).await;
    // The service has several of the browser's samples, and the page has them back.
    browser.until("Number(document.body.dataset.told) > 3").await;
    let mut files = Vec::new();
    for form in ["report.html", "scenario.toml", "packets.pcapng"] {
        files.push(save(browser, folder.path(), form).await);
    }
    scenario(&files[1], config);
    packets(&files[2]);
    report(&files[0]);
    opened(&files[0], &files[2]);
    if std::env::var_os("WEIR_KEEP_PAGE").is_some() {
        for (scheme, width) in [("dark", 1_280), ("light", 400), ("dark", 400), ("light", 1_280)] {
            browser.prefer(scheme).await;
            browser.size(width, 900, width < 600).await;
            tokio::time::sleep(Duration::from_millis(500)).await;
            browser.picture(&format!("saves-{scheme}-{width}"), true).await;
        }
    }
    // The link goes, and comes back.
    for is_on in [false, true] {
        browser.eval("document.getElementById('by-link').click()").await;
        browser.until(&format!("(document.body.dataset.hasLink === 'yes') === {is_on}")).await;
    }
    (folder, files.swap_remove(0))
}

/// The call of a member of a room: numbers of both ends in the report, and packets.
pub(super) async fn of_a_member(browser: &mut Browser) {
    let folder = downloads(browser).await;
    packets(&save(browser, folder.path(), "packets.pcapng").await);
    let html = std::fs::read_to_string(save(browser, folder.path(), "report.html").await).expect("a page");
    for there in ["The other members, at the end", "Packets of sound", "2 members; this one is", "The emulated link"] {
        assert!(html.contains(there), "{there}: {} bytes, {:?}", html.len(), facts(&html));
    }
    let (weir, page) = html.split_once("Packets to the browser").map(|(_, rest)| counts(rest)).expect("both ends");
    // The page counts up to now, Weir up to a tenth of a second ago.
    assert!(weir > 100 && page > weir / 2 && page < weir + 100, "{weir} {page}");
}

/// The report's text up to its first plot.
fn facts(html: &str) -> Option<&str> {
    html.split_once("<body").map(|(_, rest)| rest.split_once("<figure").map_or(rest, |(facts, _)| facts))
}

/// The first two numbers in cells of a table.
fn counts(html: &str) -> (u64, u64) {
    let mut cells = html.split("<td").skip(1).filter_map(|cell| {
        let text = cell.split_once('>')?.1.split_once('<')?.0;
        text.parse().ok()
    });
    (cells.next().unwrap_or(0), cells.next().unwrap_or(0))
}

/// A folder into which the page saves.
async fn downloads(browser: &mut Browser) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let downloads = serde_json::json!({ "behavior": "allow", "downloadPath": folder.path() });
    browser.call("Page.setDownloadBehavior", downloads).await;
    folder
}

/// Saves by the keyboard.
async fn save(browser: &mut Browser, folder: &Path, form: &str) -> PathBuf {
    browser.eval(&format!("document.querySelector('[data-file=\"{form}\"]').focus()")).await;
    browser.press(" ", 32).await;
    saved(folder, form.rsplit('.').next().expect("an ending")).await
}

/// A file with this ending, once it is there and whole: a browser may create it before it writes it.
async fn saved(folder: &Path, ending: &str) -> PathBuf {
    let mut before = 0;
    for _ in 0..200 {
        let files = std::fs::read_dir(folder).expect("a folder").flatten().map(|f| f.path());
        if let Some(file) = files.into_iter().find(|f| f.extension().is_some_and(|e| e == ending)) {
            let size = std::fs::metadata(&file).map_or(0, |m| m.len());
            if size > 0 && size == before {
                return file;
            }
            before = size;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("no {ending} was saved: {:?}", std::fs::read_dir(folder).expect("a folder").flatten().collect::<Vec<_>>());
}

fn scenario(file: &Path, config: &ServerConfig) {
    let registry = Registry::builtin();
    let read = ScenarioFile::read(file, &registry).expect("a scenario");
    // The last controller first.
    assert_eq!(read.controllers(), ["scream", "gcc"]);
    let mut scenario = read.one(None, None, &registry).expect("a scenario");
    let (link, flow) = (config.link.as_ref().expect("a link"), &scenario.flows[0]);
    let rtp = flow.rtp().expect("RTP");
    // Scenarios have a bound on every queue.
    let there = |n: usize| LinkConfig { limit: Limit::Unlimited, ..scenario.links[n].config.clone() };
    assert_eq!((there(flow.forward[0]), there(flow.reverse[0])), (link.forward[0].clone(), link.reverse[0].clone()));
    let limits = config.settings.limits;
    assert_eq!((rtp.floor, rtp.ceiling, rtp.start_rate), (limits.floor, limits.ceiling, config.start_rate));
    assert_eq!((rtp.controller.as_str(), scenario.seed), ("scream", link.seed));
    assert!(scenario.duration > TimeDelta::from_secs(3), "{}", scenario.duration);
    // It runs: its first second.
    scenario.duration = TimeDelta::from_secs(1);
    scenario.flows[0].stop = scenario.duration;
    let stop = AtomicBool::new(false);
    let options = RunOptions { registry: &registry, series: false, stop: &stop, progress: &|_| {} };
    let result = run(&scenario, 1, &options).expect("runs");
    assert!(result.flows[0].packets.sent > 20, "{:?}", result.flows[0]);
}

/// The page and the packets are recordings of the call.
fn opened(page: &Path, packets: &Path) {
    let read = |file: &Path| {
        weir_timeline::read("saved", std::fs::File::open(file).expect("saved")).expect("a recording of a call")
    };
    let (page, packets) = (read(page), read(packets));
    assert_eq!((page.format, &page.stop, page.faults.len()), (Format::WeirPage, &None, 0), "{:?}", page.faults);
    let found = curves(&Call::new(vec![page])).expect("times");
    for name in ["sent_kbps", "arrived_kbps", "target_kbps", "rtt_ms", "loss_percent"] {
        assert!(found.column(name).is_some_and(|c| c.iter().any(|v| *v > 0.0)), "{name}: {found:?}");
    }
    let counts = packets.counts();
    assert!(packets.stop.is_none() && counts.sent + counts.received + counts.passing > 100, "{counts:?}");
}

/// tshark reads the packets, and finds media and reports of both ends in them.
fn packets(file: &Path) {
    let mut tshark = Command::new("tshark");
    tshark.arg("-r").arg(file).args([
        "-T",
        "fields",
        "-e",
        "ip.src",
        "-e",
        "rtp.p_type",
        "-e",
        "rtcp.pt",
        "-e",
        "frame.cap_len",
    ]);
    let Ok(out) = tshark.output() else {
        println!("skipped: no tshark on this machine");
        return;
    };
    let text = String::from_utf8_lossy(&out.stdout);
    let lines: Vec<Vec<&str>> = text.lines().map(|l| l.split('\t').collect()).collect();
    let count = |of: fn(&[&str]) -> bool| lines.iter().filter(|l| of(l)).count();
    let (weir, browser) = ("10.0.0.1", "10.1.0.1");
    assert!(count(|l| l[0] == "10.0.0.1" && !l[1].is_empty()) > 100, "{weir}: {text}");
    assert!(count(|l| l[0] == "10.1.0.1" && !l[1].is_empty()) > 100, "{browser}: {text}");
    // Transport-wide feedback, both ways.
    for end in [weir, browser] {
        let feedback = lines.iter().filter(|l| l[0] == end && l[2].split(',').any(|pt| pt == "205")).count();
        assert!(feedback > 10, "{end}: {feedback}");
    }
    // IP, UDP and RTP headers with extensions, and a little: no media.
    let longest = lines.iter().filter(|l| !l[1].is_empty()).filter_map(|l| l[3].parse::<u32>().ok()).max();
    assert!(longest.is_some_and(|n| n < 110), "{longest:?}");
}

/// All plots of the report draw, with both ends' lines.
fn report(file: &Path) {
    let html = std::fs::read_to_string(file).expect("a page");
    assert!(html.len() < 3_000_000, "{} bytes", html.len());
    for there in ["remote-inbound-rtp packetsLost", "candidate-pair currentRoundTripTime", "call.toml", "scream"] {
        assert!(html.contains(there), "{there}");
    }
    if let Some(kept) = std::env::var_os("WEIR_KEEP_PAGE") {
        std::fs::copy(file, PathBuf::from(kept).join("report.html")).expect("copied");
    }
    let data = html.split_once("id=\"data\">").and_then(|(_, rest)| rest.split_once("</script>")).expect("data").0;
    let data: serde_json::Value = serde_json::from_str(data).expect("JSON");
    let groups = data["sections"][0]["groups"].as_array().expect("plots");
    let titles: Vec<&str> = groups.iter().filter_map(|g| g["title"].as_str()).collect();
    assert_eq!(titles, ["Weir to the browser", "The browser to Weir", "The emulated link"]);
    // Mean rates: what one end sends the other receives, but for 4 % of loss and the time that both take.
    let mean = |group: usize, label: &str| {
        let lines = groups[group]["charts"]
            .as_array()
            .expect("charts")
            .iter()
            .flat_map(|c| c["lines"].as_array().expect("lines"));
        let line = lines.into_iter().find(|l| l["label"] == label).unwrap_or_else(|| panic!("no line {label}"));
        let values: Vec<f64> = line["v"].as_array().expect("values").iter().filter_map(|v| v.as_f64()).collect();
        values.iter().sum::<f64>() * line["scale"].as_f64().expect("a scale") / values.len() as f64
    };
    for (group, sent, received) in [(0, "sent (Weir)", "received (browser)"), (1, "sent (browser)", "received (Weir)")]
    {
        let (sent, received) = (mean(group, sent), mean(group, received));
        assert!(sent > 50.0 && (0.6..1.6).contains(&(received / sent)), "{group}: {sent} {received}");
    }
    assert!(mean(0, "round trip (browser, ICE)") > 15.0 && mean(1, "estimate (browser)") > 50.0);
}

/// Each plot has pixels of all its lines, in light and dark; pictures of it.
pub(super) async fn plots(browser: &mut Browser, file: &Path) {
    for (theme, width) in [("light", 1_280), ("dark", 400)] {
        browser.open("about:blank", width, 900).await;
        browser.open(&format!("file://{}#check&theme={theme}", file.display()), width, 900).await;
        browser.until("Number(document.documentElement.dataset.checked) > 0").await;
        let drawn = "[...document.querySelectorAll('figure[data-drawn]')].map((f) => f.dataset.drawn).join()";
        let drawn = browser.eval(drawn).await.as_str().expect("counts").to_owned();
        let plots: Vec<Vec<u32>> =
            drawn.split(',').map(|p| p.split(' ').filter_map(|n| n.parse().ok()).collect()).collect();
        assert!(plots.len() >= 9 && plots.iter().all(|p| p.iter().any(|n| *n > 20)), "{theme}: {drawn}");
        let wide = browser.eval("document.documentElement.scrollWidth").await.as_u64().expect("a number");
        assert!(wide <= u64::from(width), "{theme}: {wide} pixels wide");
        browser.picture(&format!("report-{theme}-{width}"), true).await;
    }
}
