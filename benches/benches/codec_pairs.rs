//! How many calls does one core convert, codec pair by codec pair and complexity by complexity, and
//! how much of that is the codecs' own cost?
//!
//! ```text
//!   speech -> packets of A -> media::Session -> packets of B      whole: both directions of a call,
//!   speech -> packets of B ->   (no socket)  -> packets of A             through the session
//!   the same payloads -> decoder -> encoder                       bare: the codecs alone
//!   whole, bare, whole, bare, ... : medians, and the ratio of each neighbouring pair
//! ```
//!
//! Time is that of the thread (CLOCK_THREAD_CPUTIME_ID). Calls per core is one second over the
//! processor time of a second of a call, both directions, sockets apart. The speech is espeak-ng's.
//!
//! Run: `cargo bench -p tandem-benches --bench codec_pairs -- [--seconds S] [--pairs N] [--only TEXT]`;
//! the table in docs/codecs.md is made by `scripts/codec-table`. A claim takes windows of 20 s
//! (`--seconds 20`); a look takes fewer.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use audio::{Codec, Decoder, Encoder, Input, Offered};
use lab::table::{Align, Table};
use media::command::{LegSpec, PayloadFormat, PortId, Program, SessionId, SessionSpec, Side};
use media::{Outbox, Session};
use tandem_benches::{codecs, compare, machine, speech};

/// What is converted to what. Speex and Opus in the steps that people ask about.
const PAIRS: &[[&str; 2]] = &[
    ["PCMA/8000", "PCMA/8000"],
    ["PCMA/8000", "PCMU/8000"],
    ["PCMA/8000", "speex/8000?complexity=1&quality=8"],
    ["PCMA/8000", "speex/8000?complexity=2&quality=8"],
    ["PCMA/8000", "speex/8000?complexity=3&quality=8"],
    ["PCMA/8000", "speex/8000?complexity=5&quality=5"],
    ["PCMA/8000", "speex/8000?complexity=10&quality=8"],
    ["PCMA/8000", "speex/16000?complexity=1&quality=8"],
    ["PCMA/8000", "speex/16000?complexity=5&quality=8"],
    ["PCMA/8000", "opus/48000/2?complexity=0"],
    ["PCMA/8000", "opus/48000/2?complexity=5"],
    ["PCMA/8000", "opus/48000/2?complexity=10"],
    ["PCMA/8000", "G722/8000"],
    ["PCMA/8000", "L16/16000"],
    ["G722/8000", "speex/16000?complexity=2&quality=8"],
    ["G722/8000", "opus/48000/2?complexity=0"],
    ["G722/8000", "opus/48000/2?complexity=5"],
    ["G722/8000", "opus/48000/2?complexity=10"],
    [
        "speex/8000?complexity=2&quality=8",
        "opus/48000/2?complexity=5",
    ],
    [
        "speex/16000?complexity=2&quality=8",
        "opus/48000/2?complexity=5",
    ],
];

const PTIME_MS: u32 = 20;

fn main() -> anyhow::Result<()> {
    let options = compare::Options::from_args()?;
    println!("{}", machine::describe());
    println!(
        "{} pairs of windows of {} s of processor time, {PTIME_MS} ms packets\n",
        options.pairs,
        options.window.as_secs_f64()
    );
    let mut table = Table::new(&[
        ("leg A", Align::Left),
        ("leg B", Align::Left),
        ("us per call-second", Align::Right),
        ("calls per core", Align::Right),
        ("bare codecs", Align::Right),
        ("whole / bare", Align::Right),
        ("range", Align::Right),
    ]);
    for [a, b] in PAIRS {
        if options.skips(&format!("{a} {b}")) {
            continue;
        }
        table.row(measure(&options, a, b).with_context(|| format!("{a} and {b}"))?);
        eprintln!("{a} <-> {b} done");
    }
    print!("{table}");
    Ok(())
}

