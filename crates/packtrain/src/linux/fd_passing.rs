//! Messages with descriptors between processes of one host: `SOCK_SEQPACKET` and `SCM_RIGHTS` (unix(7)).
//!
//! Sockets that wait for others have abstract names, which belong to a network namespace and are never left
//! behind. Such a name has no permissions: who calls is known by its credentials.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::sockopt::socket_peercred;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
    accept_with, bind, connect, listen, recvmsg, sendmsg, socket_with, socketpair,
};

/// Of one message.
pub const DESCRIPTORS_MAX: usize = 32;
const MESSAGE_LEN_MAX: usize = 160 * 1024;
const WAITING_MAX: i32 = 4;

/// What came in one message.
#[derive(Debug)]
pub struct Message {
    pub bytes: Vec<u8>,
    pub descriptors: Vec<OwnedFd>,
}

/// Two ends of a connection.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let family = AddressFamily::UNIX;
    Ok(socketpair(
        family,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )?)
}

/// Waits for others by this abstract name. `AddrInUse`: somebody does already.
pub fn listen_at(name: &str) -> io::Result<OwnedFd> {
    let socket = open(SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)?;
    bind(
        &socket,
        &SocketAddrUnix::new_abstract_name(name.as_bytes())?,
    )?;
    listen(&socket, WAITING_MAX)?;
    Ok(socket)
}

/// Somebody who has called, if it is root or runs as we do; all others are sent away.
pub fn accept(listener: impl AsFd) -> io::Result<Option<OwnedFd>> {
    let caller = accept_with(listener, SocketFlags::CLOEXEC)?;
    Ok(is_trusted(&caller)?.then_some(caller))
}

/// Calls who waits by this name. `ConnectionRefused`: nobody does; `PermissionDenied`: somebody else.
pub fn call(name: &str) -> io::Result<OwnedFd> {
    let socket = open(SocketFlags::CLOEXEC)?;
    connect(
        &socket,
        &SocketAddrUnix::new_abstract_name(name.as_bytes())?,
    )?;
    match is_trusted(&socket)? {
        true => Ok(socket),
        false => Err(io::ErrorKind::PermissionDenied.into()),
    }
}

fn open(flags: SocketFlags) -> io::Result<OwnedFd> {
    let family = AddressFamily::UNIX;
    Ok(socket_with(family, SocketType::SEQPACKET, flags, None)?)
}

fn is_trusted(socket: &OwnedFd) -> io::Result<bool> {
    let uid = socket_peercred(socket)?.uid;
    Ok(uid.is_root() || uid == rustix::process::geteuid())
}

/// Never waits: `WouldBlock` says that the other end has not read what came before.
pub fn send(socket: impl AsFd, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    assert!(bytes.len() <= MESSAGE_LEN_MAX && descriptors.len() <= DESCRIPTORS_MAX);
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        let fits = control.push(SendAncillaryMessage::ScmRights(descriptors));
        assert!(fits, "there is space for the most");
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    sendmsg(socket, &[IoSlice::new(bytes)], &mut control, flags)?;
    Ok(())
}

/// Waits for a message. `None`: the other end is gone.
pub fn receive(socket: impl AsFd) -> io::Result<Option<Message>> {
    let mut bytes = vec![0; MESSAGE_LEN_MAX];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(&mut bytes)];
    let flags = RecvFlags::CMSG_CLOEXEC;
    let received = loop {
        match recvmsg(&socket, &mut parts, &mut control, flags) {
            Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::CONNRESET) => return Ok(None),
            result => break result?,
        }
    };
    if received.bytes == 0 {
        return Ok(None);
    }
    let is_cut = received
        .flags
        .intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC);
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(some) = message {
            descriptors.extend(some);
        }
    }
    if is_cut {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "a message that is longer than any of packtrain's",
        ));
    }
    bytes.truncate(received.bytes);
    Ok(Some(Message { bytes, descriptors }))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read, Write};

    use super::*;

    #[test]
    fn a_descriptor_that_was_passed_on_is_open_when_the_first_is_closed() {
        let (here, there) = pair().unwrap();
        let (reader, writer) = io::pipe().unwrap();
        send(&here, b"take it", &[writer.as_fd()]).unwrap();
        drop((writer, here));
        let message = receive(&there).unwrap().expect("a message");
        assert_eq!(message.bytes, b"take it");
        let [passed] = <[OwnedFd; 1]>::try_from(message.descriptors).unwrap();
        File::from(passed).write_all(b"whole").unwrap();
        let mut text = String::new();
        let mut reader = reader;
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "whole");
        assert!(receive(&there).unwrap().is_none(), "the other end is gone");
    }

    #[test]
    fn a_name_is_one_process_s_and_free_when_it_ends() {
        let name = format!("packtrain-test-fd-{}", std::process::id());
        let refused = call(&name).unwrap_err().kind();
        assert_eq!(refused, io::ErrorKind::ConnectionRefused);
        let listener = listen_at(&name).unwrap();
        let taken = listen_at(&name).unwrap_err().kind();
        assert_eq!(taken, io::ErrorKind::AddrInUse);
        let caller = call(&name).unwrap();
        let called = accept(&listener).unwrap().expect("it runs as we do");
        send(&caller, b"hello", &[]).unwrap();
        assert_eq!(receive(&called).unwrap().unwrap().bytes, b"hello");
        drop(listener);
        // A program that another thread starts just now holds all that is open until it is what it becomes.
        let until = std::time::Duration::from_secs(10);
        let is_free = || call(&name).is_err();
        crate::lab::wait_for("the name to be free", until, is_free).unwrap();
    }
}
