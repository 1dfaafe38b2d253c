//! Requests to a phone: the server transactions (RFC 3261 section 17.2) and what it answers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::dialog::{Dialog, DialogState, Role};
use super::script::{OnCancel, Script, Step};
use super::{ScriptedUa, T1, T2, Todo};
use crate::message::Sip;

/// A server transaction; an INVITE's lives until its ACK.
#[derive(Clone, Debug)]
pub(super) struct Server {
    request: Sip,
    from: SocketAddr,
    dialog: Option<usize>,
    last: Option<Arc<[u8]>>,
    /// Final response to an INVITE.
    answered: Option<u16>,
    acked: bool,
    interval: Duration,
    ends: Option<Instant>,
}

impl Server {
    fn is_invite(&self) -> bool {
        self.request.method() == Some("INVITE")
    }
}

impl ScriptedUa {
    pub(super) fn take_request(&mut self, now: Instant, from: SocketAddr, sip: &Sip) {
        let method = sip.method().unwrap_or_default().to_owned();
        if method == "ACK" {
            self.take_ack(sip);
            return;
        }
        let same = |s: &Server| {
            s.request.branch() == sip.branch() && s.request.method() == Some(method.as_str())
        };
        if let Some(index) = self.servers.iter().position(same) {
            let server = &self.servers[index];
            let accepted = server.answered.is_some_and(|code| code < 300);
            if let Some(last) = server.last.clone().filter(|_| !accepted) {
                self.send(now, from, last);
            }
            return;
        }
        let dialog = self.dialog_of(sip.must("call-id"), sip.receiver_tag());
        let index = self.servers.len();
        self.servers.push(Server {
            request: sip.clone(),
            from,
            dialog,
            last: None,
            answered: None,
            acked: false,
            interval: T1,
            ends: None,
        });
        if let Some(dialog) = dialog {
            self.check_in_dialog(dialog, sip);
        }
        if self.habits.ignored.iter().any(|ignored| *ignored == method) {
            return;
        }
        match (method.as_str(), dialog) {
            ("CANCEL", _) => self.take_cancel(now, index, sip),
            ("INVITE", None) if !sip.in_dialog() => self.take_invite(now, index, sip),
            (_, None) if sip.in_dialog() => self.reply(now, index, 481, None, &[]),
            ("INVITE", Some(dialog)) => self.take_reinvite(now, index, dialog, sip),
            ("BYE", Some(dialog)) => {
                self.dialogs[dialog].state = DialogState::Over;
                self.stop_2xx(dialog);
                self.reply(now, index, 200, None, &[]);
            }
            _ => self.reply(now, index, 200, None, &[]),
        }
    }

    /// RFC 3261 section 12.2: what every request within a dialog must be like.
    fn check_in_dialog(&mut self, dialog: usize, sip: &Sip) {
        let d = &mut self.dialogs[dialog];
        let (number, _) = sip.cseq();
        let mut faults = Vec::new();
        if number <= d.remote_cseq && sip.method() != Some("CANCEL") {
            faults.push(format!("CSeq {number} after {} (12.2.1.1)", d.remote_cseq));
        }
        d.remote_cseq = d.remote_cseq.max(number);
        let over = d.state == DialogState::Over && sip.method() == Some("INVITE");
        if over {
            faults.push("INVITE in a dialog that is over".to_owned());
        }
        faults.extend(self.faults_of_path(sip));
        for fault in faults {
            self.complain(sip, fault);
        }
    }

    fn faults_of_path(&self, sip: &Sip) -> Vec<String> {
        let mut faults = Vec::new();
        if sip.uri() != Some(self.contact().as_str()) {
            faults.push("Request-URI is not our Contact (12.2.1.1)".to_owned());
        }
        let expected: Vec<_> = self
            .habits
            .record_route
            .iter()
            .map(String::as_str)
            .collect();
        let routes: Vec<_> = sip.all("route").collect();
        if routes != expected {
            faults.push(format!(
                "route set {routes:?} instead of {expected:?} (12.2.1.1)"
            ));
        }
        faults
    }

