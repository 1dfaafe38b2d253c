//! Calls in every codec through the real server, real sockets and real time. What is said on one
//! leg was encoded by somebody else's encoder (speexenc, opusenc, ffmpeg, sox), and what is heard
//! on the other goes through somebody else's decoder; in between the server converts.
#![expect(dead_code, reason = "codecs whose crates are on their way")]

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use lab::place::Loopback;
use tandem_tests::live::{Scratch, alone, run, serve};
use tandem_tests::ogg;
use tandem_tests::phone::{self, Callee, Format, Heard, Speech};
use tandem_tests::sound::{likeness, say};

const CALLER: &str = "The quick brown fox jumps over the lazy dog, and the dog does not mind.";
const CALLEE: &str = "Pack my box with five dozen liquor jugs, please, before the sun goes down.";
const PTIME_MS: u32 = 20;

/// A codec as the world knows it.
struct Codec {
    /// `a=rtpmap`, and a payload number to offer it under.
    rtpmap: &'static str,
    number: u8,
    sample_rate: u32,
    /// Units of the RTP clock in 20 ms.
    units: u32,
    kind: Kind,
}

#[derive(Copy, Clone, PartialEq)]
enum Kind {
    /// Octets without a frame, as ffmpeg's format of this name.
    Raw {
        format: &'static str,
        packet: usize,
    },
    Speex,
    Opus,
}

const fn raw(
    rtpmap: &'static str,
    number: u8,
    sample_rate: u32,
    format: &'static str,
    packet: usize,
) -> Codec {
    let units = if number == 9 { 160 } else { sample_rate / 50 };
    Codec {
        rtpmap,
        number,
        sample_rate,
        units,
        kind: Kind::Raw { format, packet },
    }
}

const fn speex(rtpmap: &'static str, number: u8, sample_rate: u32) -> Codec {
    Codec {
        rtpmap,
        number,
        sample_rate,
        units: sample_rate / 50,
        kind: Kind::Speex,
    }
}

const PCMA: Codec = raw("PCMA/8000", 8, 8_000, "alaw", 160);
const PCMU: Codec = raw("PCMU/8000", 0, 8_000, "mulaw", 160);
const G722: Codec = raw("G722/8000", 9, 16_000, "g722", 160);
const L16: Codec = raw("L16/16000", 100, 16_000, "s16be", 640);
const SPEEX: Codec = speex("speex/8000", 97, 8_000);
const SPEEX_WIDE: Codec = speex("speex/16000", 98, 16_000);
const SPEEX_ULTRA: Codec = speex("speex/32000", 99, 32_000);
const OPUS: Codec = Codec {
    rtpmap: "opus/48000/2",
    number: 96,
    sample_rate: 48_000,
    units: 960,
    kind: Kind::Opus,
};

impl Codec {
    fn format(&self) -> Format {
        Format::new(self.number, self.rtpmap)
    }

    fn file(&self, scratch: &Scratch, name: &str, extension: &str) -> PathBuf {
        let plain = self.rtpmap.replace('/', "-");
        scratch.path(&format!("{name}-{plain}.{extension}"))
    }

    /// A text as somebody else's encoder encodes it.
    fn speech(&self, scratch: &Scratch, name: &str, text: &str) -> Speech {
        let wav = self.file(scratch, name, "wav");
        say(scratch, text, self.sample_rate, &wav);
        let payloads = match self.kind {
            Kind::Raw { format, packet } => {
                let out = self.file(scratch, name, "raw");
                let _ = run(Command::new("ffmpeg")
                    .args(["-v", "error", "-y", "-i"])
                    .arg(&wav)
                    .args(["-f", format])
                    .arg(&out));
                let octets = std::fs::read(&out).expect("encoded");
                octets.chunks_exact(packet).map(<[u8]>::to_vec).collect()
            }
            Kind::Speex => {
                let out = self.file(scratch, name, "spx");
                let _ = run(Command::new("speexenc")
                    .args(["--quality", "8", "--comp", "3"])
                    .args([&wav, &out]));
                ogg::packets(&out)
            }
            Kind::Opus => {
                let out = self.file(scratch, name, "opus");
                let _ = run(Command::new("opusenc")
                    .args(["--quiet", "--bitrate", "32", "--framesize", "20"])
                    .args([&wav, &out]));
                ogg::packets(&out)
            }
        };
        let mut speech = Speech::new(payloads, 8_000, PTIME_MS);
        speech.units = self.units;
        speech
    }

    /// What somebody else's decoder makes of what was heard.
    fn decode(&self, scratch: &Scratch, name: &str, heard: &[Heard]) -> PathBuf {
        let payloads: Vec<_> = heard.iter().map(|packet| packet.payload.clone()).collect();
        let wav = self.file(scratch, name, "wav");
        match self.kind {
            Kind::Raw { format, .. } => {
                let file = self.file(scratch, name, "raw");
                std::fs::write(&file, payloads.concat()).expect("written");
                let rate = self.sample_rate.to_string();
                let mut ffmpeg = Command::new("ffmpeg");
                ffmpeg.args(["-v", "error", "-y", "-f", format]);
                if format != "g722" {
                    ffmpeg.args(["-ar", &rate, "-ac", "1"]);
                }
                let _ = run(ffmpeg.arg("-i").arg(&file).arg(&wav));
            }
            Kind::Speex => {
                let file = self.file(scratch, name, "spx");
                ogg::write_speex(&file, self.sample_rate, &payloads);
                let _ = run(Command::new("speexdec").args([&file, &wav]));
            }
            Kind::Opus => {
                let file = self.file(scratch, name, "opus");
                ogg::write_opus(&file, self.units, &payloads);
                let _ = run(Command::new("opusdec").arg("--quiet").args([&file, &wav]));
            }
        }
        wav
    }

