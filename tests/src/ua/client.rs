//! Requests of a phone: the client transactions (RFC 3261 section 17.1) and what responses mean.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::dialog::{Dialog, DialogState, Role};
use super::{ScriptedUa, T1, T2, Todo};
use crate::message::Sip;

/// How a request ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Result {
    /// With this final status.
    Final(u16),
    /// Without any, 64 x T1 after it was sent.
    TimedOut,
}

/// The end of a request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Outcome {
    /// Its method.
    pub method: String,
    /// Its sequence number.
    pub cseq: u32,
    /// How it ended.
    pub result: Result,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    Trying,
    Proceeding,
    Completed(u16),
    Failed,
}

/// A client transaction.
#[derive(Clone, Debug)]
pub(super) struct Client {
    branch: String,
    method: String,
    cseq: u32,
    dialog: Option<usize>,
    bytes: Arc<[u8]>,
    to: SocketAddr,
    state: State,
    interval: Duration,
    /// The ACK that answers every copy of the final response.
    ack: Option<(SocketAddr, Arc<[u8]>)>,
    /// The To tag of the responses.
    tag: Option<String>,
    /// CANCEL it as soon as a provisional response allows (section 9.1).
    cancel_wanted: bool,
}

impl ScriptedUa {
    /// Calls a user of the server; the index of the dialog.
    pub fn call(&mut self, now: Instant, user: &str) -> usize {
        let index = self.dialogs.len();
        let mut dialog = Dialog::new(Role::Caller, self.media.clone(), 1_000 + index as u64);
        dialog.call_id = self.unique("call");
        dialog.local_tag = self.unique("tag");
        dialog.local = format!("\"{0}\" <sip:{0}@{1}>", self.name, self.address.ip());
        dialog.remote = format!("<sip:{user}@{}>", self.server.ip());
        dialog.target = format!("sip:{user}@{}", self.server);
        self.dialogs.push(dialog);
        let fields = self.habits.invite_fields.clone();
        if let Some((content_type, body)) = self.habits.invite_body.clone() {
            self.request_in(now, index, "INVITE", &fields, Some((content_type, &body)));
            return index;
        }
        let offer = self.habits.offers.then(|| self.dialogs[index].offer());
        self.request_in(now, index, "INVITE", &fields, offer.as_deref().map(as_sdp));
        index
    }

    /// Ends a call however far it is: CANCEL or BYE, and BYE to an answer that comes all the same.
    pub fn hang_up(&mut self, now: Instant, dialog: usize) {
        let Some(Dialog { state, role, .. }) = self.dialogs.get(dialog) else {
            return;
        };
        match (state, role) {
            (DialogState::Confirmed, _) => self.bye(now, dialog),
            (DialogState::Early, Role::Caller) => {
                self.dialogs[dialog].unwanted = true;
                self.cancel(now, dialog);
            }
            (DialogState::Early, Role::Callee) | (DialogState::Over, _) => {}
        }
    }

    /// CANCELs a call that isn't answered yet, at once or after its first provisional response.
    ///
    /// # Panics
    /// When the dialog has no INVITE of ours.
    pub fn cancel(&mut self, now: Instant, dialog: usize) {
        let of_dialog = |c: &Client| c.dialog == Some(dialog) && c.method == "INVITE";
        let index = self
            .clients
            .iter()
            .rposition(of_dialog)
            .expect("there is an INVITE to cancel");
        match self.clients[index].state {
            State::Trying => self.clients[index].cancel_wanted = true,
            State::Proceeding => self.send_cancel(now, index),
            State::Completed(_) | State::Failed => {}
        }
    }

    /// Hangs up.
    pub fn bye(&mut self, now: Instant, dialog: usize) {
        self.bye_with(now, dialog, &[]);
    }

    /// Hangs up with these header lines.
    pub fn bye_with(&mut self, now: Instant, dialog: usize, fields: &[&str]) {
        let fields: Vec<_> = fields.iter().map(|field| (*field).to_owned()).collect();
        self.request_in(now, dialog, "BYE", &fields, None);
        self.dialogs[dialog].state = DialogState::Over;
    }

