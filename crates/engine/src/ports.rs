//! From a port to the session and leg that own it: an array, since the shell numbers ports densely.

use media::command::{PortId, Side};

/// Highest port number taken: 32 addresses with all their ports, twice over.
const MAX_PORT: u32 = 1 << 20;

/// Who owns a port: key of the session in the shard's slab, and its leg.
pub(crate) type Owner = (u32, Side);

/// Owners by port.
#[derive(Debug, Default)]
pub(crate) struct Ports(Vec<Option<Owner>>);

impl Ports {
    /// Who owns the port.
    pub(crate) fn owner(&self, port: PortId) -> Option<Owner> {
        self.0.get(port.0 as usize).copied().flatten()
    }

    /// Enters an owner. False when the port has one, or its number is beyond all measure.
    pub(crate) fn take(&mut self, port: PortId, owner: Owner) -> bool {
        if port.0 >= MAX_PORT || self.owner(port).is_some() {
            return false;
        }
        let index = port.0 as usize;
        if self.0.len() <= index {
            self.0.resize(index + 1, None);
        }
        self.0[index] = Some(owner);
        true
    }

    /// Strikes the owner out.
    pub(crate) fn free(&mut self, port: PortId) {
        if let Some(slot) = self.0.get_mut(port.0 as usize) {
            *slot = None;
        }
    }
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
        assert!(!ports.take(PortId(u32::MAX), (1, Side::A)));
        ports.free(PortId(u32::MAX));
    }
}
