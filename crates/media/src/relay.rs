//! A packet passed on as it is, but for its header: the path of most calls.
//!
//! The header is rewritten where it lies; a table from law to law is applied where the payload
//! lies. Loss and order of the sender's show through, so that the listener's own jitter buffer sees
//! what it is made for; numbers that are not passed on leave no hole.

use std::time::Instant;

use rtp::{Event, Fields};

use crate::leg::{Inbound, Leg, Payload};
use crate::stream::Run;

/// Rewrites a packet for the leg that it goes to. `None`: it does not go there; `Some` with the
/// packet to be sent.
///
/// `clock_rate` is that of the feeding stream. Cost: no allocation; twelve octets written, and the
/// payload when there is a table.
pub(crate) fn relay<'p>(
    now: Instant,
    inbound: &Inbound,
    packet: &'p mut [u8],
    table: Option<&[u8; 256]>,
    clock_rate: u32,
    run: &mut Option<Run>,
    to: &Leg,
) -> Option<(Fields, &'p mut [u8])> {
    let number = match inbound.payload {
        Payload::Audio => Some(to.spec.format.payload_type),
        Payload::Event => to.spec.dtmf_send,
        Payload::Comfort => to.spec.cn_send,
        Payload::Unknown => None,
    };
    if inbound.start {
        *run = None;
    }
    let Some(payload_type) = number.filter(|_| to.destination().is_some()) else {
        if let (Some(run), true) = (run.as_mut(), inbound.newest) {
            run.leave_out(inbound.number);
        }
        return None;
    };
    let came = inbound.header.fields;
    let is_new = run.is_none();
    if is_new && !inbound.newest {
        return None;
    }
    let begin = || Run::begin(now, inbound.number, came.timestamp, clock_rate, &to.out);
    let run = run.get_or_insert_with(begin);
    let sequence = run.sequence(inbound.number)?;
    let is_audio = inbound.payload == Payload::Audio;
    let jumped =
        inbound.newest && run.settle_timestamp(now, came.timestamp, inbound.payload, &to.out);
    let fields = Fields {
        marker: came.marker || is_audio && (is_new || jumped),
        payload_type,
        sequence,
        timestamp: run.timestamp(came.timestamp),
        ssrc: to.out.ssrc,
    };
    match (inbound.payload, table) {
        (Payload::Audio, Some(table)) => {
            for octet in inbound.header.payload_mut(packet) {
                *octet = table[usize::from(*octet)];
            }
        }
        (Payload::Event, _) if run.clocks_differ() => {
            scale_event(inbound.header.payload_mut(packet), run);
        }
        _ => {}
    }
    Some((fields, inbound.header.rewrite(packet, &fields)))
}

/// States an event's duration in units of the clock that is sent (RFC 4733 section 2.3.5).
pub(crate) fn scale_event(payload: &mut [u8], run: &Run) {
    if let Some(event) = Event::read(payload)
        && let Some(octets) = payload.first_chunk_mut()
    {
        let duration = run.scale(event.duration.into()).clamp(0, u16::MAX.into()) as u16;
        Event { duration, ..event }.write(octets);
    }
}
