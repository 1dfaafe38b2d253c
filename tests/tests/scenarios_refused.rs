//! Calls that come to nothing: refused, unanswered, out of reach, unacceptable.

use b2bua::Config;
use simnet::Nth;
use tandem_tests::description::Media;
use tandem_tests::scene::{Scene, Setup, ms};
use tandem_tests::ua::{Script, T1};

/// What the caller gets when the callee answers with this code.
fn refused_with(code: u16) -> u16 {
    let mut scene = Scene::lab(u64::from(code));
    scene.with(scene.callee, |ua, _| {
        let owed = match code {
            401 => "WWW-Authenticate: Digest realm=\"x\", nonce=\"y\"",
            407 => "Proxy-Authenticate: Digest realm=\"x\", nonce=\"y\"",
            _ => "Retry-After: 10",
        };
        ua.habits.invite = Script::default()
            .then(10, 180)
            .then_with(500, code, &[owed]);
    });
    scene.call("bridge");
    scene.finish();
    assert_eq!(scene.bob().heard(), ["INVITE", "ACK"]);
    assert!(scene.alice().dialogs()[0].heard.is_empty());
    let cdr = &scene.tandem().cdrs()[0];
    let result = scene.alice().result("INVITE").expect("the caller is told");
    assert_eq!((cdr.cause.sip, cdr.answer), (result, None), "{cdr:?}");
    result
}

#[test]
fn codes_of_the_callee_are_mapped() {
    // A challenge is for us, not for the caller; our caller may still reach others although this
    // callee says 503 (RFC 3261 section 16.7, step 6).
    let rows = [
        (404, 404),
        (480, 480),
        (486, 486),
        (488, 488),
        (500, 500),
        (503, 500),
        (600, 600),
        (603, 603),
        (401, 403),
        (407, 403),
    ];
    for (theirs, ours) in rows {
        assert_eq!(refused_with(theirs), ours, "{theirs}");
    }
}

#[test]
fn busy_has_its_cause() {
    let mut scene = Scene::lab(1);
    scene.with(scene.callee, |ua, _| ua.habits.invite = Script::refuse(486));
    scene.call("bridge");
    scene.finish();
    let cause = &scene.tandem().cdrs()[0].cause;
    assert_eq!((cause.q850, cause.why), (17, "busy"));
    assert!(
        scene
            .alice()
            .last("486 (INVITE)")
            .must("reason")
            .contains("cause=17")
    );
}

#[test]
fn a_redirection_reaches_the_caller_with_its_contacts() {
    let mut scene = Scene::lab(1);
    scene.with(scene.callee, |ua, _| {
        let contact = "Contact: <sip:carol@192.0.2.30>";
        ua.habits.invite = Script::default().then_with(10, 302, &[contact]);
    });
    scene.call("bridge");
    scene.finish();
    let redirect = scene.alice().last("302 (INVITE)");
    assert_eq!(redirect.contact(), Some("sip:carol@192.0.2.30"));
}

#[test]
fn a_refusal_is_lost_and_repeated() {
    let mut scene = Scene::lab(1);
    scene.with(scene.callee, |ua, _| ua.habits.invite = Script::refuse(486));
    scene.lose(scene.callee, scene.server, "486 (INVITE)", Nth::First(2));
    scene.lose(scene.server, scene.callee, "ACK", Nth::One(1));
    scene.lose(scene.server, scene.caller, "486 (INVITE)", Nth::First(2));
    scene.lose(scene.caller, scene.server, "ACK", Nth::One(1));
    scene.call("bridge");
    scene.finish();
    assert_eq!(scene.alice().result("INVITE"), Some(486));
}

#[test]
fn nobody_answers() {
    let mut scene = Scene::new(Setup {
        plan: SHORT_RING,
        ..Setup::lab(1)
    });
    scene.with(scene.callee, |ua, _| ua.habits.invite = Script::ring());
    scene.call("bridge");
    scene.finish();
    assert_eq!(scene.alice().result("INVITE"), Some(480));
    assert_eq!(scene.bob().heard(), ["INVITE", "CANCEL", "ACK"]);
    let cancelled = scene.bob().all("CANCEL").next().unwrap().at;
    let called = scene.bob().all("INVITE").next().unwrap().at;
    assert_eq!(cancelled - called, ms(5_000));
    assert_eq!(scene.tandem().cdrs()[0].cause.q850, 19);
}

const SHORT_RING: &str = r#"
[variables]
callee = "sip:nobody@192.0.2.99"
[[rule]]
name = "bridge"
called = 'bridge'
action = "bridge"
to = "${callee}"
ring = "5s"
[[rule]]
name = "elsewhere"
called = 'elsewhere'
action = "redirect"
to = "sip:carol@192.0.2.30"
"#;

