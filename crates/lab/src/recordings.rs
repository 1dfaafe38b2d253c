//! Recordings read back: who is on which channel, for how long, and whether every frame is there.
//!
//! A WAV file holds linear PCM; each sample is turned back into the G.711 code it came from, so
//! that marked frames are found whole (see [`crate::scan`]). The file is read by hound.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::law::Law;
use crate::mark::MarkKey;
use crate::scan::{Scan, scan};
use crate::stream::FRAME_SAMPLES;

/// A recording's samples.
#[derive(Clone, Debug)]
pub struct Recording {
    /// Where it was read from.
    pub path: PathBuf,
    /// Samples per second.
    pub rate: u32,
    /// One list of samples per channel, all of one length.
    pub channels: Vec<Vec<i16>>,
}

/// Why a recording could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The file is no WAV, or its header and length disagree.
    #[error("{path} cannot be read: {source}", path = path.display())]
    Wav {
        /// The file.
        path: PathBuf,
        /// What hound said.
        source: hound::Error,
    },
    /// The samples are not 16-bit integers.
    #[error("{path} holds {bits}-bit samples, 16 expected", path = path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// Bits per sample.
        bits: u16,
    },
}

impl Recording {
    /// Reads a file.
    ///
    /// # Errors
    /// [`ReadError`] when it is no whole WAV of 16-bit samples.
    pub fn read(path: &Path) -> Result<Self, ReadError> {
        let failed = |source| ReadError::Wav {
            path: path.to_owned(),
            source,
        };
        let mut reader = hound::WavReader::open(path).map_err(failed)?;
        let spec = reader.spec();
        if (spec.bits_per_sample, spec.sample_format) != (16, hound::SampleFormat::Int) {
            return Err(ReadError::Format {
                path: path.to_owned(),
                bits: spec.bits_per_sample,
            });
        }
        let mut channels = vec![Vec::new(); usize::from(spec.channels)];
        for (n, sample) in reader.samples::<i16>().enumerate() {
            channels[n % usize::from(spec.channels)].push(sample.map_err(failed)?);
        }
        Ok(Self {
            path: path.to_owned(),
            rate: spec.sample_rate,
            channels,
        })
    }

    /// How long it lasts.
    #[must_use]
    pub fn duration(&self) -> Duration {
        let samples = self.channels.first().map_or(0, Vec::len);
        Duration::from_secs_f64(samples as f64 / f64::from(self.rate.max(1)))
    }

    /// Looks for marked frames in channel `n`, whose audio came in `law`.
    #[must_use]
    pub fn scan(&self, key: MarkKey, n: usize, law: Law) -> Scan {
        let codes = law.codes();
        let samples = self.channels.get(n).map_or(&[][..], Vec::as_slice);
        let coded: Vec<u8> = samples
            .iter()
            .map(|&sample| codes.nearest(sample))
            .collect();
        scan(key, &coded, FRAME_SAMPLES, law)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::find_tone;
    use crate::mark::{Mark, Side};

    fn speech(law: Law, side: Side) -> Vec<i16> {
        let mut samples = Vec::new();
        for frame in 0..50 {
            let mut bytes = [0; FRAME_SAMPLES];
            let mark = Mark {
                call: 9,
                side,
                frame,
                last: false,
                law: Law::A,
            };
            MarkKey::new(3).write(mark, &mut bytes);
            Law::A.convert(law, &mut bytes);
            samples.extend(bytes.map(|code| law.expand(code)));
        }
        samples
    }

    fn write(name: &str, channels: &[Vec<i16>]) -> PathBuf {
        let path = std::env::temp_dir().join(format!("lab-{}-{name}.wav", std::process::id()));
        let spec = hound::WavSpec {
            channels: channels.len() as u16,
            sample_rate: 8000,
            bits_per_sample: 16,
            sample_format: hound::SampleFormat::Int,
        };
        let mut writer = hound::WavWriter::create(&path, spec).expect("a file");
        for n in 0..channels[0].len() {
            for channel in channels {
                writer.write_sample(channel[n]).expect("written");
            }
        }
        writer.finalize().expect("written");
        path
    }

    #[test]
    fn each_side_is_found_on_its_channel_in_its_law() {
        let channels = [speech(Law::A, Side::Caller), speech(Law::Mu, Side::Callee)];
        let path = write("stereo", &channels);
        let recording = Recording::read(&path).expect("a recording");
        assert_eq!(recording.duration(), Duration::from_secs(1));
        let key = MarkKey::new(3);
        assert_eq!(
            recording.scan(key, 0, Law::A).frames_of(9, Side::Caller),
            50
        );
        let right = recording.scan(key, 1, Law::Mu);
        assert!(right.is_only(9, Side::Callee) && right.frames_of(9, Side::Callee) == 50);
        assert_eq!(recording.scan(key, 2, Law::A), Scan::default());
        assert_eq!(find_tone(&recording.channels[0], 8000, 440.0).with_tone, 0);
        std::fs::remove_file(path).expect("removed");
    }

    #[test]
    fn what_is_no_recording_is_an_error() {
        let missing = Recording::read(Path::new("/nonexistent.wav"));
        assert!(matches!(missing, Err(ReadError::Wav { .. })));
        let path = write("cut", &[vec![1; 100]]);
        let bytes = std::fs::read(&path).expect("read");
        std::fs::write(&path, &bytes[..20]).expect("written");
        assert!(Recording::read(&path).is_err());
        std::fs::remove_file(path).expect("removed");
    }
}
