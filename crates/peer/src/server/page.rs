//! The page and what it is made of: files of `assets/`, embedded. Nothing comes from elsewhere.

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use axum::routing::get;

/// Sources that the page may load from: scripts, styles and data from the service itself alone. Nothing may frame it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";

struct File {
    path: &'static str,
    kind: &'static str,
    content: &'static str,
}

macro_rules! files {
    ($($path:literal, $kind:expr, $file:literal;)*) => {
        &[$(File { path: $path, kind: $kind, content: include_str!(concat!("../../assets/", $file)) },)*]
    };
}

const FILES: &[File] = files! {
    "/", HTML, "page/index.html";
    "/page/page.css", STYLE, "page/page.css";
    "/page/main.js", SCRIPT, "page/main.js";
    "/page/call.js", SCRIPT, "page/call.js";
    "/page/common.js", SCRIPT, "page/common.js";
    "/page/plots.js", SCRIPT, "page/plots.js";
    "/room", HTML, "page/room.html";
    "/page/room.js", SCRIPT, "page/room.js";
    "/page/member.js", SCRIPT, "page/member.js";
    "/ab", HTML, "page/ab.html";
    "/page/ab.js", SCRIPT, "page/ab.js";
    "/page/uplot.js", SCRIPT, "uplot/uPlot.iife.min.js";
    "/page/uplot.css", STYLE, "uplot/uPlot.min.css";
    "/page/licences/uplot.txt", "text/plain; charset=utf-8", "uplot/LICENSE";
};

/// The routes of the page.
pub(super) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    FILES.iter().fold(Router::new(), |router, file| router.route(file.path, get(move || async move { answer(file) })))
}

fn answer(file: &'static File) -> Response {
    let mut response = Response::new(Body::from(file.content));
    let fields = [
        (header::CONTENT_TYPE, file.kind),
        (header::CACHE_CONTROL, "no-cache"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    for (name, value) in fields {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_loads_nothing_from_elsewhere() {
        for file in FILES.iter().filter(|f| !f.path.contains("uplot")) {
            assert!(!file.content.contains("https://") && !file.content.contains("http://"), "{}", file.path);
        }
        for page in FILES.iter().filter(|f| f.kind == HTML).map(|f| f.content) {
            assert!(!page.contains("style=") && !page.contains("<style") && !page.contains("onclick"));
            for part in page.split('"').filter(|part| part.starts_with('/')) {
                assert!(FILES.iter().any(|f| f.path == part), "{part} is linked and not there");
            }
        }
    }
}
