//! Telephone-events (RFC 4733): the payload, and the keys that a stream of them means.
//!
//! ```text
//!  |     event     |E|R| volume    |          duration             |
//! ```
//!
//! All packets of one event carry the timestamp of its beginning; the end is sent three times; any
//! of them may be lost. So an event is told by its timestamp, and reported once: at its first end
//! packet, or else when the next event begins, or when [`EventTracker::flush`] is called because
//! nothing follows (section 2.5.2).

use crate::sequence::is_newer_timestamp;

/// Octets of an event.
pub const EVENT_BYTES: usize = 4;

/// One telephone-event payload (section 2.3).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Event code: 0 to 15 are the keys of a telephone (section 3.2).
    pub code: u8,
    /// Whether the event is over.
    pub end: bool,
    /// Level of the tone, in dBm0 without its minus sign, 0 to 63.
    pub volume: u8,
    /// How long the event has lasted, in timestamp units.
    pub duration: u16,
}

impl Event {
    /// Reads a payload; `None` when it is shorter than an event.
    #[must_use]
    pub fn read(payload: &[u8]) -> Option<Self> {
        let [code, flags, high, low] = *payload.first_chunk::<EVENT_BYTES>()?;
        Some(Self {
            code,
            end: flags & 0x80 != 0,
            volume: flags & 0x3f,
            duration: u16::from_be_bytes([high, low]),
        })
    }

    /// Writes a payload.
    pub fn write(&self, out: &mut [u8; EVENT_BYTES]) {
        let [high, low] = self.duration.to_be_bytes();
        *out = [
            self.code,
            u8::from(self.end) << 7 | self.volume & 0x3f,
            high,
            low,
        ];
    }
}

/// The key of an event code; `None` for the others (section 3.2, table 3).
#[must_use]
pub fn key(code: u8) -> Option<char> {
    const KEYS: [char; 16] = [
        '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', '*', '#', 'A', 'B', 'C', 'D',
    ];
    KEYS.get(usize::from(code)).copied()
}

/// A whole event.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Press {
    /// Event code.
    pub code: u8,
    /// How long it lasted, in timestamp units, as far as its packets tell.
    pub duration: u32,
}

/// The event that is on, or was last.
#[derive(Copy, Clone, Debug)]
struct Current {
    code: u8,
    timestamp: u32,
    duration: u16,
    /// Units of segments before this one (section 2.5.1.3).
    carried: u32,
    reported: bool,
}

/// Makes whole events of payloads.
#[derive(Copy, Clone, Debug, Default)]
pub struct EventTracker {
    current: Option<Current>,
}

impl EventTracker {
    /// Takes one payload and its timestamp. Returns the events that are known to be over, oldest
    /// first: the one before, when its end was lost, and this one, at its first end packet.
    pub fn handle(&mut self, timestamp: u32, event: Event) -> [Option<Press>; 2] {
        let mut before = None;
        match &mut self.current {
            Some(current) if current.timestamp == timestamp => {
                current.duration = current.duration.max(event.duration);
            }
            Some(current) if !is_newer_timestamp(timestamp, current.timestamp) => {
                return [None, None];
            }
            Some(current) if current.continues(timestamp, event) => {
                current.carried += u32::from(current.duration);
                current.timestamp = timestamp;
                current.duration = event.duration;
            }
            _ => {
                before = self.flush();
                self.current = Some(Current {
                    code: event.code,
                    timestamp,
                    duration: event.duration,
                    carried: 0,
                    reported: false,
                });
            }
        }
        let this = if event.end { self.flush() } else { None };
        [before, this]
    }

    /// The event that has begun and whose end nobody will send, if there is one.
    pub fn flush(&mut self) -> Option<Press> {
        let current = self.current.as_mut().filter(|current| !current.reported)?;
        current.reported = true;
        Some(Press {
            code: current.code,
            duration: current.carried + u32::from(current.duration),
        })
    }

    /// Whether an event is on.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.current.is_some_and(|current| !current.reported)
    }
}