fn measure(options: &compare::Options, a: &str, b: &str) -> anyhow::Result<Vec<String>> {
    let (mut whole, mut bare) = (Whole::new(a, b)?, Bare::new(a, b)?);
    let outcome = compare::alternate(
        options,
        || whole.second(),
        bare.as_mut().map(|bare| || bare.second()),
    );
    ensure!(whole.sink.0 > 0, "nothing came out");
    let per_second = outcome.first.as_secs_f64();
    Ok(vec![
        a.to_owned(),
        b.to_owned(),
        format!("{:.1}", per_second * 1e6),
        format!("{:.0}", 1.0 / per_second),
        outcome.second.map_or_else(
            || "-".to_owned(),
            |bare| format!("{:.1}", bare.as_secs_f64() * 1e6),
        ),
        outcome
            .ratio
            .map_or_else(|| "-".to_owned(), |ratio| format!("{:.3}", ratio.median)),
        outcome.ratio.map_or_else(
            || "-".to_owned(),
            |ratio| format!("{:.3} to {:.3}", ratio.least, ratio.most),
        ),
    ])
}

/// One leg: its codec at the rate that a session runs it at, and speech coded with it.
struct Talker {
    format: PayloadFormat,
    payloads: Vec<Vec<u8>>,
    /// Units of the RTP clock in a packet.
    units: u32,
    next: usize,
    sequence: u16,
    timestamp: u32,
}

impl Talker {
    fn new(text: &str, payload_type: u8) -> anyhow::Result<Self> {
        let (codec, settings) = codecs::find(text)?;
        let info = codec.info();
        let params = codec.negotiate(&offered(&settings))?;
        let mut encoder = codec.encoder(&params)?;
        let pcm = speech::at(info.sample_rate)?;
        let mut room = vec![0; info.max_payload_bytes];
        let mut payloads = Vec::new();
        for frame in pcm.chunks_exact(params.frame_samples) {
            let len = encoder.encode(frame, &mut room)?;
            payloads.push(room[..len].to_vec());
        }
        Ok(Self {
            format: PayloadFormat {
                name: info.name.to_owned(),
                clock_rate: info.clock_rate,
                channels: info.rtpmap_channels,
                payload_type,
                recv_payload_type: payload_type,
                fmtp: None,
                params: settings,
            },
            payloads,
            units: info.clock_units(params.frame_samples),
            next: 0,
            sequence: 0,
            timestamp: 0,
        })
    }

    fn leg(&self, port: u32) -> LegSpec {
        LegSpec {
            port: PortId(port),
            remote: Some(peer(port)),
            format: self.format.clone(),
            also: Vec::new(),
            ptime_ms: PTIME_MS,
            dtmf_send: None,
            dtmf_recv: None,
            cn_send: None,
            cn_recv: None,
            send: true,
            receive: true,
        }
    }

    /// Writes the next packet and returns its length.
    fn packet(&mut self, out: &mut [u8]) -> usize {
        let payload = &self.payloads[self.next];
        self.next = (self.next + 1) % self.payloads.len();
        self.sequence = self.sequence.wrapping_add(1);
        self.timestamp = self.timestamp.wrapping_add(self.units);
        out[0] = 0x80;
        out[1] = self.format.recv_payload_type;
        out[2..4].copy_from_slice(&self.sequence.to_be_bytes());
        out[4..8].copy_from_slice(&self.timestamp.to_be_bytes());
        out[8..12].copy_from_slice(&7_u32.to_be_bytes());
        out[12..12 + payload.len()].copy_from_slice(payload);
        12 + payload.len()
    }
}

/// A call through a media session.
struct Whole {
    session: Session,
    talkers: [Talker; 2],
    now: Instant,
    sink: Sink,
}

impl Whole {
    fn new(a: &str, b: &str) -> anyhow::Result<Self> {
        let talkers = [Talker::new(a, 96)?, Talker::new(b, 97)?];
        let spec = SessionSpec {
            legs: [Some(talkers[0].leg(0)), Some(talkers[1].leg(1))],
            program: Program::Bridge,
        };
        let now = Instant::now();
        let session = Session::new(SessionId(1), &spec, &codecs::registry(), None, 1, now)?;
        Ok(Self {
            session,
            talkers,
            now,
            sink: Sink::default(),
        })
    }

