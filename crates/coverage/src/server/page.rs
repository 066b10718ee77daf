//! The map page and what it is made of: files of `assets/`, embedded. Nothing comes from elsewhere.
//!
//! The map page is plain modules of JavaScript, without a build step. The service sends the corners of cells, so that
//! the page needs no H3 library; Leaflet draws them, since there are no tiles and a canvas of some thousand polygons
//! is what it does well (147 kB; MapLibre is 1 MB and needs WebGL); uPlot draws the chart, as in the report.

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use sha2::{Digest, Sha256};

/// Sources that the page may load from: scripts, styles and data from the service itself alone. Nothing may frame it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";

macro_rules! files {
    ($($path:literal, $kind:expr, $file:literal;)*) => {
        &[$(File { path: $path, kind: $kind, content: include_str!(concat!("../../assets/", $file)) },)*]
    };
}

struct File {
    path: &'static str,
    kind: &'static str,
    content: &'static str,
}

const FILES: &[File] = files! {
    "/", HTML, "map/index.html";
    "/map/map.css", STYLE, "map/map.css";
    "/map/main.js", SCRIPT, "map/main.js";
    "/map/service.js", SCRIPT, "map/service.js";
    "/map/background.js", SCRIPT, "map/background.js";
    "/map/colours.js", SCRIPT, "map/colours.js";
    "/map/geometry.js", SCRIPT, "map/geometry.js";
    "/map/regions.js", SCRIPT, "map/regions.js";
    "/map/route.js", SCRIPT, "map/route.js";
    "/map/ride.js", SCRIPT, "map/ride.js";
    "/map/chart.js", SCRIPT, "map/chart.js";
    "/map/land.txt", TEXT, "map/land.txt";
    "/map/leaflet.js", SCRIPT, "leaflet/leaflet.js";
    "/map/leaflet.css", STYLE, "leaflet/leaflet.css";
    "/map/uplot.js", SCRIPT, "uplot/uPlot.iife.min.js";
    "/map/uplot.css", STYLE, "uplot/uPlot.min.css";
    "/map/licences/leaflet.txt", TEXT, "leaflet/LICENSE";
    "/map/licences/uplot.txt", TEXT, "uplot/LICENSE";
};

/// The routes of the page.
pub(super) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    FILES.iter().fold(Router::new(), |router, file| {
        let digest = Sha256::digest(file.content.as_bytes());
        let tag = digest.iter().take(8).fold(String::from("\""), |text, byte| format!("{text}{byte:02x}")) + "\"";
        let handler = move |headers: HeaderMap| {
            let tag = tag.clone();
            async move { answer(file, &tag, &headers) }
        };
        router.route(file.path, get(handler))
    })
}

fn answer(file: &File, tag: &str, headers: &HeaderMap) -> Response {
    let known = headers.get(header::IF_NONE_MATCH).is_some_and(|v| v.as_bytes() == tag.as_bytes());
    let mut response =
        if known { StatusCode::NOT_MODIFIED.into_response() } else { Response::new(Body::from(file.content)) };
    let fields = [
        (header::CONTENT_TYPE, file.kind),
        // Kept, and asked for again each time: a page is of one version.
        (header::CACHE_CONTROL, "no-cache"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    for (name, value) in fields {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    if let Ok(tag) = HeaderValue::from_str(tag) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_loads_nothing_from_elsewhere() {
        for file in FILES.iter().filter(|f| f.path.starts_with("/map/") || f.path == "/") {
            let own = !["/map/leaflet.js", "/map/uplot.js", "/map/leaflet.css"].contains(&file.path);
            let licence = file.path.contains("licence");
            assert!(
                !own || licence || !(file.content.contains("http://") || file.content.contains("https://")),
                "{} names another place",
                file.path
            );
            assert!(file.content.len() < 300_000, "{} has {} bytes", file.path, file.content.len());
        }
        let page = FILES[0].content;
        assert!(!page.contains("style=") && !page.contains("<style") && !page.contains("onclick"));
        for part in page.split(['"']).filter(|part| part.starts_with("/map/")) {
            assert!(FILES.iter().any(|f| f.path == part), "{part} is linked and not there");
        }
    }
}
