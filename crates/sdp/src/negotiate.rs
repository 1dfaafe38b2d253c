//! Offer and answer (RFC 3264): what is said, and what it comes to.
//!
//! The offerer's numbers and the answerer's may differ for one codec (RFC 3264, 5.1 and 6.1): who
//! sends uses the numbers that the receiver wrote. Events follow the clock of the codec in use
//! (RFC 4733, 2.1).

use core::net::{IpAddr, SocketAddr};
use core::ops::RangeInclusive;

use sdp_types::Media;

use crate::describe::{self, Section};
use crate::error::{AcceptError, AnswerError};
use crate::format::assign_numbers;
use crate::session::{Audio, Session};
use crate::types::{Agreed, Direction, Format, LocalMedia, Origin};

/// Transport of our own offers.
const OFFERED_PROTO: &str = "RTP/AVP";

/// Milliseconds per packet where neither side says any (RFC 3551, 4.2).
const DEFAULT_PTIME_MS: u32 = 20;

/// What we send, in milliseconds per packet; a peer that asks for anything else is not heard.
const PTIME_MS: RangeInclusive<u32> = 5..=120;

/// Events 0 to 15, the digits, where a side does not say (RFC 4733, 2.4.1).
const EVENTS: &str = "0-15";

/// An answer and what it agrees to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    /// The description to send.
    pub session: Session,
    /// What it comes to for us.
    pub agreed: Agreed,
}

/// An offer of one audio stream. Formats that clash in number get others.
#[must_use]
pub fn offer(origin: &Origin, local: &LocalMedia) -> Session {
    let mut session = describe::session(origin, local.address);
    session.inner.add_media(offered(local, OFFERED_PROTO, &[]));
    session
}

/// A later offer in the same session: `previous` is our last description in it, and its stream at
/// `media_index` is the one that `local` is about.
///
/// The m= lines keep their number and order, all others off; payload numbers keep their meaning
/// (RFC 3264, 8 and 8.3.2). The version is that of `previous` when nothing changes and one more
/// when something does, whatever `origin` says. An index beyond the last m= line adds one.
#[must_use]
pub fn reoffer(
    previous: &Session,
    media_index: usize,
    origin: &Origin,
    local: &LocalMedia,
) -> Session {
    let known = previous
        .audio_at(media_index)
        .map(|audio| audio.formats)
        .unwrap_or_default();
    let mut session = describe::session(origin, local.address);
    for (index, media) in previous.inner.medias.iter().enumerate() {
        session.inner.add_media(if index == media_index {
            offered(local, &media.proto, &known)
        } else {
            describe::refused(media)
        });
    }
    if media_index >= previous.media_count() {
        session.inner.add_media(offered(local, OFFERED_PROTO, &[]));
    }
    session.follow(previous);
    session
}

/// The answer to an offer, for the first audio stream that has a codec of ours.
///
/// The answer has the offer's m= lines in their order, all but that one with port 0; it names one
/// codec, the first of `local.formats` that is offered, and the telephone-event on its clock if
/// both have one, under the offer's numbers. An offer whose every audio stream is off is answered
/// alike; then nothing flows.
///
/// # Errors
/// [`AnswerError`]: nothing to agree on; the status for that is 488.
pub fn answer(offer: &Session, origin: &Origin, local: &LocalMedia) -> Result<Answer, AnswerError> {
    if offer.media_count() == 0 {
        return Err(AnswerError::NoMedia);
    }
    let chosen = choose(offer, local)?;
    let Chosen {
        audio,
        remote,
        offered,
        codec,
        events,
    } = &chosen;
    let mut formats = vec![Format {
        fmtp: codec.fmtp.clone(),
        ..offered.clone()
    }];
    formats.extend(events.clone());
    let direction = local.direction.intersect(audio.direction.reversed());
    let section = Section {
        port: local.port,
        proto: &offer.inner.medias[audio.index].proto,
        formats: &formats,
        ptime: local
            .ptime
            .or_else(|| audio.ptime.filter(|ms| PTIME_MS.contains(ms))),
        direction,
    };
    let mut session = describe::session(origin, local.address);
    for (index, media) in offer.inner.medias.iter().enumerate() {
        session
            .inner
            .add_media(if index == audio.index && audio.port != 0 {
                describe::audio(&section)
            } else {
                describe::refused(media)
            });
    }
    let number = events.as_ref().map(|events| events.payload_type);
    let agreed = Agreed {
        media_index: audio.index,
        remote: *remote,
        remote_rtcp: rtcp(audio, *remote),
        send_format: offered.clone(),
        recv_formats: vec![formats.swap_remove(0)],
        send_dtmf: number,
        recv_dtmf: number,
        ptime_ms: ptime(audio, local.ptime),
        direction: if audio.port == 0 {
            Direction::Inactive
        } else {
            direction
        },
    };
    Ok(Answer { session, agreed })
}