    fn take_invite(&mut self, now: Instant, index: usize, sip: &Sip) {
        let dialog = self.dialogs.len();
        let mut d = Dialog::new(Role::Callee, self.media.clone(), 2_000 + dialog as u64);
        sip.must("call-id").clone_into(&mut d.call_id);
        d.local_tag = self.unique("tag");
        d.remote_tag = sip.sender_tag().map(str::to_owned);
        sip.must("to").clone_into(&mut d.local);
        let from = sip.must("from");
        d.remote = from
            .split_once(";tag=")
            .map_or(from, |(address, _)| address)
            .to_owned();
        d.target = sip.contact().unwrap_or_default().to_owned();
        d.routes = self.habits.record_route.iter().cloned().collect();
        (d.remote_cseq, _) = sip.cseq();
        self.dialogs.push(d);
        self.servers[index].dialog = Some(dialog);
        self.hear_sdp(dialog, sip);
        self.plan_script(now, index, self.habits.invite.clone());
    }

    fn take_reinvite(&mut self, now: Instant, index: usize, dialog: usize, sip: &Sip) {
        if self.dialogs[dialog].open_offer.is_some() {
            // Ours is on its way: glare (section 14.2).
            self.reply(now, index, 491, None, &[]);
            return;
        }
        let pending = |(i, s): (usize, &Server)| {
            i != index && s.dialog == Some(dialog) && s.is_invite() && s.answered.is_none()
        };
        if self.servers.iter().enumerate().any(pending) {
            self.reply(now, index, 500, None, &["Retry-After: 1".to_owned()]);
            return;
        }
        if let Some(target) = sip.contact() {
            target.clone_into(&mut self.dialogs[dialog].target);
        }
        self.hear_sdp(dialog, sip);
        let script = self.habits.reinvites.pop_front();
        let script = script.unwrap_or_else(|| Script::default().then_sdp(5, 200));
        self.plan_script(now, index, script);
    }

    fn plan_script(&mut self, now: Instant, index: usize, script: Script) {
        for step in script.steps {
            self.plan(now + step.after, Todo::Step(index, step));
        }
    }

    pub(super) fn take_step(&mut self, now: Instant, index: usize, step: &Step) {
        let over = self.servers[index].answered.is_some() && step.fork.is_none();
        if over {
            return;
        }
        if let Some(tag) = &step.fork {
            self.fork(now, index, step, tag);
            return;
        }
        let sdp = step.sdp.then(|| self.describe(index)).flatten();
        if step.sdp && sdp.is_none() && step.code >= 200 {
            self.reply(now, index, 488, None, &[]);
            return;
        }
        self.reply(now, index, step.code, sdp.as_deref(), &step.fields);
    }

    /// Our description for an INVITE's response.
    fn describe(&mut self, index: usize) -> Option<String> {
        let offered = self.servers[index].request.sdp().is_some();
        let dialog = self.servers[index].dialog?;
        let description = self.dialogs[dialog].describe(offered);
        if offered {
            self.dialogs[dialog].open_offer = None;
        }
        description
    }

    /// A response of another branch: a dialog of its own.
    fn fork(&mut self, now: Instant, index: usize, step: &Step, tag: &str) {
        let Some(dialog) = self.servers[index].dialog else {
            return;
        };
        let mut other = self.dialogs[dialog].clone();
        tag.clone_into(&mut other.local_tag);
        other.state = if step.code < 200 {
            DialogState::Early
        } else {
            DialogState::Confirmed
        };
        other.said = None;
        other.media.port += 10;
        let sdp = other.describe(self.servers[index].request.sdp().is_some());
        self.dialogs.push(other);
        let mut fork = self.servers[index].clone();
        fork.dialog = Some(self.dialogs.len() - 1);
        (fork.answered, fork.acked, fork.last, fork.interval) = (None, false, None, T1);
        // Its own place among the servers, for its own repeats; the request's branch finds the
        // first one still, as it should.
        self.servers.push(fork);
        let place = self.servers.len() - 1;
        self.reply(now, place, step.code, sdp.as_deref(), &step.fields);
    }

