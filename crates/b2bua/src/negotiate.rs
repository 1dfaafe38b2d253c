//! What one leg's offers and answers come to (RFC 3264), and what the media plane is told of it.
//!
//! Media passes through us, so each leg negotiates with us alone: the port is ours and stays for
//! the whole call, whatever the other leg does. Directions cross over, and the codec follows the
//! other leg where both can ("prefer no transcoding").

use std::net::SocketAddr;

use dialplan::{CodecSpec, Codecs};
use media::command::{LegSpec, PayloadFormat, PortId};
use sdp::{AcceptError, Agreed, AnswerError, Direction, Format, LocalMedia, Origin, Session};

/// First payload number given to a codec that has no static one (RFC 3551 section 6).
const FIRST_DYNAMIC: u8 = 96;
/// The usual number of telephone-event where the caller named none.
const TELEPHONE_EVENT: u8 = 101;

/// One leg's side of the media.
#[derive(Debug)]
pub(crate) struct LegMedia {
    pub(crate) port: Option<(PortId, SocketAddr)>,
    /// Our last description on this leg.
    pub(crate) local: Option<Session>,
    /// The peer's last description.
    pub(crate) remote: Option<Session>,
    pub(crate) agreed: Option<Agreed>,
    /// Whether our last description is an offer that has no answer yet.
    offer_open: bool,
    /// What `local` was before that offer.
    before_offer: Option<Session>,
    session_id: u64,
}

impl LegMedia {
    pub(crate) fn new(session_id: u64) -> Self {
        Self {
            port: None,
            local: None,
            remote: None,
            agreed: None,
            offer_open: false,
            before_offer: None,
            session_id,
        }
    }

    /// Our offer on this leg. Once a description has gone out, a new offer keeps its m= lines.
    pub(crate) fn offer(&mut self, formats: Vec<Format>, direction: Direction) -> Vec<u8> {
        let local = self.local_media(formats, direction);
        let offer = match (&self.local, &self.agreed) {
            (Some(previous), Some(agreed)) => {
                sdp::reoffer(previous, agreed.media_index, &self.origin(), &local)
            }
            _ => sdp::offer(&self.origin(), &local),
        };
        self.before_offer = self.local.clone();
        self.offer_open = true;
        self.say(offer)
    }

    /// The peer refused our last offer: what stood before it stands (RFC 3264 section 8).
    pub(crate) fn withdraw(&mut self) {
        self.offer_open = false;
        if let Some(before) = self.before_offer.take() {
            self.local = Some(before);
        }
    }

    /// Whether an offer of ours waits for its answer.
    pub(crate) fn awaits_answer(&self) -> bool {
        self.offer_open
    }

    /// Our answer to the peer's offer, with the first of `formats` that the offer has.
    pub(crate) fn answer(
        &mut self,
        offer: &Session,
        formats: Vec<Format>,
        direction: Direction,
    ) -> Result<Vec<u8>, AnswerError> {
        let local = self.local_media(formats, direction);
        let answer = sdp::answer(offer, &self.origin(), &local)?;
        self.remote = Some(offer.clone());
        self.agreed = Some(answer.agreed);
        Ok(self.say(answer.session))
    }

    /// Takes the peer's answer to our last offer.
    pub(crate) fn accept(&mut self, answer: Session) -> Result<(), AcceptError> {
        let offer = self.local.as_ref().ok_or(AcceptError::NothingOffered)?;
        self.agreed = Some(sdp::accept(offer, &answer)?);
        self.offer_open = false;
        self.remote = Some(answer);
        Ok(())
    }

    /// Our last description as it went out.
    pub(crate) fn local_bytes(&self) -> Option<Vec<u8>> {
        self.local.as_ref().map(Session::to_bytes)
    }

    /// What the media plane is told of this leg, once both sides have agreed.
    pub(crate) fn spec(&self) -> Option<LegSpec> {
        let agreed = self.agreed.as_ref()?;
        let (port, _) = self.port?;
        let format = &agreed.send_format;
        let received = agreed
            .recv_formats
            .first()
            .map_or(format.payload_type, |f| f.payload_type);
        Some(LegSpec {
            port,
            remote: agreed.remote,
            format: PayloadFormat {
                name: format.encoding.clone(),
                clock_rate: format.clock_rate,
                channels: format.channels,
                payload_type: format.payload_type,
                recv_payload_type: received,
                fmtp: format.fmtp.clone(),
                params: Vec::new(),
            },
            also: Vec::new(),
            ptime_ms: agreed.ptime_ms,
            dtmf_send: agreed.send_dtmf,
            dtmf_recv: agreed.recv_dtmf,
            cn_send: None,
            cn_recv: None,
            send: agreed.direction.sends() && agreed.remote.is_some(),
            receive: agreed.direction.receives(),
        })
    }

    /// The codec of this leg as a person reads it.
    pub(crate) fn codec(&self) -> String {
        self.agreed.as_ref().map_or_else(String::new, |agreed| {
            format!(
                "{}/{}",
                agreed.send_format.encoding, agreed.send_format.clock_rate
            )
        })
    }