impl Current {
    /// Whether this is the next segment of an event longer than its duration field counts.
    fn continues(&self, timestamp: u32, event: Event) -> bool {
        !self.reported
            && self.duration == u16::MAX
            && self.code == event.code
            && timestamp == self.timestamp.wrapping_add(u32::from(u16::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(code: u8, end: bool, duration: u16) -> Event {
        Event {
            code,
            end,
            volume: 10,
            duration,
        }
    }

    #[test]
    fn payloads_survive_a_round_trip() {
        let sent = Event {
            code: 11,
            end: true,
            volume: 63,
            duration: 0xabcd,
        };
        let mut payload = [0; EVENT_BYTES];
        sent.write(&mut payload);
        assert_eq!(payload, [11, 0x80 | 63, 0xab, 0xcd]);
        assert_eq!(Event::read(&payload), Some(sent));
        assert_eq!(Event::read(&payload[..3]), None);
    }

    #[test]
    fn keys_are_those_of_table_3() {
        let keys: String = (0..=255).filter_map(key).collect();
        assert_eq!(keys, "0123456789*#ABCD");
    }

    /// BB-20: the first packet lost, three updates, three ends; the same key again; a long one.
    #[test]
    fn one_press_per_timestamp_with_the_duration_of_its_end() {
        let mut tracker = EventTracker::default();
        let packets = [
            (1_000, event(5, false, 320)),
            (1_000, event(5, false, 480)),
            (1_000, event(5, false, 640)),
            (1_000, event(5, true, 800)),
            (1_000, event(5, true, 800)),
            (1_000, event(5, true, 800)),
            (2_280, event(5, false, 160)),
            (2_280, event(5, true, 480)),
            (2_280, event(5, true, 480)),
            (9_000, event(9, false, 8_000)),
            (9_000, event(9, false, 16_000)),
            (9_000, event(9, true, 48_000)),
        ];
        let presses: Vec<_> = packets
            .iter()
            .flat_map(|&(at, event)| tracker.handle(at, event))
            .flatten()
            .collect();
        let press = |code, duration| Press { code, duration };
        assert_eq!(presses, [press(5, 800), press(5, 480), press(9, 48_000)]);
        assert!(!tracker.is_on());
    }

    #[test]
    fn a_lost_end_is_made_up_by_the_next_event_or_by_a_flush() {
        let mut tracker = EventTracker::default();
        assert_eq!(
            tracker.handle(u32::MAX - 10, event(1, false, 400)),
            [None, None]
        );
        assert!(tracker.is_on());
        let [before, this] = tracker.handle(1_000, event(2, true, 300));
        assert_eq!(
            before,
            Some(Press {
                code: 1,
                duration: 400
            })
        );
        assert_eq!(
            this,
            Some(Press {
                code: 2,
                duration: 300
            })
        );
        assert_eq!(tracker.handle(2_000, event(3, false, 160)), [None, None]);
        assert_eq!(
            tracker.flush(),
            Some(Press {
                code: 3,
                duration: 160
            })
        );
        assert_eq!(tracker.flush(), None);
        assert_eq!(
            tracker.handle(2_000, event(3, true, 320)),
            [None, None],
            "already reported"
        );
    }

    #[test]
    fn stragglers_of_an_older_event_are_ignored() {
        let mut tracker = EventTracker::default();
        assert!(tracker.handle(1_000, event(1, true, 400))[1].is_some());
        assert_eq!(tracker.handle(3_000, event(2, false, 160)), [None, None]);
        assert_eq!(tracker.handle(1_000, event(1, true, 400)), [None, None]);
        assert_eq!(
            tracker.handle(3_000, event(2, true, 320))[1],
            Some(Press {
                code: 2,
                duration: 320
            })
        );
    }

    #[test]
    fn segments_of_a_very_long_event_are_one_press() {
        let mut tracker = EventTracker::default();
        let second = 1_000 + u32::from(u16::MAX);
        assert_eq!(
            tracker.handle(1_000, event(7, false, u16::MAX)),
            [None, None]
        );
        assert_eq!(tracker.handle(second, event(7, false, 1_600)), [None, None]);
        let [before, this] = tracker.handle(second, event(7, true, 4_465));
        assert_eq!(
            (before, this),
            (
                None,
                Some(Press {
                    code: 7,
                    duration: 70_000
                })
            )
        );
    }
}
