//! Session descriptions of the scripted phones, as text, and what they think of ours.
//!
//! Deliberately not the `sdp` crate: the phones are witnesses. RFC 3264 section numbers stand at
//! each complaint.

/// A phone's own media.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Media {
    /// Address of `c=`.
    pub address: String,
    /// RTP port.
    pub port: u16,
    /// Payload numbers with what `a=rtpmap` says, best liked first.
    pub formats: Vec<(u8, String)>,
    /// The direction line, where there is one.
    pub direction: Option<&'static str>,
    /// Written without the line end of its last line.
    pub unfinished: bool,
    /// Whole media sections after the audio one, as lines.
    pub more: Vec<String>,
}

impl Media {
    /// PCMA, PCMU and telephone-event 101 at this address.
    #[must_use]
    pub fn new(address: impl Into<String>, port: u16) -> Self {
        let formats = [
            (8, "PCMA/8000"),
            (0, "PCMU/8000"),
            (101, "telephone-event/8000"),
        ];
        Self {
            address: address.into(),
            port,
            formats: formats
                .map(|(number, name)| (number, name.to_owned()))
                .to_vec(),
            direction: None,
            unfinished: false,
            more: Vec::new(),
        }
    }

    /// This description as an offer.
    #[must_use]
    pub fn offer(&self, session: u64, version: u64) -> String {
        let mut text = self.head(session, version);
        text.push_str(&self.audio(&self.formats, self.direction));
        for line in &self.more {
            text.push_str(line);
            text.push_str("\r\n");
        }
        self.ended(text)
    }

    /// The answer to an offer: its formats as far as we know them, under its numbers; every other
    /// media section refused. `None` where nothing is left.
    #[must_use]
    pub fn answer(&self, offer: &str, session: u64, version: u64) -> Option<String> {
        let mut text = self.head(session, version);
        let mut taken = false;
        for section in sections(offer) {
            if !taken && section.kind == "audio" && section.port != 0 {
                let known = |name: &str| self.formats.iter().any(|(_, ours)| ours == name);
                let formats: Vec<_> = section
                    .formats
                    .iter()
                    .filter(|(_, name)| known(name))
                    .cloned()
                    .collect();
                if formats
                    .iter()
                    .any(|(_, name)| !name.starts_with("telephone-event"))
                {
                    let direction = match (section.direction, self.direction) {
                        (Some("sendonly"), _) => Some("recvonly"),
                        (Some("recvonly"), _) => Some("sendonly"),
                        (Some("inactive"), _) => Some("inactive"),
                        (_, ours) => ours,
                    };
                    text.push_str(&self.audio(&formats, direction));
                    taken = true;
                    continue;
                }
            }
            let number = section.formats.first().map_or(0, |(number, _)| *number);
            text.push_str(&format!(
                "m={} 0 {} {number}\r\n",
                section.kind, section.protocol
            ));
        }
        taken.then(|| self.ended(text))
    }

    fn head(&self, session: u64, version: u64) -> String {
        let address = &self.address;
        format!(
            "v=0\r\no=phone {session} {version} IN IP4 {address}\r\ns=-\r\nc=IN IP4 {address}\r\n\
             t=0 0\r\n"
        )
    }

    fn audio(&self, formats: &[(u8, String)], direction: Option<&str>) -> String {
        let numbers: Vec<_> = formats
            .iter()
            .map(|(number, _)| number.to_string())
            .collect();
        let mut text = format!("m=audio {} RTP/AVP {}\r\n", self.port, numbers.join(" "));
        for (number, name) in formats {
            text.push_str(&format!("a=rtpmap:{number} {name}\r\n"));
        }
        if let Some(direction) = direction {
            text.push_str(&format!("a={direction}\r\n"));
        }
        text
    }

    fn ended(&self, mut text: String) -> String {
        if self.unfinished {
            text.truncate(text.trim_end().len());
        }
        text
    }
}

/// One `m=` section as read.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Section<'a> {
    /// `audio`, `video`, ...
    pub kind: &'a str,
    /// Port.
    pub port: u16,
    /// `RTP/AVP`, ...
    pub protocol: &'a str,
    /// Payload numbers and names; static ones are filled in (RFC 3551 section 6).
    pub formats: Vec<(u8, String)>,
    /// Direction line of the section or, failing that, of the session.
    pub direction: Option<&'a str>,
    /// Address of `c=` of the section or, failing that, of the session.
    pub address: Option<&'a str>,
}

/// Reads the media sections of a description.
#[must_use]
pub fn sections(text: &str) -> Vec<Section<'_>> {
    let mut found: Vec<Section<'_>> = Vec::new();
    let (mut direction, mut address) = (None, None);
    for line in text.lines().map(str::trim_end) {
        match (line.split_once('='), found.last_mut()) {
            (Some(("m", value)), _) => {
                let mut words = value.split(' ');
                found.push(Section {
                    kind: words.next().unwrap_or_default(),
                    port: words.next().and_then(|port| port.parse().ok()).unwrap_or(0),
                    protocol: words.next().unwrap_or_default(),
                    formats: words
                        .filter_map(|number| number.parse().ok())
                        .map(|number| (number, static_name(number).to_owned()))
                        .collect(),
                    direction,
                    address,
                });
            }
            (Some(("c", value)), section) => {
                let value = value.rsplit(' ').next();
                *section.map_or(&mut address, |section| &mut section.address) = value;
            }
            (Some(("a", value @ ("sendrecv" | "sendonly" | "recvonly" | "inactive"))), section) => {
                *section.map_or(&mut direction, |section| &mut section.direction) = Some(value);
            }
            (Some(("a", value)), Some(section)) => {
                let map = value
                    .strip_prefix("rtpmap:")
                    .and_then(|map| map.split_once(' '));
                if let Some((number, name)) = map {
                    for format in &mut section.formats {
                        if number.parse() == Ok(format.0) {
                            name.clone_into(&mut format.1);
                        }
                    }
                }
            }
            _ => {}
        }
    }
    found
}

