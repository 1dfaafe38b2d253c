//! From a port to the session and leg that own it: an array by the port's place.
//!
//! A [`PortId`] is a place, dense, in its low [`PLACE_BITS`], and above it how often that place has
//! been lent: a packet or command for an earlier loan finds nobody.

use media::command::{PortId, Side};

/// Bits of a port's number that are its place: 32 addresses with all their ports, twice over.
const PLACE_BITS: u32 = 20;

/// Who owns a port: key of the session in the shard's slab, and its leg.
pub(crate) type Owner = (u32, Side);

/// Owners by port.
#[derive(Debug, Default)]
pub(crate) struct Ports(Vec<Option<(PortId, Owner)>>);

impl Ports {
    /// Who owns the port.
    pub(crate) fn owner(&self, port: PortId) -> Option<Owner> {
        let (lent, owner) = (*self.0.get(place(port))?)?;
        (lent == port).then_some(owner)
    }

    /// Enters an owner. False when the port's place has one.
    pub(crate) fn take(&mut self, port: PortId, owner: Owner) -> bool {
        let place = place(port);
        if self.0.len() <= place {
            self.0.resize(place + 1, None);
        }
        let free = self.0[place].is_none();
        if free {
            self.0[place] = Some((port, owner));
        }
        free
    }

    /// Strikes the owner out.
    pub(crate) fn free(&mut self, port: PortId) {
        if self.owner(port).is_some() {
            self.0[place(port)] = None;
        }
    }
}

fn place(port: PortId) -> usize {
    (port.0 & ((1 << PLACE_BITS) - 1)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_has_one_owner_at_a_time() {
        let mut ports = Ports::default();
        assert!(ports.take(PortId(7), (1, Side::A)));
        assert!(!ports.take(PortId(7), (2, Side::B)));
        assert_eq!(ports.owner(PortId(7)), Some((1, Side::A)));
        assert_eq!(ports.owner(PortId(6)), None);
        ports.free(PortId(7));
        assert!(ports.take(PortId(7), (2, Side::B)));
    }

    #[test]
    fn an_earlier_loan_of_the_same_place_finds_nobody() {
        let (earlier, later) = (PortId(7), PortId(7 | 1 << PLACE_BITS));
        let mut ports = Ports::default();
        assert!(ports.take(earlier, (1, Side::A)));
        assert!(!ports.take(later, (2, Side::A)));
        ports.free(later);
        assert_eq!(ports.owner(earlier), Some((1, Side::A)));
        ports.free(earlier);
        assert!(ports.take(later, (2, Side::A)));
        assert_eq!(
            (ports.owner(earlier), ports.owner(later)),
            (None, Some((2, Side::A)))
        );
    }
}
