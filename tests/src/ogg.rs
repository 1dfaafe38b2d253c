//! Packets in Ogg files, so that the tools of the codecs' own makers read what we send and write
//! what we decode (RFC 3533; RFC 7845 for Opus; the Speex manual for Speex).

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use ogg::{PacketReader, PacketWriteEndInfo, PacketWriter};

/// Packets before the sound: a header and a comment.
const HEADERS: usize = 2;
const SERIAL: u32 = 1;

/// The packets of sound in a file.
///
/// # Panics
/// Where the file cannot be read.
#[must_use]
pub fn packets(path: &Path) -> Vec<Vec<u8>> {
    let file = File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut reader = PacketReader::new(BufReader::new(file));
    let mut found = Vec::new();
    while let Some(packet) = reader.read_packet().expect("an Ogg file") {
        found.push(packet.data);
    }
    found.split_off(HEADERS.min(found.len()))
}

/// Writes Speex frames, one a packet.
///
/// # Panics
/// Where the file cannot be written.
pub fn write_speex(path: &Path, sample_rate: u32, payloads: &[Vec<u8>]) {
    let mode = (sample_rate / 8_000).ilog2();
    let frame = 160 << mode;
    let mut header = b"Speex   1.2.1".to_vec();
    header.resize(28, 0);
    let (version, size, bitstream, channels, unknown_rate) = (1, 80, 4, 1, u32::MAX);
    let numbers = [
        version,
        size,
        sample_rate,
        mode,
        bitstream,
        channels,
        unknown_rate,
        frame,
    ];
    // No variable rate, one frame a packet, nothing else.
    for number in numbers.into_iter().chain([0, 1, 0, 0, 0]) {
        header.extend(number.to_le_bytes());
    }
    let ends = (1..).map(|count| u64::from(frame) * count);
    write(path, [header, comment(b"")], payloads, ends);
}

/// Writes Opus packets of so many samples at 48 kHz each.
///
/// # Panics
/// Where the file cannot be written.
pub fn write_opus(path: &Path, samples: u32, payloads: &[Vec<u8>]) {
    let mut header = b"OpusHead\x01\x01".to_vec();
    let (pre_skip, input_rate) = (312_u16, 8_000_u32);
    header.extend(pre_skip.to_le_bytes());
    header.extend(input_rate.to_le_bytes());
    // No gain, one stream of one or two channels.
    header.extend([0, 0, 0]);
    let ends = (1..).map(|count| u64::from(samples) * count);
    write(path, [header, comment(b"OpusTags")], payloads, ends);
}

/// A comment header of a vendor and no comments.
fn comment(magic: &[u8]) -> Vec<u8> {
    let vendor = b"test";
    let mut packet = magic.to_vec();
    packet.extend((vendor.len() as u32).to_le_bytes());
    packet.extend(vendor);
    packet.extend(0_u32.to_le_bytes());
    packet
}

fn write(
    path: &Path,
    headers: [Vec<u8>; HEADERS],
    payloads: &[Vec<u8>],
    ends: impl Iterator<Item = u64>,
) {
    let file = File::create(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut writer = PacketWriter::new(file);
    let mut put = |packet: Vec<u8>, how, end| {
        let written = writer.write_packet(packet, SERIAL, how, end);
        written.expect("written to the scratch directory");
    };
    for header in headers {
        put(header, PacketWriteEndInfo::EndPage, 0);
    }
    for (index, (payload, end)) in payloads.iter().zip(ends).enumerate() {
        let how = if index + 1 == payloads.len() {
            PacketWriteEndInfo::EndStream
        } else {
            PacketWriteEndInfo::NormalPacket
        };
        put(payload.clone(), how, end);
    }
}
