//! What a message must have whatever it is (RFC 3261 section 8.1.1, 8.2.6, 20).

use crate::message::Sip;

/// Headers that a response of some code is useless without, each with its section.
const OWED: [(u16, &str); 7] = [
    (401, "www-authenticate"),   // 22.2
    (405, "allow"),              // 21.4.6
    (407, "proxy-authenticate"), // 22.3
    (415, "accept"),             // 21.4.13, where the content type is at fault
    (420, "unsupported"),        // 21.4.15
    (422, "min-se"),             // RFC 4028 section 6
    (423, "min-expires"),        // 21.4.17
];

/// Everything wrong with a message by itself.
pub(super) fn faults(sip: &Sip) -> Vec<String> {
    let mut faults = Vec::new();
    let mut owe = |ok: bool, what: &str| {
        if !ok {
            faults.push(what.to_owned());
        }
    };
    for name in ["via", "from", "to", "call-id", "cseq"] {
        owe(sip.header(name).is_some(), name);
    }
    for name in [
        "from",
        "to",
        "call-id",
        "cseq",
        "max-forwards",
        "content-length",
    ] {
        owe(sip.all(name).count() <= 1, &format!("{name} twice"));
    }
    owe(
        sip.sender_tag().is_some_and(|tag| !tag.is_empty()),
        "From without tag (8.1.1.3)",
    );
    owe(
        sip.branch().starts_with("z9hG4bK"),
        "branch without the magic cookie (8.1.1.7)",
    );
    let length = sip.header("content-length").map(str::parse::<usize>);
    owe(
        length.is_none_or(|n| n == Ok(sip.body.len())),
        "Content-Length is not the body's (20.14)",
    );
    owe(
        sip.body.is_empty() || sip.header("content-type").is_some(),
        "body without type (20.15)",
    );

    let (_, method) = sip.cseq();
    let contacts = sip.all("contact").count();
    if let Some(code) = sip.status() {
        owe(
            sip.all("via").count() == 1,
            "response with more Vias than ours (8.1.3.3)",
        );
        owe(
            code == 100 || sip.receiver_tag().is_some(),
            "To without tag (8.2.6.2)",
        );
        let dialog = method == "INVITE" && (200..300).contains(&code);
        owe(
            !dialog || contacts == 1,
            "2xx to INVITE without one Contact (12.1.1)",
        );
        for (owed_by, name) in OWED {
            owe(
                code != owed_by || sip.header(name).is_some(),
                &format!("{code} without {name}"),
            );
        }
    } else {
        owe(
            sip.method() == Some(method),
            "CSeq of another method (8.1.1.5)",
        );
        owe(
            sip.header("max-forwards").is_some(),
            "no Max-Forwards (8.1.1.6)",
        );
        owe(
            method != "INVITE" || contacts == 1,
            "INVITE without one Contact (8.1.1.8)",
        );
        owe(
            method != "CANCEL" || sip.all("via").count() == 1,
            "CANCEL with many Vias (9.1)",
        );
        owe(
            method != "CANCEL" || sip.header("require").is_none(),
            "CANCEL with Require (9.1)",
        );
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decent_response_has_no_faults_and_an_indecent_one_has() {
        let text = "SIP/2.0 200 OK\r\nVia: SIP/2.0/UDP h;branch=z9hG4bK1\r\nFrom: <sip:a@b>;tag=1\r\n\
            To: <sip:c@d>;tag=2\r\nCall-ID: i\r\nCSeq: 1 INVITE\r\nContact: <sip:c@e>\r\n\
            Content-Length: 0\r\n\r\n";
        let read = |text: &str| Sip::read(text.as_bytes()).unwrap();
        assert_eq!(faults(&read(text)), Vec::<String>::new());
        let breaks = [
            (";tag=1", ""),
            (";tag=2", ""),
            ("z9hG4bK", "z8"),
            ("Contact: <sip:c@e>\r\n", ""),
            ("Content-Length: 0", "Content-Length: 1"),
            ("Call-ID: i\r\n", ""),
            ("200 OK", "405 No"),
        ];
        for (good, bad) in breaks {
            assert_eq!(
                faults(&read(&text.replace(good, bad))).len(),
                1,
                "{good} -> {bad}"
            );
        }
    }
}
