//! The callee's side of an INVITE usage: provisional responses, the 2xx and its ACK, refusals
//! (RFC 3261 section 13.3).

use std::time::Instant;

use super::Endpoint;
use super::api::{Body, Event, Fields, UsageError};
use super::server::Says;
use super::usage::{Phase, Unacked};
use crate::Incoming;
use crate::arena::{ServerTxnId, UsageId};

impl Endpoint {
    /// Sends a provisional response, 101 to 199.
    ///
    /// # Errors
    /// [`UsageError::Gone`], or [`UsageError::State`] once a final response is out.
    pub fn provisional(
        &mut self,
        now: Instant,
        id: UsageId,
        code: u16,
        reason: Option<&str>,
        fields: Fields,
        body: Option<Body>,
    ) -> Result<(), UsageError> {
        let (txn, contact) = self.incoming(id)?;
        let says = Says {
            reason,
            fields,
            body,
            contact: Some(&contact),
        };
        self.send_response(now, txn, code, &says).map(drop)
    }

    /// Answers with 200. It is repeated until the ACK comes, or for 64 x T1; then the endpoint
    /// ends the dialog (section 13.3.1.4).
    ///
    /// # Errors
    /// [`UsageError::Gone`], or [`UsageError::State`] once a final response is out.
    pub fn accept(
        &mut self,
        now: Instant,
        id: UsageId,
        fields: Fields,
        body: Option<Body>,
    ) -> Result<(), UsageError> {
        let (txn, contact) = self.incoming(id)?;
        let says = Says {
            reason: None,
            fields,
            body,
            contact: Some(&contact),
        };
        if let Some(usage) = self.usages.get_mut(id) {
            usage.phase = Phase::Confirmed;
        }
        self.send_success(now, id, txn, 200, &says)
    }

    /// Refuses, 300 to 699; the usage is gone.
    ///
    /// # Errors
    /// [`UsageError::Gone`], or [`UsageError::State`] once a final response is out.
    pub fn reject(
        &mut self,
        now: Instant,
        id: UsageId,
        code: u16,
        reason: Option<&str>,
        fields: Fields,
        body: Option<Body>,
    ) -> Result<(), UsageError> {
        let (txn, _) = self.incoming(id)?;
        let says = Says {
            reason,
            fields,
            body,
            contact: None,
        };
        self.send_response(now, txn, code, &says)?;
        if let Some(usage) = self.usages.get_mut(id) {
            usage.open_in = None;
        }
        self.remove_usage(now, id);
        Ok(())
    }

    /// Sends the 2xx of an INVITE or re-INVITE and keeps it for repeating. That the peer has moved
    /// counts from now on (RFC 6141 section 4.9).
    pub(crate) fn send_success(
        &mut self,
        now: Instant,
        id: UsageId,
        txn: ServerTxnId,
        code: u16,
        says: &Says<'_>,
    ) -> Result<(), UsageError> {
        let request = self
            .servers
            .get(txn)
            .and_then(|server| server.request.as_ref());
        let cseq = request.and_then(|request| request.cseq().ok());
        let cseq = cseq.map_or(0, |cseq| cseq.number);
        self.refresh_target(id, txn);
        let (hop, bytes) = self.send_response(now, txn, code, says)?;
        let (t1, give_up) = (self.config.t1, now + self.config.t1 * 64);
        if let Some(usage) = self.usages.get_mut(id) {
            usage.open_in = None;
            usage.unacked = Some(Unacked {
                cseq,
                hop,
                bytes,
                next: now + t1,
                interval: t1,
                give_up,
            });
        }
        self.settle_usage(id);
        Ok(())
    }

    /// The ACK of a 2xx.
    pub(crate) fn on_ack(&mut self, now: Instant, message: Box<Incoming>) {
        let Some(id) = self.usage_of(&message) else {
            return;
        };
        let Some(usage) = self.usages.get_mut(id) else {
            return;
        };
        let cseq = message.cseq().ok().map(|cseq| cseq.number);
        if usage.unacked.as_ref().map(|unacked| unacked.cseq) != cseq {
            return;
        }
        usage.unacked = None;
        let bye = usage.bye_after_ack.take();
        self.settle_usage(id);
        match bye {
            Some(fields) => self.send_bye(now, id, fields),
            None => self.events.push_back(Event::Acked { usage: id, message }),
        }
    }

    pub(crate) fn usage_timeout(&mut self, now: Instant, id: UsageId) {
        let t2 = self.config.t2;
        let Some(usage) = self.usages.get_mut(id) else {
            return;
        };
        usage.armed = None;
        if let Phase::Calling(super::usage::Cancel::Sent { give_up }) = usage.phase
            && give_up <= now
        {
            self.abandon(now, id);
            return;
        }
        if let Some(unacked) = &mut usage.unacked {
            if unacked.give_up <= now {
                usage.unacked = None;
                let fields = usage.bye_after_ack.take();
                if fields.is_none() {
                    self.events.push_back(Event::AckMissing { usage: id });
                }
                self.send_bye(now, id, fields.unwrap_or_default());
                return;
            }
            if unacked.next <= now {
                unacked.interval = (unacked.interval * 2).min(t2);
                unacked.next = now + unacked.interval;
                let (hop, bytes) = (unacked.hop, unacked.bytes.clone());
                self.transmits.push_back(hop.transmit(bytes));
            }
        }
        let due = |usage: &mut super::usage::Usage| usage.retry.take_if(|retry| retry.at <= now);
        if let Some(retry) = self.usages.get_mut(id).and_then(due) {
            self.retry_reinvite(now, id, retry);
        }
        self.settle_usage(id);
    }

    /// The peer's target refresh is about to be accepted.
    pub(crate) fn refresh_target(&mut self, id: UsageId, txn: ServerTxnId) {
        let request = self
            .servers
            .get(txn)
            .and_then(|server| server.request.as_ref());
        if let (Some(usage), Some(request)) = (self.usages.get_mut(id), request) {
            usage.dialog.refresh(request);
        }
    }

    fn incoming(&self, id: UsageId) -> Result<(ServerTxnId, String), UsageError> {
        let usage = self.usages.get(id).ok_or(UsageError::Gone)?;
        match (&usage.phase, usage.open_in) {
            (Phase::Incoming, Some(txn)) => Ok((txn, usage.contact.clone())),
            _ => Err(UsageError::State),
        }
    }
}
