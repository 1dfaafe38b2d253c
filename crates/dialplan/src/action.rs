//! What a rule does: read from its table, and worked out for a call.
//!
//! [`read`] gives a form with templates. [`Form::resolve`] makes an [`Action`] of it with the
//! values of one call; a form without such values is resolved when the plan is loaded.

use core::time::Duration;

use crate::codec;
use crate::decision::{Action, Bridge, Clip, Codecs, MediaMode, Target};
use crate::error::PlanError;
use crate::suggest::nearest;
use crate::table::{Table, Text};
use crate::template::{Place, Scope, Template, Value};

/// Every action with its own keys.
pub(crate) const ACTIONS: [(&str, &[&str]); 8] = [
    ("answer", &[]),
    ("echo", &["delay"]),
    ("tone", &["hz", "level"]),
    ("play", &["clip", "file", "repeat"]),
    ("record", &["beep", "max"]),
    ("bridge", &["to", "media", "codecs", "ring"]),
    ("reject", &["code", "reason"]),
    ("redirect", &["to", "code"]),
];

/// How long leg B may ring unless a rule says otherwise.
const RING: Duration = Duration::from_secs(120);
/// The milliwatt of ITU-T O.9: 1004 Hz, so that it shares no period with the sampling.
const TONE_HZ: f64 = 1_004.0;
/// Tones that 8 kHz sampling carries.
const TONE_RANGE_HZ: core::ops::RangeInclusive<f64> = 20.0..=3_800.0;
/// Louder than +3 dBm0 a sine is clipped (G.711).
const TONE_RANGE_DBM0: core::ops::RangeInclusive<f64> = -60.0..=3.0;

/// An action with templates in it.
#[derive(Clone, Debug)]
pub(crate) enum Form {
    /// The same for every call.
    Fixed(Action),
    /// Plays a file.
    PlayFile { file: Template, repeat: bool },
    /// Bridges.
    Bridge {
        targets: Vec<Template>,
        media: MediaMode,
        codecs: Option<Vec<Template>>,
        ring: Duration,
    },
    /// Refuses.
    Reject {
        code: Template,
        reason: Option<Template>,
    },
    /// Sends elsewhere.
    Redirect { code: u16, contacts: Vec<Template> },
}

/// A value that an action cannot be made of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Unfit {
    /// The rule's key.
    pub(crate) key: &'static str,
    pub(crate) wanted: &'static str,
    pub(crate) found: String,
}

/// Reads the action named by `action`; its own keys are known to be the only ones.
pub(crate) fn read(
    name: &Text<'_>,
    table: &Table<'_>,
    scope: &Scope<'_>,
) -> Result<Form, PlanError> {
    let form = match name.value {
        "answer" => Form::Fixed(Action::Answer),
        "echo" => {
            let delay = table.duration("delay")?.unwrap_or_default();
            Form::Fixed(Action::Echo { delay })
        }
        "tone" => Form::Fixed(tone(table)?),
        "play" => play(table, scope)?,
        "record" => Form::Fixed(Action::Record {
            beep: table.flag("beep")?.unwrap_or(true),
            max: table.duration("max")?,
        }),
        "bridge" => bridge(table, scope)?,
        "reject" => reject(table, scope)?,
        "redirect" => redirect(table, scope)?,
        other => {
            let nearest = nearest(other, ACTIONS.iter().map(|(name, _)| *name)).unwrap_or_default();
            let message = format!("unknown action `{other}`; the nearest known one is `{nearest}`");
            return Err(table.source.error(name.span.clone(), message));
        }
    };
    check(form, table)
}

/// Resolves a form that is the same for every call; tries one that is not with a sample.
fn check(form: Form, table: &Table<'_>) -> Result<Form, PlanError> {
    let sample = match &form {
        Form::Reject { .. } => "404",
        _ => "1",
    };
    let resolved = form.resolve(&|_| sample.to_owned()).map_err(|unfit| {
        let Unfit { key, wanted, found } = unfit;
        let with = if form.is_fixed() {
            String::new()
        } else {
            format!(" (with {sample} for what the call brings)")
        };
        table.error(key, format!("`{key}` is {found:?}{with}; write {wanted}"))
    })?;
    Ok(if form.is_fixed() {
        Form::Fixed(resolved)
    } else {
        form
    })
}

