//! Settings and parameters.

use super::{Bench, Options};
use crate::codec::{Codec, Cost, Input, NegotiateError, Offered, Params};
use crate::settings::{Setting, SettingError, Values};

type Given = Vec<(String, String)>;

/// A table that an operator can read, and whose bounds hold.
pub(super) fn are_sane(codec: &dyn Codec) {
    let table = codec.settings();
    for (index, setting) in table.iter().enumerate() {
        let name = setting.name;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        assert!(!name.is_empty() && name.chars().all(is_plain), "{name:?}");
        assert!(
            table[..index].iter().all(|other| other.name != name),
            "{name} twice"
        );
        assert!(!setting.meaning.is_empty(), "{name} means nothing");
        assert!(!allowed(setting).is_empty(), "{name} allows nothing");
        let default = given(name, setting.default);
        assert!(both(codec, &default).is_ok(), "{name}: its default");
        for value in refused(setting) {
            let expected = Err(NegotiateError::Setting(SettingError::Value { setting }));
            assert_eq!(
                both(codec, &given(name, &value)),
                expected,
                "{name}={value:?}"
            );
        }
    }
    for unknown in ["no-such-setting", ""] {
        let mut settings: Given = table
            .iter()
            .map(|setting| (setting.name.to_owned(), setting.default.to_owned()))
            .collect();
        let index = settings.len();
        settings.push((unknown.to_owned(), "1".to_owned()));
        let expected = Err(NegotiateError::Setting(SettingError::Unknown { index }));
        assert_eq!(both(codec, &settings), expected, "setting {unknown:?}");
    }
    costs_are_said_or_not(codec);
}

/// Every bound and every word makes an encoder and a decoder that work; the defaults make the same
/// as nothing.
pub(super) fn make_codecs(codec: &dyn Codec, options: &Options<'_>) {
    let ptime_ms = codec.info().default_ptime_ms;
    let payloads = |settings: &[(String, String)]| {
        let options = Options {
            settings,
            ..*options
        };
        let bench = Bench::new(codec, &options, ptime_ms);
        let payloads = bench.payloads(&bench.tone(1));
        let mut decoder = bench.decoder();
        let mut room = bench.pcm_room();
        for payload in &payloads {
            let samples = decoder.decode(bench.input(payload), &mut room);
            assert_eq!(samples, Ok(bench.params.frame_samples), "{settings:?}");
        }
        payloads
    };
    let of_nothing = payloads(&[]);
    for setting in codec.settings() {
        for value in allowed(setting) {
            payloads(&given(setting.name, &value));
        }
        let default = payloads(&given(setting.name, setting.default));
        assert!(default == of_nothing, "{} is not its default", setting.name);
    }
}

/// Offers and negotiations come to the same when they are repeated, and take any text.
pub(super) fn negotiate_to_the_same(codec: &dyn Codec, options: &Options<'_>) {
    let info = codec.info();
    for ptime_ms in [0, 1, 13, info.default_ptime_ms, 1_000, u32::MAX] {
        let offered = Offered {
            ptime_ms,
            settings: options.settings,
            ..Offered::default()
        };
        let ours = codec.offer(&offered).expect("an offer");
        assert_eq!(codec.offer(&offered).as_ref(), Ok(&ours), "offered again");
        for fmtp in [None, ours.as_deref()] {
            let offered = Offered { fmtp, ..offered };
            let params = codec.negotiate(&offered).expect("our own offer");
            assert_eq!(codec.negotiate(&offered).as_ref(), Ok(&params));
            let again = Offered {
                settings: &params.settings,
                ..offered
            };
            let again = codec.negotiate(&again).expect("what was agreed");
            assert_eq!(again.settings, params.settings, "settings agreed on");
            makes_frames(codec, &params);
        }
    }
    for fmtp in HOSTILE {
        let offered = Offered {
            fmtp: Some(fmtp),
            settings: options.settings,
            ..Offered::default()
        };
        if let Ok(params) = codec.negotiate(&offered) {
            makes_frames(codec, &params);
        }
    }
}

/// Parameters as no peer should write them.
const HOSTILE: [&str; 12] = [
    "",
    ";",
    "=",
    "==;;=",
    "\"",
    "a=\"b;c",
    "mode=\"",
    "mode=99999999999999999999",
    "maxplaybackrate=-1;maxaveragebitrate=0;stereo=2;cbr=x;minptime=0",
    "ptime=4294967296;vbr=;cng=;sr=1",
    "annexb=maybe;mode=\u{1f50a}",
    "x=%00%ff\u{0}",
];

fn makes_frames(codec: &dyn Codec, params: &Params) {
    let info = codec.info();
    assert!(
        params.frame_samples > 0 && params.frame_samples <= info.max_frame_samples,
        "{params:?}"
    );
    assert_eq!(params.frame_samples % info.frame_step_samples, 0);
    let mut encoder = codec.encoder(params).expect("an encoder");
    assert_eq!(encoder.frame_samples(), params.frame_samples);
    let pcm = vec![0; params.frame_samples * usize::from(info.channels)];
    let mut payload = vec![0; info.max_payload_bytes];
    let len = encoder.encode(&pcm, &mut payload).expect("a whole frame");
    let mut room = vec![0; info.max_frame_samples * usize::from(info.channels)];
    let mut decoder = codec.decoder(params).expect("a decoder");
    if len > 0 {
        let samples = decoder.decode(Input::Frame(&payload[..len]), &mut room);
        assert_eq!(samples, Ok(params.frame_samples), "{params:?}");
    }
}

/// A cost is known for both ways or not at all, whatever the settings.
fn costs_are_said_or_not(codec: &dyn Codec) {
    let is_known = |cost: Cost| {
        assert_eq!(cost.encode_ns > 0, cost.decode_ns > 0, "{cost:?}");
        cost.encode_ns > 0
    };
    let known = is_known(codec.cost(&[]));
    for setting in codec.settings() {
        for value in allowed(setting) {
            let cost = codec.cost(&given(setting.name, &value));
            assert_eq!(is_known(cost), known, "{} {value}", setting.name);
        }
    }
    let unknown = codec.cost(&given("no-such-setting", "-"));
    assert_eq!(is_known(unknown), known, "an unknown setting");
}

/// Both ways in which a codec is told its settings.
fn both(codec: &dyn Codec, settings: &[(String, String)]) -> Result<(), NegotiateError> {
    let offered = Offered {
        settings,
        ..Offered::default()
    };
    let offer = codec.offer(&offered).map(drop);
    let negotiated = codec.negotiate(&offered).map(drop);
    assert_eq!(offer, negotiated, "offer and negotiate disagree");
    negotiated
}

fn given(name: &str, value: &str) -> Given {
    vec![(name.to_owned(), value.to_owned())]
}

/// The bounds of a range, or every value.
fn allowed(setting: &Setting) -> Vec<String> {
    match &setting.values {
        Values::Integers(range) => vec![range.start().to_string(), range.end().to_string()],
        Values::Switch => vec!["off".to_owned(), "on".to_owned()],
        Values::Words(words) => words.iter().map(|&word| word.to_owned()).collect(),
    }
}

/// Values right beside those, and some that are none at all.
fn refused(setting: &Setting) -> Vec<String> {
    let mut values = vec![String::new(), "-1".to_owned(), "no such value".to_owned()];
    if let Values::Integers(range) = &setting.values {
        let beside = [range.start().checked_sub(1), range.end().checked_add(1)];
        values.extend(beside.into_iter().flatten().map(|value| value.to_string()));
    }
    values
}
