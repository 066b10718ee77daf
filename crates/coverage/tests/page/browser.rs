//! A headless Chromium, driven by the DevTools protocol: real keys and clicks, which a page's own script cannot make.

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

/// Longest wait for anything.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Browser {
    process: Child,
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    session: String,
    calls: u64,
    /// Exceptions, refused loads and errors of the page's console.
    pub(crate) complaints: Vec<String>,
}

fn program() -> Option<&'static str> {
    let runs = |name: &&str| Command::new(name).arg("--version").output().is_ok_and(|out| out.status.success());
    ["chromium", "chromium-browser", "google-chrome"].into_iter().find(runs)
}

async fn eventually<T>(mut attempt: impl FnMut() -> Option<T>) -> T {
    for _ in 0..PATIENCE.as_millis() / 20 {
        if let Some(done) = attempt() {
            return done;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("waited for {PATIENCE:?}");
}

impl Browser {
    /// A browser started with these switches beside the usual ones, with an empty page, or `None` where there is none.
    pub(crate) async fn start(profile: &Path, switches: &[&str]) -> Option<Self> {
        let process = Command::new(program()?)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"])
            .args(["--disable-background-networking", "--disable-component-update", "--hide-scrollbars"])
            .args(switches)
            .args(["--remote-debugging-port=0", "about:blank"])
            .arg(format!("--user-data-dir={}", profile.display()))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromium runs");
        let file = profile.join("DevToolsActivePort");
        let address = eventually(|| {
            let text = std::fs::read_to_string(&file).ok()?;
            let (port, path) = text.split_once('\n')?;
            (!path.is_empty()).then(|| format!("ws://127.0.0.1:{port}{path}"))
        });
        let (socket, _) = connect_async(address.await).await.expect("connected");
        let mut browser = Self { process, socket, session: String::new(), calls: 0, complaints: Vec::new() };
        let targets = browser.call("Target.getTargets", json!({})).await;
        let page = targets["targetInfos"].as_array().expect("targets").iter().find(|t| t["type"] == "page");
        let id = page.expect("a page")["targetId"].clone();
        let attached = browser.call("Target.attachToTarget", json!({ "targetId": id, "flatten": true })).await;
        browser.session = attached["sessionId"].as_str().expect("a session").to_owned();
        for domain in ["Page", "Runtime", "Log"] {
            browser.call(&format!("{domain}.enable"), json!({})).await;
        }
        Some(browser)
    }

    pub(crate) async fn call(&mut self, method: &str, params: Value) -> Value {
        self.calls += 1;
        let mut message = json!({ "id": self.calls, "method": method, "params": params });
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        self.socket.send(Message::text(message.to_string())).await.expect("sent");
        loop {
            let next = tokio::time::timeout(PATIENCE, self.socket.next()).await;
            let message = next.expect("in time").expect("open").expect("read");
            let Ok(text) = message.into_text() else { continue };
            let Ok(mut message) = serde_json::from_str::<Value>(&text) else { continue };
            if message["id"] == self.calls {
                assert!(message["error"].is_null(), "{method}: {}", message["error"]);
                return message["result"].take();
            }
            self.listen(&message);
        }
    }

    fn listen(&mut self, event: &Value) {
        let params = &event["params"];
        match event["method"].as_str() {
            Some("Runtime.exceptionThrown") => self.complaints.push(params["exceptionDetails"].to_string()),
            Some("Log.entryAdded") if params["entry"]["level"] == "error" => {
                self.complaints.push(params["entry"].to_string());
            }
            _ => {}
        }
    }

    /// The value of an expression, awaited if it is a promise.
    pub(crate) async fn eval(&mut self, expression: &str) -> Value {
        let params = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let mut answer = self.call("Runtime.evaluate", params).await;
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {}", answer["exceptionDetails"]);
        answer["result"]["value"].take()
    }

    /// Waits until an expression is true, and its page there.
    pub(crate) async fn until(&mut self, expression: &str) {
        let expression = &format!("(() => {{ try {{ return {expression}; }} catch {{ return false; }} }})()");
        for _ in 0..PATIENCE.as_millis() / 30 {
            if self.eval(expression).await == true {
                return;
            }
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
        let page = self.eval("document.body.innerText").await;
        panic!("waited for {expression}; {:?}; {page}", self.complaints);
    }

    /// Opens a page in a window of this size.
    pub(crate) async fn open(&mut self, address: &str, width: u32, height: u32) {
        self.size(width, height, width < 600).await;
        self.call("Page.navigate", json!({ "url": address })).await;
    }

    pub(crate) async fn size(&mut self, width: u32, height: u32, mobile: bool) {
        let params = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile });
        self.call("Emulation.setDeviceMetricsOverride", params).await;
    }

    /// Prefers a light or dark page, without animations.
    pub(crate) async fn prefer(&mut self, scheme: &str) {
        let features = json!([
            { "name": "prefers-color-scheme", "value": scheme },
            { "name": "prefers-reduced-motion", "value": "reduce" },
        ]);
        self.call("Emulation.setEmulatedMedia", json!({ "features": features })).await;
    }

    /// Presses and releases a key that is no character.
    pub(crate) async fn press(&mut self, key: &str, code: u32) {
        for kind in ["rawKeyDown", "keyUp"] {
            let params = json!({ "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code });
            self.call("Input.dispatchKeyEvent", params).await;
        }
    }

    pub(crate) async fn click(&mut self, x: f64, y: f64) {
        for kind in ["mouseMoved", "mousePressed", "mouseReleased"] {
            let params = json!({ "type": kind, "x": x, "y": y, "button": "left", "clickCount": 1 });
            self.call("Input.dispatchMouseEvent", params).await;
        }
    }

    /// Writes a picture of the window, or of the whole page, into the folder that `WEIR_KEEP_PAGE` names, if it does.
    pub(crate) async fn picture(&mut self, name: &str, whole: bool) {
        use base64::Engine as _;
        let Some(folder) = std::env::var_os("WEIR_KEEP_PAGE").map(PathBuf::from) else { return };
        let picture = self.call("Page.captureScreenshot", json!({ "captureBeyondViewport": whole })).await;
        let data =
            base64::prelude::BASE64_STANDARD.decode(picture["data"].as_str().expect("a picture")).expect("base64");
        std::fs::write(folder.join(format!("{name}.png")), data).expect("written");
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
