//! The program as its user meets it: the `ready` line, an answer over UDP and TCP, signals, and
//! errors of one line. Real sockets on loopback with ports chosen by the kernel.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

const TANDEM: &str = env!("CARGO_BIN_EXE_tandem");

fn tandem(args: &[&str]) -> Output {
    Command::new(TANDEM)
        .args(args)
        .output()
        .expect("the program starts")
}

fn error_line(args: &[&str]) -> String {
    let output = tandem(args);
    assert_eq!(output.status.code(), Some(1), "{args:?}");
    let error = String::from_utf8(output.stderr).expect("text");
    assert_eq!(
        error
            .lines()
            .filter(|line| line.starts_with("tandem: "))
            .count(),
        1,
        "{error}"
    );
    error.lines().last().expect("the error").to_owned()
}

/// A directory for recordings that only this test uses.
fn scratch(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("tandem-program-{}-{name}", std::process::id()))
}

struct Server {
    child: Child,
    udp: SocketAddr,
    tcp: SocketAddr,
    ready: String,
    recordings: PathBuf,
}

impl Server {
    fn start(name: &str, more: &[&str]) -> Self {
        let recordings = scratch(name);
        let mut child = Command::new(TANDEM)
            .args([
                "serve",
                "--sip",
                "udp:127.0.0.1:0",
                "--sip",
                "tcp:127.0.0.1:0",
                "--recordings",
            ])
            .arg(&recordings)
            .args(more)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        let mut ready = String::new();
        let stdout = child.stdout.as_mut().expect("piped");
        BufReader::new(stdout)
            .read_line(&mut ready)
            .expect("a line");
        let address = |transport: &str| {
            let (_, rest) = ready
                .split_once(transport)
                .expect("named in the ready line");
            let end = rest.find([',', ' ']).expect("more follows");
            rest[..end].parse().expect("an address")
        };
        Self {
            udp: address("udp:"),
            tcp: address("tcp:"),
            child,
            ready,
            recordings,
        }
    }

    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill")
            .args(["-s", name, &pid])
            .status()
            .expect("kill exists");
        assert!(sent.success());
    }

    fn exit_code(&mut self) -> Option<i32> {
        self.child.wait().expect("our child").code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.recordings);
    }
}

fn options(transport: &str, from: SocketAddr, to: SocketAddr) -> String {
    format!(
        "OPTIONS sip:{to} SIP/2.0\r\nVia: SIP/2.0/{transport} {from};branch=z9hG4bKprogram\r\n\
         From: <sip:probe@{from}>;tag=1\r\nTo: <sip:{to}>\r\nCall-ID: program@{from}\r\n\
         CSeq: 1 OPTIONS\r\nMax-Forwards: 70\r\nContent-Length: 0\r\n\r\n"
    )
}

/// A caller on a socket of its own that speaks just enough SIP for one call at a time.
struct Caller {
    socket: UdpSocket,
    local: SocketAddr,
    server: SocketAddr,
}

impl Caller {
    fn new(server: &Server) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback binds");
        socket
            .set_read_timeout(Some(Duration::from_secs(10)))
            .expect("a valid time");
        let local = socket.local_addr().expect("bound");
        Self {
            socket,
            local,
            server: server.udp,
        }
    }

    fn send(&self, method: &str, called: &str, to_tag: &str, body: &str) {
        let Self { local, server, .. } = self;
        let message = format!(
            "{method} sip:{called}@{server} SIP/2.0\r\n\
             Via: SIP/2.0/UDP {local};branch=z9hG4bK{method}{called}\r\n\
             From: <sip:caller@{local}>;tag=1\r\nTo: <sip:{called}@{server}>{to_tag}\r\n\
             Call-ID: {called}@{local}\r\nCSeq: 1 {method}\r\nContact: <sip:caller@{local}>\r\n\
             Max-Forwards: 70\r\nContent-Type: application/sdp\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        self.socket
            .send_to(message.as_bytes(), server)
            .expect("loopback");
    }

    /// The next message that isn't provisional.
    fn receive(&self) -> String {
        let mut buffer = [0; 4096];
        loop {
            let (len, _) = self.socket.recv_from(&mut buffer).expect("a message");
            let message = String::from_utf8_lossy(&buffer[..len]).into_owned();
            if !message.starts_with("SIP/2.0 1") {
                return message;
            }
        }
    }

    /// The final response to an INVITE, acknowledged.
    fn invite(&self, called: &str) -> String {
        let sdp = "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\n\
                   m=audio 9 RTP/AVP 8\r\n";
        self.send("INVITE", called, "", sdp);
        let response = self.receive();
        let to = response
            .lines()
            .find(|line| line.starts_with("To:"))
            .expect("a To");
        let tag = to.find(";tag=").map_or("", |at| &to[at..]);
        self.send("ACK", called, tag, "");
        response
    }
}

