//! Within a confirmed dialog: BYE, re-INVITE, and requests of other methods, both ways
//! (RFC 3261 sections 12.2, 14 and 15).

use std::time::Instant;

use super::Endpoint;
use super::api::{Body, Event, Failure, Fields, Flow, UsageError};
use super::client::Purpose;
use super::server::{Says, retry_after};
use super::usage::{Phase, Retry};
use crate::arena::{ClientTxnId, ServerTxnId, UsageId};
use crate::{Incoming, Method};

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

    /// Sends a re-INVITE. A 491 is waited out and tried again (section 14.1) before it is reported.
    ///
    /// # Errors
    /// [`UsageError::Gone`], [`UsageError::State`] outside a confirmed dialog,
    /// [`UsageError::Pending`] while another INVITE of the dialog is open.
    pub fn reinvite(
        &mut self,
        now: Instant,
        id: UsageId,
        fields: Fields,
        body: Option<Body>,
    ) -> Result<(), UsageError> {
        let usage = self.usages.get(id).ok_or(UsageError::Gone)?;
        if !usage.is_confirmed() || usage.bye_after_ack.is_some() {
            return Err(UsageError::State);
        }
        if usage.open_in.is_some()
            || usage.open_out.is_some()
            || usage.retry.is_some()
            || usage.unacked.is_some()
            || usage.ack_owed.is_some()
        {
            return Err(UsageError::Pending);
        }
        self.send_reinvite(now, id, fields, body, 1)
    }

    /// Responds to [`Event::Reinvite`] with a final response.
    ///
    /// # Errors
    /// [`UsageError::Gone`], or [`UsageError::State`] where none is open.
    pub fn respond_reinvite(
        &mut self,
        now: Instant,
        id: UsageId,
        code: u16,
        fields: Fields,
        body: Option<Body>,
    ) -> Result<(), UsageError> {
        let usage = self.usages.get_mut(id).ok_or(UsageError::Gone)?;
        if !usage.is_confirmed() {
            return Err(UsageError::State);
        }
        let txn = usage.open_in.ok_or(UsageError::State)?;
        let contact = usage.contact.clone();
        if (200..300).contains(&code) {
            let says = Says {
                reason: None,
                fields,
                body,
                contact: Some(&contact),
            };
            return self.send_success(now, id, txn, says);
        }
        if code >= 300 {
            usage.open_in = None;
        }
        let says = Says {
            reason: None,
            fields,
            body,
            contact: None,
        };
        self.send_response(now, txn, code, says).map(drop)
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
        let contact = (method == "UPDATE").then(|| usage.contact.clone());
        self.send_in(now, id, method, contact, fields, body, Purpose::User)
    }

    /// A request of the peer within the dialog.
    pub(crate) fn in_dialog(
        &mut self,
        now: Instant,
        id: UsageId,
        txn: ServerTxnId,
        message: Incoming,
        flow: Flow,
    ) {
        let Some(usage) = self.usages.get_mut(id) else {
            return;
        };
        let cseq = message.cseq().ok().map(|cseq| cseq.number);
        // Out of order (section 12.2.2); a gap is no fault.
        if usage.dialog.remote_cseq.is_some() && cseq <= usage.dialog.remote_cseq {
            self.refuse(now, txn, 500, Vec::new());
            return;
        }
        usage.dialog.remote_cseq = cseq;
        if usage.dialog.remote_tag.is_none() {
            // A fork that called back before its response came: not a dialog of ours yet.
            self.refuse(now, txn, 481, Vec::new());
            return;
        }
        match message.method() {
            Some(Method::Bye) => self.on_bye(now, id, txn, message),
            Some(Method::Invite) => self.on_reinvite(now, id, txn, message),
            method => {
                if method == Some(Method::Update) {
                    usage.dialog.refresh(&message);
                }
                self.pass_request(txn, Some(id), message, flow);
            }
        }
    }

    pub(crate) fn send_bye(&mut self, now: Instant, id: UsageId, fields: Fields) {
        let Some(usage) = self.usages.get_mut(id) else {
            return;
        };
        usage.phase = Phase::Ending;
        usage.retry = None;
        usage.bye_after_ack = None;
        let open_in = usage.open_in.take();
        self.settle_usage(id);
        if let Some(txn) = open_in {
            self.refuse(now, txn, 487, Vec::new());
        }
        match self.send_in(now, id, "BYE", None, fields, None, Purpose::Bye) {
            Ok(txn) => {
                if let Some(usage) = self.usages.get_mut(id) {
                    usage.open_out = Some(txn);
                }
            }
            Err(_) => self.end_usage(id),
        }
    }

    pub(crate) fn retry_reinvite(&mut self, now: Instant, id: UsageId, retry: Retry) {
        let free = self.usages.get(id).is_some_and(|usage| {
            usage.is_confirmed() && usage.open_in.is_none() && usage.open_out.is_none()
        });
        let Retry {
            fields,
            body,
            tries,
            ..
        } = retry;
        if !free
            || self
                .send_reinvite(now, id, fields, body, tries + 1)
                .is_err()
        {
            let failure = Failure::Response(491);
            self.events.push_back(Event::ReinviteRefused {
                usage: id,
                failure,
                message: None,
            });
        }
    }

    /// A BYE is answered whatever else goes on (section 15.1.2): two that cross both get 200.
    fn on_bye(&mut self, now: Instant, id: UsageId, txn: ServerTxnId, message: Incoming) {
        let _ = self.send_response(now, txn, 200, Says::default());
        let Some(usage) = self.usages.get_mut(id) else {
            return;
        };
        let early = matches!(usage.phase, Phase::Incoming);
        let ending = matches!(usage.phase, Phase::Ending) || usage.bye_after_ack.is_some();
        let (open_in, open_out) = (usage.open_in.take(), usage.open_out.take());
        if let Some(txn) = open_in {
            self.refuse(now, txn, 487, Vec::new());
        }
        // The outcome of a re-INVITE, or of our own BYE that crossed this one, interests nobody now.
        if let Some(txn) = open_out.and_then(|txn| self.clients.get_mut(txn)) {
            txn.purpose = Purpose::Silent;
        }
        self.remove_usage(id);
        let message = Box::new(message);
        self.events.push_back(match (early, ending) {
            (true, _) => Event::Cancelled { usage: id, message },
            (_, true) => Event::Ended { usage: id },
            _ => Event::Bye { usage: id, message },
        });
    }

    /// A re-INVITE: refused while another is open in either direction (section 14.2).
    fn on_reinvite(&mut self, now: Instant, id: UsageId, txn: ServerTxnId, message: Incoming) {
        let seconds = self.rng.below(11);
        let Some(usage) = self.usages.get_mut(id) else {
            return;
        };
        match usage.phase {
            Phase::Confirmed => {}
            Phase::Ending => return self.refuse(now, txn, 481, Vec::new()),
            _ => return self.refuse(now, txn, 500, vec![retry_after(seconds)]),
        }
        if usage.open_in.is_some() {
            return self.refuse(now, txn, 500, vec![retry_after(seconds)]);
        }
        if usage.open_out.is_some() || usage.ack_owed.is_some() {
            return self.refuse(now, txn, 491, Vec::new());
        }
        usage.open_in = Some(txn);
        usage.dialog.refresh(&message);
        if let Some(server) = self.servers.get_mut(txn) {
            server.usage = Some(id);
        }
        let _ = self.send_response(now, txn, 100, Says::default());
        self.events.push_back(Event::Reinvite {
            usage: id,
            message: Box::new(message),
        });
    }

    fn send_reinvite(
        &mut self,
        now: Instant,
        id: UsageId,
        fields: Fields,
        body: Option<Body>,
        tries: u8,
    ) -> Result<(), UsageError> {
        let contact = self.usages.get(id).map(|usage| usage.contact.clone());
        let purpose = Purpose::Reinvite { tries };
        let txn = self.send_in(now, id, "INVITE", contact, fields, body, purpose)?;
        if let Some(usage) = self.usages.get_mut(id) {
            usage.open_out = Some(txn);
        }
        Ok(())
    }

    #[expect(clippy::too_many_arguments, reason = "a request is all of these")]
    fn send_in(
        &mut self,
        now: Instant,
        id: UsageId,
        method: &str,
        contact: Option<String>,
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
        out.contact = contact;
        out.fields = fields;
        out.body = body;
        let credentials = usage.credentials.clone();
        self.send(now, out, purpose, Some(id), None, credentials)
    }
}