    /// A second of the call, both directions.
    fn second(&mut self) {
        let mut packet = [0; 1_500];
        for _ in 0..1_000 / PTIME_MS {
            self.now += Duration::from_millis(PTIME_MS.into());
            for (talker, side) in self.talkers.iter_mut().zip(Side::BOTH) {
                let len = talker.packet(&mut packet);
                let from = peer(side.index() as u32);
                self.session.handle_packet(
                    self.now,
                    side,
                    from,
                    &mut packet[..len],
                    &mut self.sink,
                );
            }
            if self
                .session
                .poll_timeout()
                .is_some_and(|due| due <= self.now)
            {
                self.session.handle_timeout(self.now, &mut self.sink);
            }
        }
    }
}

/// The codecs of a call alone: what each direction decodes and encodes.
struct Bare([Way; 2]);

struct Way {
    talker: Talker,
    decoder: Box<dyn Decoder>,
    encoder: Box<dyn Encoder>,
    pcm: Vec<i16>,
    out: Vec<u8>,
}

impl Bare {
    /// `None` where a session decodes nothing: one codec on both legs, or a table between them.
    fn new(a: &str, b: &str) -> anyhow::Result<Option<Self>> {
        let ((from, _), (to, _)) = (codecs::find(a)?, codecs::find(b)?);
        if a == b || from.octet_map(to.info()).is_some() {
            return Ok(None);
        }
        Ok(Some(Self([Way::new(a, b)?, Way::new(b, a)?])))
    }

    fn second(&mut self) {
        for _ in 0..1_000 / PTIME_MS {
            self.0.iter_mut().for_each(Way::packet);
        }
    }
}

impl Way {
    fn new(from: &str, to: &str) -> anyhow::Result<Self> {
        let ((from_codec, from_settings), (to_codec, to_settings)) =
            (codecs::find(from)?, codecs::find(to)?);
        let at = |codec: &dyn Codec, rate| codec.info().sample_rate == rate;
        let (from_rate, to_rate) = (from_codec.info().sample_rate, to_codec.info().sample_rate);
        let decoded = from_codec.variant(to_rate, 1).filter(|c| at(*c, to_rate));
        let encoded = to_codec.variant(from_rate, 1).filter(|c| at(*c, from_rate));
        // As the session does it: a codec that can is run at the other's rate.
        let (decoded, encoded) = match (decoded, encoded) {
            (_, Some(encoded)) => (from_codec, encoded),
            (Some(decoded), None) => (decoded, to_codec),
            (None, None) => (from_codec, to_codec),
        };
        let params = encoded.negotiate(&offered(&to_settings))?;
        let channels = usize::from(decoded.info().channels);
        Ok(Self {
            talker: Talker::new(from, 96)?,
            decoder: decoded.decoder(&decoded.negotiate(&offered(&from_settings))?)?,
            encoder: encoded.encoder(&params)?,
            pcm: vec![0; decoded.info().max_frame_samples.max(params.frame_samples) * channels],
            out: vec![0; encoded.info().max_payload_bytes],
        })
    }

    fn packet(&mut self) {
        let payload = &self.talker.payloads[self.talker.next];
        self.talker.next = (self.talker.next + 1) % self.talker.payloads.len();
        let decoded = self.decoder.decode(Input::Frame(payload), &mut self.pcm);
        let frame = self.encoder.frame_samples();
        let encoded = self.encoder.encode(&self.pcm[..frame], &mut self.out);
        assert!(decoded.is_ok() && encoded.is_ok(), "our own payload");
        std::hint::black_box(&self.out);
    }
}

fn offered(settings: &[(String, String)]) -> Offered<'_> {
    Offered {
        settings,
        ptime_ms: PTIME_MS,
        ..Offered::default()
    }
}

fn peer(port: u32) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], 20_000 + port as u16 * 2))
}

/// Counts what is sent, so that nothing is optimised away.
#[derive(Default)]
struct Sink(u64);

impl Outbox for Sink {
    fn send(&mut self, _port: PortId, _to: SocketAddr, packet: &[u8]) {
        self.0 += std::hint::black_box(packet).len() as u64;
    }
}
