//! Datagrams under congestion control: both ends of a DCCP connection over UDP, in one process.
//!
//!     cargo run --release -p weir-live --example dccp
//!
//! The sender makes a "frame" of five datagrams 30 times per second. It keeps key frames and drops old data when
//! congestion control does not let them be sent in time, and reads the rate that it is allowed.

use std::time::Duration;
use weir_dccp::connection::{Ccids, Config};
use weir_dccp::queue::{Message, QueueConfig, QueuePolicy};
use weir_live::dccp::{DccpError, DccpListener, DccpSocket};
use weir_units::TimeDelta;

const FRAMES: u32 = 90;
const INTERVAL: Duration = Duration::from_millis(33);

fn main() -> Result<(), DccpError> {
    let config = Config {
        // CCID 3, TFRC, in both directions; CCID 2 if the other end supports nothing else.
        ccids: Ccids { send: vec![3, 2], receive: vec![3, 2], params: vec![] },
        queue: QueueConfig { capacity: 20, policy: QueuePolicy::DropOldest },
        ..Config::default()
    };
    let listener = DccpListener::bind(([127, 0, 0, 1], 0).into(), config.clone())?;
    let to = listener.local_addr();
    let receiver = std::thread::spawn(move || {
        let socket = listener.accept()?;
        let (mut buffer, mut datagrams, mut bytes) = ([0; 2_000], 0, 0);
        loop {
            match socket.recv(&mut buffer) {
                Ok(length) => (datagrams, bytes) = (datagrams + 1, bytes + length),
                Err(e) if e.is_closed() => return Ok((datagrams, bytes)),
                Err(e) => return Err(e),
            }
        }
    });
    let socket = DccpSocket::connect(to, Config { local_port: 0, ..config })?;
    socket.set_nonblocking(true);
    println!("connected to {to}, CCIDs {:?}, up to {} bytes a datagram", socket.ccids(), socket.max_packet_size());
    let data = [7; 1_200];
    for frame in 0..FRAMES {
        let is_key = frame % 30 == 0;
        let deadline = Some(socket.now() + TimeDelta::from_millis(100));
        for _ in 0..5 {
            let message = Message { bytes: &data, importance: u8::from(is_key), deadline, ..Message::default() };
            match socket.send_message(&message) {
                Err(e) if !e.is_would_block() => return Err(e),
                // The queue is full of more important data: this datagram is not sent.
                _ => {}
            }
        }
        if is_key {
            println!("rate {:?}, smoothed {:?}, round trip {:?}", socket.rate(), socket.smoothed_rate(), socket.rtt());
        }
        std::thread::sleep(INTERVAL);
    }
    println!("{:?}", socket.queue_counters());
    socket.finish(Duration::from_secs(5))?;
    let (datagrams, bytes) = receiver.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
    println!("{datagrams} datagrams have come, {bytes} bytes");
    Ok(())
}
