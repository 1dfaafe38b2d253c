//! ACKs of 2xx responses, which are requests of their own (RFC 3261 section 13.2.2.4).
//!
//! The ACK is kept with the INVITE transaction, which hears repeats of its 2xx for 64 x T1
//! (timer M of RFC 6026), as long as the peer repeats them; so each repeat gets the same octets again
//! whether the call still stands or not.

use std::sync::Arc;
use std::time::Instant;

use super::Endpoint;
use super::api::Body;
use super::client::Purpose;
use super::outgoing::Hop;
use super::usage::Dialog;
use crate::arena::{ClientTxnId, UsageId};
use crate::{Incoming, NameAddr};

/// The ACK of one fork's 2xx.
#[derive(Debug)]
pub(crate) struct Ack {
    tag: Option<Box<str>>,
    /// Nothing while the name of its next hop is being looked up.
    sent: Option<(Hop, Arc<[u8]>)>,
}

impl Endpoint {
    /// Acknowledges the 2xx of [`super::Event::Answered`] or [`super::Event::ReinviteAnswered`], with
    /// the answer where that 2xx made an offer. Repeats of the 2xx are acknowledged by the endpoint
    /// from then on.
    pub fn ack(&mut self, now: Instant, id: UsageId, body: Option<Body>) {
        let Some(usage) = self.usages.get_mut(id) else {
            return;
        };
        let Some((txn, cseq)) = usage.ack_owed.take() else {
            return;
        };
        let dialog = usage.dialog.clone();
        self.send_ack(now, txn, &dialog, cseq, body);
    }

    /// Sends the ACK of a 2xx to the INVITE `txn`.
    pub(crate) fn send_ack(
        &mut self,
        now: Instant,
        txn: ClientTxnId,
        dialog: &Dialog,
        cseq: u32,
        body: Option<Body>,
    ) {
        let mut out = dialog.request("ACK", cseq, self.branch());
        out.body = body;
        let mut entry = 0;
        if let Some(client) = self.clients.get_mut(txn) {
            out.fields = client.out.credentials();
            entry = client.acks.len();
            client.acks.push(Ack {
                tag: dialog.remote_tag.clone(),
                sent: None,
            });
        }
        let purpose = Purpose::Ack {
            invite: txn,
            entry,
            used: dialog.via,
        };
        // Without a way to the peer its own timers end the dialog.
        let _ = self.send(now, out, purpose, None, None, None);
    }

    /// An ACK went out.
    pub(crate) fn keep_ack(
        &mut self,
        invite: ClientTxnId,
        entry: usize,
        hop: Hop,
        bytes: Arc<[u8]>,
    ) {
        let client = self.clients.get_mut(invite);
        if let Some(ack) = client.and_then(|client| client.acks.get_mut(entry)) {
            ack.sent = Some((hop, bytes));
        }
    }

    /// Whether a 2xx is the repeat of one acknowledged before; if so it gets that ACK again.
    pub(crate) fn repeat_ack(&mut self, invite: ClientTxnId, success: &Incoming) -> bool {
        let Some(client) = self.clients.get(invite) else {
            return false;
        };
        let to = success.to().ok();
        let tag = to.as_ref().and_then(NameAddr::tag);
        let Some(ack) = client.acks.iter().find(|ack| ack.tag.as_deref() == tag) else {
            return false;
        };
        if let Some((hop, bytes)) = &ack.sent {
            self.transmits.push_back(hop.transmit(bytes.clone()));
        }
        true
    }
}
