//! What does the signalling of one call cost the endpoint? One round is what a server does for a
//! bridged call: a leg as callee and a leg as caller, from INVITE to the 200 of BYE (14 messages read,
//! 14 written), at 1000 calls per second of simulated time, so that 32 s of ended transactions
//! (timers D, J, L and M) are in the tables and expire meanwhile. The goal is well under 100 us.
//!
//! Run: `cargo bench -p tandem-benches --bench sip_call`
#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use sip::{Body, Config, Endpoint, Event, Flow, Invite, Listener, Transport, UsageId};

struct Pair {
    ends: [Endpoint; 2],
    now: Instant,
}

impl Pair {
    fn new() -> Self {
        let end = |side: usize| {
            let local = address(side);
            let listeners = vec![Listener {
                transport: Transport::Udp,
                local,
                advertised: None,
            }];
            Endpoint::new(
                Config {
                    listeners,
                    ..Config::default()
                },
                [side as u8; 32],
            )
        };
        Self {
            ends: [end(0), end(1)],
            now: Instant::now(),
        }
    }

    /// Carries messages until nobody has any; gives the last event of each side.
    fn exchange(&mut self) -> [Option<Event>; 2] {
        let mut last = [None, None];
        let mut quiet = 0;
        for side in [0, 1].into_iter().cycle() {
            quiet += 1;
            while let Some(transmit) = self.ends[side].poll_transmit() {
                quiet = 0;
                let flow = Flow {
                    transport: Transport::Udp,
                    local: transmit.remote,
                    remote: address(side),
                    connection: 0,
                };
                self.ends[1 - side].handle_message(self.now, flow, &transmit.bytes);
            }
            while let Some(event) = self.ends[side].poll_event() {
                last[side] = Some(event);
            }
            if quiet == 2 {
                break;
            }
        }
        last
    }

    fn call(&mut self) {
        self.now += Duration::from_millis(1);
        self.ends
            .iter_mut()
            .for_each(|end| end.handle_timeout(self.now));
        let now = self.now;
        let caller = self.ends[0]
            .invite(now, invite())
            .expect("below the limits");
        let [_, event] = self.exchange();
        let Some(Event::Invite { usage: callee, .. }) = event else {
            panic!("no call")
        };
        self.ends[1]
            .provisional(now, callee, 180, None, Vec::new(), None)
            .expect("open");
        self.exchange();
        self.ends[1]
            .accept(now, callee, Vec::new(), Some(body()))
            .expect("open");
        self.exchange();
        self.ends[0].ack(now, caller, None);
        self.exchange();
        self.hang_up(caller);
    }

    fn hang_up(&mut self, caller: UsageId) {
        self.ends[0].bye(self.now, caller, Vec::new());
        let [event, _] = self.exchange();
        assert!(matches!(event, Some(Event::Ended { .. })));
    }
}

fn address(side: usize) -> std::net::SocketAddr {
    let text = ["192.0.2.1:5060", "192.0.2.2:5060"][side];
    text.parse().expect("an address")
}

fn invite() -> Invite {
    Invite {
        request_uri: "sip:service@192.0.2.2:5060".to_owned(),
        from: "\"Alice Example\" <sip:alice@192.0.2.1:5060>".to_owned(),
        to: "<sip:service@192.0.2.2:5060>".to_owned(),
        contact_user: Some("alice".to_owned()),
        body: Some(body()),
        ..Invite::default()
    }
}

fn body() -> Body {
    let description = "v=0\r\no=user1 53655765 2353687637 IN IP4 192.0.2.10\r\ns=-\r\nc=IN IP4 192.0.2.10\r\n\
        t=0 0\r\nm=audio 16384 RTP/AVP 8 0 101\r\na=rtpmap:8 PCMA/8000\r\na=rtpmap:0 PCMU/8000\r\n\
        a=rtpmap:101 telephone-event/8000\r\na=fmtp:101 0-15\r\na=ptime:20\r\na=sendrecv\r\n";
    Body {
        content_type: "application/sdp".into(),
        bytes: description.as_bytes().to_vec(),
    }
}

fn bench(c: &mut Criterion) {
    let mut pair = Pair::new();
    // Fill the tables first: a server that has run for a minute is the rule.
    (0..60_000).for_each(|_| pair.call());
    c.bench_function("sip_call/both_legs", |b| b.iter(|| pair.call()));
}

criterion_group!(benches, bench);
criterion_main!(benches);