#[test]
fn an_answer_crosses_the_end_of_the_ringing() {
    let mut scene = Scene::new(Setup {
        plan: SHORT_RING,
        ..Setup::lab(1)
    });
    // It leaves at 5,014 ms, 6 ms before our CANCEL comes.
    scene.with(scene.callee, |ua, _| {
        ua.habits.invite = Script::answer_after(4_994);
    });
    scene.call("bridge");
    scene.finish();
    assert_eq!(scene.alice().result("INVITE"), Some(480));
    assert_eq!(scene.bob().count("BYE"), 1);
}

#[test]
fn the_callee_is_dead() {
    let mut scene = Scene::new(Setup {
        plan: LONG_RING,
        ..Setup::lab(1)
    });
    scene.dies_at(0, scene.callee);
    scene.call("bridge");
    scene.finish();
    // Timer B ends leg B: 64 x T1 after its INVITE.
    assert_eq!(scene.alice().result("INVITE"), Some(408));
    let cdr = &scene.tandem().cdrs()[0];
    assert_eq!((cdr.end.0 - cdr.setup.0).as_millis(), (64 * T1).as_millis());
}

const LONG_RING: &str = r#"
[variables]
callee = "sip:nobody@192.0.2.99"
[[rule]]
name = "bridge"
called = 'bridge'
action = "bridge"
to = "${callee}"
ring = "60s"
"#;

#[test]
fn the_callee_dies_while_it_rings() {
    let mut scene = Scene::new(Setup {
        plan: SHORT_RING,
        ..Setup::lab(1)
    });
    scene.with(scene.callee, |ua, _| ua.habits.invite = Script::ring());
    scene.call("bridge");
    scene.dies_at(1_000, scene.callee);
    scene.finish();
    assert_eq!(scene.alice().result("INVITE"), Some(480));
}

/// The caller gets `code` when leg B goes to this URI.
fn goes_to(uri: &'static str, code: u16) {
    let variables = vec![("callee", uri)];
    let mut scene = Scene::new(Setup {
        variables,
        ..Setup::lab(1)
    });
    scene.call("bridge");
    scene.finish();
    assert_eq!(scene.alice().result("INVITE"), Some(code), "{uri}");
    let cdr = &scene.tandem().cdrs()[0];
    assert!(
        cdr.end.0 - cdr.setup.0 < T1,
        "at once, not after a timeout: {cdr:?}"
    );
}

#[test]
fn nobody_is_at_the_callees_address() {
    goes_to("sip:bob@192.0.2.99:5060", 500);
}

#[test]
fn the_callees_name_does_not_resolve() {
    goes_to("sip:bob@nowhere.example.com", 502);
}

#[test]
fn the_callees_name_resolves_after_a_while() {
    let variables = vec![("callee", "sip:bob@phones.example.com")];
    let mut scene = Scene::new(Setup {
        variables,
        ..Setup::lab(1)
    });
    let bob = scene.bob().address();
    scene.with_server(|server, _| {
        server.names.insert("phones.example.com".to_owned(), bob);
        server.shell_delay = ms(300);
    });
    scene.call("bridge");
    scene.bye_at(5_000, scene.caller);
    scene.finish();
    assert_eq!(scene.alice().result("INVITE"), Some(200));
}

#[test]
fn the_plan_rejects_redirects_and_knows_nothing_of_some() {
    let mut scene = Scene::office(1);
    scene.call("reject-486");
    scene.finish();
    assert_eq!(scene.alice().result("INVITE"), Some(486));

    let mut scene = Scene::office(2);
    scene.call("nobody-knows");
    scene.finish();
    assert_eq!(scene.alice().result("INVITE"), Some(404));

    let mut scene = Scene::new(Setup {
        plan: SHORT_RING,
        ..Setup::lab(3)
    });
    scene.call("elsewhere");
    scene.finish();
    assert_eq!(
        scene.alice().last("302 (INVITE)").contact(),
        Some("sip:carol@192.0.2.30")
    );
}

/// The caller's INVITE is changed before it leaves; the code that it gets.
fn offered(user: &str, change: fn(&mut tandem_tests::ua::ScriptedUa)) -> u16 {
    let mut scene = Scene::lab(1);
    scene.with(scene.caller, |ua, _| change(ua));
    scene.call(user);
    scene.finish();
    scene.alice().result("INVITE").expect("a final response")
}

#[test]
fn an_unknown_extension_is_required() {
    let code = offered("echo", |ua| {
        ua.habits.invite_fields = vec!["Require: teleportation".to_owned()];
    });
    assert_eq!(code, 420);
}

/// RFC 7332 section 3: a B2BUA counts hops too.
#[test]
fn no_hop_is_left() {
    assert_eq!(offered("bridge", |ua| ua.habits.max_forwards = 0), 483);
}