    fn take_cancel(&mut self, now: Instant, index: usize, sip: &Sip) {
        let meant = |s: &Server| s.is_invite() && s.request.branch() == sip.branch();
        let Some(invite) = self.servers.iter().position(meant) else {
            self.reply(now, index, 481, None, &[]);
            return;
        };
        let request = &self.servers[invite].request;
        let same_uri = request.uri() == sip.uri();
        let same_number = request.cseq().0 == sip.cseq().0;
        if !same_uri || !same_number || request.must("via") != sip.must("via") {
            self.complain(sip, "CANCEL differs from its INVITE (9.1)");
        }
        self.servers[index].dialog = self.servers[invite].dialog;
        let open = self.servers[invite].answered.is_none();
        match self.habits.on_cancel {
            OnCancel::Ignore => {}
            OnCancel::Answer if open => {
                self.reply(now, index, 200, None, &[]);
                let sdp = self.describe(invite);
                self.reply(now, invite, 200, sdp.as_deref(), &[]);
            }
            OnCancel::Refuse if open => {
                self.reply(now, index, 200, None, &[]);
                self.reply(now, invite, 487, None, &[]);
            }
            OnCancel::Answer | OnCancel::Refuse | OnCancel::Acknowledge => {
                self.reply(now, index, 200, None, &[]);
            }
        }
    }

    fn take_ack(&mut self, sip: &Sip) {
        let (number, _) = sip.cseq();
        let dialog = self.dialog_of(sip.must("call-id"), sip.receiver_tag());
        let meant = |s: &Server| {
            let same_dialog = s.dialog == dialog && s.request.cseq().0 == number;
            s.is_invite()
                && match s.answered {
                    Some(code) if code < 300 => same_dialog,
                    Some(_) => s.request.branch() == sip.branch(),
                    None => false,
                }
        };
        let Some(index) = self.servers.iter().position(meant) else {
            self.complain(sip, "ACK of nothing");
            return;
        };
        if self.habits.deaf_to_acks > 0 {
            self.habits.deaf_to_acks -= 1;
            return;
        }
        let first = !std::mem::replace(&mut self.servers[index].acked, true);
        let accepted = self.servers[index].answered.is_some_and(|code| code < 300);
        if !first || !accepted {
            return;
        }
        for fault in self.faults_of_path(sip) {
            self.complain(sip, fault);
        }
        let owed = self.servers[index].request.sdp().is_none();
        if let Some(dialog) = dialog {
            let heard = owed && self.hear_sdp(dialog, sip);
            if owed && !heard {
                self.complain(sip, "ACK without the answer to our offer (13.2.2.4)");
            }
        }
    }

    /// Sends a response; a final one to an INVITE is repeated until its ACK.
    fn reply(
        &mut self,
        now: Instant,
        index: usize,
        code: u16,
        sdp: Option<&str>,
        fields: &[String],
    ) {
        let bytes = self.response_text(index, code, sdp, fields);
        let server = &mut self.servers[index];
        server.last = Some(Arc::clone(&bytes));
        let from = server.from;
        if server.is_invite() && code >= 200 {
            server.answered = Some(code);
            server.ends = Some(now + 64 * T1);
            let dialog = server.dialog;
            self.plan(now + T1, Todo::ServerResend(index));
            self.plan(now + 64 * T1, Todo::ServerGiveUp(index));
            let state = if code < 300 {
                DialogState::Confirmed
            } else {
                DialogState::Over
            };
            let dialog = dialog.map(|dialog| &mut self.dialogs[dialog]);
            if let Some(dialog) = dialog.filter(|dialog| dialog.state == DialogState::Early) {
                dialog.state = state;
            }
        }
        self.send(now, from, bytes);
    }

