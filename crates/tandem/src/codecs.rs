//! `tandem codecs`: which codecs are built in, what they can be told, and what each costs here.
//!
//! ```text
//!   every codec, default settings ...... payload number, PCM, packet, encode, decode, kbit/s
//!   codecs with a complexity ........... encode at each of its steps
//!   every setting ...................... values, default, meaning
//! ```
//!
//! Costs are microseconds of this machine's processor time per 20 ms of one direction.

use std::fmt::Write;
use std::time::Duration;

use audio::settings::{Setting, Values};
use audio::{Codec, Registry};
use lab::codec_cost::{CodecCost, measure};
use lab::table::{Align, Table};

use crate::serve;

/// Time for each measurement.
const BUDGET: Duration = Duration::from_millis(40);
/// Sound that is coded: long enough for pauses to be in it.
const SOUND_SECONDS: u32 = 4;
/// Rates that codecs with variants are shown at, beside their own.
const VARIANT_RATES: [u32; 2] = [8_000, 16_000];

/// Prints the tables.
pub(crate) fn run() -> anyhow::Result<()> {
    let registry = serve::codecs();
    // A closed pipe is no failure of ours: `tandem codecs | head`.
    let _ = std::io::Write::write_all(&mut std::io::stdout(), describe(&registry)?.as_bytes());
    Ok(())
}

fn describe(registry: &Registry) -> anyhow::Result<String> {
    let mut text = String::new();
    writeln!(
        text,
        "Microseconds of processor time per 20 ms, one direction, on this machine ({}).\n",
        build()
    )?;
    let mut costs = Table::new(&[
        ("codec", Align::Left),
        ("payload", Align::Right),
        ("PCM", Align::Right),
        ("packet", Align::Right),
        ("encode", Align::Right),
        ("decode", Align::Right),
        ("kbit/s", Align::Right),
    ]);
    let mut steps = Vec::new();
    for codec in registry.iter() {
        for codec in shown(codec) {
            costs.row(cost_row(codec)?);
            steps.extend(complexity_row(codec)?);
        }
    }
    writeln!(text, "{costs}")?;
    if !steps.is_empty() {
        writeln!(
            text,
            "Encoding at each complexity:\n\n{}",
            steps_table(steps)
        )?;
    }
    writeln!(
        text,
        "Settings, as in `codecs = [\"speex/8000?complexity=2&quality=8\"]`:\n"
    )?;
    write!(text, "{}", settings_table(registry))?;
    Ok(text)
}

/// How the C codecs were built: their speed depends on it.
fn build() -> String {
    format!("{} build", std::env::consts::ARCH)
}

/// The codec, and its variants at the rates of telephony.
fn shown(codec: &dyn Codec) -> impl Iterator<Item = &dyn Codec> {
    let own = codec.info().sample_rate;
    let variants = VARIANT_RATES
        .into_iter()
        .filter(move |rate| *rate != own)
        .filter_map(|rate| codec.variant(rate, 1));
    variants.chain([codec])
}

fn name(codec: &dyn Codec) -> String {
    let info = codec.info();
    match info.rtpmap_channels {
        1 => format!("{}/{}", info.name, info.clock_rate),
        channels => format!("{}/{}/{channels}", info.name, info.clock_rate),
    }
}

fn khz(rate: u32) -> String {
    format!("{} kHz", f64::from(rate) / 1_000.0)
}

fn micros(time: Duration) -> String {
    format!("{:.2}", time.as_secs_f64() * 1e6)
}

fn measured(codec: &dyn Codec, settings: &[(String, String)]) -> anyhow::Result<CodecCost> {
    let info = codec.info();
    let sound = sound(info.sample_rate, info.channels);
    Ok(measure(codec, settings, &sound, BUDGET)?)
}

