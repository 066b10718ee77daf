//! Recorded calls that are dropped on the page or chosen.

use super::{Lab, captures, coloured};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use weir_web::answer;

/// For opening 20 MB, in ms. Less than a third of it is measured on an idle machine.
const OPENED_MS: f64 = 3_000.0;

/// The page's text of an element.
fn text(id: &str) -> String {
    format!("document.getElementById('{id}').innerText")
}

fn write(folder: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, bytes).expect("written");
    path
}

/// The answer of this machine to the request that the page makes for these files.
fn own(files: &[PathBuf]) -> String {
    let names: Vec<_> = files.iter().map(|f| f.file_name().expect("a name").to_string_lossy()).collect();
    let bytes = files.iter().map(|f| std::fs::read(f).expect("read")).collect();
    answer::Lab::default().answer(&json!({ "ask": "open", "names": names }).to_string(), bytes).expect("opens").text
}

impl Lab {
    /// Drops files from outside on the middle of the page, and waits until they are opened or refused.
    async fn drop_files(&mut self, files: &[PathBuf]) {
        let before = self.opened().await;
        for kind in ["dragEnter", "dragOver", "drop"] {
            let data = json!({ "items": [], "files": files, "dragOperationsMask": 1 });
            let params = json!({ "type": kind, "x": 200, "y": 300, "data": data });
            self.browser.call("Input.dispatchDragEvent", params).await;
        }
        self.browser.until(&format!("Number(document.body.dataset.calls) > {before}")).await;
    }

    /// The same by the button for files.
    async fn choose_files(&mut self, files: &[PathBuf]) {
        let before = self.opened().await;
        let document = self.browser.call("DOM.getDocument", json!({})).await["root"]["nodeId"].take();
        let found = self.browser.call("DOM.querySelector", json!({ "nodeId": document, "selector": "#files" })).await;
        let params = json!({ "nodeId": found["nodeId"], "files": files });
        self.browser.call("DOM.setFileInputFiles", params).await;
        self.browser.until(&format!("Number(document.body.dataset.calls) > {before}")).await;
    }

    async fn opened(&mut self) -> f64 {
        self.browser.eval("Number(document.body.dataset.calls ?? 0)").await.as_f64().expect("a number")
    }

    async fn words(&mut self, id: &str) -> String {
        self.browser.eval(&text(id)).await.as_str().expect("a text").to_owned()
    }
}

pub(crate) async fn recorded_calls_are_opened(lab: &mut Lab) {
    let folder = tempfile::tempdir().expect("a folder");
    let [left, right] = captures::call(40, 100);
    let ends = [write(folder.path(), "left.pcap", &left), write(folder.path(), "right.pcap", &right)];
    // On the lab, whose view gives way.
    lab.open("", 1280).await;
    lab.drop_files(&ends).await;
    assert_eq!(
        lab.browser.eval("[location.hash, document.getElementById('lab').hidden]").await,
        json!(["#recording", true])
    );
    its_findings_are_those_of_the_command_line(lab, &ends).await;
    a_time_is_shown_by_keys_and_mouse(lab).await;
    controllers_and_packets_stand_beside(lab).await;
    it_fits_a_phone(lab).await;
    faults_of_files_are_explained(lab, folder.path(), &left).await;
    twenty_megabytes_open_soon(lab, folder.path()).await;
    // Back to the lab, as it was.
    lab.browser.eval("document.getElementById('to-lab').click()").await;
    lab.browser.until("!document.getElementById('lab').hidden && location.hash.startsWith('#scenario=')").await;
}

