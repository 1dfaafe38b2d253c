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
use super::client::Purpose;
use super::outgoing::{Hop, Outgoing, along};
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
    /// The INVITE whose 2xx [`crate::Endpoint::ack`] is owed for, and its CSeq.
    pub(crate) ack_owed: Option<(ClientTxnId, u32)>,
    /// Early dialogs of our INVITE, one for each fork that rang.
    pub(crate) early: Vec<Early>,
    /// Requests of the dialog that the user has not answered yet.
    pub(crate) pending: Vec<ServerTxnId>,
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

/// A fork that has not answered yet (section 12.1.2).
#[derive(Debug)]
pub(crate) struct Early {
    pub(crate) tag: Box<str>,
    pub(crate) remote_cseq: Option<u32>,
}

/// Early dialogs kept for one INVITE.
const MAX_EARLY: usize = 16;

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
        // A 2xx without Contact breaks section 12.1.1; where we called is the best guess then.
        let contact = response.contacts().next().and_then(Result::ok);
        let remote_target = contact
            .map_or(sent.request_uri.as_str(), |c| c.uri)
            .to_owned();
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

    /// A request within the dialog.
    pub(crate) fn request(&self, method: &str, cseq: u32, branch: String) -> Outgoing {
        let (request_uri, routes, is_strict) = along(&self.remote_target, &self.route_set);
        Outgoing {
            method: method.to_owned(),
            request_uri,
            routes,
            is_strict,
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
    pub(crate) fn new(phase: Phase, dialog: Dialog, contact: String) -> Self {
        Self {
            phase,
            dialog,
            is_uac: false,
            contact,
            credentials: None,
            open_in: None,
            open_out: None,
            unacked: None,
            bye_after_ack: None,
            ack_owed: None,
            early: Vec::new(),
            pending: Vec::new(),
            retry: None,
            armed: None,
        }
    }

    /// Our INVITE got a 2xx, which made this dialog. An early one of the same tag goes on in it;
    /// the others are over.
    pub(crate) fn confirm(&mut self, dialog: Dialog) {
        let early = std::mem::take(&mut self.early);
        let same = early
            .into_iter()
            .find(|early| Some(&early.tag) == dialog.remote_tag.as_ref());
        let local_tag = std::mem::take(&mut self.dialog.local_tag);
        self.dialog = Dialog {
            local_tag,
            local_cseq: self.dialog.local_cseq.max(dialog.local_cseq),
            remote_cseq: same.and_then(|early| early.remote_cseq),
            ..dialog
        };
        self.phase = Phase::Confirmed;
        self.open_out = None;
    }

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

    /// Whether no INVITE of the dialog is open in either direction (section 14.1).
    pub(crate) fn is_quiet(&self) -> bool {
        self.open_in.is_none()
            && self.open_out.is_none()
            && self.unacked.is_none()
            && self.ack_owed.is_none()
    }

    /// Whether a request of this purpose is not to be sent any more: the call is being cancelled, or
    /// ends and this is not its BYE.
    pub(crate) fn is_over_for(&self, purpose: Purpose) -> bool {
        match self.phase {
            Phase::Calling(Cancel::Wished(_) | Cancel::Sent { .. }) => true,
            Phase::Ending => purpose != Purpose::Bye,
            _ => false,
        }
    }

    /// Our INVITE went out anew: its CANCEL has to wait for a provisional response again.
    pub(crate) fn not_yet_cancellable(&mut self) {
        if let Phase::Calling(cancel @ Cancel::Possible) = &mut self.phase {
            *cancel = Cancel::No;
        }
    }

    /// Whether a tag is that of the peer in the dialog that stands. A peer of RFC 2543 has none.
    pub(crate) fn is_remote_tag(&self, tag: Option<&str>) -> bool {
        self.dialog.remote_tag.as_deref() == tag
    }

    /// A provisional response came: its fork has an early dialog from now on.
    pub(crate) fn note_early(&mut self, response: &Incoming) {
        let Some(tag) = response.to().ok().and_then(|to| to.tag()) else {
            return;
        };
        if self.early.len() < MAX_EARLY && self.early.iter().all(|early| *early.tag != *tag) {
            self.early.push(Early {
                tag: tag.into(),
                remote_cseq: None,
            });
        }
    }

    /// Whether a From tag is that of the peer in the dialog, or in one of the early ones.
    pub(crate) fn knows(&self, tag: Option<&str>) -> bool {
        match self.phase {
            Phase::Calling(_) => self.early.iter().any(|early| Some(&*early.tag) == tag),
            _ => self.is_remote_tag(tag),
        }
    }

    /// Where the last sequence number of the peer is kept, where a request with this From tag
    /// belongs to this leg.
    pub(crate) fn remote_cseq(&mut self, tag: Option<&str>) -> Option<&mut Option<u32>> {
        if !matches!(self.phase, Phase::Calling(_)) {
            return self
                .is_remote_tag(tag)
                .then_some(&mut self.dialog.remote_cseq);
        }
        let early = self.early.iter_mut();
        early
            .filter(|early| Some(&*early.tag) == tag)
            .map(|early| &mut early.remote_cseq)
            .next()
    }
}
