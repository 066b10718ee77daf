//! A headless Firefox, driven by WebDriver BiDi (W3C), which it listens for by itself.

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

/// Longest wait for anything.
const PATIENCE: Duration = Duration::from_secs(60);
/// A made-up camera without a question, candidates with addresses, and nothing asked of the network.
const PREFERENCES: &str = r#"
user_pref("media.navigator.permission.disabled", true);
user_pref("media.navigator.streams.fake", true);
user_pref("media.peerconnection.ice.obfuscate_host_addresses", false);
user_pref("media.autoplay.default", 0);
user_pref("app.update.disabledForTesting", true);
user_pref("app.normandy.enabled", false);
user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("network.captive-portal-service.enabled", false);
user_pref("network.connectivity-service.enabled", false);
user_pref("services.settings.server", "data:,");
user_pref("toolkit.telemetry.enabled", false);
"#;

pub(super) struct Firefox {
    process: Child,
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    calls: u64,
    context: Value,
}

pub(super) fn program() -> Option<&'static str> {
    let runs = |name: &&str| Command::new(name).arg("--version").output().is_ok_and(|out| out.status.success());
    ["firefox-esr", "firefox"].into_iter().find(runs)
}

impl Firefox {
    pub(super) async fn start(profile: &Path) -> Result<Self, String> {
        std::fs::write(profile.join("user.js"), PREFERENCES).map_err(|e| e.to_string())?;
        let mut process = Command::new(program().ok_or("there is no firefox")?)
            .args(["--headless", "--no-remote", "--remote-debugging-port", "0", "--profile"])
            .arg(profile)
            .arg("about:blank")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|e| e.to_string())?;
        let connected = Self::connect(&profile.join("WebDriverBiDiServer.json")).await;
        let socket = match connected {
            Ok(socket) => socket,
            Err(e) => {
                let _ = process.kill();
                let _ = process.wait();
                return Err(e);
            }
        };
        let mut browser = Self { process, socket, calls: 0, context: Value::Null };
        browser.call("session.new", json!({ "capabilities": {} })).await?;
        let tree = browser.call("browsingContext.getTree", json!({})).await?;
        browser.context = tree["contexts"][0]["context"].clone();
        Ok(browser)
    }

    async fn connect(file: &Path) -> Result<WebSocketStream<MaybeTlsStream<TcpStream>>, String> {
        for _ in 0..PATIENCE.as_millis() / 50 {
            let port = std::fs::read(file).ok().and_then(|text| serde_json::from_slice::<Value>(&text).ok());
            if let Some(port) = port.and_then(|v| v["ws_port"].as_u64()) {
                let address = format!("ws://127.0.0.1:{port}/session");
                return connect_async(address).await.map(|(socket, _)| socket).map_err(|e| e.to_string());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Err(format!("firefox has not begun to listen within {PATIENCE:?}"))
    }

    async fn call(&mut self, method: &str, params: Value) -> Result<Value, String> {
        self.calls += 1;
        let message = json!({ "id": self.calls, "method": method, "params": params });
        self.socket.send(Message::text(message.to_string())).await.map_err(|e| e.to_string())?;
        loop {
            let next = tokio::time::timeout(PATIENCE, self.socket.next()).await;
            let next = next.map_err(|_| format!("{method}: no answer within {PATIENCE:?}"))?;
            let message = next.ok_or_else(|| format!("{method}: firefox has gone"))?.map_err(|e| e.to_string())?;
            let Ok(text) = message.into_text() else { continue };
            let Ok(mut message) = serde_json::from_str::<Value>(&text) else { continue };
            if message["id"] != self.calls {
                continue;
            }
            return match message["type"].as_str() {
                Some("success") => Ok(message["result"].take()),
                _ => Err(format!("{method}: {}", message["message"])),
            };
        }
    }

    pub(super) async fn open(&mut self, address: &str) -> Result<(), String> {
        let params = json!({ "context": self.context, "url": address, "wait": "complete" });
        self.call("browsingContext.navigate", params).await.map(|_| ())
    }

    /// The text that an expression, a promise of it, comes to.
    pub(super) async fn eval(&mut self, expression: &str) -> Result<String, String> {
        let params = json!({ "expression": expression, "target": { "context": self.context }, "awaitPromise": true });
        let answer = self.call("script.evaluate", params).await?;
        match answer["result"]["value"].as_str() {
            Some(text) => Ok(text.to_owned()),
            None => Err(answer["exceptionDetails"]["text"].to_string()),
        }
    }
}

impl Drop for Firefox {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
