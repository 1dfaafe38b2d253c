//! Within a dialog: BYE and requests of other methods, both ways (RFC 3261 sections 12.2 and 15).

use std::time::Instant;

use super::Endpoint;
use super::api::{Body, Event, Fields, Flow, UsageError};
use super::client::Purpose;
use super::server::Says;
use super::usage::Phase;
use crate::arena::{ClientTxnId, ServerTxnId, UsageId};
use crate::{Incoming, Method, NameAddr};

impl Endpoint {
    /// Ends the dialog. Where our 2xx still waits for its ACK, the BYE waits too (section 15);
    /// where an ACK is owed, it goes first. [`Event::Ended`] follows.
    pub fn bye(&mut self, now: Instant, id: UsageId, fields: Fields) {
        let Some(usage) = self.usages.get_mut(id) else {
            return;
        };
        if !usage.is_confirmed() {
            return;
        }
        if usage.unacked.is_some() {
            usage.bye_after_ack = Some(fields);
            return;
        }
        self.ack(now, id, None);
        self.send_bye(now, id, fields);
    }

    /// Sends a request of another method within the dialog. [`Event::Response`] follows.
    ///
    /// # Errors
    /// [`UsageError::Gone`], [`UsageError::State`] before the dialog is confirmed or while it ends.
    pub fn request_in(
        &mut self,
        now: Instant,
        id: UsageId,
        method: &str,
        fields: Fields,
        body: Option<Body>,
    ) -> Result<ClientTxnId, UsageError> {
        let usage = self.usages.get(id).ok_or(UsageError::Gone)?;
        if !usage.is_confirmed() {
            return Err(UsageError::State);
        }
        self.send_in(now, id, method, fields, body, Purpose::User)
    }

    /// A request of the peer within the dialog.
    pub(crate) fn in_dialog(
        &mut self,
        now: Instant,
        id: UsageId,
        txn: ServerTxnId,
        message: Box<Incoming>,
        flow: Flow,
    ) {
        let Some(usage) = self.usages.get_mut(id) else {
            return;
        };
        let cseq = message.cseq().ok().map(|cseq| cseq.number);
        let from = message.from().ok();
        let tag = from.as_ref().and_then(NameAddr::tag);
        let Some(remote_cseq) = usage.remote_cseq(tag) else {
            self.refuse(now, txn, 481, Vec::new());
            return;
        };
        // Out of order (section 12.2.2); a gap is no fault.
        if cseq < *remote_cseq {
            self.refuse(now, txn, 500, Vec::new());
            return;
        }
        *remote_cseq = cseq;
        match (message.method(), &usage.phase) {
            // A callee may not hang up in an early dialog (section 15).
            (Some(Method::Bye), Phase::Calling(_)) => self.refuse(now, txn, 481, Vec::new()),
            (Some(Method::Bye), _) => self.on_bye(now, id, txn, message),
            (Some(Method::Invite), _) => self.on_reinvite(now, id, txn, message),
            _ => self.pass_request(txn, Some(id), message, flow),
        }
    }

    pub(crate) fn send_bye(&mut self, now: Instant, id: UsageId, fields: Fields) {
        let Some(usage) = self.usages.get_mut(id) else {
            return;
        };
        usage.phase = Phase::Ending;
        usage.retry = None;
        usage.bye_after_ack = None;
        let (open_in, open_out) = (usage.open_in.take(), usage.open_out.take());
        self.settle_usage(id);
        if let Some(txn) = open_out {
            self.abandon_client(now, txn);
        }
        if let Some(txn) = open_in {
            self.refuse(now, txn, 487, Vec::new());
        }
        match self.send_in(now, id, "BYE", fields, None, Purpose::Bye) {
            Ok(txn) => {
                if let Some(usage) = self.usages.get_mut(id) {
                    usage.open_out = Some(txn);
                }
            }
            Err(_) => self.end_usage(now, id),
        }
    }

    /// A BYE is answered whatever else goes on (section 15.1.2): two that cross both get 200.
    fn on_bye(&mut self, now: Instant, id: UsageId, txn: ServerTxnId, message: Box<Incoming>) {
        let _ = self.send_response(now, txn, 200, &Says::default());
        let Some(usage) = self.usages.get_mut(id) else {
            return;
        };
        let early = matches!(usage.phase, Phase::Incoming);
        let ending = matches!(usage.phase, Phase::Ending) || usage.bye_after_ack.is_some();
        let open_out = usage.open_out.take();
        // The outcome of a re-INVITE, or of our own BYE that crossed this one, interests nobody now.
        if let Some(id) = open_out {
            if let Some(txn) = self.clients.get_mut(id) {
                txn.purpose = Purpose::Silent;
            }
            self.abandon_client(now, id);
        }
        self.remove_usage(now, id);
        self.events.push_back(match (early, ending) {
            (true, _) => Event::Cancelled { usage: id, message },
            (_, true) => Event::Ended { usage: id },
            _ => Event::Bye { usage: id, message },
        });
    }

    /// Sends a request within the dialog.
    pub(crate) fn send_in(
        &mut self,
        now: Instant,
        id: UsageId,
        method: &str,
        fields: Fields,
        body: Option<Body>,
        purpose: Purpose,
    ) -> Result<ClientTxnId, UsageError> {
        let branch = self.branch();
        let usage = self.usages.get_mut(id).ok_or(UsageError::Gone)?;
        usage.dialog.local_cseq += 1;
        let mut out = usage
            .dialog
            .request(method, usage.dialog.local_cseq, branch);
        // Target refreshes say where we are (section 12.2.1.1; RFC 3311 section 5.1).
        out.contact = matches!(method, "INVITE" | "UPDATE").then(|| usage.contact.clone());
        out.fields = fields;
        out.body = body;
        let credentials = usage.credentials.clone();
        self.send(now, out, purpose, Some(id), None, credentials)
    }
}