    fn response_text(
        &mut self,
        index: usize,
        code: u16,
        sdp: Option<&str>,
        fields: &[String],
    ) -> Arc<[u8]> {
        let server = &self.servers[index];
        let dialog = server
            .dialog
            .map(|dialog| self.dialogs[dialog].local_tag.clone());
        let request = server.request.clone();
        let tag = match (request.receiver_tag(), dialog) {
            (Some(_), _) => String::new(),
            (None, _) if code == 100 => String::new(),
            (None, Some(tag)) => format!(";tag={tag}"),
            (None, None) => format!(";tag={}", self.unique("tag")),
        };
        let mut text = format!("SIP/2.0 {code} {}\r\n", reason(code));
        for via in request.all("via") {
            text.push_str(&format!("Via: {via}\r\n"));
        }
        text.push_str(&format!(
            "From: {}\r\nTo: {}{tag}\r\nCall-ID: {}\r\nCSeq: {}\r\n",
            request.must("from"),
            request.must("to"),
            request.must("call-id"),
            request.must("cseq")
        ));
        if request.method() == Some("INVITE") && code < 300 {
            text.push_str(&format!("Contact: <{}>\r\n", self.contact()));
            if let Some(route) = &self.habits.record_route {
                text.push_str(&format!("Record-Route: {route}\r\n"));
            }
        }
        for field in fields {
            text.push_str(&format!("{field}\r\n"));
        }
        push_sdp(&mut text, sdp);
        Arc::from(text.as_bytes())
    }

    /// Timer G, and the 2xx of section 13.3.1.4.
    pub(super) fn server_resend(&mut self, now: Instant, index: usize) {
        let server = &mut self.servers[index];
        if server.acked || server.ends.is_none_or(|end| now >= end) {
            return;
        }
        server.interval = (2 * server.interval).min(T2);
        let (next, to, last) = (now + server.interval, server.from, server.last.clone());
        self.plan(next, Todo::ServerResend(index));
        if let Some(last) = last {
            self.send(now, to, last);
        }
    }

    /// Timer H; a 2xx without ACK ends the call (section 13.3.1.4).
    pub(super) fn server_give_up(&mut self, now: Instant, index: usize) {
        let server = &self.servers[index];
        let accepted = server.answered.is_some_and(|code| code < 300);
        let dialog = server.dialog.filter(|_| accepted && !server.acked);
        let up = |dialog: &usize| self.dialogs[*dialog].state == DialogState::Confirmed;
        if let Some(dialog) = dialog.filter(up) {
            self.bye(now, dialog);
        }
    }

    /// A BYE tells as well as an ACK that the peer has our 2xx.
    fn stop_2xx(&mut self, dialog: usize) {
        for server in self.servers.iter_mut().filter(|s| s.dialog == Some(dialog)) {
            if server.answered.is_some_and(|code| code < 300) {
                server.acked = true;
            }
        }
    }
}

/// Ends a message's text: with a session description, or without a body.
pub(super) fn push_sdp(text: &mut String, sdp: Option<&str>) {
    push_body(text, sdp.map(|sdp| ("application/sdp", sdp)));
}

/// Ends a message's text, with a body or without.
pub(super) fn push_body(text: &mut String, body: Option<(&str, &str)>) {
    if let Some((content_type, _)) = body {
        text.push_str(&format!("Content-Type: {content_type}\r\n"));
    }
    let body = body.map_or("", |(_, body)| body);
    text.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
}

fn reason(code: u16) -> &'static str {
    match code {
        100 => "Trying",
        180 => "Ringing",
        183 => "Session Progress",
        200 => "OK",
        302 => "Moved Temporarily",
        481 => "Call/Transaction Does Not Exist",
        486 => "Busy Here",
        487 => "Request Terminated",
        488 => "Not Acceptable Here",
        491 => "Request Pending",
        603 => "Decline",
        _ => "Because",
    }
}