/// Reads the answer to our offer.
///
/// An answer may name its codecs under other numbers than the offer, and the numbers of the offer
/// without an rtpmap. Where it names several codecs we send the first.
///
/// # Errors
/// [`AcceptError`]: the answer does not fit; the call cannot go on with it.
pub fn accept(offer: &Session, answer: &Session) -> Result<Agreed, AcceptError> {
    let (offered, answered) = (offer.media_count(), answer.media_count());
    if offered != answered {
        return Err(AcceptError::MediaCount { offered, answered });
    }
    let mut outcome = Err(AcceptError::NothingOffered);
    for ours in offer.audio_streams().filter(|audio| audio.port != 0) {
        if answer.inner.medias[ours.index].port == 0 {
            outcome = Err(AcceptError::Refused);
            continue;
        }
        let theirs = answer
            .audio_with(ours.index, &ours.formats)
            .filter(|theirs| {
                theirs.profile.is_plain() && ours.profile.is_plain()
                    || theirs.profile == ours.profile
            });
        let theirs = theirs.ok_or(AcceptError::Mismatch { media: ours.index })?;
        return agree(&ours, &theirs);
    }
    outcome
}

fn agree(ours: &Audio, theirs: &Audio) -> Result<Agreed, AcceptError> {
    let family = ours.address.ok_or(AcceptError::NothingOffered)?;
    let remote = remote(theirs, family).map_err(|Unusable| AcceptError::UnusableAddress)?;
    let both: Vec<_> = theirs
        .formats
        .iter()
        .filter(|format| format.is_codec())
        .filter_map(|theirs| {
            let ours = ours
                .formats
                .iter()
                .find(|ours| ours.is_same_codec(theirs))?;
            Some((theirs, ours))
        })
        .collect();
    let (send, _) = both.first().ok_or(AcceptError::NoCommonCodec)?;
    let clock_rate = send.clock_rate;
    let events = theirs
        .telephone_event(clock_rate)
        .zip(ours.telephone_event(clock_rate));
    Ok(Agreed {
        media_index: ours.index,
        remote,
        remote_rtcp: rtcp(theirs, remote),
        send_format: (*send).clone(),
        recv_formats: both.iter().map(|(_, ours)| (*ours).clone()).collect(),
        send_dtmf: events.map(|(theirs, _)| theirs),
        recv_dtmf: events.map(|(_, ours)| ours),
        ptime_ms: ptime(theirs, ours.ptime),
        direction: ours.direction.intersect(theirs.direction.reversed()),
    })
}

/// What of an offer is taken.
struct Chosen {
    audio: Audio,
    remote: Option<SocketAddr>,
    /// The codec as offered.
    offered: Format,
    /// The codec as we brought it.
    codec: Format,
    /// telephone-event under the offer's number, with our events.
    events: Option<Format>,
}

