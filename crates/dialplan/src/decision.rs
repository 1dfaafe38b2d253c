//! What a plan decides: the values that a call is set up from.

use core::fmt;
use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What is to be done with a call, and why.
#[derive(Clone, PartialEq, Debug)]
pub struct Decision {
    /// What to do.
    pub action: Action,
    /// The rule that decided; `None` when none matched, and the call is refused with 404.
    pub rule: Option<RuleRef>,
    /// Whether and how the call is recorded.
    pub record: Option<RecordSpec>,
    /// Why each rule did or did not match; empty from [`crate::Plan::decide`].
    pub trace: Vec<TraceStep>,
    /// Headers to add to the INVITE that goes to leg B.
    pub fields: Vec<(String, String)>,
}

impl Decision {
    /// Name of the rule that decided, or `(no rule)`.
    #[must_use]
    pub fn rule_name(&self) -> String {
        self.rule
            .as_ref()
            .map_or_else(|| "(no rule)".to_owned(), |rule| rule.name.to_string())
    }
}

/// Which rule of a plan.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RuleRef {
    /// Place in the plan, from 0.
    pub index: usize,
    /// Its name; without one, the action and its place.
    pub name: Arc<str>,
    /// Line of its `[[rule]]`, from 1.
    pub line: usize,
}

/// What to do with a call.
#[derive(Clone, PartialEq, Debug)]
pub enum Action {
    /// Answer and say nothing.
    Answer,
    /// Answer and send back what comes.
    Echo {
        /// How much later.
        delay: Duration,
    },
    /// Answer and send a sine.
    Tone {
        /// Frequency.
        hz: f32,
        /// Level.
        level_dbm0: f32,
    },
    /// Answer and play.
    Play {
        /// What.
        clip: Clip,
        /// Whether it starts again at its end.
        repeat: bool,
    },
    /// Answer and record what is said.
    Record {
        /// Whether a prompt tone comes first.
        beep: bool,
        /// After how long we hang up; `None` leaves that to the caller.
        max: Option<Duration>,
    },
    /// Call others and join the two.
    Bridge(Bridge),
    /// Refuse.
    Reject {
        /// 400 to 699.
        code: u16,
        /// Reason phrase, where it is not the usual one.
        reason: Option<String>,
    },
    /// Send the caller elsewhere.
    Redirect {
        /// 300 to 399.
        code: u16,
        /// Where to: values of `Contact`.
        contacts: Vec<String>,
    },
}

/// How a call is bridged.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bridge {
    /// Whom to call, all at once.
    pub targets: Vec<Target>,
    /// Which way the media goes.
    pub media: MediaMode,
    /// What leg B is offered.
    pub codecs: Codecs,
    /// How long leg B may ring.
    pub ring_timeout: Duration,
}

/// Whom to call.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Target {
    /// A SIP, SIPS or tel URI.
    Uri(String),
    /// Where this user is registered.
    Registered(String),
}

/// Which way the media of a bridge goes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum MediaMode {
    /// Through us.
    #[default]
    Relay,
    /// From peer to peer: session descriptions pass as they are.
    Direct,
}

/// What leg B is offered.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Codecs {
    /// What the caller offers.
    #[default]
    Caller,
    /// These, in this order.
    List(Vec<CodecSpec>),
}

/// A codec as leg B is offered it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct CodecSpec {
    /// Encoding name (RFC 8866, 6.6).
    pub name: String,
    /// RTP clock in Hz.
    pub clock_rate: u32,
    /// Payload type, where it is not left to the offer.
    pub payload_type: Option<u8>,
    /// Settings of our encoder.
    pub params: BTreeMap<String, String>,
}

/// What is played.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Clip {
    /// A WAV file.
    File(String),
    /// The melody that the program makes itself.
    Music,
    /// The caller's own latest recording.
    LatestOfCaller,
}

/// How a call is recorded.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct RecordSpec {
    /// One leg a side instead of both mixed.
    pub stereo: bool,
    /// Template of the file's name, where it is not the recorder's.
    pub template: Option<String>,
}