#[test]
fn no_codec_in_common() {
    let code = offered("echo", |ua| {
        ua.media.formats = vec![(97, "L16/44100".to_owned())];
    });
    assert_eq!(code, 488);
}

#[test]
fn only_video_is_offered() {
    let code = offered("echo", |ua| {
        ua.habits.offers = false;
        ua.habits.invite_body = Some((
            "application/sdp",
            Media::new("192.0.2.10", 4_000)
                .offer(1, 1)
                .replace("m=audio", "m=video"),
        ));
    });
    assert_eq!(code, 488);
}

#[test]
fn the_body_is_no_session_description() {
    let code = offered("echo", |ua| {
        ua.habits.offers = false;
        ua.habits.invite_body = Some(("text/plain", "hello".to_owned()));
    });
    assert_eq!(code, 415);
}

#[test]
fn the_session_description_is_nonsense() {
    for body in [
        "v=0\r\no=- 1 1 IN IP4\r\nm=audio 70000 RTP/AVP 4294967296\r\n",
        "hello",
        "\0",
    ] {
        let mut scene = Scene::lab(1);
        scene.with(scene.caller, |ua, _| {
            ua.habits.offers = false;
            ua.habits.invite_body = Some(("application/sdp", body.to_owned()));
        });
        scene.call("echo");
        scene.finish();
        let code = scene.alice().result("INVITE");
        assert!(matches!(code, Some(400 | 488)), "{body:?} got {code:?}");
    }
}

#[test]
fn no_port_is_free() {
    let mut scene = Scene::lab(1);
    scene.with_server(|server, _| server.max_ports = 1);
    scene.call("bridge");
    scene.finish();
    assert_eq!(scene.alice().result("INVITE"), Some(503));
    assert!(scene.bob().log().is_empty());
}

#[test]
fn there_is_no_recording_to_play() {
    let mut scene = Scene::office(1);
    scene.with_server(|server, _| server.has_clips = false);
    scene.call("9199");
    scene.finish();
    assert_eq!(scene.alice().result("INVITE"), Some(404));
}

#[test]
fn the_server_is_full() {
    let config = Config {
        max_calls: 1,
        ..Config::default()
    };
    let mut scene = Scene::new(Setup {
        config,
        ..Setup::lab(1)
    });
    scene.call("bridge");
    scene.at(1_000, scene.caller, |ua, now| {
        ua.call(now, "bridge");
    });
    scene.bye_at(5_000, scene.caller);
    scene.finish();
    assert_eq!(scene.alice().result("INVITE"), Some(503));
    assert!(
        scene
            .alice()
            .last("503 (INVITE)")
            .header("retry-after")
            .is_some()
    );
}

#[test]
fn the_callees_answer_is_of_no_use() {
    let mut scene = Scene::lab(1);
    scene.with(scene.callee, |ua, _| {
        ua.habits.invite = Script::ring().then(200, 200);
    });
    scene.call("bridge");
    scene.finish();
    assert_eq!(scene.alice().result("INVITE"), Some(488));
    assert_eq!(scene.bob().heard(), ["INVITE", "ACK", "BYE"]);
}

#[test]
fn the_same_request_over_two_paths_is_merged() {
    let mut scene = Scene::lab(1);
    scene.with(scene.callee, |ua, _| ua.habits.invite = Script::ring());
    scene.call("bridge");
    scene.run(500);
    let first = scene.alice().log()[0].sip.clone();
    let mut text = format!("{}\r\n", first.start);
    for (name, value) in &first.headers {
        let value = if name == "via" {
            value.replace("z9hG4bK", "z9hG4bKtwo")
        } else {
            value.clone()
        };
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str(&format!("\r\n{}", String::from_utf8_lossy(&first.body)));
    scene.with(scene.caller, |ua, now| ua.send_raw(now, &text));
    scene.run(500);
    // The phone knows no such branch and says so; that is the test's own doing.
    let complaint = scene.alice().complaints()[0].clone();
    assert!(
        complaint.contains("482 (INVITE)"),
        "RFC 3261 section 8.2.2.2: {complaint}"
    );
    assert_eq!(scene.bob().count("INVITE"), 1);
}

#[test]
fn other_methods_are_answered() {
    let rows = [
        ("OPTIONS", 200),
        ("PUBLISH", 405),
        ("SUBSCRIBE", 405),
        ("FOO", 405),
    ];
    for (method, code) in rows {
        let mut scene = Scene::lab(1);
        scene.with(scene.caller, |ua, now| {
            ua.request(now, method, "sip:192.0.2.1:5060", "sip:192.0.2.1", &[]);
        });
        scene.finish();
        assert_eq!(scene.alice().result(method), Some(code), "{method}");
    }
}