fn ask_over_udp(server: &Server) -> String {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback binds");
    socket
        .set_read_timeout(Some(Duration::from_secs(10)))
        .expect("a valid time");
    let request = options("UDP", socket.local_addr().expect("bound"), server.udp);
    socket
        .send_to(request.as_bytes(), server.udp)
        .expect("loopback");
    let mut buffer = [0; 4096];
    let (len, _) = socket.recv_from(&mut buffer).expect("an answer");
    String::from_utf8_lossy(&buffer[..len]).into_owned()
}

#[test]
fn serve_says_ready_answers_and_ends_on_sigterm() {
    let mut server = Server::start("serve", &[]);
    let expected = format!(
        "ready sip=udp:{},tcp:{} pid={}\n",
        server.udp,
        server.tcp,
        server.child.id()
    );
    assert_eq!(server.ready, expected);
    assert!(ask_over_udp(&server).starts_with("SIP/2.0 200 "));

    let mut stream = TcpStream::connect(server.tcp).expect("listening");
    let request = options("TCP", stream.local_addr().expect("open"), server.tcp);
    stream
        .write_all(format!("\r\n\r\n{request}").as_bytes())
        .expect("open");
    let mut answer = [0; 14];
    stream
        .read_exact(&mut answer)
        .expect("a pong and an answer");
    assert_eq!(&answer, b"\r\nSIP/2.0 200 ");

    server.signal("TERM");
    assert_eq!(server.exit_code(), Some(0));
}

#[test]
fn sighup_keeps_the_server_up() {
    let mut server = Server::start("hup", &[]);
    server.signal("HUP");
    assert!(ask_over_udp(&server).starts_with("SIP/2.0 200 "));
    server.signal("INT");
    assert_eq!(server.exit_code(), Some(0));
}

#[test]
fn draining_refuses_new_calls_and_a_second_signal_stops_at_once() {
    let records = scratch("drain.jsonl");
    let mut server = Server::start("drain", &["--cdr", &records.to_string_lossy()]);
    let caller = Caller::new(&server);
    assert!(caller.invite("echo").starts_with("SIP/2.0 200 "));
    server.signal("TERM");
    // The signal and the next call race, so ask until the answer changes; it must, and for good.
    let refused =
        (0..1000).map(|n| Caller::new(&server).invite(&format!("reject-4{:02}", n % 50 + 50)));
    let refused = refused
        .into_iter()
        .find(|response| response.starts_with("SIP/2.0 503 "));
    assert!(refused.expect("draining begins").contains("Retry-After"));
    server.signal("TERM");
    assert!(caller.receive().starts_with("BYE sip:caller@"));
    assert_eq!(server.exit_code(), Some(0));
    let written = std::fs::read_to_string(&records).expect("written");
    std::fs::remove_file(&records).expect("ours");
    assert_eq!(
        written.matches("\"callee\":\"echo\"").count(),
        1,
        "{written}"
    );
}

