//! One WAV file: 16-bit PCM through hound, right on disk after every write.
//!
//! Each [`append`](WavFile::append) writes one block of samples and then the lengths in the header,
//! so a process that is killed leaves a file that opens. When a write fails, the file is cut back to
//! the last length that its header states: nothing of a half-written block remains.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hound::{SampleFormat, WavSpec, WavWriter};

/// Bytes of RIFF, fmt and data headers before the first sample, as hound writes them for PCM.
pub(crate) const HEADER_BYTES: u64 = 44;

/// The lengths in a WAV header are 32 bits wide; stop well below.
pub(crate) const MAX_DATA_BYTES: u64 = 0xffff_ffff - 64 * 1024;

/// Most names tried before giving up: `x.wav`, `x-2.wav`, ...
const MAX_NAMES: usize = 1000;

/// A WAV file being written.
pub(crate) struct WavFile {
    path: PathBuf,
    file: Arc<File>,
    /// `None` after a failed write: hound's own count is no longer to be trusted.
    writer: Option<WavWriter<Shared>>,
    channels: u16,
    sample_rate: u32,
    /// Bytes of samples that the header states.
    data_bytes: u64,
}

impl WavFile {
    /// Creates `directory`/`name`, or `name-2` and so on when that exists. Sub-directories of
    /// `name` are made; `directory` itself must be there.
    pub(crate) fn create(
        directory: &Path,
        name: &Path,
        channels: u16,
        sample_rate: u32,
    ) -> io::Result<Self> {
        if !fs::metadata(directory)?.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        if let Some(parent) = name.parent()
            && !parent.as_os_str().is_empty()
        {
            fs::create_dir_all(directory.join(parent))?;
        }
        let (file, path) = create_unique(&directory.join(name))?;
        let file = Arc::new(file);
        let spec = WavSpec {
            channels,
            sample_rate,
            bits_per_sample: 16,
            sample_format: SampleFormat::Int,
        };
        let writer = WavWriter::new(Shared(Arc::clone(&file)), spec).and_then(|mut writer| {
            // hound leaves the lengths open until the first flush.
            writer.flush()?;
            Ok(writer)
        });
        match writer.map_err(io_error) {
            Ok(writer) => Ok(Self {
                path,
                file,
                writer: Some(writer),
                channels,
                sample_rate,
                data_bytes: 0,
            }),
            Err(error) => {
                // A file without even a header is of no use to anyone.
                let _ = fs::remove_file(&path);
                Err(error)
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Samples per channel that the header states.
    pub(crate) fn samples(&self) -> u64 {
        self.data_bytes / u64::from(self.channels * 2)
    }

    /// Whether `bytes` more would overflow the 32-bit lengths of the format.
    pub(crate) fn has_room_for(&self, bytes: u64) -> bool {
        self.data_bytes + bytes <= MAX_DATA_BYTES
    }

    /// Writes interleaved samples, then the header.
    ///
    /// # Errors
    /// What the file system says. The file then ends where its header says, and nothing more can
    /// be written.
    pub(crate) fn append(&mut self, interleaved: &[i16]) -> io::Result<()> {
        debug_assert_eq!(interleaved.len() % usize::from(self.channels), 0);
        let Some(writer) = &mut self.writer else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        match write_block(writer, interleaved) {
            Ok(()) => {
                self.data_bytes += interleaved.len() as u64 * 2;
                Ok(())
            }
            Err(error) => {
                self.cut_back();
                Err(error)
            }
        }
    }

    /// After a failed write: the file as of the last good header. Best effort, since the file
    /// system has just failed; shrinking a file and rewriting its first page needs no room.
    fn cut_back(&mut self) {
        // Dropping hound's writer makes it write its own count; so ours comes after.
        self.writer = None;
        let header = header(self.channels, self.sample_rate, self.data_bytes as u32);
        let cut = self.file.set_len(HEADER_BYTES + self.data_bytes);
        let mut file = &*self.file;
        let written = file
            .seek(SeekFrom::Start(0))
            .and_then(|_| file.write_all(&header));
        if let Err(error) = cut.and(written) {
            tracing::debug!(path = %self.path.display(), %error, "header could not be restored");
        }
    }
}

fn write_block(writer: &mut WavWriter<Shared>, interleaved: &[i16]) -> io::Result<()> {
    let mut block = writer.get_i16_writer(interleaved.len() as u32);
    for &sample in interleaved {
        block.write_sample(sample);
    }
    block
        .flush()
        .and_then(|()| writer.flush())
        .map_err(io_error)
}

fn io_error(error: hound::Error) -> io::Error {
    match error {
        hound::Error::IoError(error) => error,
        other => io::Error::other(other),
    }
}

fn create_unique(wanted: &Path) -> io::Result<(File, PathBuf)> {
    let stem = wanted
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let mut path = wanted.to_owned();
    for number in 2..=MAX_NAMES {
        // create_new is O_EXCL: atomic, and it follows no symbolic link.
        match OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&path)
        {
            Ok(file) => return Ok((file, path)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                path.set_file_name(format!("{stem}-{number}.wav"));
            }
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// The canonical header of a 16-bit PCM WAV file: what hound writes, made without hound.
fn header(channels: u16, sample_rate: u32, data_bytes: u32) -> [u8; HEADER_BYTES as usize] {
    let block = channels * 2;
    let mut out = [0; HEADER_BYTES as usize];
    let mut at = 0;
    let mut put = |bytes: &[u8]| {
        out[at..at + bytes.len()].copy_from_slice(bytes);
        at += bytes.len();
    };
    put(b"RIFF");
    put(&(data_bytes + HEADER_BYTES as u32 - 8).to_le_bytes());
    put(b"WAVEfmt ");
    put(&16_u32.to_le_bytes());
    put(&1_u16.to_le_bytes());
    put(&channels.to_le_bytes());
    put(&sample_rate.to_le_bytes());
    put(&(sample_rate * u32::from(block)).to_le_bytes());
    put(&block.to_le_bytes());
    put(&16_u16.to_le_bytes());
    put(b"data");
    put(&data_bytes.to_le_bytes());
    out
}

/// A file that hound and [`WavFile`] both hold.
struct Shared(Arc<File>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&*self.0).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        (&*self.0).flush()
    }
}

impl Seek for Shared {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        (&*self.0).seek(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Length of the data by the header, after checking every other field of it.
    fn stated_bytes(bytes: &[u8], channels: u16) -> u64 {
        let stated = u32::from_le_bytes(bytes[40..44].try_into().unwrap());
        assert_eq!(bytes[..44], header(channels, 8000, stated));
        u64::from(stated)
    }

    #[test]
    fn header_is_right_after_every_append() {
        let dir = tempfile::tempdir().unwrap();
        let mut wav = WavFile::create(dir.path(), Path::new("a.wav"), 2, 8000).unwrap();
        for step in 1..=5_u64 {
            wav.append(&[7; 320]).unwrap();
            let copy = fs::read(wav.path()).unwrap();
            assert_eq!(stated_bytes(&copy, 2), step * 640);
            assert_eq!(copy.len() as u64, HEADER_BYTES + step * 640);
            let read = hound::WavReader::new(&copy[..]).unwrap();
            assert_eq!(u64::from(read.duration()), wav.samples());
        }
    }

    #[test]
    fn empty_file_is_valid() {
        let dir = tempfile::tempdir().unwrap();
        let wav = WavFile::create(dir.path(), Path::new("a.wav"), 1, 8000).unwrap();
        let bytes = fs::read(wav.path()).unwrap();
        assert_eq!((stated_bytes(&bytes, 1), bytes.len()), (0, 44));
        let path = wav.path().to_owned();
        drop(wav);
        assert_eq!(fs::read(&path).unwrap(), bytes);
    }

    #[test]
    fn names_are_never_taken_twice() {
        let dir = tempfile::tempdir().unwrap();
        let name = Path::new("sub/a.wav");
        let names: Vec<_> = (0..3)
            .map(|_| {
                WavFile::create(dir.path(), name, 1, 8000)
                    .unwrap()
                    .path()
                    .to_owned()
            })
            .collect();
        let expected = ["sub/a.wav", "sub/a-2.wav", "sub/a-3.wav"].map(|n| dir.path().join(n));
        assert_eq!(names, expected);
    }

    #[test]
    fn cut_back_restores_the_last_good_length() {
        let dir = tempfile::tempdir().unwrap();
        let mut wav = WavFile::create(dir.path(), Path::new("a.wav"), 1, 8000).unwrap();
        wav.append(&[5; 100]).unwrap();
        // Half a block that never got its header.
        (&*wav.file).write_all(&[1; 77]).unwrap();
        wav.cut_back();
        let bytes = fs::read(wav.path()).unwrap();
        assert_eq!((stated_bytes(&bytes, 1), bytes.len()), (200, 244));
        assert!(wav.append(&[5; 100]).is_err());
    }

    #[test]
    fn directory_must_be_there() {
        let dir = tempfile::tempdir().unwrap();
        let gone = dir.path().join("gone");
        let error = WavFile::create(&gone, Path::new("a.wav"), 1, 8000)
            .err()
            .unwrap();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(!gone.exists());
        fs::write(&gone, b"").unwrap();
        let error = WavFile::create(&gone, Path::new("a.wav"), 1, 8000)
            .err()
            .unwrap();
        assert_eq!(error.kind(), io::ErrorKind::NotADirectory);
    }
}
