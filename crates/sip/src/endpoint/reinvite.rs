//! re-INVITEs, both ways (RFC 3261 section 14): one at a time, 491 for those that cross, and another
//! try after it.

use std::time::{Duration, Instant};

use super::Endpoint;
use super::api::{Body, Event, Failure, Fields, UsageError};
use super::client::Purpose;
use super::server::{Says, retry_after};
use super::usage::{Phase, Retry};
use crate::arena::{ClientTxnId, ServerTxnId, UsageId};
use crate::{Incoming, Rng};

impl Endpoint {
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
        if !usage.is_quiet() || usage.retry.is_some() {
            return Err(UsageError::Pending);
        }
        self.send_reinvite(now, id, fields, body, 1)
    }

    /// Responds to [`Event::Reinvite`].
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
        let contact = (200..300).contains(&code).then(|| usage.contact.clone());
        let says = Says {
            reason: None,
            fields,
            body,
            contact: contact.as_deref(),
        };
        if contact.is_some() {
            return self.send_success(now, id, txn, code, &says);
        }
        if code >= 300 {
            usage.open_in = None;
        }
        self.send_response(now, txn, code, &says).map(drop)
    }

    /// A re-INVITE of the peer: refused while another is open in either direction (section 14.2).
    pub(crate) fn on_reinvite(
        &mut self,
        now: Instant,
        id: UsageId,
        txn: ServerTxnId,
        message: Box<Incoming>,
    ) {
        let Some(usage) = self.usages.get_mut(id) else {
            return;
        };
        if matches!(usage.phase, Phase::Ending) || usage.bye_after_ack.is_some() {
            return self.refuse(now, txn, 481, Vec::new());
        }
        if usage.open_in.is_some() {
            let seconds = self.rng.below(11);
            return self.refuse(now, txn, 500, vec![retry_after(seconds)]);
        }
        if usage.open_out.is_some() || usage.ack_owed.is_some() {
            return self.refuse(now, txn, 491, Vec::new());
        }
        usage.open_in = Some(txn);
        if let Some(server) = self.servers.get_mut(txn) {
            server.usage = Some(id);
        }
        let _ = self.send_response(now, txn, 100, &Says::default());
        self.events
            .push_back(Event::Reinvite { usage: id, message });
    }

    /// A response to our re-INVITE that was not acknowledged before.
    pub(crate) fn reinvite_response(
        &mut self,
        now: Instant,
        id: UsageId,
        txn: ClientTxnId,
        tries: u8,
        code: u16,
        message: Box<Incoming>,
    ) {
        let (Some(usage), Some(client)) = (self.usages.get_mut(id), self.clients.get(txn)) else {
            return;
        };
        let is_awaited = usage.open_out == Some(txn);
        match code {
            200..=299 if is_awaited => {
                usage.open_out = None;
                usage.dialog.refresh(&message);
                usage.ack_owed = Some((txn, client.out.cseq));
                self.events
                    .push_back(Event::ReinviteAnswered { usage: id, message });
            }
            // A repeat before the user's ACK, or one that crossed our BYE: the latter is owed an ACK.
            200..=299 if matches!(usage.phase, Phase::Ending) => {
                let (dialog, cseq) = (usage.dialog.clone(), client.out.cseq);
                self.send_ack(now, txn, &dialog, cseq, None);
            }
            100..=299 => {}
            491 if is_awaited && tries < MAX_TRIES => {
                let (fields, body) = (client.out.fields.clone(), client.out.body.clone());
                usage.open_out = None;
                usage.retry = Some(Retry {
                    at: now + glare_wait(usage.is_uac, &mut self.rng),
                    fields,
                    body,
                    tries,
                });
                self.settle_usage(id);
            }
            _ => self.reinvite_failed(id, txn, Failure::Response(code), Some(message)),
        }
    }

    /// Our re-INVITE came to nothing.
    pub(crate) fn reinvite_failed(
        &mut self,
        id: UsageId,
        txn: ClientTxnId,
        failure: Failure,
        message: Option<Box<Incoming>>,
    ) {
        let Some(usage) = self.usages.get_mut(id) else {
            return;
        };
        if usage.open_out == Some(txn) {
            usage.open_out = None;
            self.events.push_back(Event::ReinviteRefused {
                usage: id,
                failure,
                message,
            });
        }
    }

    /// The wait after a 491 is over; it begins anew where the peer's INVITE is not.
    pub(crate) fn retry_reinvite(&mut self, now: Instant, id: UsageId, retry: Retry) {
        let Some(usage) = self.usages.get_mut(id) else {
            return;
        };
        if !usage.is_confirmed() || usage.bye_after_ack.is_some() {
            return;
        }
        if !usage.is_quiet() {
            let at = now + glare_wait(usage.is_uac, &mut self.rng);
            usage.retry = Some(Retry { at, ..retry });
            return;
        }
        let tries = retry.tries + 1;
        let sent = self.send_reinvite(now, id, retry.fields, retry.body, tries);
        if sent.is_err() {
            self.events.push_back(Event::ReinviteRefused {
                usage: id,
                failure: Failure::Response(491),
                message: None,
            });
        }
    }

    fn send_reinvite(
        &mut self,
        now: Instant,
        id: UsageId,
        fields: Fields,
        body: Option<Body>,
        tries: u8,
    ) -> Result<(), UsageError> {
        let purpose = Purpose::Reinvite { tries };
        let txn = self.send_in(now, id, "INVITE", fields, body, purpose)?;
        if let Some(usage) = self.usages.get_mut(id) {
            usage.open_out = Some(txn);
        }
        Ok(())
    }
}

/// How long to wait after a 491 (section 14.1).
fn glare_wait(is_uac: bool, rng: &mut Rng) -> Duration {
    let steps = match is_uac {
        true => OWNER_WAIT.0 + rng.below(OWNER_WAIT.1 - OWNER_WAIT.0 + 1),
        false => rng.below(OTHER_WAIT + 1),
    };
    STEP * u32::try_from(steps).unwrap_or(u32::MAX)
}

/// How often a re-INVITE is tried before its 491 is passed up.
const MAX_TRIES: u8 = 4;

/// The unit of the waits after 491 (section 14.1).
const STEP: Duration = Duration::from_millis(10);

/// The wait of the side that made the Call-ID, 2.1 to 4 s, in steps (section 14.1).
const OWNER_WAIT: (u64, u64) = (210, 400);

/// The longest wait of the other side, 2 s, in steps (section 14.1).
const OTHER_WAIT: u64 = 200;
