//! Requests of clients to the coverage map's service, in JSON, and files that it reads: an error or an answer in order, within
//! bounds of time and memory; what is written is read again.
#![no_main]

use weir_coverage::lookahead::{Area, Fence, FenceRequest, LookaheadError, Route, decode_polyline, encode_polyline};
use weir_coverage::rides::{City, LogFormat, read_log};
use weir_coverage::{
    Batch, Bounds, CachedMap, CapacityVector, Cell, Extent, Filter, Hours, Map, MapConfig, Resolution, Sweep, View,
    WallTime,
};
use weir_units::TimeDelta;

const NOW: WallTime = WallTime::from_unix_millis(1_700_000_000_000);

fn in_order(looked: Result<CapacityVector, LookaheadError>) {
    let Ok(vector) = looked else { return };
    for vector in [&vector, &vector.coarse()] {
        assert!(vector.segments.windows(2).all(|s| s[0].to_s == s[1].from_s));
        for known in vector.segments.iter().filter_map(|s| s.capacity) {
            assert!(known.quantiles.values().is_sorted() && (0.0..=1.0).contains(&known.confidence));
        }
        let text = serde_json::to_string(vector).expect("JSON");
        assert_eq!(serde_json::from_str::<CapacityVector>(&text).expect("read").segments.len(), vector.segments.len());
    }
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let mut map = Map::new(MapConfig { anonymity: 1, ..MapConfig::default() });
    for update in City::new(1, 2).ride(9, 0, NOW, 60) {
        map.insert(9, &update, NOW);
    }
    if let Ok(batch) = serde_json::from_slice::<Batch>(data) {
        let bounds = Bounds::default();
        let correction = bounds.correction(batch.sent_ms, NOW);
        for mut update in batch.updates {
            update.time_ms = update.time_ms.plus(correction.unwrap_or(TimeDelta::ZERO));
            // Also what would be refused.
            let _ = bounds.check(&update, NOW);
            map.insert(1, &update, NOW);
            if let Some(known) = map.capacity(update.position.cell(Resolution::Ten), &Filter::default(), NOW) {
                assert!(known.quantiles.values().is_sorted() && (0.0..=1.0).contains(&known.confidence));
            }
        }
    }
    if let Ok(route) = serde_json::from_slice::<Route>(data) {
        in_order(route.look(&map, NOW));
    }
    if let Ok(area) = serde_json::from_slice::<Area>(data) {
        in_order(area.look(&map, NOW));
    }
    if let Ok(request) = serde_json::from_slice::<FenceRequest>(data)
        && let Ok(mut fence) = Fence::new(request)
    {
        let here = City::new(1, 2).at(0.0, 0.0);
        assert!(fence.update(&map, Some(here), NOW).len() < 6_000);
        assert!(fence.update(&map, None, NOW).is_empty(), "nothing has changed");
    }
    if let Ok(window) = serde_json::from_slice::<Extent>(data) {
        for most in [1, 500, 4_000] {
            let resolution = window.resolution(most, map.resolution());
            let cells = map.cells_touching(window, resolution, 100);
            assert!(cells.len() <= 100 && cells.iter().all(|c| c.resolution() == resolution));
            for region in cells.iter().filter_map(|c| map.region(*c, &Filter::default(), Hours::Now, NOW)) {
                assert!(region.capacity.quantiles.values().is_sorted());
            }
        }
    }
    let text = String::from_utf8_lossy(data);
    let week = TimeDelta::from_secs(7 * 86_400);
    if let Ok(Some(cached)) = CachedMap::from_json(&text, week, 8) {
        let again = CachedMap::from_json(&cached.to_json(), week, 8).expect("read").expect("parts");
        assert_eq!(again.parts().count(), cached.parts().count());
    }
    if let Ok(cell) = text.parse::<Cell>() {
        let (first, last) = cell.span(Resolution::Ten);
        assert!(first <= last && cell.center().lat().is_finite());
    }
    if let Ok(points) = decode_polyline(&text) {
        let again = decode_polyline(&encode_polyline(points.iter().copied())).expect("read");
        let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(points.iter().zip(&again).all(|(a, b)| near(a.lat(), b.lat()) && near(a.lon(), b.lon())));
        assert_eq!(points.len(), again.len());
    }
    for format in [LogFormat::Norway, LogFormat::Ireland] {
        let _ = read_log(&text, format, City::new(1, 2).operator());
    }
    let mut sweep = Sweep::new([9]);
    map.sweep(&mut sweep, usize::MAX, NOW);
    assert!(sweep.is_done());
});
