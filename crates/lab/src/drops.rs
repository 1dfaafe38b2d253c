//! Datagrams that the kernel dropped at our own sockets, from /proc/net/udp.
//!
//! A drop at the lab's socket is the lab's fault and voids a run; a drop at the server's is the
//! server's loss. So sockets are told apart by their local address: the lab's media addresses
//! are its own. The table of sockets is long, so it is read only when the kernel's count of all
//! such drops (RcvbufErrors in /proc/net/snmp) has moved.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};

/// Drops seen so far, by socket.
#[derive(Clone, Default, Debug)]
pub struct Drops {
    ours: Vec<IpAddr>,
    by_inode: HashMap<u64, u64>,
    /// The kernel's count when the sockets were looked at last.
    everybody: Option<u64>,
}

impl Drops {
    /// Watches sockets bound to these IPv4 addresses.
    #[must_use]
    pub fn of(addresses: &[IpAddr]) -> Self {
        Self {
            ours: addresses.to_vec(),
            by_inode: HashMap::new(),
            everybody: None,
        }
    }

    /// Looks at the sockets open now. Call it more often than calls end, or before they do.
    ///
    /// # Errors
    /// When /proc/net/snmp or /proc/net/udp cannot be read.
    pub fn look(&mut self) -> io::Result<()> {
        let count = receive_buffer_errors(&fs::read_to_string("/proc/net/snmp")?);
        if count.is_none() || count != self.everybody {
            self.take(&fs::read_to_string("/proc/net/udp")?);
            self.everybody = count;
        }
        Ok(())
    }

    /// Datagrams dropped at our sockets, as far as seen.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.by_inode.values().sum()
    }

    fn take(&mut self, table: &str) {
        for row in table.lines().skip(1).filter_map(parse) {
            if row.drops > 0 && self.ours.contains(&row.local.ip()) {
                let seen = self.by_inode.entry(row.inode).or_insert(0);
                *seen = row.drops.max(*seen);
            }
        }
    }
}

/// RcvbufErrors of the two lines that begin with `Udp:`, names and values.
fn receive_buffer_errors(snmp: &str) -> Option<u64> {
    let mut lines = snmp.lines().filter_map(|line| line.strip_prefix("Udp:"));
    let (names, values) = (lines.next()?, lines.next()?);
    let column = names
        .split_ascii_whitespace()
        .position(|name| name == "RcvbufErrors")?;
    values.split_ascii_whitespace().nth(column)?.parse().ok()
}

struct Row {
    local: SocketAddr,
    inode: u64,
    drops: u64,
}

/// A row of /proc/net/udp: `sl local_address ... inode ref pointer drops`.
fn parse(line: &str) -> Option<Row> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let (address, port) = fields.get(1)?.split_once(':')?;
    // The address is printed as a native-endian word of network-order bytes.
    let address = u32::from_str_radix(address, 16).ok()?.to_ne_bytes();
    let port = u16::from_str_radix(port, 16).ok()?;
    Some(Row {
        local: SocketAddrV4::new(Ipv4Addr::from(address), port).into(),
        inode: fields.get(9)?.parse().ok()?,
        drops: fields.last()?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    #[test]
    fn a_row_is_read() {
        let row = parse(
            "  123: 0100007F:13C4 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 4711 2 0000000000000000 17",
        )
        .expect("a row");
        assert_eq!(row.local.port(), 5060);
        assert_eq!((row.inode, row.drops), (4711, 17));
        assert!(parse("  sl  local_address rem_address").is_none());
    }

    #[test]
    fn the_kernel_s_count_is_found_by_its_name() {
        let snmp = "Tcp: a b\nTcp: 1 2\nUdp: InDatagrams RcvbufErrors SndbufErrors\nUdp: 5 77 3\n";
        assert_eq!(receive_buffer_errors(snmp), Some(77));
        assert_eq!(receive_buffer_errors("Tcp: a\nTcp: 1\n"), None);
    }

    #[test]
    fn a_full_socket_of_ours_is_seen_and_another_s_is_not() {
        let ours = UdpSocket::bind("127.84.19.1:0").expect("loopback binds");
        let theirs = UdpSocket::bind("127.84.19.2:0").expect("loopback binds");
        for socket in [&ours, &theirs] {
            let to = socket.local_addr().expect("bound");
            // Default buffers hold well under 1,000 datagrams of 1,400 bytes.
            for _ in 0..4000 {
                socket.send_to(&[0; 1400], to).expect("loopback sends");
            }
        }
        let address = |socket: &UdpSocket| [socket.local_addr().expect("bound").ip()];
        let mut drops = Drops::of(&address(&ours));
        drops.look().expect("proc is there");
        let seen = drops.total();
        assert!(seen > 0 && seen < 4000, "{seen}");
        drops.look().expect("proc is there");
        assert_eq!(drops.total(), seen, "looking twice counts once");
        let mut nobody = Drops::of(&["127.84.19.3".parse().expect("an address")]);
        nobody.look().expect("proc is there");
        assert_eq!(nobody.total(), 0);
    }
}