async fn its_findings_are_those_of_the_command_line(lab: &mut Lab, ends: &[PathBuf]) {
    let own = own(ends);
    let report: Value = serde_json::from_str(&own).expect("JSON");
    let cells = "[...document.querySelectorAll('#episodes tbody td')].map((cell) => cell.innerText)";
    let shown = lab.browser.eval(cells).await;
    let begin = report["sources"][0]["from_ms"].as_i64().expect("a time");
    let mut expected = Vec::new();
    for episode in report["episodes"].as_array().expect("a list") {
        let second = |key: &str| format!("{:.1}", (episode[key].as_i64().expect("a time") - begin) as f64 / 1e3);
        for (i, cause) in episode["causes"].as_array().expect("a list").iter().enumerate() {
            let name = format!("{} to {} s: fall", second("from_ms"), second("to_ms"));
            let evidence = cause["evidence"].as_array().expect("a list").iter().map(|e| e.as_str().expect("a text"));
            expected.push(if i == 0 { name } else { String::new() });
            expected.push(cause["name"].as_str().expect("a text").into());
            expected.push(format!("{:.0}", cause["confidence"].as_f64().expect("a number") * 100.0));
            expected.push(evidence.collect::<Vec<_>>().join("; "));
        }
    }
    assert!(expected.len() >= 4 && expected[1] == "random-loss", "{expected:?}");
    assert_eq!(shown, json!(expected));
    let count = lab.browser.eval(&coloured("call-plots")).await.as_u64().expect("a number");
    assert!(count > 200, "{count} pixels");

    // The bytes, by the button for files and a worker of the test's own.
    lab.choose_files(ends).await;
    let theirs = lab
        .browser
        .eval(
            "(async () => {
                const { Engine } = await import(new URL('engine.js', location.href).href);
                const files = [...document.getElementById('files').files];
                const engine = new Engine(1, document.baseURI);
                return (await engine.ask({ ask: 'open', names: files.map((f) => f.name) }, '', files)).text;
            })()",
        )
        .await;
    assert_eq!(theirs, json!(own));
    for scheme in ["light", "dark"] {
        lab.browser.prefer(scheme).await;
        lab.browser.picture(&format!("recording-{scheme}"), true).await;
    }
    lab.browser.prefer("light").await;
}

/// The time that all plots show, if it is one.
const SHOWN: &str = "(() => { const all = uPlot.sync('call').plots.map((p) => `${p.scales.x.min.toFixed(1)} ${p.scales.x.max.toFixed(1)}`); \
                     return all.length > 1 && new Set(all).size === 1 ? all[0] : all; })()";

async fn a_time_is_shown_by_keys_and_mouse(lab: &mut Lab) {
    assert_eq!(lab.browser.eval(SHOWN).await, "0.0 40.0");
    lab.browser.eval("(() => { const f = document.getElementById('from'); f.focus(); f.select(); })()").await;
    lab.browser.call("Input.insertText", json!({ "text": "12.5" })).await;
    lab.browser.press("Tab", 9).await;
    assert_eq!(lab.browser.eval("document.activeElement.id").await, "to");
    lab.browser.eval("document.activeElement.select()").await;
    lab.browser.call("Input.insertText", json!({ "text": "30" })).await;
    let enter =
        json!({ "type": "keyDown", "key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r" });
    lab.browser.call("Input.dispatchKeyEvent", enter).await;
    lab.browser.until(&format!("{SHOWN} === '12.5 30.0'")).await;
    // An episode, with the time around it.
    lab.browser.eval("document.querySelector('#episodes button').click()").await;
    let from: f64 = lab.browser.eval("Number(document.getElementById('from').value)").await.as_f64().expect("a number");
    assert!((15.0..19.0).contains(&from), "{from}");
    lab.browser.eval("document.getElementById('whole').click()").await;
    lab.browser.until(&format!("{SHOWN} === '0.0 40.0'")).await;
    // Dragged from a quarter to a half of the plot's width.
    lab.browser.eval("document.querySelector('#call-plots').scrollIntoView()").await;
    let place = "(() => { const b = document.querySelector('#call-plots .u-over').getBoundingClientRect(); return [b.left, b.top, b.width, b.height]; })()";
    let place: Vec<f64> = serde_json::from_value(lab.browser.eval(place).await).expect("a place");
    let [left, top, width, height] = place[..] else { panic!("{place:?}") };
    for (kind, share, buttons) in [
        ("mouseMoved", 0.25, 0),
        ("mousePressed", 0.25, 1),
        ("mouseMoved", 0.4, 1),
        ("mouseMoved", 0.5, 1),
        ("mouseReleased", 0.5, 1),
    ] {
        let (x, y) = (left + width * share, top + height / 2.0);
        let params = json!({ "type": kind, "x": x, "y": y, "button": "left", "buttons": buttons, "clickCount": 1 });
        lab.browser.call("Input.dispatchMouseEvent", params).await;
    }
    lab.browser.until(&format!("{SHOWN} === '10.0 20.0'")).await;
}