#[test]
fn calls_are_hung_up_when_the_deadline_comes_and_leave_a_record() {
    let directory = scratch("deadline");
    std::fs::create_dir_all(&directory).expect("a temporary directory");
    let (config, records) = (directory.join("tandem.toml"), directory.join("calls.jsonl"));
    std::fs::write(&config, "[shutdown]\ndeadline_s = 0\n").expect("written");
    let more = [
        "--config",
        &config.to_string_lossy(),
        "--cdr",
        &records.to_string_lossy(),
    ]
    .map(str::to_owned);
    let mut server = Server::start("deadline", &more.each_ref().map(String::as_str));
    let caller = Caller::new(&server);
    assert!(caller.invite("echo").starts_with("SIP/2.0 200 "));
    server.signal("TERM");
    let bye = caller.receive();
    assert!(bye.starts_with("BYE sip:caller@"), "{bye}");
    let (_, headers) = bye.split_once("\r\n").expect("headers");
    caller
        .socket
        .send_to(
            format!("SIP/2.0 200 OK\r\n{headers}").as_bytes(),
            server.udp,
        )
        .expect("loopback");
    assert_eq!(server.exit_code(), Some(0));
    let written = std::fs::read_to_string(&records).expect("written");
    std::fs::remove_dir_all(&directory).expect("ours");
    assert!(
        written.lines().count() == 1 && written.contains("\"callee\":\"echo\""),
        "{written}"
    );
}

#[test]
fn a_call_to_a_callee_that_is_not_running_fails_at_once() {
    let closed = UdpSocket::bind("127.0.0.1:0")
        .and_then(|s| s.local_addr())
        .expect("bound");
    let callee = format!("callee=sip:uas@{closed}");
    let server = Server::start("dead", &["--dialplan", "lab", "--set", &callee]);
    let response = Caller::new(&server).invite("bridge");
    // What an ICMP error brings at once; without it, silence until 64 x T1 (32 s) is over.
    assert!(
        response.starts_with("SIP/2.0 5") && response.contains("out of reach"),
        "{response}"
    );
}

#[test]
fn a_port_in_use_is_one_line_and_exit_code_1() {
    let taken = UdpSocket::bind("127.0.0.1:0").expect("loopback binds");
    let listener = format!("udp:{}", taken.local_addr().expect("bound"));
    let recordings = scratch("taken");
    let error = error_line(&[
        "serve",
        "--sip",
        &listener,
        "--recordings",
        &recordings.to_string_lossy(),
    ]);
    assert!(
        error.contains(&listener) && error.contains("in use"),
        "{error}"
    );
}

#[test]
fn what_cannot_be_served_is_one_line_and_exit_code_1() {
    for (args, part) in [
        (&["serve", "--sip", "nonsense"][..], "'nonsense'"),
        (
            &["serve", "--dialplan", "/none/such.toml"],
            "cannot read the dialplan /none/such.toml",
        ),
        (
            &["serve", "--recordings", "/proc/none"],
            "cannot record into /proc/none",
        ),
        (
            &["serve", "--config", "/none/such.toml"],
            "cannot read the configuration /none/such.toml",
        ),
        (&["serve", "--media-address", "192.0.2.1"], "192.0.2.1"),
        (&["serve", "--log", "x=loudest"], "x=loudest"),
        (
            &["check", "--recordings", "/proc/self/status"],
            "/proc/self/status",
        ),
        (&["fly"], "'fly'"),
    ] {
        let error = error_line(args);
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn check_says_what_would_be_in_force() {
    let output = tandem(&[
        "check",
        "--rtp-ports",
        "20000-20009",
        "--recordings",
        &std::env::temp_dir().to_string_lossy(),
    ]);
    let table = String::from_utf8(output.stdout).expect("text");
    assert!(output.status.success(), "{table}");
    for part in [
        "udp:127.0.0.1:5060,tcp:127.0.0.1:5060",
        "127.0.0.1, ports 20000-20009",
        "5 port pairs, 2 bridged calls",
        "default, ",
        "recordings ",
        "PCMA/8000, PCMU/8000",
    ] {
        assert!(table.contains(part), "{part}: {table}");
    }
}

#[test]
fn route_names_the_decision_and_the_rule() {
    let output = tandem(&["route", "1000", "echo"]);
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(
        output.status.success() && text.starts_with("echo"),
        "{text}"
    );
}