fn tone(table: &Table<'_>) -> Result<Action, PlanError> {
    let hz = table.number("hz")?.unwrap_or(TONE_HZ);
    if !TONE_RANGE_HZ.contains(&hz) {
        return Err(table.error("hz", format!("`hz` is {hz}; write 20 to 3800")));
    }
    let level = table.number("level")?.unwrap_or(0.0);
    if !TONE_RANGE_DBM0.contains(&level) {
        return Err(table.error("level", format!("`level` is {level} dBm0; write -60 to 3")));
    }
    Ok(Action::Tone {
        hz: hz as f32,
        level_dbm0: level as f32,
    })
}

fn play(table: &Table<'_>, scope: &Scope<'_>) -> Result<Form, PlanError> {
    let repeat = table.flag("repeat")?.unwrap_or(false);
    let wanted = "either clip = \"music\", clip = \"latest\", or file = \"PATH.wav\"";
    let clip = match (table.text("clip")?, table.text("file")?) {
        (None, Some(file)) => {
            return Ok(Form::PlayFile {
                file: template(&file, table, scope)?,
                repeat,
            });
        }
        (Some(clip), None) => match clip.value {
            "music" => Clip::Music,
            "latest" => Clip::LatestOfCaller,
            other => {
                return Err(table.error("clip", format!("unknown clip `{other}`; write {wanted}")));
            }
        },
        (Some(_), Some(_)) => {
            return Err(table.error("file", format!("both `clip` and `file`; write {wanted}")));
        }
        (None, None) => {
            return Err(table.error("action", format!("`play` without a clip; write {wanted}")));
        }
    };
    Ok(Form::Fixed(Action::Play { clip, repeat }))
}

fn bridge(table: &Table<'_>, scope: &Scope<'_>) -> Result<Form, PlanError> {
    let media = match table.text("media")? {
        None => MediaMode::Relay,
        Some(text) => match text.value {
            "relay" => MediaMode::Relay,
            "direct" => MediaMode::Direct,
            other => {
                let message = format!("`media` is \"{other}\"; write \"relay\" or \"direct\"");
                return Err(table.error("media", message));
            }
        },
    };
    let codecs = table.texts("codecs")?;
    let codecs = match codecs.as_slice() {
        [] => None,
        [only] if only.value == "caller" => None,
        list => Some(templates(list, table, scope)?),
    };
    if media == MediaMode::Direct && codecs.is_some() {
        let message = "`codecs` has no effect on direct media, which passes as the caller offers it; \
                       remove it, or write media = \"relay\"";
        return Err(table.error("codecs", message));
    }
    let ring = table.duration("ring")?.unwrap_or(RING);
    if ring < Duration::from_secs(1) {
        return Err(table.error(
            "ring",
            "`ring` is less than a second; nobody answers so fast",
        ));
    }
    Ok(Form::Bridge {
        targets: targets(table, scope)?,
        media,
        codecs,
        ring,
    })
}

fn reject(table: &Table<'_>, scope: &Scope<'_>) -> Result<Form, PlanError> {
    let Some(code) = table.text_or_number("code")? else {
        return Err(table.error(
            "action",
            "`reject` without `code`; write code = 403, for example",
        ));
    };
    let reason = table
        .text("reason")?
        .map(|text| template(&text, table, scope))
        .transpose()?;
    Ok(Form::Reject {
        code: template(&code, table, scope)?,
        reason,
    })
}

fn redirect(table: &Table<'_>, scope: &Scope<'_>) -> Result<Form, PlanError> {
    let code = table.number("code")?.unwrap_or(302.0);
    if !(300.0..=399.0).contains(&code) || code.fract() != 0.0 {
        return Err(table.error(
            "code",
            format!("`code` is {code}; write 300 to 399, 302 as a rule"),
        ));
    }
    Ok(Form::Redirect {
        code: code as u16,
        contacts: targets(table, scope)?,
    })
}

fn targets(table: &Table<'_>, scope: &Scope<'_>) -> Result<Vec<Template>, PlanError> {
    let list = table.texts("to")?;
    if list.is_empty() {
        let message = "no `to`; write to = \"sip:USER@HOST\", or a list";
        return Err(table.error("action", message));
    }
    templates(&list, table, scope)
}