async fn controllers_and_packets_stand_beside(lab: &mut Lab) {
    lab.browser.eval("document.querySelectorAll('#replays, #packets').forEach((d) => (d.open = true))").await;
    lab.browser.eval("document.querySelector('#replayed input[value=gcc]').click()").await;
    lab.browser.until("document.body.dataset.replays?.startsWith('[[\"gcc\",')").await;
    assert!(lab.words("call-plots").await.contains("gcc, open loop"));
    assert!(
        lab.words("replays")
            .await
            .contains("what it would have asked for on this feedback, not what would have happened")
    );
    // The shown time stays.
    assert_eq!(lab.browser.eval(SHOWN).await, "10.0 20.0");
    lab.browser
        .until(&format!("{}.endsWith(' packets of left.pcap from 10.0 to 20.0 s.')", text("packets-note")))
        .await;
    let rows = "document.querySelectorAll('#packets tbody tr').length";
    // A pixel of the drag is two or three packets.
    let listed = lab.browser.eval(rows).await.as_u64().expect("a number");
    assert!((990..=1000).contains(&listed), "{listed}");
    lab.browser.eval("document.getElementById('whole').click()").await;
    lab.browser.until("document.getElementById('packets-note').innerText.includes('show a shorter time')").await;
    assert_eq!(lab.browser.eval(rows).await, 0);
}

async fn it_fits_a_phone(lab: &mut Lab) {
    lab.browser.size(390, 900, true).await;
    lab.browser.until("document.querySelector('#call-plots canvas').clientWidth < 390").await;
    assert_eq!(lab.browser.eval("document.documentElement.scrollWidth").await, 390);
    lab.browser.picture("recording-phone", true).await;
    lab.browser.size(1280, 900, false).await;
}

async fn faults_of_files_are_explained(lab: &mut Lab, folder: &Path, capture: &[u8]) {
    let cut = write(folder, "cut.pcap", &capture[..capture.len() - 3]);
    lab.drop_files(&[cut]).await;
    let words = lab.words("call-damage").await;
    assert!(words.starts_with("cut.pcap is damaged: it is read up to byte") && words.contains("ends"), "{words}");
    assert_eq!(lab.browser.eval("document.getElementById('call').hidden").await, false);
    // One of two is no recording: nothing of either is shown.
    let stranger = write(folder, "<b>picture.png", b"\x89PNG\r\n\x1a\n");
    let whole = write(folder, "whole.pcap", capture);
    lab.drop_files(&[whole, stranger]).await;
    let words = lab.words("call-fault").await;
    assert!(words.starts_with("<b>picture.png: not a recording that Weir knows: it begins with 89 50"), "{words}");
    assert!(words.contains("pcapng"), "{words}");
    assert_eq!(lab.browser.eval("document.getElementById('call').hidden").await, true);
    lab.browser.picture("recording-fault", true).await;
    let large = folder.join("large.pcap");
    std::fs::File::create(&large).and_then(|file| file.set_len(300_000_001)).expect("a file of holes");
    lab.drop_files(&[large]).await;
    let words = lab.words("call-fault").await;
    assert!(words.contains("large.pcap has 300 MB") && words.contains("weir open FILE"), "{words}");
    let many: Vec<PathBuf> = (0..17).map(|i| write(folder, &format!("{i}.log"), b"1")).collect();
    lab.drop_files(&many).await;
    assert!(lab.words("call-fault").await.contains("17 files, and at most 16"));
}

/// Captures of both ends, 20 MB together.
async fn twenty_megabytes_open_soon(lab: &mut Lab, folder: &Path) {
    let [left, right] = captures::call(400, 260);
    let bytes = left.len() + right.len();
    assert!((20_000_000..22_000_000).contains(&bytes), "{bytes}");
    let ends = [write(folder, "long-left.pcap", &left), write(folder, "long-right.pcap", &right)];
    lab.drop_files(&ends).await;
    let opened = lab.browser.eval("document.body.dataset.opened").await;
    println!("{bytes} bytes: {opened}; load {}", load());
    let opened: Value = serde_json::from_str(opened.as_str().expect("a text")).expect("JSON");
    assert_eq!(opened["bytes"], bytes);
    let shown = opened["shown"].as_f64().expect("a number");
    assert!(shown > 10.0 && shown < OPENED_MS, "{shown} ms");
}

fn load() -> String {
    std::fs::read_to_string("/proc/loadavg").unwrap_or_default().trim().to_owned()
}
