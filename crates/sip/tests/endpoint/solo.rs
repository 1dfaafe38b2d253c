//! One endpoint at 192.0.2.1 whose peer is the test.

use std::net::SocketAddr;
use std::ops::Deref;
use std::time::{Duration, Instant};

use sip::{
    Body, Config, Endpoint, Event, Flow, Framing, Incoming, Invite, Limits, Listener, Message,
    Transmit, Transport, UsageId,
};

use crate::text::{SDP, Text};

/// Takes the one event there is, which must look like this.
macro_rules! event {
    ($solo:expr, $pattern:pat => $value:expr) => {
        match $solo.event() {
            $pattern => $value,
            other => panic!("another event: {other:?}"),
        }
    };
}
pub(crate) use event;

pub(crate) struct Solo {
    pub(crate) endpoint: Endpoint,
    pub(crate) now: Instant,
    pub(crate) flow: Flow,
    begin: Instant,
}

/// A message that the endpoint sent.
#[derive(Clone)]
pub(crate) struct Sent {
    /// Milliseconds since the beginning.
    pub(crate) at: u64,
    pub(crate) transmit: Transmit,
    pub(crate) message: Incoming,
}

impl Deref for Sent {
    type Target = Incoming;

    fn deref(&self) -> &Incoming {
        &self.message
    }
}

impl std::fmt::Debug for Sent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = String::from_utf8_lossy(&self.transmit.bytes);
        write!(f, "{} ms, to {}:\n{text}", self.at, self.transmit.remote)
    }
}

impl Sent {
    pub(crate) fn is(&self, method: &str) -> bool {
        self.method().is_some_and(|m| m.as_str() == method)
    }

    /// The method, or the status.
    pub(crate) fn kind(&self) -> String {
        match (self.method(), self.status()) {
            (Some(method), _) => method.as_str().to_owned(),
            (None, status) => status.unwrap_or_default().to_string(),
        }
    }
}

/// What a list of messages says, in order.
pub(crate) fn kinds(sent: &[Sent]) -> Vec<String> {
    sent.iter().map(Sent::kind).collect()
}

#[expect(
    clippy::disallowed_methods,
    reason = "a simulated clock needs some moment to count from"
)]
pub(crate) fn beginning() -> Instant {
    Instant::now()
}

pub(crate) fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

pub(crate) fn config() -> Config {
    let listener = |transport| Listener {
        transport,
        local: address("192.0.2.1:5060"),
        advertised: None,
    };
    Config {
        listeners: vec![listener(Transport::Udp), listener(Transport::Tcp)],
        ..Config::default()
    }
}

impl Solo {
    pub(crate) fn new() -> Self {
        Self::with(config())
    }

    pub(crate) fn with(config: Config) -> Self {
        let begin = beginning();
        Self {
            endpoint: Endpoint::new(config, [7; 32]),
            now: begin,
            begin,
            flow: Flow {
                transport: Transport::Udp,
                local: address("192.0.2.1:5060"),
                remote: address("192.0.2.20:5060"),
                connection: 0,
            },
        }
    }

    /// The peer sends.
    pub(crate) fn hears(&mut self, text: &Text) {
        self.hears_bytes(&text.build());
    }

    pub(crate) fn hears_bytes(&mut self, bytes: &[u8]) {
        self.endpoint.handle_message(self.now, self.flow, bytes);
    }

    /// What the endpoint has to send now. All of it must be fit to be read by others.
    pub(crate) fn sent(&mut self) -> Vec<Sent> {
        let at = u64::try_from((self.now - self.begin).as_millis()).expect("a short test");
        let endpoint = &mut self.endpoint;
        std::iter::from_fn(|| endpoint.poll_transmit())
            .map(|transmit| {
                let message =
                    Message::parse(transmit.bytes.clone(), Framing::Stream, &Limits::default())
                        .expect("what we send can be read");
                match message.status() {
                    None => message.check_request().expect("we ask well-formed"),
                    // Nothing can be copied that was not there.
                    Some(400 | 414 | 416 | 505 | 513) => {}
                    Some(_) => message.check_response().expect("we answer well-formed"),
                }
                Sent {
                    at,
                    transmit,
                    message,
                }
            })
            .collect()
    }

