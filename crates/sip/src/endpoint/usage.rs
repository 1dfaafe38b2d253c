//! One INVITE usage: a leg's dialog and what its user and its peer still owe each other.
//!
//! ```text
//!   caller's side   Calling --2xx--> Confirmed --BYE--> Ending --answer--> (gone)
//!                      | refused, cancelled, no answer            ^
//!                      v                                          |
//!                    (gone)                                       |
//!   callee's side   Incoming --our 2xx--> Confirmed (2xx repeated until ACK, or 64 x T1, then BYE)
//! ```
//! Sources: RFC 3261 sections 12 (dialogs), 13 (2xx and ACK), 14 (re-INVITE), 15 (BYE).

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::api::{Body, Credentials, Fields};
use super::outgoing::{Hop, Outgoing};
use crate::arena::{ClientTxnId, ServerTxnId};
use crate::{Incoming, Name};

/// A leg.
#[derive(Debug)]
pub(crate) struct Usage {
    pub(crate) phase: Phase,
    pub(crate) dialog: Dialog,
    pub(crate) is_uac: bool,
    /// User part of our Contact.
    pub(crate) contact: String,
    pub(crate) credentials: Option<Credentials>,
    /// The INVITE or re-INVITE of the peer that waits for our final response.
    pub(crate) open_in: Option<ServerTxnId>,
    /// Our INVITE, re-INVITE or BYE that waits for the peer's final response.
    pub(crate) open_out: Option<ClientTxnId>,
    /// Our 2xx that waits for its ACK.
    pub(crate) unacked: Option<Unacked>,
    /// A BYE that waits for that ACK (section 15).
    pub(crate) bye_after_ack: Option<Fields>,
    /// CSeq of the peer's 2xx that [`crate::Endpoint::ack`] is owed for.
    pub(crate) ack_owed: Option<u32>,
    /// The ACK sent last, for repeats of that 2xx.
    pub(crate) last_ack: Option<(u32, Hop, Arc<[u8]>)>,
    /// A re-INVITE that met 491 and waits to go out again.
    pub(crate) retry: Option<Retry>,
    pub(crate) armed: Option<Instant>,
}

/// Where a leg is.
#[derive(Debug)]
pub(crate) enum Phase {
    /// Our INVITE is out.
    Calling(Cancel),
    /// The peer's INVITE waits for our final response.
    Incoming,
    /// The dialog stands.
    Confirmed,
    /// Our BYE is out.
    Ending,
}

/// What became of the wish to cancel.
#[derive(Debug)]
pub(crate) enum Cancel {
    /// None; no provisional response yet.
    No,
    /// None; CANCEL would be legal.
    Possible,
    /// Wished before the first provisional response; it goes out with that (section 9.1).
    Wished(Fields),
    /// Sent; if nothing comes the INVITE is over then (section 9.1).
    Sent { give_up: Instant },
}

/// A 2xx that is repeated until its ACK comes (section 13.3.1.4).
#[derive(Debug)]
pub(crate) struct Unacked {
    pub(crate) cseq: u32,
    pub(crate) hop: Hop,
    pub(crate) bytes: Arc<[u8]>,
    pub(crate) next: Instant,
    pub(crate) interval: Duration,
    pub(crate) give_up: Instant,
}

/// A re-INVITE to be sent again after 491 (section 14.1).
#[derive(Debug)]
pub(crate) struct Retry {
    pub(crate) at: Instant,
    pub(crate) fields: Fields,
    pub(crate) body: Option<Body>,
    /// How often it has been tried.
    pub(crate) tries: u8,
}

/// How often a re-INVITE is tried before its 491 is passed up.
pub(crate) const REINVITE_TRIES: u8 = 4;

/// The state of a dialog (section 12).
#[derive(Clone, Debug)]
pub(crate) struct Dialog {
    pub(crate) call_id: String,
    pub(crate) local_tag: Box<str>,
    /// Our name-addr with our tag.
    pub(crate) local: String,
    /// The peer's name-addr with its tag, once it has one.
    pub(crate) remote: String,
    pub(crate) remote_tag: Option<Box<str>>,
    pub(crate) remote_target: String,
    pub(crate) route_set: Vec<String>,
    pub(crate) local_cseq: u32,
    pub(crate) remote_cseq: Option<u32>,
    /// The listener that the dialog lives on, and the connection that it came by.
    pub(crate) via: Option<Hop>,
}

impl Dialog {
    /// The dialog that a response to our request makes (section 12.1.2).
    pub(crate) fn of_response(
        sent: &Outgoing,
        hop: Option<Hop>,
        response: &Incoming,
    ) -> Option<Self> {
        let to = response.to().ok()?;
        let remote_target = response.contacts().next()?.ok()?.uri.to_owned();
        let mut route_set: Vec<String> = response
            .values(Name::RecordRoute)
            .map(str::to_owned)
            .collect();
        route_set.reverse();
        Some(Self {
            call_id: sent.call_id.clone(),
            local_tag: "".into(),
            local: sent.from.clone(),
            remote: response.header(Name::To)?.to_owned(),
            remote_tag: to.tag().map(Into::into),
            remote_target,
            route_set,
            local_cseq: sent.cseq,
            remote_cseq: None,
            via: hop,
        })
    }

    /// A request within the dialog (section 12.2.1.1): loose routes lead, a strict one takes the
    /// place of the Request-URI.
    pub(crate) fn request(&self, method: &str, cseq: u32, branch: String) -> Outgoing {
        let mut routes = self.route_set.clone();
        let mut request_uri = self.remote_target.clone();
        let first = routes
            .first()
            .and_then(|route| crate::NameAddr::parse(route).ok());
        let strict = first.and_then(|first| {
            let uri = first.uri().ok()?;
            (!uri.lr()).then(|| first.uri.to_owned())
        });
        if let Some(strict) = strict {
            routes.remove(0);
            routes.push(format!("<{request_uri}>"));
            request_uri = strict;
        }
        Outgoing {
            method: method.to_owned(),
            request_uri,
            routes,
            from: self.local.clone(),
            to: self.remote.clone(),
            call_id: self.call_id.clone(),
            cseq,
            branch,
            contact: None,
            fields: Vec::new(),
            body: None,
        }
    }

    /// A target refresh by a request or a 2xx (sections 12.2.1.2 and 12.2.2).
    pub(crate) fn refresh(&mut self, message: &Incoming) {
        if let Some(Ok(contact)) = message.contacts().next() {
            contact.uri.clone_into(&mut self.remote_target);
        }
    }
}

impl Usage {
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let cancel = match &self.phase {
            Phase::Calling(Cancel::Sent { give_up }) => Some(*give_up),
            _ => None,
        };
        let unacked = self
            .unacked
            .as_ref()
            .map(|unacked| unacked.next.min(unacked.give_up));
        let retry = self.retry.as_ref().map(|retry| retry.at);
        [cancel, unacked, retry].into_iter().flatten().min()
    }

    pub(crate) fn is_confirmed(&self) -> bool {
        matches!(self.phase, Phase::Confirmed)
    }

    /// The peer's tag, or nothing in an early leg of ours.
    pub(crate) fn is_remote_tag(&self, tag: Option<&str>) -> bool {
        self.dialog.remote_tag.as_deref() == tag
    }
}
