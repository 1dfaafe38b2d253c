//! SIP sockets against real sockets on loopback, ports chosen by the kernel.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use net::sip::{
    CloseReason, Frame, Framer, FramingError, Limits, ListenSpec, NetEvent, Outgoing, SipSockets,
    Transport,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};

/// A stand-in for SIP framing: one message a line, an empty line is a ping, `!` can't be read.
#[derive(Default)]
struct Lines(Vec<u8>);

impl Framer for Lines {
    fn push(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn next(&mut self) -> Result<Option<Frame>, FramingError> {
        let Some(end) = self.0.iter().position(|byte| *byte == b'\n') else {
            return Ok(None);
        };
        let line: Vec<u8> = self.0.drain(..=end).take(end).collect();
        match line.first() {
            None => Ok(Some(Frame::KeepAlivePing)),
            Some(b'!') => Err(FramingError {
                farewell: line[1..].to_vec(),
            }),
            Some(_) => Ok(Some(Frame::Message(line))),
        }
    }

    fn is_partial(&self) -> bool {
        !self.0.is_empty()
    }
}

fn sockets(listen: &[Transport], limits: Limits) -> SipSockets {
    let address = "127.0.0.1:0".parse().expect("an address");
    let listen: Vec<_> = listen
        .iter()
        .map(|t| ListenSpec {
            transport: *t,
            address,
        })
        .collect();
    SipSockets::bind(&listen, limits, Arc::new(|_| Box::new(Lines::default())))
        .expect("loopback binds")
}

fn outgoing(transport: Transport, remote: SocketAddr, bytes: &[u8]) -> Outgoing {
    Outgoing {
        transport,
        local: None,
        remote,
        connection: None,
        bytes: Arc::from(bytes),
    }
}

async fn next(sockets: &mut SipSockets) -> NetEvent {
    let mut events = Vec::new();
    sockets.receive(&mut events).await;
    assert_eq!(events.len(), 1, "{events:?}");
    events.remove(0)
}

/// The next `count` messages, however they are batched.
async fn messages(sockets: &mut SipSockets, count: usize) -> Vec<(net::sip::Flow, Vec<u8>)> {
    let (mut events, mut all) = (Vec::new(), Vec::new());
    while all.len() < count {
        sockets.receive(&mut events).await;
        for event in events.drain(..) {
            match event {
                NetEvent::Message { flow, bytes } => all.push((flow, bytes)),
                other => panic!("{other:?}"),
            }
        }
    }
    all
}

async fn closed(sockets: &mut SipSockets) -> (u64, CloseReason) {
    match next(sockets).await {
        NetEvent::Closed { flow, reason } => (flow.connection, reason),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn datagrams_go_both_ways_and_keep_alives_are_dropped() {
    let mut ours = sockets(&[Transport::Udp, Transport::Udp], Limits::default());
    let second = ours.bound()[1].address;
    let peer = UdpSocket::bind("127.0.0.1:0")
        .await
        .expect("loopback binds");
    let peer_address = peer.local_addr().expect("bound");
    for datagram in [&b"\r\n\r\n"[..], b"", b"\0", b"hello"] {
        peer.send_to(datagram, second).await.expect("loopback");
    }
    let got = messages(&mut ours, 1).await;
    let (flow, bytes) = &got[0];
    assert_eq!(bytes, b"hello");
    assert_eq!(
        (flow.local, flow.remote, flow.connection),
        (second, peer_address, 0)
    );

    let reply = Outgoing {
        local: Some(second),
        ..outgoing(Transport::Udp, peer_address, b"hi")
    };
    ours.send(reply);
    let mut buffer = [0; 16];
    let (len, from) = peer.recv_from(&mut buffer).await.expect("sent above");
    assert_eq!((&buffer[..len], from), (&b"hi"[..], second));
}

#[tokio::test]
async fn a_closed_port_is_reported_and_does_not_stop_a_listener() {
    for loopback in ["127.0.0.1:0", "[::1]:0"] {
        let address: SocketAddr = loopback.parse().expect("an address");
        let udp = [ListenSpec {
            transport: Transport::Udp,
            address,
        }];
        let framer = Arc::new(|_| -> Box<dyn Framer> { Box::new(Lines::default()) });
        let mut ours = SipSockets::bind(&udp, Limits::default(), framer).expect("loopback binds");
        let closed = std::net::UdpSocket::bind(address)
            .and_then(|s| s.local_addr())
            .expect("bound");
        for _ in 0..3 {
            ours.send(outgoing(Transport::Udp, closed, b"nobody there"));
        }
        let mut events = Vec::new();
        while events.len() < 3 {
            ours.receive(&mut events).await;
        }
        for event in events {
            let NetEvent::SendFailed {
                transport,
                remote,
                error,
            } = event
            else {
                panic!("{event:?}")
            };
            let expected = (
                Transport::Udp,
                closed,
                std::io::ErrorKind::ConnectionRefused,
            );
            assert_eq!((transport, remote, error), expected);
        }
        let peer = UdpSocket::bind(address).await.expect("loopback binds");
        peer.send_to(b"still here", ours.bound()[0].address)
            .await
            .expect("loopback");
        assert_eq!(messages(&mut ours, 1).await[0].1, b"still here");
    }
}

#[tokio::test]
async fn a_datagram_that_cannot_be_sent_is_reported() {
    let mut ours = sockets(&[Transport::Udp], Limits::default());
    let ipv6: SocketAddr = "[::1]:5060".parse().expect("an address");
    ours.send(outgoing(
        Transport::Udp,
        ipv6,
        b"no listener of that family",
    ));
    assert!(matches!(next(&mut ours).await, NetEvent::SendFailed { remote, .. } if remote == ipv6));
    let too_long = vec![b'x'; 65_536];
    let loopback: SocketAddr = "127.0.0.1:5060".parse().expect("an address");
    ours.send(outgoing(Transport::Udp, loopback, &too_long));
    assert!(matches!(
        next(&mut ours).await,
        NetEvent::SendFailed {
            transport: Transport::Udp,
            ..
        }
    ));
}

#[tokio::test]
async fn a_stream_is_framed_pinged_and_answered_on_the_same_connection() {
    let mut ours = sockets(&[Transport::Tcp], Limits::default());
    let mut peer = TcpStream::connect(ours.bound()[0].address)
        .await
        .expect("listening");
    peer.write_all(b"one\ntw").await.expect("open");
    assert_eq!(messages(&mut ours, 1).await[0].1, b"one");
    peer.write_all(b"o\n\nthree\n").await.expect("open");
    let got = messages(&mut ours, 2).await;
    assert_eq!([&got[0].1[..], &got[1].1[..]], [&b"two"[..], b"three"]);
    let mut pong = [0; 2];
    peer.read_exact(&mut pong).await.expect("a pong");
    assert_eq!(&pong, b"\r\n");

    let flow = got[0].0;
    assert_eq!(flow.remote, peer.local_addr().expect("open"));
    // By its number, although the address given leads nowhere; then by its address alone.
    let elsewhere = "127.0.0.1:1".parse().expect("an address");
    let by_number = Outgoing {
        connection: Some(flow.connection),
        ..outgoing(Transport::Tcp, elsewhere, b"ab")
    };
    ours.send(by_number);
    ours.send(outgoing(Transport::Tcp, flow.remote, b"cd"));
    let mut answer = [0; 4];
    peer.read_exact(&mut answer).await.expect("two answers");
    assert_eq!(&answer, b"abcd");

    drop(peer);
    assert_eq!(
        closed(&mut ours).await,
        (flow.connection, CloseReason::ByPeer)
    );
    assert_eq!(ours.connections(), 0);
}

#[tokio::test]
async fn a_message_to_nowhere_opens_a_connection_which_is_used_again() {
    let mut ours = sockets(&[], Limits::default());
    let peer = TcpListener::bind("127.0.0.1:0")
        .await
        .expect("loopback binds");
    let remote = peer.local_addr().expect("bound");
    ours.send(outgoing(Transport::Tcp, remote, b"first "));
    ours.send(outgoing(Transport::Tcp, remote, b"second"));
    let (mut stream, _) = peer.accept().await.expect("it connects");
    let mut both = [0; 12];
    stream.read_exact(&mut both).await.expect("both messages");
    assert_eq!(&both, b"first second");
    stream.write_all(b"answer\n").await.expect("open");
    let got = messages(&mut ours, 1).await;
    assert_eq!((got[0].0.remote, &got[0].1[..]), (remote, &b"answer"[..]));
    assert_eq!(got[0].0.local, stream.peer_addr().expect("open"));
    assert_eq!(ours.connections(), 1);
}

#[tokio::test]
async fn what_was_sent_last_arrives_when_flushed_before_the_end() {
    let mut ours = sockets(&[], Limits::default());
    let peer = TcpListener::bind("127.0.0.1:0")
        .await
        .expect("loopback binds");
    ours.send(outgoing(
        Transport::Tcp,
        peer.local_addr().expect("bound"),
        b"last words",
    ));
    ours.flush(Duration::from_secs(10)).await;
    drop(ours);
    let (mut stream, _) = peer.accept().await.expect("it connected");
    let mut words = String::new();
    stream
        .read_to_string(&mut words)
        .await
        .expect("closed in order");
    assert_eq!(words, "last words");
}

#[tokio::test]
async fn a_connection_that_cannot_be_opened_is_reported() {
    let mut ours = sockets(&[], Limits::default());
    let remote = std::net::TcpListener::bind("127.0.0.1:0")
        .and_then(|l| l.local_addr())
        .expect("bound");
    ours.send(outgoing(Transport::Tcp, remote, b"x"));
    let (_, reason) = closed(&mut ours).await;
    assert_eq!(
        reason,
        CloseReason::NotConnected(std::io::ErrorKind::ConnectionRefused)
    );
    assert_eq!(ours.connections(), 0);
}

#[tokio::test]
async fn what_is_no_message_closes_the_connection_after_the_last_words() {
    let mut ours = sockets(&[Transport::Tcp], Limits::default());
    for words in ["", "400"] {
        let mut peer = TcpStream::connect(ours.bound()[0].address)
            .await
            .expect("listening");
        peer.write_all(format!("!{words}\n").as_bytes())
            .await
            .expect("open");
        assert_eq!(closed(&mut ours).await.1, CloseReason::Framing);
        let mut rest = String::new();
        peer.read_to_string(&mut rest)
            .await
            .expect("all was read, so it closes in order");
        assert_eq!(rest, words);
    }
}

#[tokio::test]
async fn a_connection_too_many_is_closed_and_counted() {
    let mut ours = sockets(
        &[Transport::Tcp],
        Limits {
            connections: 1,
            ..Limits::default()
        },
    );
    let address = ours.bound()[0].address;
    let mut first = TcpStream::connect(address).await.expect("listening");
    first.write_all(b"one\n").await.expect("open");
    messages(&mut ours, 1).await;
    let mut second = TcpStream::connect(address)
        .await
        .expect("the kernel accepts");
    let mut byte = [0];
    let closed = second.read(&mut byte);
    let mut events = Vec::new();
    tokio::select! {
        read = closed => assert_eq!(read.expect("closed in order"), 0),
        () = ours.receive(&mut events) => panic!("{events:?}"),
    }
    assert_eq!((ours.connections(), ours.refused()), (1, 1));
}

#[tokio::test]
async fn a_peer_that_does_not_read_is_cut_off_and_never_waited_for() {
    let limits = Limits {
        queued_bytes: 4 << 20,
        ..Limits::default()
    };
    let mut ours = sockets(&[Transport::Tcp], limits);
    let mut peer = TcpStream::connect(ours.bound()[0].address)
        .await
        .expect("listening");
    peer.write_all(b"hello\n").await.expect("open");
    let flow = messages(&mut ours, 1).await[0].0;
    let big: Arc<[u8]> = Arc::from(vec![b'x'; 1 << 20]);
    for _ in 0..4 {
        ours.send(Outgoing {
            bytes: Arc::clone(&big),
            ..outgoing(Transport::Tcp, flow.remote, b"")
        });
    }
    assert_eq!(ours.connections(), 1);
    ours.send(outgoing(Transport::Tcp, flow.remote, b"one byte too many"));
    assert_eq!(
        closed(&mut ours).await,
        (flow.connection, CloseReason::SlowReader)
    );
    assert_eq!(ours.connections(), 0);
}

#[tokio::test(start_paused = true)]
async fn slow_and_silent_senders_are_closed() {
    let limits = Limits {
        message: Duration::from_secs(32),
        idle: Duration::from_secs(600),
        ..Limits::default()
    };
    let mut ours = sockets(&[Transport::Tcp], limits);
    let address = ours.bound()[0].address;
    let begun = tokio::time::Instant::now();
    let _never_speaks = TcpStream::connect(address).await.expect("listening");
    assert_eq!(closed(&mut ours).await.1, CloseReason::SlowSender);
    assert_eq!(begun.elapsed().as_secs(), 32);

    let mut stops_half_way = TcpStream::connect(address).await.expect("listening");
    stops_half_way.write_all(b"whole\nhal").await.expect("open");
    messages(&mut ours, 1).await;
    let begun = tokio::time::Instant::now();
    assert_eq!(closed(&mut ours).await.1, CloseReason::SlowSender);
    assert_eq!(begun.elapsed().as_secs(), 32);

    let mut falls_silent = TcpStream::connect(address).await.expect("listening");
    falls_silent.write_all(b"whole\n").await.expect("open");
    messages(&mut ours, 1).await;
    let begun = tokio::time::Instant::now();
    assert_eq!(closed(&mut ours).await.1, CloseReason::Idle);
    assert_eq!(begun.elapsed().as_secs(), 600);
}

#[tokio::test]
async fn a_port_in_use_is_named() {
    let ours = sockets(&[Transport::Udp, Transport::Tcp], Limits::default());
    for spec in ours.bound() {
        let again = SipSockets::bind(
            &[*spec],
            Limits::default(),
            Arc::new(|_| Box::new(Lines::default())),
        );
        let error = again.expect_err("taken");
        assert_eq!(error.source.kind(), std::io::ErrorKind::AddrInUse);
        assert!(
            error
                .to_string()
                .starts_with(&format!("cannot listen on {spec}: ")),
            "{error}"
        );
    }
}