    /// The one message to send now.
    pub(crate) fn one(&mut self) -> Sent {
        let mut sent = self.sent();
        assert_eq!(sent.len(), 1, "one message: {sent:#?}");
        sent.remove(0)
    }

    pub(crate) fn events(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.endpoint.poll_event()).collect()
    }

    /// The one event there is.
    pub(crate) fn event(&mut self) -> Event {
        let mut events = self.events();
        assert_eq!(events.len(), 1, "one event: {events:?}");
        events.remove(0)
    }

    /// Asserts that there is nothing to send and nothing to tell.
    pub(crate) fn quiet(&mut self) {
        let (sent, events) = (self.sent(), self.events());
        assert!(
            sent.is_empty() && events.is_empty(),
            "quiet: {sent:?} {events:?}"
        );
    }

    /// Lets time pass; every timer fires when it is due. Gives what was sent meanwhile.
    pub(crate) fn advance(&mut self, ms: u64) -> Vec<Sent> {
        let end = self.now + Duration::from_millis(ms);
        let mut sent = self.sent();
        while let Some(at) = self.endpoint.poll_timeout().filter(|at| *at <= end) {
            assert!(at >= self.now, "a deadline in the past stayed armed");
            self.now = at;
            self.endpoint.handle_timeout(at);
            sent.extend(self.sent());
        }
        self.now = end;
        sent
    }

    /// Asserts that after every timer nothing is left; nobody answers meanwhile.
    pub(crate) fn drained(&mut self) {
        self.advance(200_000);
        self.events();
        assert_eq!(self.endpoint.counts(), sip::Counts::default());
    }

    /// An INVITE of `alice` comes; gives the usage. The 100 is taken off.
    pub(crate) fn rung(&mut self, invite: &Text) -> UsageId {
        self.hears(invite);
        assert_eq!(self.one().status(), Some(100));
        event!(self, Event::Invite { usage, .. } => usage)
    }

    /// `alice`'s call, answered and acknowledged; gives our 200.
    pub(crate) fn answered(&mut self, invite: &Text) -> (UsageId, Sent) {
        let usage = self.rung(invite);
        self.endpoint
            .accept(self.now, usage, Vec::new(), Some(sdp()))
            .expect("open");
        let ok = self.one();
        let ack = crate::text::request("ACK", ok.cseq().expect("read before").number, "ack1");
        let call_id = ok.call_id().expect("copied").to_owned();
        self.hears(&ack.within(&ok).call_id(&call_id));
        event!(self, Event::Acked { .. } => ());
        (usage, ok)
    }

    /// We call `bob`; gives the INVITE.
    pub(crate) fn calls(&mut self) -> (UsageId, Sent) {
        self.calls_with(outgoing())
    }

    pub(crate) fn calls_with(&mut self, invite: Invite) -> (UsageId, Sent) {
        let usage = self
            .endpoint
            .invite(self.now, invite)
            .expect("a call is possible");
        let invite = self.one();
        assert!(invite.is("INVITE"));
        (usage, invite)
    }

    /// We call `bob`, who answers; gives INVITE and ACK.
    pub(crate) fn calls_answered(&mut self, record_route: &[&str]) -> (UsageId, Sent, Sent) {
        let (usage, invite) = self.calls();
        let text = record_route
            .iter()
            .fold(crate::text::answer(&invite), |text, route| {
                text.extra(&format!("Record-Route: {route}"))
            });
        self.hears(&text);
        event!(self, Event::Answered { code: 200, .. } => ());
        self.endpoint.ack(self.now, usage, None);
        let ack = self.one();
        assert!(ack.is("ACK"));
        (usage, invite, ack)
    }
}

/// A call to `bob`.
pub(crate) fn outgoing() -> Invite {
    Invite {
        request_uri: "sip:bob@192.0.2.20".to_owned(),
        from: "\"Us\" <sip:1001@192.0.2.1>".to_owned(),
        to: "<sip:bob@192.0.2.20>".to_owned(),
        contact_user: Some("1001".to_owned()),
        body: Some(sdp()),
        ..Invite::default()
    }
}

pub(crate) fn sdp() -> Body {
    Body {
        content_type: "application/sdp".into(),
        bytes: SDP.as_bytes().to_vec(),
    }
}