fn choose(offer: &Session, local: &LocalMedia) -> Result<Chosen, AnswerError> {
    let (on, off): (Vec<_>, Vec<_>) = offer.audio_streams().partition(|audio| audio.port != 0);
    // A stream that is off is taken only where there is no other.
    let streams = if on.is_empty() { off } else { on };
    let mut refusal = AnswerError::NoAudio;
    for audio in streams {
        let why = match take(audio, local) {
            Ok(chosen) => return Ok(chosen),
            Err(why) => why,
        };
        if refusal == AnswerError::NoAudio {
            refusal = why;
        }
    }
    Err(refusal)
}

fn take(audio: Audio, local: &LocalMedia) -> Result<Chosen, AnswerError> {
    if !audio.profile.is_plain() {
        return Err(AnswerError::Secure);
    }
    let remote = remote(&audio, local.address).map_err(|Unusable| AnswerError::UnusableAddress)?;
    let codec = local
        .formats
        .iter()
        .filter(|format| format.is_codec())
        .find_map(|ours| Some((audio.formats.iter().find(|f| f.is_same_codec(ours))?, ours)));
    let (offered, codec) = codec.ok_or(AnswerError::NoCommonCodec)?;
    let (offered, codec) = (offered.clone(), codec.clone());
    let ours = local
        .formats
        .iter()
        .find(|f| f.is_telephone_event() && f.clock_rate == offered.clock_rate);
    let events = ours
        .zip(audio.event_format(offered.clock_rate))
        .map(|(ours, theirs)| Format {
            fmtp: Some(ours.fmtp.clone().unwrap_or_else(|| EVENTS.to_owned())),
            ..theirs.clone()
        });
    Ok(Chosen {
        audio,
        remote,
        offered,
        codec,
        events,
    })
}

fn offered(local: &LocalMedia, proto: &str, known: &[Format]) -> Media {
    describe::audio(&Section {
        port: local.port,
        proto,
        formats: &assign_numbers(&local.formats, known),
        ptime: local.ptime,
        direction: local.direction,
    })
}

/// An address that no packet of ours can go to.
struct Unusable;

/// Where a stream's packets go; nowhere for hold by an unspecified address and for port 0.
fn remote(audio: &Audio, local: IpAddr) -> Result<Option<SocketAddr>, Unusable> {
    if audio.port == 0 {
        return Ok(None);
    }
    let address = audio.address.ok_or(Unusable)?;
    if address.is_unspecified() {
        return Ok(None);
    }
    let is_broadcast = matches!(address, IpAddr::V4(v4) if v4.is_broadcast());
    let same_family = address.is_ipv4() == local.to_canonical().is_ipv4();
    if address.is_multicast() || is_broadcast || !same_family {
        return Err(Unusable);
    }
    Ok(Some(SocketAddr::new(address, audio.port)))
}

/// Where a stream's RTCP goes: `a=rtcp`, or the port above (RFC 3550, 11).
fn rtcp(audio: &Audio, remote: Option<SocketAddr>) -> Option<SocketAddr> {
    let remote = remote?;
    let port = match audio.rtcp_port {
        Some(port) => port,
        None => remote.port().checked_add(1)?,
    };
    // An address of another kind, or nobody's, is as good as none.
    let elsewhere = audio.rtcp_address.filter(|address| {
        address.is_ipv4() == remote.is_ipv4()
            && !address.is_unspecified()
            && !address.is_multicast()
    });
    Some(SocketAddr::new(
        elsewhere.unwrap_or_else(|| remote.ip()),
        port,
    ))
}

/// What we send per packet: what the receiver asks for, or what we would, never above its maximum
/// (RFC 8866, 6.4).
fn ptime(theirs: &Audio, ours: Option<u32>) -> u32 {
    let wanted = theirs.ptime.filter(|ms| PTIME_MS.contains(ms));
    let wanted = wanted
        .or_else(|| ours.filter(|ms| PTIME_MS.contains(ms)))
        .unwrap_or(DEFAULT_PTIME_MS);
    match theirs.max_ptime.filter(|ms| PTIME_MS.contains(ms)) {
        Some(most) => wanted.min(most),
        None => wanted,
    }
}
