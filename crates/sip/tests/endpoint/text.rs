//! Literal messages, written as a peer would write them.

use std::fmt::Write as _;

use sip::{Incoming, Name};

/// A message in pieces.
#[derive(Clone, Debug)]
pub(crate) struct Text {
    start: String,
    vias: Vec<String>,
    from: String,
    to: String,
    call_id: String,
    cseq: String,
    extra: String,
    body: String,
}

/// A small session description.
pub(crate) const SDP: &str = "v=0\r\no=- 1 1 IN IP4 192.0.2.20\r\ns=-\r\nc=IN IP4 192.0.2.20\r\n\
    t=0 0\r\nm=audio 40000 RTP/AVP 8\r\n";

/// A request of the peer `alice` at 192.0.2.20 to us at 192.0.2.1.
pub(crate) fn request(method: &str, cseq: u32, branch: &str) -> Text {
    Text {
        start: format!("{method} sip:1001@192.0.2.1 SIP/2.0"),
        vias: vec![format!(
            "SIP/2.0/UDP 192.0.2.20:5060;branch=z9hG4bK{branch}"
        )],
        from: "<sip:alice@192.0.2.20>;tag=alice1".to_owned(),
        to: "<sip:1001@192.0.2.1>".to_owned(),
        call_id: "call1@192.0.2.20".to_owned(),
        cseq: format!("{cseq} {method}"),
        extra: "Max-Forwards: 70\r\n".to_owned(),
        body: String::new(),
    }
}

/// An INVITE of `alice` with an offer.
pub(crate) fn invite(cseq: u32, branch: &str) -> Text {
    request("INVITE", cseq, branch)
        .extra("Contact: <sip:alice@192.0.2.20:5060>")
        .sdp()
}

/// The response of the peer `bob` at 192.0.2.20, tagged `bob1` unless the request has a tag.
pub(crate) fn response(request: &Incoming, code: u16) -> Text {
    let copy = |name| request.header(name).unwrap_or_default().to_owned();
    let to = copy(Name::To);
    let tagged = to.contains(";tag=") || code == 100;
    Text {
        start: format!("SIP/2.0 {code} Said"),
        vias: request.values(Name::Via).map(str::to_owned).collect(),
        from: copy(Name::From),
        to: if tagged { to } else { format!("{to};tag=bob1") },
        call_id: copy(Name::CallId),
        cseq: copy(Name::CSeq),
        extra: String::new(),
        body: String::new(),
    }
}

/// A 2xx of `bob` to an INVITE, with Contact and answer.
pub(crate) fn answer(request: &Incoming) -> Text {
    response(request, 200)
        .extra("Contact: <sip:bob@192.0.2.20:5070>")
        .sdp()
}

impl Text {
    pub(crate) fn uri(mut self, uri: &str) -> Self {
        let method = self.start.split(' ').next().unwrap_or_default();
        self.start = format!("{method} {uri} SIP/2.0");
        self
    }

    pub(crate) fn via(mut self, via: &str) -> Self {
        self.vias = vec![via.to_owned()];
        self
    }

    pub(crate) fn no_via(mut self) -> Self {
        self.vias.clear();
        self
    }

    pub(crate) fn from(mut self, from: &str) -> Self {
        self.from = from.to_owned();
        self
    }

    pub(crate) fn to(mut self, to: &str) -> Self {
        self.to = to.to_owned();
        self
    }

    /// Another tag for the To of a response.
    pub(crate) fn fork(mut self, tag: &str) -> Self {
        let bare = self.to.split(";tag=").next().unwrap_or_default();
        self.to = format!("{bare};tag={tag}");
        self
    }

    /// As within the dialog that our response made.
    pub(crate) fn within(self, ours: &Incoming) -> Self {
        let to = ours.header(Name::To).unwrap_or_default().to_owned();
        self.to(&to)
    }

    pub(crate) fn call_id(mut self, call_id: &str) -> Self {
        self.call_id = call_id.to_owned();
        self
    }

    pub(crate) fn cseq(mut self, cseq: &str) -> Self {
        self.cseq = cseq.to_owned();
        self
    }

    /// Header lines more.
    pub(crate) fn extra(mut self, line: &str) -> Self {
        self.extra += line;
        self.extra += "\r\n";
        self
    }

    pub(crate) fn without(mut self, line: &str) -> Self {
        self.extra = self.extra.replace(&format!("{line}\r\n"), "");
        self
    }

    pub(crate) fn sdp(self) -> Self {
        self.body("application/sdp", SDP)
    }

    pub(crate) fn body(self, content_type: &str, body: &str) -> Self {
        let mut with = self.extra(&format!("Content-Type: {content_type}"));
        body.clone_into(&mut with.body);
        with
    }

    pub(crate) fn build(&self) -> Vec<u8> {
        let mut out = format!("{}\r\n", self.start);
        for via in &self.vias {
            write!(out, "Via: {via}\r\n").expect("a String takes all");
        }
        write!(
            out,
            "From: {}\r\nTo: {}\r\nCall-ID: {}\r\nCSeq: {}\r\n{}Content-Length: {}\r\n\r\n{}",
            self.from,
            self.to,
            self.call_id,
            self.cseq,
            self.extra,
            self.body.len(),
            self.body
        )
        .expect("a String takes all");
        out.into_bytes()
    }
}
