//! The few lines that every system call here needs.

use std::ffi::c_int;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

use packtrain_proto::wire::ethernet::MacAddr;

/// The result of a system call that says −1 and sets `errno` when it fails.
pub(super) fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// As [`check`], for calls that return a count of bytes.
pub(super) fn check_len(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// A value of plain bytes as the kernel's socket options take it.
pub(super) fn set_option<T: Copy>(
    fd: c_int,
    level: c_int,
    option: c_int,
    value: &T,
) -> io::Result<()> {
    // SAFETY: the pointer and the length describe `value`, which outlives the call; the kernel
    // only reads it.
    let result = unsafe {
        libc::setsockopt(
            fd,
            level,
            option,
            std::ptr::from_ref(value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    check(result).map(drop)
}

/// What the kernel says of an option that is a number.
pub(super) fn get_option(fd: c_int, level: c_int, option: c_int) -> io::Result<c_int> {
    let mut value: c_int = 0;
    let mut len = size_of::<c_int>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes, which `value` has.
    let result =
        unsafe { libc::getsockopt(fd, level, option, (&raw mut value).cast(), &raw mut len) };
    check(result)?;
    Ok(value)
}

/// By which interfaces are asked.
pub(super) fn interface_socket() -> io::Result<OwnedFd> {
    // SAFETY: no pointers; the descriptor is checked, and owned here alone.
    unsafe {
        let fd = check(libc::socket(
            libc::AF_INET,
            libc::SOCK_DGRAM | libc::SOCK_CLOEXEC,
            0,
        ))?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// An `ifreq` for the interface of this name; an error where no interface can have it.
pub(super) fn interface_request(name: &str) -> io::Result<libc::ifreq> {
    let bytes = name.as_bytes();
    if bytes.is_empty() || bytes.len() >= libc::IFNAMSIZ || bytes.contains(&0) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!(
                "an interface name has 1 to {} bytes: {name:?}",
                libc::IFNAMSIZ - 1
            ),
        ));
    }
    // SAFETY: `ifreq` is plain integers, for which all zero is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(bytes) {
        *to = *from as libc::c_char;
    }
    Ok(request)
}

/// A MAC address as the address ioctls take it.
pub(super) fn hardware_address(mac: MacAddr) -> libc::sockaddr {
    let mut address = libc::sockaddr {
        sa_family: libc::ARPHRD_ETHER,
        sa_data: [0; 14],
    };
    for (to, from) in address.sa_data.iter_mut().zip(mac.0) {
        *to = from as libc::c_char;
    }
    address
}
