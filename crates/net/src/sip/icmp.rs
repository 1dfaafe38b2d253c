//! Which of our datagrams came back as undeliverable (ICMP), by the socket's error queue, ip(7).
//!
//! RFC 3261 section 18.4: host, network, port or protocol unreachable is told to whoever sent the
//! request, so that a call to a dead callee fails at once and not after 32 s; time exceeded and
//! too-big are not. The kernel takes an ICMP error only if it quotes a datagram this socket sent.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;

use nix::libc::{SO_EE_ORIGIN_ICMP, SO_EE_ORIGIN_ICMP6, sock_extended_err};
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt,
};
use socket2::Socket;

/// RFC 792: destination unreachable; its code 4 is "fragmentation needed".
const UNREACHABLE: u8 = 3;
const TOO_BIG: u8 = 4;
/// RFC 4443 section 3.1: destination unreachable.
const UNREACHABLE_V6: u8 = 1;

/// Asks the kernel to keep the errors.
pub(super) fn enable(socket: &Socket, address: SocketAddr) -> io::Result<()> {
    match address {
        SocketAddr::V4(_) => setsockopt(socket, sockopt::Ipv4RecvErr, &true)?,
        SocketAddr::V6(_) => setsockopt(socket, sockopt::Ipv6RecvErr, &true)?,
    }
    Ok(())
}

/// Takes the oldest error: the destination that can't be reached, or `None` for an error that
/// says nothing of the kind. `WouldBlock` when there is none.
pub(super) fn next_unreachable(
    socket: &impl AsRawFd,
) -> io::Result<Option<(SocketAddr, io::Error)>> {
    let mut space = nix::cmsg_space!(sock_extended_err, nix::libc::sockaddr_in6);
    let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
    let message = recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut [], Some(&mut space), flags)?;
    let Some(destination) = message.address.as_ref().and_then(socket_address) else {
        return Ok(None);
    };
    let unreachable = message.cmsgs()?.find_map(|control| match control {
        ControlMessageOwned::Ipv4RecvErr(error, _) if is_unreachable(&error) => Some(error),
        ControlMessageOwned::Ipv6RecvErr(error, _) if is_unreachable_v6(&error) => Some(error),
        _ => None,
    });
    Ok(unreachable.map(|error| {
        let number = i32::try_from(error.ee_errno).unwrap_or_default();
        (destination, io::Error::from_raw_os_error(number))
    }))
}

fn is_unreachable(error: &sock_extended_err) -> bool {
    error.ee_origin == SO_EE_ORIGIN_ICMP && error.ee_type == UNREACHABLE && error.ee_code != TOO_BIG
}

fn is_unreachable_v6(error: &sock_extended_err) -> bool {
    error.ee_origin == SO_EE_ORIGIN_ICMP6 && error.ee_type == UNREACHABLE_V6
}

fn socket_address(address: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = address
        .as_sockaddr_in()
        .map(|v4| SocketAddr::V4((*v4).into()));
    v4.or_else(|| {
        address
            .as_sockaddr_in6()
            .map(|v6| SocketAddr::V6((*v6).into()))
    })
}
