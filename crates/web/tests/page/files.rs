//! A plain file server.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// Serves a folder until it is stopped.
pub(crate) struct FileServer {
    pub(crate) address: SocketAddr,
    stopped: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl FileServer {
    pub(crate) fn start(folder: PathBuf) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        let stopped = Arc::new(AtomicBool::new(false));
        let flag = stopped.clone();
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if flag.load(Ordering::Relaxed) {
                    return;
                }
                // A browser opens connections ahead and sends nothing on them.
                let folder = folder.clone();
                std::thread::spawn(move || answer(stream, &folder));
            }
        });
        Self { address, stopped, thread: Some(thread) }
    }

    pub(crate) fn stop(mut self) {
        self.stopped.store(true, Ordering::Relaxed);
        drop(TcpStream::connect(self.address));
        self.thread.take().expect("running").join().expect("ended");
    }
}

fn answer(mut stream: TcpStream, folder: &Path) {
    let mut lines = BufReader::new(&stream).lines();
    let Some(Ok(first)) = lines.next() else { return };
    while lines.next().is_some_and(|line| line.is_ok_and(|l| !l.is_empty())) {}
    let path = first.split(' ').nth(1).unwrap_or("/").split(['?', '#']).next().unwrap_or("/");
    // Below a path of its own, as on a shared host.
    let name = path.strip_prefix("/some/lab/").unwrap_or("missing");
    let name = if name.is_empty() { "index.html" } else { name };
    let kind = match name.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript",
        Some("css") => "text/css",
        // As of servers that do not know WebAssembly.
        _ => "application/octet-stream",
    };
    let (status, body) = match std::fs::read(folder.join(name)) {
        Ok(body) if !name.contains("..") => ("200 OK", body),
        _ => ("404 Not Found", Vec::new()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    // A browser that goes away is no fault of the page.
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body));
}