    fn local_media(&self, formats: Vec<Format>, direction: Direction) -> LocalMedia {
        let (_, address) = self
            .port
            .expect("a leg is negotiated after its port is there");
        LocalMedia {
            address: address.ip(),
            port: address.port(),
            formats,
            ptime: None,
            direction,
        }
    }

    fn origin(&self) -> Origin {
        let (_, address) = self
            .port
            .expect("a leg is negotiated after its port is there");
        Origin {
            username: "tandem".to_owned(),
            session_id: self.session_id,
            version: self.session_id,
            address: address.ip(),
        }
    }

    /// Keeps what goes out as the last description; its version grows only when it says something
    /// new (RFC 3264 section 8).
    fn say(&mut self, mut session: Session) -> Vec<u8> {
        if let Some(previous) = &self.local {
            session.follow(previous);
        }
        let bytes = session.to_bytes();
        self.local = Some(session);
        bytes
    }
}

/// What leg B is offered for a call: the caller's own formats, or those of the rule.
pub(crate) fn formats_for_callee(
    codecs: &Codecs,
    caller: Option<&Session>,
    ours: &[(String, u32)],
) -> Vec<Format> {
    let offered = caller
        .and_then(Session::audio)
        .map(|audio| audio.formats.clone());
    match (codecs, offered) {
        (Codecs::Caller, Some(formats)) => formats,
        (Codecs::Caller, None) => own_formats(ours),
        (Codecs::List(list), offered) => {
            let mut formats = from_specs(list);
            let with_events = offered.is_none_or(|f| f.iter().any(Format::is_telephone_event));
            if with_events {
                add_events(&mut formats);
            }
            formats
        }
    }
}

/// What leg A may be answered with: the callee's codec first, then what we can convert to it.
pub(crate) fn formats_for_caller(callee: &Format, ours: &[(String, u32)]) -> Vec<Format> {
    let mut formats = vec![callee.clone()];
    if ours.iter().any(|codec| is_codec(callee, codec)) {
        formats.extend(
            own_formats(ours)
                .into_iter()
                .filter(|f| !f.is_same_codec(callee)),
        );
    } else {
        add_events(&mut formats);
    }
    formats
}

/// Every codec of ours as formats, telephone-event last.
pub(crate) fn own_formats(ours: &[(String, u32)]) -> Vec<Format> {
    let specs: Vec<_> = ours
        .iter()
        .map(|(name, clock_rate)| CodecSpec {
            name: name.clone(),
            clock_rate: *clock_rate,
            payload_type: None,
            params: Default::default(),
        })
        .collect();
    let mut formats = from_specs(&specs);
    add_events(&mut formats);
    formats
}

fn is_codec(format: &Format, (name, clock_rate): &(String, u32)) -> bool {
    format.encoding.eq_ignore_ascii_case(name) && format.clock_rate == *clock_rate
}

fn from_specs(specs: &[CodecSpec]) -> Vec<Format> {
    let mut next = FIRST_DYNAMIC;
    specs
        .iter()
        .map(|spec| {
            let fixed = spec
                .payload_type
                .or_else(|| static_number(&spec.name, spec.clock_rate));
            let payload_type = fixed.unwrap_or(next);
            next += u8::from(fixed.is_none());
            Format {
                payload_type,
                encoding: spec.name.clone(),
                clock_rate: spec.clock_rate,
                channels: 1,
                fmtp: None,
            }
        })
        .collect()
}

/// One telephone-event for each clock among the formats (RFC 4733 section 2.1), on numbers that
/// are free.
fn add_events(formats: &mut Vec<Format>) {
    let mut clocks: Vec<u32> = Vec::new();
    for format in formats.iter() {
        if !clocks.contains(&format.clock_rate) {
            clocks.push(format.clock_rate);
        }
    }
    for clock_rate in clocks {
        let free = (TELEPHONE_EVENT..128)
            .chain(FIRST_DYNAMIC..TELEPHONE_EVENT)
            .find(|number| formats.iter().all(|f| f.payload_type != *number));
        let Some(payload_type) = free else { return };
        formats.push(Format {
            payload_type,
            encoding: "telephone-event".to_owned(),
            clock_rate,
            channels: 1,
            fmtp: Some("0-15".to_owned()),
        });
    }
}

/// The static payload number of a codec (RFC 3551 section 6, table 4).
fn static_number(name: &str, clock_rate: u32) -> Option<u8> {
    const TABLE: [(&str, u32, u8); 4] = [
        ("PCMU", 8_000, 0),
        ("GSM", 8_000, 3),
        ("PCMA", 8_000, 8),
        ("G722", 8_000, 9),
    ];
    TABLE
        .iter()
        .find(|(known, clock, _)| known.eq_ignore_ascii_case(name) && *clock == clock_rate)
        .map(|(.., number)| *number)
}