/// What became of one rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TraceStep {
    /// The rule.
    pub rule: RuleRef,
    /// What did not match; `None` when all did.
    pub missed: Option<Missed>,
}

/// The first condition of a rule that did not hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Missed {
    /// Which condition: `called`, `source`, `header X-Name`, ...
    pub test: String,
    /// What the rule asks for.
    pub wanted: String,
    /// What the request has; `None` where it has nothing.
    pub found: Option<String>,
}

impl Action {
    /// The word that a rule says it with.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Answer => "answer",
            Self::Echo { .. } => "echo",
            Self::Tone { .. } => "tone",
            Self::Play { .. } => "play",
            Self::Record { .. } => "record",
            Self::Bridge(_) => "bridge",
            Self::Reject { .. } => "reject",
            Self::Redirect { .. } => "redirect",
        }
    }
}

/// In words: the action, what is recorded, what is added.
impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.action.fmt(f)?;
        if let Some(record) = &self.record {
            write!(
                f,
                "; recorded in {}",
                if record.stereo { "stereo" } else { "mono" }
            )?;
            if let Some(template) = &record.template {
                write!(f, " as {template}")?;
            }
        }
        for (name, value) in &self.fields {
            write!(f, "; adds {name}: {value}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self {
            Self::Answer => Ok(()),
            Self::Echo { delay } if delay.is_zero() => Ok(()),
            Self::Echo { delay } => write!(f, " after {} s", delay.as_secs_f64()),
            Self::Tone { hz, level_dbm0 } => write!(f, " {hz} Hz at {level_dbm0} dBm0"),
            Self::Play { clip, repeat } => {
                match clip {
                    Clip::File(file) => write!(f, " {file}")?,
                    Clip::Music => f.write_str(" music")?,
                    Clip::LatestOfCaller => f.write_str(" the caller's latest recording")?,
                }
                f.write_str(if *repeat { ", again and again" } else { "" })
            }
            Self::Record { beep, max } => {
                f.write_str(if *beep { " after a beep" } else { "" })?;
                match max {
                    Some(max) => write!(f, ", at most {} s", max.as_secs_f64()),
                    None => Ok(()),
                }
            }
            Self::Bridge(bridge) => write!(f, " {bridge}"),
            Self::Reject { code, reason } => {
                write!(f, " {code}")?;
                reason
                    .as_ref()
                    .map_or(Ok(()), |reason| write!(f, " {reason}"))
            }
            Self::Redirect { code, contacts } => write!(f, " {code} to {}", contacts.join(", ")),
        }
    }
}

impl fmt::Display for Bridge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let targets: Vec<_> = self
            .targets
            .iter()
            .map(|target| match target {
                Target::Uri(uri) => uri.clone(),
                Target::Registered(user) => format!("registered {user}"),
            })
            .collect();
        write!(f, "to {}, ", targets.join(", "))?;
        match (self.media, &self.codecs) {
            (MediaMode::Direct, _) => f.write_str("media direct")?,
            (MediaMode::Relay, Codecs::Caller) => f.write_str("media relayed")?,
            (MediaMode::Relay, Codecs::List(list)) => {
                let list: Vec<_> = list.iter().map(CodecSpec::to_string).collect();
                write!(f, "media relayed as {}", list.join(", "))?;
            }
        }
        write!(f, ", ringing at most {} s", self.ring_timeout.as_secs_f64())
    }
}

/// As a plan writes it.
impl fmt::Display for CodecSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(payload_type) = self.payload_type {
            write!(f, "{payload_type} ")?;
        }
        write!(f, "{}/{}", self.name, self.clock_rate)?;
        for (n, (key, value)) in self.params.iter().enumerate() {
            write!(f, "{}{key}={value}", if n == 0 { '?' } else { '&' })?;
        }
        Ok(())
    }
}

impl fmt::Display for TraceStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} {}: ", self.rule.line, self.rule.name)?;
        let Some(missed) = &self.missed else {
            return f.write_str("matches");
        };
        match &missed.found {
            Some(found) => write!(f, "{} is {found:?}, not {}", missed.test, missed.wanted),
            None => write!(f, "{} is missing, not {}", missed.test, missed.wanted),
        }
    }
}