fn cost_row(codec: &dyn Codec) -> anyhow::Result<Vec<String>> {
    let info = codec.info();
    let cost = measured(codec, &[])?;
    Ok(vec![
        name(codec),
        info.static_payload_type
            .map_or_else(|| "dynamic".to_owned(), |number| number.to_string()),
        khz(info.sample_rate),
        format!("{} ms", info.default_ptime_ms),
        micros(cost.encode),
        micros(cost.decode),
        format!("{:.1}", cost.bytes_per_second * 8.0 / 1_000.0),
    ])
}

/// A codec, and what it costs to encode at each complexity that it has.
struct Steps {
    codec: String,
    costs: Vec<(u32, Duration)>,
}

fn complexity_row(codec: &dyn Codec) -> anyhow::Result<Option<Steps>> {
    let range = codec
        .settings()
        .iter()
        .find_map(|setting| match &setting.values {
            Values::Integers(range) if setting.name == "complexity" => Some(range.clone()),
            _ => None,
        });
    let Some(range) = range else { return Ok(None) };
    let mut costs = Vec::new();
    for step in range {
        let settings = [("complexity".to_owned(), step.to_string())];
        costs.push((step, measured(codec, &settings)?.encode));
    }
    Ok(Some(Steps {
        codec: format!("{} at {}", name(codec), khz(codec.info().sample_rate)),
        costs,
    }))
}

fn steps_table(rows: Vec<Steps>) -> Table {
    let mut all: Vec<u32> = rows
        .iter()
        .flat_map(|row| row.costs.iter().map(|(step, _)| *step))
        .collect();
    all.sort_unstable();
    all.dedup();
    let heads: Vec<String> = all.iter().map(u32::to_string).collect();
    let columns = [("codec", Align::Left)]
        .into_iter()
        .chain(heads.iter().map(|head| (head.as_str(), Align::Right)));
    let mut table = Table::new(&columns.collect::<Vec<_>>());
    for Steps { codec, costs } in rows {
        let cell = |step: &u32| {
            let known = costs.iter().find(|(known, _)| known == step);
            known.map_or_else(String::new, |(_, time)| micros(*time))
        };
        table.row(std::iter::once(codec).chain(all.iter().map(cell)));
    }
    table
}

fn settings_table(registry: &Registry) -> Table {
    let mut table = Table::new(&[
        ("codecs", Align::Left),
        ("setting", Align::Left),
        ("values", Align::Left),
        ("default", Align::Left),
        ("meaning", Align::Left),
    ]);
    let mut told: Vec<(&'static [Setting], Vec<String>)> = Vec::new();
    for codec in registry.iter() {
        let settings = codec.settings();
        match told.iter_mut().find(|(known, _)| *known == settings) {
            _ if settings.is_empty() => {}
            Some((_, names)) => names.push(name(codec)),
            None => told.push((settings, vec![name(codec)])),
        }
    }
    for (settings, names) in &told {
        for setting in *settings {
            table.row([
                names.join(", "),
                setting.name.to_owned(),
                setting.values.to_string(),
                setting.default.to_owned(),
                setting.meaning.to_owned(),
            ]);
        }
    }
    table
}

/// What is coded: the same for every codec, at its rate.
fn sound(sample_rate: u32, channels: u8) -> Vec<i16> {
    let mono = audio::melody::melody(sample_rate).samples;
    let length = (sample_rate * SOUND_SECONDS) as usize;
    mono.iter()
        .copied()
        .cycle()
        .take(length)
        .flat_map(|sample| std::iter::repeat_n(sample, usize::from(channels)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_codec_and_every_setting_is_told() {
        let registry = serve::codecs();
        let text = describe(&registry).expect("all of them can be measured");
        for codec in registry.iter() {
            assert!(text.contains(&name(codec)), "{text}");
            for setting in codec.settings() {
                assert!(text.contains(setting.meaning), "{text}");
            }
        }
        assert!(!text.contains("| 0.00 |"), "a cost of nothing: {text}");
    }
}
