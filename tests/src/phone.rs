//! Live phones on real sockets, for calls in codecs that no packaged phone speaks: what they say
//! was encoded by somebody else's encoder, what they hear goes to somebody else's decoder.
//!
//! ```text
//!   Callee: answers every INVITE with the offer's first format, says that format's speech
//!   call:   one call in one format, ended when all has been said
//! ```
//!
//! Loopback loses nothing, so nothing is sent twice; whatever does not come in time fails the test.

mod talk;

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub use talk::{Heard, Speech};

use crate::description::sections;
use crate::message::Sip;

/// How long a message is waited for.
const PATIENCE: Duration = Duration::from_secs(20);
/// What is still on its way when all has been said.
const LINGER: Duration = Duration::from_millis(500);

/// A payload format as a phone describes it.
#[derive(Clone, Debug)]
pub struct Format {
    /// Payload number.
    pub number: u8,
    /// `NAME/CLOCK[/CHANNELS]`
    pub rtpmap: String,
    /// `a=fmtp` value.
    pub fmtp: Option<String>,
    /// `a=ptime` value.
    pub ptime_ms: Option<u32>,
}

impl Format {
    /// A format without parameters.
    #[must_use]
    pub fn new(number: u8, rtpmap: &str) -> Self {
        Self {
            number,
            rtpmap: rtpmap.to_owned(),
            fmtp: None,
            ptime_ms: None,
        }
    }

    fn describe(&self, rtp: SocketAddr) -> String {
        let (address, port, number) = (rtp.ip(), rtp.port(), self.number);
        let mut text = format!(
            "v=0\r\no=phone 1 1 IN IP4 {address}\r\ns=-\r\nc=IN IP4 {address}\r\nt=0 0\r\n\
             m=audio {port} RTP/AVP {number}\r\na=rtpmap:{number} {}\r\n",
            self.rtpmap
        );
        if let Some(fmtp) = &self.fmtp {
            text.push_str(&format!("a=fmtp:{number} {fmtp}\r\n"));
        }
        if let Some(ptime) = self.ptime_ms {
            text.push_str(&format!("a=ptime:{ptime}\r\n"));
        }
        text
    }
}

/// What came of a call.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The peer's description.
    pub description: String,
    /// What was heard.
    pub heard: Vec<Heard>,
}

/// Calls `user` at the server, says `speech`, and hangs up.
///
/// # Panics
/// Where the call does not succeed.
#[must_use]
pub fn call(
    at: IpAddr,
    server: SocketAddr,
    user: &str,
    format: &Format,
    speech: &Speech,
) -> Outcome {
    let (sip, rtp) = (socket(at), socket(at));
    let own = sip.local_addr().expect("bound");
    let dialog = Outgoing {
        sip,
        server,
        target: format!("sip:{user}@{server}"),
        head: format!(
            "From: <sip:phone@{own}>;tag=p{port}\r\nCall-ID: phone-{port}-{}\r\n\
             Max-Forwards: 70\r\nContact: <sip:phone@{own}>\r\n",
            unique(),
            port = own.port()
        ),
    };
    let to = format!("<{}>", dialog.target);
    let offer = format.describe(rtp.local_addr().expect("bound"));
    let answer = dialog.request("INVITE", 1, &dialog.target, &to, &offer);
    assert_eq!(answer.status(), Some(200), "{answer:?}");
    let description = answer.sdp().expect("an answer").to_owned();
    let (to, target) = (answer.must("to"), answer.contact().expect("a target"));
    dialog.send("ACK", 1, target, to, "");
    let stop = AtomicBool::new(false);
    let peer = media_of(&description, &format.rtpmap);
    let heard = std::thread::scope(|scope| {
        let talking = scope.spawn(|| talk::talk(&rtp, peer, speech, &stop));
        std::thread::sleep(speech.duration() + LINGER);
        let ended = dialog.request("BYE", 2, target, to, "");
        assert_eq!(ended.status(), Some(200), "{ended:?}");
        stop.store(true, Ordering::Relaxed);
        talking.join().expect("it talked")
    });
    Outcome { description, heard }
}

/// Where a description wants packets of a format, and under which number.
fn media_of(description: &str, rtpmap: &str) -> (SocketAddr, u8) {
    let sections = sections(description);
    let section = sections.first().expect("a media section");
    let format = section
        .formats
        .iter()
        .find(|(_, name)| name.eq_ignore_ascii_case(rtpmap))
        .unwrap_or_else(|| panic!("no {rtpmap} in {description}"));
    let address = section.address.and_then(|address| address.parse().ok());
    let address: IpAddr = address.expect("an address");
    (SocketAddr::new(address, section.port), format.0)
}

/// A dialog as seen by the phone that calls.
struct Outgoing {
    sip: UdpSocket,
    server: SocketAddr,
    target: String,
    /// Headers that every request has.
    head: String,
}

impl Outgoing {
    fn send(&self, method: &str, number: u32, target: &str, to: &str, body: &str) {
        let own = self.sip.local_addr().expect("bound");
        let kind = if body.is_empty() {
            ""
        } else {
            "Content-Type: application/sdp\r\n"
        };
        let text = format!(
            "{method} {target} SIP/2.0\r\nVia: SIP/2.0/UDP {own};branch=z9hG4bK{}\r\n{}To: {to}\r\n\
             CSeq: {number} {method}\r\n{kind}Content-Length: {}\r\n\r\n{body}",
            unique(),
            self.head,
            body.len()
        );
        let sent = self.sip.send_to(text.as_bytes(), self.server);
        assert_eq!(sent.expect("sent to loopback"), text.len());
    }

