//! The RTP side of a live phone: says what it was given, packet by packet on time, and keeps what
//! it hears. Its own reader and writer of RTP (RFC 3550 section 5.1).

use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Header without contributing sources, extension or padding.
const HEADER: usize = 12;
/// How long a socket is waited for before the end is looked for.
const LOOK: Duration = Duration::from_millis(5);

/// What a phone says: payloads, and how they lie in time.
#[derive(Clone, Debug)]
pub struct Speech {
    /// One a packet.
    pub payloads: Vec<Vec<u8>>,
    /// Units of the RTP clock from packet to packet.
    pub units: u32,
    /// Time from packet to packet.
    pub period: Duration,
}

impl Speech {
    /// Packets of so many milliseconds each.
    #[must_use]
    pub fn new(payloads: Vec<Vec<u8>>, clock_rate: u32, ptime_ms: u32) -> Self {
        Self {
            payloads,
            units: clock_rate / 1_000 * ptime_ms,
            period: Duration::from_millis(ptime_ms.into()),
        }
    }

    /// How long it lasts.
    #[must_use]
    pub fn duration(&self) -> Duration {
        self.period * u32::try_from(self.payloads.len()).unwrap_or(u32::MAX)
    }
}

/// A packet that was heard.
#[derive(Clone, Debug)]
pub struct Heard {
    /// When it came.
    pub at: Instant,
    /// Marker bit.
    pub marker: bool,
    /// Payload number.
    pub payload_type: u8,
    /// Sequence number.
    pub sequence: u16,
    /// Timestamp.
    pub timestamp: u32,
    /// Source.
    pub ssrc: u32,
    /// Payload.
    pub payload: Vec<u8>,
}

impl Heard {
    fn read(at: Instant, datagram: &[u8]) -> Option<Self> {
        let (header, payload) = datagram.split_at_checked(HEADER)?;
        // Version 2 and nothing else in the first octet: all that the server ever sends.
        if header[0] != 0x80 {
            return None;
        }
        let four = |from: usize| u32::from_be_bytes([0, 1, 2, 3].map(|n| header[from + n]));
        Some(Self {
            at,
            marker: header[1] & 0x80 != 0,
            payload_type: header[1] & 0x7f,
            sequence: u16::from_be_bytes([header[2], header[3]]),
            timestamp: four(4),
            ssrc: four(8),
            payload: payload.to_vec(),
        })
    }
}

/// Talks and listens on a socket until told to stop.
pub(super) fn talk(
    socket: &UdpSocket,
    (to, payload_type): (SocketAddr, u8),
    speech: &Speech,
    stop: &AtomicBool,
) -> Vec<Heard> {
    socket.set_read_timeout(Some(LOOK)).expect("a timeout");
    let mut heard = Vec::new();
    let mut datagram = [0; 2_048];
    let begun = Instant::now();
    let mut next = 0_u32;
    while !stop.load(Ordering::Relaxed) {
        while let Some(payload) = speech.payloads.get(next as usize) {
            if begun.elapsed() < speech.period * next {
                break;
            }
            let marker = if next == 0 { 0x80 } else { 0 };
            let mut packet = vec![0x80, marker | payload_type];
            packet.extend((next as u16).wrapping_add(65_000).to_be_bytes());
            packet.extend(next.wrapping_mul(speech.units).to_be_bytes());
            packet.extend(0x7a9d_e300_u32.to_be_bytes());
            packet.extend(payload);
            socket.send_to(&packet, to).expect("sent to loopback");
            next += 1;
        }
        match socket.recv_from(&mut datagram) {
            Ok((len, _)) => {
                let packet = Heard::read(Instant::now(), &datagram[..len]);
                heard.push(packet.expect("the server sends RTP"));
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            // The server's port is gone before the call is, when it hangs up first.
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
            Err(error) => panic!("{error}"),
        }
    }
    heard
}
