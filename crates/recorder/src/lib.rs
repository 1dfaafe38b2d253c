//! Recordings: decode and write from taps, WAV by hound, spool limits.
