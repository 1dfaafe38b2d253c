//! Which recording is a caller's latest.
//!
//! Bounded: at most [`MAX_USERS`] users are remembered, the one that recorded longest ago goes first.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

/// Most users remembered.
const MAX_USERS: usize = 10_000;

/// Latest finished recording by user.
#[derive(Debug, Default)]
pub(crate) struct Latest {
    by_user: HashMap<String, (u64, PathBuf)>,
    by_age: BTreeMap<u64, String>,
    next: u64,
}

impl Latest {
    pub(crate) fn insert(&mut self, user: &str, path: &Path) {
        let age = self.next;
        self.next += 1;
        if let Some((before, _)) = self.by_user.insert(user.to_owned(), (age, path.to_owned())) {
            self.by_age.remove(&before);
        }
        self.by_age.insert(age, user.to_owned());
        while self.by_age.len() > MAX_USERS {
            if let Some((_, user)) = self.by_age.pop_first() {
                self.by_user.remove(&user);
            }
        }
    }

    pub(crate) fn get(&self, user: &str) -> Option<&Path> {
        self.by_user.get(user).map(|(_, path)| path.as_path())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newest_wins_and_oldest_user_is_forgotten() {
        let mut latest = Latest::default();
        latest.insert("a", Path::new("1"));
        latest.insert("b", Path::new("2"));
        latest.insert("a", Path::new("3"));
        assert_eq!(latest.get("a"), Some(Path::new("3")));
        for user in 0..MAX_USERS - 1 {
            latest.insert(&user.to_string(), Path::new("x"));
        }
        assert_eq!(latest.get("b"), None);
        assert_eq!(latest.get("a"), Some(Path::new("3")));
        assert_eq!(
            (latest.by_user.len(), latest.by_age.len()),
            (MAX_USERS, MAX_USERS)
        );
    }
}