    /// Offers what the dialog's media says now.
    pub fn reinvite(&mut self, now: Instant, dialog: usize) {
        let offer = self.dialogs[dialog].offer();
        self.request_in(now, dialog, "INVITE", &[], Some(as_sdp(&offer)));
    }

    /// Asks the peer for an offer.
    pub fn reinvite_without_offer(&mut self, now: Instant, dialog: usize) {
        self.request_in(now, dialog, "INVITE", &[], None);
    }

    /// Registers its contact for this user, or any contact lines that `fields` bring.
    pub fn register(&mut self, now: Instant, user: &str, expires: u32) {
        let contact = format!("Contact: <{}>;expires={expires}", self.contact());
        self.register_with(now, user, &[contact]);
    }

    /// Registers with these header lines.
    pub fn register_with(&mut self, now: Instant, user: &str, fields: &[String]) {
        let aor = format!("sip:{user}@{}", self.server.ip());
        let uri = format!("sip:{}", self.server);
        self.request(now, "REGISTER", &uri, &aor, fields);
    }

    /// Sends a request outside any dialog.
    pub fn request(&mut self, now: Instant, method: &str, uri: &str, to: &str, fields: &[String]) {
        let (call_id, tag) = (self.unique("request"), self.unique("tag"));
        // A registration's CSeq rises over all its requests, as section 10.2 wants.
        self.serial += 1;
        let cseq = u32::try_from(self.serial).unwrap_or(u32::MAX);
        let from = if method == "REGISTER" {
            format!("<{to}>")
        } else {
            format!("<{}>", self.contact())
        };
        let contact = fields.iter().any(|field| field.starts_with("Contact:"));
        let mut lines = vec![
            format!("From: {from};tag={tag}"),
            format!("To: <{to}>"),
            format!("Call-ID: {call_id}"),
        ];
        lines.extend_from_slice(fields);
        if !contact {
            lines.push(format!("Contact: <{}>", self.contact()));
        }
        let server = self.server;
        self.start(now, method, uri, cseq, &lines, None, None, server);
    }