fn static_name(number: u8) -> &'static str {
    match number {
        0 => "PCMU/8000",
        8 => "PCMA/8000",
        _ => "",
    }
}

/// Session number and version of `o=`.
#[must_use]
pub fn origin(text: &str) -> Option<(u64, u64)> {
    let line = text.lines().find_map(|line| line.strip_prefix("o="))?;
    let mut words = line.split(' ').skip(1);
    Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
}

/// What is wrong with an answer to an offer.
#[must_use]
pub fn faults_of_answer(offer: &str, answer: &str) -> Vec<String> {
    let (offered, answered) = (sections(offer), sections(answer));
    if offered.len() != answered.len() {
        return vec![format!(
            "answer with {} media sections to an offer with {} (RFC 3264 section 6)",
            answered.len(),
            offered.len()
        )];
    }
    let mut faults = Vec::new();
    for (offer, answer) in offered.iter().zip(&answered) {
        if offer.kind != answer.kind {
            faults.push("media sections in another order (RFC 3264 section 6)".to_owned());
        }
        if answer.port == 0 {
            continue;
        }
        if offer.port == 0 {
            faults.push("a section offered with port 0 was accepted (section 6)".to_owned());
        }
        let legal: &[&str] = match offer.direction {
            Some("sendonly") => &["recvonly", "inactive"],
            Some("recvonly") => &["sendonly", "inactive"],
            Some("inactive") => &["inactive"],
            _ => &["sendrecv", "sendonly", "recvonly", "inactive"],
        };
        let direction = answer.direction.unwrap_or("sendrecv");
        if !legal.contains(&direction) {
            let offered = offer.direction;
            faults.push(format!(
                "{direction} answers {offered:?} (RFC 3264 section 6.1)"
            ));
        }
        if !answer
            .formats
            .iter()
            .any(|format| offer.formats.contains(format))
        {
            faults.push("no format in common (RFC 3264 section 6.1)".to_owned());
        }
    }
    faults
}

/// What is wrong with a description that follows another of the same sender in the same dialog
/// (RFC 3264 section 8: same session, version up by one when anything else changed).
#[must_use]
pub fn fault_of_successor(before: &str, after: &str) -> Option<String> {
    let (Some((session, version)), Some((next_session, next_version))) =
        (origin(before), origin(after))
    else {
        return Some("description without a readable o= line".to_owned());
    };
    let expected = if before == after {
        version
    } else {
        version + 1
    };
    (next_session != session || next_version != expected).then(|| {
        format!(
            "o= went from {session} {version} to {next_session} {next_version} (RFC 3264 section 8)"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offer_of_ours_is_answered_by_ours() {
        let mut a = Media::new("192.0.2.10", 4000);
        a.direction = Some("sendonly");
        a.more = vec!["m=video 4002 RTP/AVP 31".to_owned()];
        let offer = a.offer(1, 1);
        let answer = Media::new("192.0.2.20", 5000).answer(&offer, 2, 1).unwrap();
        let read = sections(&answer);
        assert_eq!((read[0].port, read[0].direction), (5000, Some("recvonly")));
        assert_eq!((read[1].kind, read[1].port), ("video", 0));
        assert!(faults_of_answer(&offer, &answer).is_empty());
    }

    #[test]
    fn a_wrong_answer_is_found_wrong() {
        let mut a = Media::new("192.0.2.10", 4000);
        a.direction = Some("sendonly");
        let offer = a.offer(1, 1);
        assert_eq!(
            faults_of_answer(&offer, &offer).len(),
            1,
            "sendonly answered by sendonly"
        );
        assert_eq!(
            faults_of_answer(&offer, "v=0\r\n").len(),
            1,
            "a section is missing"
        );
        let strange = offer
            .replace("PCMA", "L16")
            .replace("PCMU", "L8")
            .replace("teleph", "x");
        assert_eq!(faults_of_answer(&offer, &strange).len(), 2);
    }

    #[test]
    fn versions_count_changes() {
        let a = Media::new("192.0.2.10", 4000);
        let held = Media {
            direction: Some("inactive"),
            ..a.clone()
        };
        assert_eq!(fault_of_successor(&a.offer(1, 1), &a.offer(1, 1)), None);
        assert_eq!(fault_of_successor(&a.offer(1, 1), &held.offer(1, 2)), None);
        assert!(fault_of_successor(&a.offer(1, 1), &held.offer(1, 1)).is_some());
        assert!(fault_of_successor(&a.offer(1, 1), &a.offer(2, 1)).is_some());
    }

    #[test]
    fn the_last_line_may_lack_its_end() {
        let media = Media {
            direction: Some("sendonly"),
            unfinished: true,
            ..Media::new("192.0.2.20", 5000)
        };
        let text = media.offer(1, 1);
        assert!(text.ends_with("a=sendonly"));
        assert_eq!(sections(&text)[0].direction, Some("sendonly"));
    }
}
