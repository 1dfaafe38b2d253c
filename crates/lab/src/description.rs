//! One leg's session description: what the lab offers, answers and agrees to.

use std::net::SocketAddr;

use sdp::{Agreed, Direction, Format, LocalMedia, Origin, Session};
use sip::{Body, Incoming};

use crate::law::Law;
use crate::stream::Agreement;

/// The description one leg sent last.
#[derive(Clone, Debug)]
pub(crate) struct Description {
    origin: Origin,
    local: LocalMedia,
    session: Session,
}

impl Description {
    /// An offer of these laws, in order of preference.
    pub(crate) fn offer(number: u64, address: SocketAddr, laws: &[Law]) -> Self {
        let (origin, local) = ours(number, address, laws);
        let session = sdp::offer(&origin, &local);
        Self {
            origin,
            local,
            session,
        }
    }

    /// The answer to the offer in `message`; `None` when there is none or no law fits.
    pub(crate) fn answer(
        message: &Incoming,
        number: u64,
        address: SocketAddr,
        laws: &[Law],
    ) -> Option<(Self, Agreement)> {
        let (origin, local) = ours(number, address, laws);
        let offer = Session::parse(message.sdp_body()?).ok()?;
        let answer = sdp::answer(&offer, &origin, &local).ok()?;
        let agreement = agreement(&answer.agreed)?;
        let description = Self {
            origin,
            local,
            session: answer.session,
        };
        Some((description, agreement))
    }

    /// Reads the answer to our offer.
    pub(crate) fn accept(&self, message: &Incoming) -> Option<Agreement> {
        let answer = Session::parse(message.sdp_body()?).ok()?;
        agreement(&sdp::accept(&self.session, &answer).ok()?)
    }

    /// Answers a later offer in the same session (RFC 3264, 8).
    pub(crate) fn answer_again(&mut self, message: &Incoming) -> Option<Agreement> {
        let offer = Session::parse(message.sdp_body()?).ok()?;
        self.origin.version += 1;
        let answer = sdp::answer(&offer, &self.origin, &self.local).ok()?;
        self.session = answer.session;
        agreement(&answer.agreed)
    }

    /// The message body.
    pub(crate) fn body(&self) -> Body {
        Body {
            content_type: "application/sdp".into(),
            bytes: self.session.to_bytes(),
        }
    }
}

fn ours(number: u64, address: SocketAddr, laws: &[Law]) -> (Origin, LocalMedia) {
    let origin = Origin {
        username: "lab".into(),
        session_id: number + 1,
        version: 1,
        address: address.ip(),
    };
    let local = LocalMedia {
        address: address.ip(),
        port: address.port(),
        formats: laws.iter().map(|&law| format(law)).collect(),
        ptime: Some(20),
        direction: Direction::SendRecv,
    };
    (origin, local)
}

fn format(law: Law) -> Format {
    Format {
        payload_type: law.payload_type(),
        encoding: law.encoding_name().into(),
        clock_rate: 8000,
        channels: 1,
        fmtp: None,
    }
}

/// The lab speaks 20 ms frames of a static payload type to one address; nothing else will do.
fn agreement(agreed: &Agreed) -> Option<Agreement> {
    let law = Law::from_encoding_name(&agreed.send_format.encoding)?;
    let fits = agreed.send_format.payload_type == law.payload_type();
    Some(Agreement {
        remote: agreed.remote.filter(|_| fits)?,
        law,
    })
}