    /// Holds what was heard against the rules of RTP.
    fn check_packets(&self, heard: &[Heard], number: u8, said: usize) {
        let name = self.rtpmap;
        let first = heard.first().unwrap_or_else(|| panic!("{name}: silence"));
        assert!(heard.len() + 5 >= said, "{name}: {} of {said}", heard.len());
        assert!(first.marker, "{name}: a talkspurt begins with the marker");
        for (index, packet) in (0_u32..).zip(heard) {
            let expected = (
                number,
                first.ssrc,
                first.sequence.wrapping_add(index as u16),
                first.timestamp.wrapping_add(index * self.units),
            );
            let Heard {
                payload_type,
                ssrc,
                sequence,
                timestamp,
                ..
            } = *packet;
            assert_eq!(
                (payload_type, ssrc, sequence, timestamp),
                expected,
                "{name}: packet {index}"
            );
        }
    }
}

/// Where the source of a text is as a WAV file, at a rate that both sides of a call have.
fn source(scratch: &Scratch, name: &str, text: &str, sample_rate: u32) -> PathBuf {
    let wav = scratch.path(&format!("{name}-source.wav"));
    say(scratch, text, sample_rate, &wav);
    wav
}

fn assert_alike(what: &str, source: &Path, heard: (&Path, usize)) {
    let found = likeness(source, heard, &[]);
    assert!(found.correlation > 0.9, "{what}: {found:?}");
    assert!(found.decibels.abs() < 1.0, "{what}: {found:?}");
}

/// Makes one call for each user at once, and holds both directions against their sources.
fn converse(caller: &Codec, callees: &[(&str, &Codec)]) {
    let _alone = alone();
    let (scratch, at) = (Scratch::new(), Loopback::of_this_process().caller());
    let said = caller.speech(&scratch, "caller", CALLER);
    let speeches: HashMap<_, _> = callees
        .iter()
        .map(|(_, codec)| {
            let speech = codec.speech(&scratch, "callee", CALLEE);
            (codec.rtpmap.to_owned(), (codec.format(), speech))
        })
        .collect();
    let callee = Callee::start(at, speeches.clone());
    let variable = format!("callee={}", callee.uri());
    let server = serve(&scratch, at, &["--dialplan", "lab", "--set", &variable]);
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let calls: Vec<_> = callees
            .iter()
            .map(|(user, _)| {
                let (sip, format, said) = (server.sip(), caller.format(), &said);
                scope.spawn(move || phone::call(at, sip, user, &format, said))
            })
            .collect();
        calls
            .into_iter()
            .map(|call| call.join().expect("a call"))
            .collect()
    });
    let _ = scratch.wait_for_records(callees.len());
    assert!(server.stop().expect("it ends on SIGTERM").success());
    let narrowest = |codec: &Codec| codec.sample_rate.min(caller.sample_rate);
    let answered = callee.finish();
    for ((user, codec), outcome) in callees.iter().zip(&outcomes) {
        let rate = narrowest(codec);
        let sources = [("caller", CALLER), ("callee", CALLEE)]
            .map(|(name, text)| source(&scratch, &format!("{name}-{rate}"), text, rate));

        let (_, speech) = &speeches[codec.rtpmap];
        caller.check_packets(&outcome.heard, caller.number, speech.payloads.len());
        let name = format!("to-caller-{user}");
        let wav = caller.decode(&scratch, &name, &outcome.heard);
        assert_alike(&name, &sources[1], (&wav, 0));

        let mut of_codec = answered
            .iter()
            .filter(|call| call.description.contains(codec.rtpmap));
        let call = of_codec.next().expect("a call in this codec");
        codec.check_packets(&call.heard, codec.number, said.payloads.len());
        let name = format!("to-callee-{user}");
        let wav = codec.decode(&scratch, &name, &call.heard);
        assert_alike(&name, &sources[0], (&wav, 0));
    }
    assert_recorded(&scratch, callees);
}

/// Every call was recorded, one leg a side.
fn assert_recorded(scratch: &Scratch, callees: &[(&str, &Codec)]) {
    let recordings = scratch.recordings();
    assert_eq!(recordings.len(), callees.len(), "{recordings:?}");
    let sources = [("caller", CALLER), ("callee", CALLEE)]
        .map(|(name, text)| source(scratch, &format!("{name}-recorded"), text, 8_000));
    for wav in &recordings {
        for (side, source) in sources.iter().enumerate() {
            let what = format!("{} side {side}", wav.display());
            assert_alike(&what, source, (wav, side));
        }
    }
}

#[test]
fn a_law_is_converted_to_every_codec_and_back() {
    converse(&PCMA, &[("pcmu-record", &PCMU)]);
}
