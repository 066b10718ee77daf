//! Updates as rows.

use super::memory::Place;
use crate::server::store::{millis, time};
use crate::{Position, Resolution, Technology, Update};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use weir_units::DataRate;

/// Of the cells by which updates are spread over partitions: 253 km² on average (H3's table of cell areas), so that a city
/// is in several.
const PARENT: Resolution = Resolution::Five;
/// Of the cells that rows name, as the map's by default.
const CELL: Resolution = Resolution::Ten;

pub(super) const INSERT: &str = "INSERT INTO updates
        (device, id, time_ms, parent, h3, place, accuracy_m, operator, technology, cell, bps, rtt_ms, loss, limited)
    SELECT u.device, u.id, u.time_ms, u.parent, u.h3, ST_SetSRID(ST_MakePoint(u.lon, u.lat), 4326)::geography,
        u.accuracy_m, u.operator, u.technology, u.cell, u.bps, u.rtt_ms, u.loss, u.limited
    FROM unnest($1::int4[], $2::int8[], $3::int8[], $4::int8[], $5::int8[], $6::float8[], $7::float8[], $8::float4[],
        $9::text[], $10::int2[], $11::int8[], $12::int8[], $13::float4[], $14::float4[], $15::bool[])
        AS u (device, id, time_ms, parent, h3, lat, lon, accuracy_m, operator, technology, cell, bps, rtt_ms, loss, limited)
    ON CONFLICT DO NOTHING
    RETURNING device, id, parent";

pub(super) const TAKE_BACK: &str = "DELETE FROM updates AS u
    USING unnest($1::int4[], $2::int8[], $3::int8[]) AS t (device, id, parent)
    WHERE u.device = t.device AND u.id = t.id AND u.parent = t.parent";

pub(super) const ALL: &str = "SELECT device, id, time_ms, ST_Y(place::geometry), ST_X(place::geometry), accuracy_m,
        operator, technology, cell, bps, rtt_ms, loss, limited
    FROM updates ORDER BY time_ms, device, id";

pub(super) const FIND_DEVICES: &str = "SELECT d.key, d.name, d.id FROM devices AS d
    JOIN unnest($1::text[], $2::text[]) AS w (key, name) ON d.key = w.key AND d.name = w.name";

pub(super) const COUNT_DEVICES: &str = "SELECT count(*) FROM devices WHERE key = $1";

// Another process may have been faster: the row is then there, and left as it is.
pub(super) const ADD_DEVICES: &str = "INSERT INTO devices (key, name) SELECT * FROM unnest($1::text[], $2::text[])
    ON CONFLICT (key, name) DO UPDATE SET name = excluded.name
    RETURNING key, name, id";

pub(super) const FORGET_DEVICES: &str =
    "DELETE FROM devices WHERE key = $1 AND ($2::text IS NULL OR name = $2) RETURNING key, name, id";

pub(super) const FORGET_UPDATES: &str = "DELETE FROM updates WHERE device = ANY ($1)";

pub(super) const PARTITIONS: &str =
    "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'updates'::regclass ORDER BY inhrelid";

pub(super) const SIZE: &str = "SELECT (pg_total_relation_size('devices') + pg_total_relation_size('keys')
        + (SELECT sum(pg_total_relation_size(inhrelid)) FROM pg_inherits WHERE inhparent = 'updates'::regclass))::bigint";

/// Updates by column.
#[derive(Debug, Default)]
pub(super) struct Columns {
    device: Vec<i32>,
    id: Vec<i64>,
    time_ms: Vec<i64>,
    parent: Vec<i64>,
    h3: Vec<i64>,
    lat: Vec<f64>,
    lon: Vec<f64>,
    accuracy_m: Vec<f32>,
    operator: Vec<String>,
    technology: Vec<i16>,
    cell: Vec<Option<i64>>,
    bps: Vec<i64>,
    rtt_ms: Vec<Option<f32>>,
    loss: Vec<Option<f32>>,
    limited: Vec<bool>,
}

impl Columns {
    /// Adds an update, and returns where it will be.
    pub(super) fn add(&mut self, device: i32, update: &Update) -> Place {
        let cell = update.position.cell(CELL);
        let place = (device, update.id.cast_signed(), cell.parent(PARENT).index().cast_signed());
        self.device.push(device);
        self.id.push(place.1);
        self.time_ms.push(millis(update.time_ms));
        self.parent.push(place.2);
        self.h3.push(cell.index().cast_signed());
        self.lat.push(update.position.lat());
        self.lon.push(update.position.lon());
        self.accuracy_m.push(update.accuracy_m);
        self.operator.push(update.operator.as_str().to_owned());
        self.technology.push(update.technology.number().into());
        self.cell.push(update.cell_id.map(u64::cast_signed));
        self.bps.push(update.throughput.as_bps().cast_signed());
        self.rtt_ms.push(update.rtt_ms);
        self.loss.push(update.loss);
        self.limited.push(update.app_limited);
        place
    }

    pub(super) fn parameters(&self) -> [&(dyn ToSql + Sync); 15] {
        [
            &self.device,
            &self.id,
            &self.time_ms,
            &self.parent,
            &self.h3,
            &self.lat,
            &self.lon,
            &self.accuracy_m,
            &self.operator,
            &self.technology,
            &self.cell,
            &self.bps,
            &self.rtt_ms,
            &self.loss,
            &self.limited,
        ]
    }
}

/// The device and update of a row of [`ALL`].
pub(super) fn update(row: &Row) -> Option<(u32, Update)> {
    let position = Position::new(row.try_get(3).ok()?, row.try_get(4).ok()?).ok()?;
    let operator = row.get::<_, &str>(6).parse().ok()?;
    let technology = Technology::from_number(u8::try_from(row.get::<_, i16>(7)).unwrap_or(0));
    let rate = DataRate::from_bps(row.get::<_, i64>(9).cast_unsigned());
    let mut update =
        Update::new(row.get::<_, i64>(1).cast_unsigned(), time(row.get(2)), position, operator, technology, rate);
    update.accuracy_m = row.get(5);
    update.cell_id = row.get::<_, Option<i64>>(8).map(i64::cast_unsigned);
    update.rtt_ms = row.get(10);
    update.loss = row.get(11);
    update.app_limited = row.get(12);
    Some((u32::try_from(row.get::<_, i32>(0)).ok()?, update))
}