fn templates(
    list: &[Text<'_>],
    table: &Table<'_>,
    scope: &Scope<'_>,
) -> Result<Vec<Template>, PlanError> {
    list.iter()
        .map(|text| template(text, table, scope))
        .collect()
}

/// Reads a text with values in it; complaints point at it.
pub(crate) fn template(
    text: &Text<'_>,
    table: &Table<'_>,
    scope: &Scope<'_>,
) -> Result<Template, PlanError> {
    Template::parse(text.value, scope)
        .map_err(|message| table.source.error(text.span.clone(), message))
}

impl Form {
    fn is_fixed(&self) -> bool {
        match self {
            Self::Fixed(_) => true,
            Self::PlayFile { file, .. } => file.is_fixed(),
            Self::Bridge {
                targets, codecs, ..
            } => targets
                .iter()
                .chain(codecs.iter().flatten())
                .all(Template::is_fixed),
            Self::Reject { code, reason } => {
                code.is_fixed() && reason.as_ref().is_none_or(Template::is_fixed)
            }
            Self::Redirect { contacts, .. } => contacts.iter().all(Template::is_fixed),
        }
    }

    /// Whether media passes us by.
    pub(crate) const fn is_direct(&self) -> bool {
        matches!(
            self,
            Self::Bridge {
                media: MediaMode::Direct,
                ..
            } | Self::Fixed(Action::Bridge(Bridge {
                media: MediaMode::Direct,
                ..
            }))
        )
    }

    /// Whether a call comes of it at all.
    pub(crate) const fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::Reject { .. }
                | Self::Redirect { .. }
                | Self::Fixed(Action::Reject { .. } | Action::Redirect { .. })
        )
    }

    /// The action for one call.
    ///
    /// # Errors
    /// [`Unfit`]: what the call brings makes nothing usable.
    pub(crate) fn resolve(&self, lookup: &dyn Fn(Value) -> String) -> Result<Action, Unfit> {
        Ok(match self {
            Self::Fixed(action) => action.clone(),
            Self::PlayFile { file, repeat } => {
                let file = file.expand(Place::File, lookup);
                Action::Play {
                    clip: Clip::File(file),
                    repeat: *repeat,
                }
            }
            Self::Bridge {
                targets,
                media,
                codecs,
                ring,
            } => Action::Bridge(Bridge {
                targets: targets
                    .iter()
                    .map(|t| target(t, lookup))
                    .collect::<Result<_, _>>()?,
                media: *media,
                codecs: match codecs {
                    None => Codecs::Caller,
                    Some(list) => Codecs::List(
                        list.iter()
                            .map(|text| one_codec(text, lookup))
                            .collect::<Result<_, _>>()?,
                    ),
                },
                ring_timeout: *ring,
            }),
            Self::Reject { code, reason } => Action::Reject {
                code: refusal_code(&code.expand(Place::Plain, lookup))?,
                reason: reason
                    .as_ref()
                    .map(|reason| reason.expand(Place::Line, lookup)),
            },
            Self::Redirect { code, contacts } => Action::Redirect {
                code: *code,
                contacts: contacts
                    .iter()
                    .map(|t| contact(t, lookup))
                    .collect::<Result<_, _>>()?,
            },
        })
    }
}

fn target(template: &Template, lookup: &dyn Fn(Value) -> String) -> Result<Target, Unfit> {
    let user = template.expand(Place::Line, lookup);
    if let Some(user) = user
        .strip_prefix("registered:")
        .filter(|user| !user.is_empty())
    {
        return Ok(Target::Registered(user.to_owned()));
    }
    let uri = template.expand(Place::Uri, lookup);
    match sip::Uri::parse(&uri).map(|uri| uri.scheme()) {
        Ok(sip::Scheme::Sip | sip::Scheme::Sips) => Ok(Target::Uri(uri)),
        _ => Err(Unfit {
            key: "to",
            wanted: "\"sip:USER@HOST\" or \"registered:USER\"",
            found: uri,
        }),
    }
}

fn contact(template: &Template, lookup: &dyn Fn(Value) -> String) -> Result<String, Unfit> {
    let uri = template.expand(Place::Uri, lookup);
    match sip::Uri::parse(&uri).map(|uri| uri.scheme()) {
        Ok(sip::Scheme::Sip | sip::Scheme::Sips | sip::Scheme::Tel) => Ok(format!("<{uri}>")),
        _ => Err(Unfit {
            key: "to",
            wanted: "\"sip:USER@HOST\" or \"tel:+NUMBER\"",
            found: uri,
        }),
    }
}

fn one_codec(
    template: &Template,
    lookup: &dyn Fn(Value) -> String,
) -> Result<crate::CodecSpec, Unfit> {
    let text = template.expand(Place::Plain, lookup);
    codec::parse(&text).ok_or(Unfit {
        key: "codecs",
        wanted: codec::FORM,
        found: text,
    })
}

fn refusal_code(text: &str) -> Result<u16, Unfit> {
    let code = text.parse().ok().filter(|code| (400..=699).contains(code));
    let unfit = || Unfit {
        key: "code",
        wanted: "400 to 699",
        found: text.to_owned(),
    };
    code.ok_or_else(unfit)
}