    /// Sends a request and waits for its final response.
    fn request(&self, method: &str, number: u32, target: &str, to: &str, body: &str) -> Sip {
        self.send(method, number, target, to, body);
        let deadline = Instant::now() + PATIENCE;
        loop {
            let message = receive(&self.sip, deadline).map(|(message, _)| message);
            let message = message.unwrap_or_else(|| panic!("no final response to {method}"));
            let is_final = message.status().is_some_and(|code| code >= 200);
            if is_final && message.cseq() == (number, method) {
                return message;
            }
        }
    }
}

/// A phone that answers every call, each on an RTP socket of its own, with what it has to say in
/// the first format of the offer.
#[derive(Debug)]
pub struct Callee {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Vec<Outcome>>>,
}

impl Callee {
    /// Starts one that knows these formats, by what `a=rtpmap` says.
    #[must_use]
    pub fn start(at: IpAddr, speeches: HashMap<String, (Format, Speech)>) -> Self {
        let sip = socket(at);
        let address = sip.local_addr().expect("bound");
        let stop = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&stop);
        let thread = std::thread::spawn(move || answer_all(&sip, &speeches, &until));
        Self {
            address,
            stop,
            thread: Some(thread),
        }
    }

    /// Its URI.
    #[must_use]
    pub fn uri(&self) -> String {
        format!("sip:phone@{}", self.address)
    }

    /// The calls that have ended, in the order in which they began.
    ///
    /// # Panics
    /// Where something went wrong in them.
    #[must_use]
    pub fn finish(mut self) -> Vec<Outcome> {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take().expect("it is joined once");
        thread.join().expect("every call went well")
    }
}

impl Drop for Callee {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// A call that is on.
struct Incoming {
    call_id: String,
    stop: Arc<AtomicBool>,
    offer: String,
    talking: JoinHandle<Vec<Heard>>,
}

fn answer_all(
    sip: &UdpSocket,
    speeches: &HashMap<String, (Format, Speech)>,
    stop: &AtomicBool,
) -> Vec<Outcome> {
    let mut calls: Vec<Incoming> = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let soon = Instant::now() + Duration::from_millis(20);
        let Some((request, from)) = receive(sip, soon) else {
            continue;
        };
        let body = match request.method() {
            Some("INVITE") => {
                let (call, answer) = pick_up(sip, &request, speeches);
                calls.push(call);
                answer
            }
            Some("BYE") => {
                let call = calls
                    .iter()
                    .find(|call| call.call_id == request.must("call-id"));
                call.expect("a call").stop.store(true, Ordering::Relaxed);
                String::new()
            }
            _ => continue,
        };
        respond(sip, from, &request, &body);
    }
    let outcome = |call: Incoming| {
        call.stop.store(true, Ordering::Relaxed);
        Outcome {
            description: call.offer,
            heard: call.talking.join().expect("it talked"),
        }
    };
    calls.into_iter().map(outcome).collect()
}

fn pick_up(
    sip: &UdpSocket,
    invite: &Sip,
    speeches: &HashMap<String, (Format, Speech)>,
) -> (Incoming, String) {
    let offer = invite.sdp().expect("an offer").to_owned();
    let (number, rtpmap) = sections(&offer)
        .first()
        .and_then(|section| section.formats.first().cloned())
        .expect("a format");
    let known = speeches.get(&rtpmap);
    let (format, speech) = known
        .unwrap_or_else(|| panic!("{rtpmap} of {offer}"))
        .clone();
    let rtp = socket(sip.local_addr().expect("bound").ip());
    let answer = Format { number, ..format }.describe(rtp.local_addr().expect("bound"));
    let peer = media_of(&offer, &rtpmap);
    let stop = Arc::new(AtomicBool::new(false));
    let until = Arc::clone(&stop);
    let call = Incoming {
        call_id: invite.must("call-id").to_owned(),
        stop,
        offer,
        talking: std::thread::spawn(move || talk::talk(&rtp, peer, &speech, &until)),
    };
    (call, answer)
}

fn respond(sip: &UdpSocket, to: SocketAddr, request: &Sip, body: &str) {
    let own = sip.local_addr().expect("bound");
    let mut text = "SIP/2.0 200 OK\r\n".to_owned();
    for (name, value) in &request.headers {
        match name.as_str() {
            "to" if request.receiver_tag().is_none() => {
                text.push_str(&format!("{name}: {value};tag=callee\r\n"));
            }
            "via" | "from" | "to" | "call-id" | "cseq" => {
                text.push_str(&format!("{name}: {value}\r\n"));
            }
            _ => {}
        }
    }
    if !body.is_empty() {
        text.push_str("Content-Type: application/sdp\r\n");
    }
    text.push_str(&format!(
        "Contact: <sip:phone@{own}>\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    ));
    sip.send_to(text.as_bytes(), to).expect("sent to loopback");
}

/// The next message, unless none comes in time.
fn receive(sip: &UdpSocket, deadline: Instant) -> Option<(Sip, SocketAddr)> {
    let left = deadline.checked_duration_since(Instant::now())?;
    let left = left.max(Duration::from_millis(1));
    sip.set_read_timeout(Some(left)).expect("a timeout");
    let mut datagram = [0; 65_536];
    let (len, from) = sip.recv_from(&mut datagram).ok()?;
    Some((Sip::read(&datagram[..len]).expect("a SIP message"), from))
}

fn socket(at: IpAddr) -> UdpSocket {
    UdpSocket::bind((at, 0)).expect("a port")
}

fn unique() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
