//! Memory that the allocator keeps after a busy time.
//!
//! An ended call is remembered for 64 x T1 (RFC 3261 section 17), so a server at 200 calls/s holds
//! 6,400 of them; freed, their pages stay with glibc's allocator, which gives back only what lies
//! at the end of its heap. [`trim`] asks it to give back every page that is wholly free.

/// Gives free pages back to the system, where the C library can. Cost: milliseconds for tens of
/// megabytes; meant for when nothing goes on.
pub(crate) fn trim() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[expect(unsafe_code, reason = "a call into the C library")]
    // SAFETY: malloc_trim(3) takes no pointer, touches only the allocator's own free pages under
    // its own locks, and may be called at any time from any thread.
    unsafe {
        libc::malloc_trim(0);
    }
}