    /// Sends a request within a dialog.
    pub fn request_in(
        &mut self,
        now: Instant,
        dialog: usize,
        method: &str,
        fields: &[String],
        body: Option<(&str, &str)>,
    ) {
        let contact = self.contact();
        let d = &mut self.dialogs[dialog];
        d.local_cseq += 1;
        let cseq = d.local_cseq;
        let mut lines = dialog_lines(d);
        lines.push(format!("Contact: <{contact}>"));
        lines.extend_from_slice(fields);
        let to = d.next_hop().unwrap_or(self.server);
        let uri = d.target.clone();
        self.start(now, method, &uri, cseq, &lines, body, Some(dialog), to);
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "the parts of a request, used by two callers"
    )]
    fn start(
        &mut self,
        now: Instant,
        method: &str,
        uri: &str,
        cseq: u32,
        lines: &[String],
        body: Option<(&str, &str)>,
        dialog: Option<usize>,
        to: SocketAddr,
    ) {
        let branch = self.unique("z9hG4bK");
        let bytes = self.request_text(method, uri, &branch, cseq, lines, body);
        let index = self.clients.len();
        self.clients.push(Client {
            branch,
            method: method.to_owned(),
            cseq,
            dialog,
            bytes: Arc::clone(&bytes),
            to,
            state: State::Trying,
            interval: T1,
            ack: None,
            tag: None,
            cancel_wanted: false,
        });
        self.plan(now + T1, Todo::ClientResend(index));
        self.plan(now + 64 * T1, Todo::ClientGiveUp(index));
        self.send(now, to, bytes);
    }

    fn request_text(
        &self,
        method: &str,
        uri: &str,
        branch: &str,
        cseq: u32,
        lines: &[String],
        body: Option<(&str, &str)>,
    ) -> Arc<[u8]> {
        let mut text = format!(
            "{method} {uri} SIP/2.0\r\nVia: SIP/2.0/UDP {};branch={branch};rport\r\n\
             Max-Forwards: {}\r\nCSeq: {cseq} {method}\r\n",
            self.address, self.habits.max_forwards
        );
        for line in lines {
            text.push_str(line);
            text.push_str("\r\n");
        }
        super::server::push_body(&mut text, body);
        Arc::from(text.as_bytes())
    }

    /// CANCEL has the branch, Request-URI and CSeq number of its INVITE (section 9.1).
    fn send_cancel(&mut self, now: Instant, invite: usize) {
        let Client {
            branch,
            cseq,
            bytes,
            to,
            ..
        } = self.clients[invite].clone();
        let Some(request) = Sip::read(&bytes) else {
            return;
        };
        let lines: Vec<_> = [("From", "from"), ("To", "to"), ("Call-ID", "call-id")]
            .map(|(name, key)| format!("{name}: {}", request.must(key)))
            .to_vec();
        let uri = request.uri().unwrap_or_default().to_owned();
        let bytes = self.request_text("CANCEL", &uri, &branch, cseq, &lines, None);
        let index = self.clients.len();
        self.clients.push(Client {
            branch,
            method: "CANCEL".to_owned(),
            cseq,
            dialog: None,
            bytes: Arc::clone(&bytes),
            to,
            state: State::Trying,
            interval: T1,
            ack: None,
            tag: None,
            cancel_wanted: false,
        });
        self.plan(now + T1, Todo::ClientResend(index));
        self.plan(now + 64 * T1, Todo::ClientGiveUp(index));
        self.send(now, to, bytes);
    }

    /// Timers A and E.
    pub(super) fn client_resend(&mut self, now: Instant, index: usize) {
        let client = &mut self.clients[index];
        let invite = client.method == "INVITE";
        let open = match client.state {
            State::Trying => true,
            State::Proceeding => !invite,
            State::Completed(_) | State::Failed => false,
        };
        if !open {
            return;
        }
        client.interval *= 2;
        if !invite {
            client.interval = client.interval.min(T2);
        }
        let (next, to, bytes) = (now + client.interval, client.to, Arc::clone(&client.bytes));
        self.plan(next, Todo::ClientResend(index));
        self.send(now, to, bytes);
    }

    /// Timers B and F. A cancelled INVITE that got its provisional response is given up too, as
    /// section 9.1 says.
    pub(super) fn client_give_up(&mut self, index: usize) {
        let client = &mut self.clients[index];
        let waits = client.method == "INVITE" && client.state == State::Proceeding;
        if waits || matches!(client.state, State::Completed(_) | State::Failed) {
            return;
        }
        client.state = State::Failed;
        let (method, cseq, dialog) = (client.method.clone(), client.cseq, client.dialog);
        if let Some(dialog) = dialog {
            self.dialogs[dialog].state = DialogState::Over;
        }
        self.outcomes.push(Outcome {
            method,
            cseq,
            result: Result::TimedOut,
        });
    }

    pub(super) fn take_response(&mut self, now: Instant, sip: &Sip) {
        let (cseq, method) = sip.cseq();
        let ours = |c: &Client| c.branch == sip.branch() && c.method == method && c.cseq == cseq;
        let Some(index) = self.clients.iter().position(ours) else {
            self.complain(sip, "response to nothing that was asked (section 17.1.3)");
            return;
        };
        let code = sip.status().unwrap_or_default();
        let tag = sip.receiver_tag().map(str::to_owned);
        let client = &mut self.clients[index];
        match (&client.tag, &tag) {
            (Some(before), Some(tag)) if before != tag => {
                self.complain(sip, "To tag changed on the way (section 8.2.6.2)");
                return;
            }
            (None, Some(_)) => client.tag = tag,
            _ => {}
        }
        match client.state {
            State::Completed(before) if before != code && code >= 200 => {
                self.complain(sip, format!("a second final response after {before}"));
                return;
            }
            State::Completed(_) => {
                // Each copy of a final response to INVITE gets the same ACK.
                if let (true, Some((to, ack))) = (code >= 200, client.ack.clone()) {
                    self.send(now, to, ack);
                }
                return;
            }
            State::Failed => return,
            State::Trying | State::Proceeding => {}
        }
        if code < 200 {
            client.state = State::Proceeding;
            let cancel = std::mem::take(&mut client.cancel_wanted);
            self.take_provisional(now, index, sip, cancel);
        } else {
            client.state = State::Completed(code);
            let method = method.to_owned();
            self.outcomes.push(Outcome {
                method,
                cseq,
                result: Result::Final(code),
            });
            self.take_final(now, index, sip, code);
        }
    }

    fn take_provisional(&mut self, now: Instant, index: usize, sip: &Sip, cancel: bool) {
        let client = &self.clients[index];
        let dialog = client.dialog.filter(|_| client.method == "INVITE");
        if let Some(dialog) = dialog.filter(|dialog| self.dialogs[*dialog].open_offer.is_some()) {
            self.hear_sdp(dialog, sip);
        }
        if cancel {
            self.send_cancel(now, index);
        }
    }

    fn take_final(&mut self, now: Instant, index: usize, sip: &Sip, code: u16) {
        if self.clients[index].method != "INVITE" {
            return;
        }
        let Some(dialog) = self.clients[index].dialog else {
            return;
        };
        let first = self.dialogs[dialog].state == DialogState::Early;
        if code >= 300 {
            if first {
                self.dialogs[dialog].state = DialogState::Over;
            }
            self.dialogs[dialog].open_offer = None;
            self.ack_refusal(now, index, sip);
            return;
        }
        let d = &mut self.dialogs[dialog];
        d.remote_tag = sip.receiver_tag().map(str::to_owned);
        if first {
            d.state = DialogState::Confirmed;
            d.routes = sip.all("record-route").map(str::to_owned).collect();
            d.routes.reverse();
        }
        if let Some(target) = sip.contact() {
            target.clone_into(&mut d.target);
        }
        let offered = self.clients[index]
            .bytes
            .windows(5)
            .any(|window| window == b"\r\nv=0");
        if !self.hear_sdp(dialog, sip) {
            self.complain(
                sip,
                "2xx to INVITE without a description (RFC 3261 section 13.3.1.4)",
            );
        }
        self.ack_2xx(now, index, dialog, !offered);
        if self.dialogs[dialog].unwanted && first {
            self.bye(now, dialog);
        }
    }

    /// The ACK of a refusal is part of its transaction (section 17.1.1.3).
    fn ack_refusal(&mut self, now: Instant, index: usize, sip: &Sip) {
        let Client {
            branch,
            cseq,
            bytes,
            to,
            ..
        } = self.clients[index].clone();
        let Some(request) = Sip::read(&bytes) else {
            return;
        };
        let mut lines = vec![
            format!("From: {}", request.must("from")),
            format!("To: {}", sip.must("to")),
            format!("Call-ID: {}", request.must("call-id")),
        ];
        lines.extend(request.all("route").map(|route| format!("Route: {route}")));
        let uri = request.uri().unwrap_or_default().to_owned();
        let ack = self.request_text("ACK", &uri, &branch, cseq, &lines, None);
        if self.habits.acks_refusals {
            self.clients[index].ack = Some((to, Arc::clone(&ack)));
            self.send(now, to, ack);
        }
    }

    /// The ACK of a 2xx is a request of its own (section 13.2.2.4).
    fn ack_2xx(&mut self, now: Instant, index: usize, dialog: usize, answer: bool) {
        let sdp = if answer {
            self.dialogs[dialog].answer()
        } else {
            None
        };
        let branch = self.unique("z9hG4bK");
        let cseq = self.clients[index].cseq;
        let lines = dialog_lines(&self.dialogs[dialog]);
        let uri = self.dialogs[dialog].target.clone();
        let ack = self.request_text(
            "ACK",
            &uri,
            &branch,
            cseq,
            &lines,
            sdp.as_deref().map(as_sdp),
        );
        let to = self.dialogs[dialog].next_hop().unwrap_or(self.server);
        if self.habits.acks_2xx {
            self.clients[index].ack = Some((to, Arc::clone(&ack)));
            self.send(now, to, ack);
        }
    }
}

fn as_sdp(text: &str) -> (&str, &str) {
    ("application/sdp", text)
}

fn dialog_lines(d: &Dialog) -> Vec<String> {
    let remote_tag = d
        .remote_tag
        .as_ref()
        .map(|tag| format!(";tag={tag}"))
        .unwrap_or_default();
    let mut lines = vec![
        format!("From: {};tag={}", d.local, d.local_tag),
        format!("To: {}{remote_tag}", d.remote),
        format!("Call-ID: {}", d.call_id),
    ];
    lines.extend(d.routes.iter().map(|route| format!("Route: {route}")));
    lines
}
