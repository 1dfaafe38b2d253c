//! Places with generations, and the queue of deadlines.
//!
//! An id is a slab place and the generation that it had when the id was made, so that an id kept
//! too long finds nothing instead of somebody else.

use std::collections::BTreeSet;
use std::time::Instant;

use slab::Slab;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Copy, Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
        pub struct $name {
            key: u32,
            generation: u32,
        }

        impl Id for $name {
            fn new(key: u32, generation: u32) -> Self {
                Self { key, generation }
            }

            fn parts(self) -> (u32, u32) {
                (self.key, self.generation)
            }
        }
    )+};
}

/// An id of some arena.
pub(crate) trait Id: Copy {
    fn new(key: u32, generation: u32) -> Self;
    fn parts(self) -> (u32, u32);
}

ids! {
    /// An INVITE usage (RFC 5057): one leg of a call, from its INVITE to its end.
    UsageId,
    /// A server transaction that waits for the user's response.
    ServerTxnId,
    /// A client transaction.
    ClientTxnId,
}

/// Things in places.
#[derive(Debug)]
pub(crate) struct Arena<I, T> {
    slab: Slab<(u32, T)>,
    generation: u32,
    id: std::marker::PhantomData<I>,
}

impl<I: Id, T> Arena<I, T> {
    pub(crate) fn new() -> Self {
        Self {
            slab: Slab::new(),
            generation: 0,
            id: std::marker::PhantomData,
        }
    }

    pub(crate) fn insert(&mut self, value: T) -> I {
        self.generation = self.generation.wrapping_add(1);
        let key = self.slab.insert((self.generation, value));
        I::new(
            u32::try_from(key).expect("the endpoint's limits are far below 2^32"),
            self.generation,
        )
    }

    pub(crate) fn get(&self, id: I) -> Option<&T> {
        let (key, generation) = id.parts();
        self.slab
            .get(key as usize)
            .filter(|(own, _)| *own == generation)
            .map(|(_, value)| value)
    }

    pub(crate) fn get_mut(&mut self, id: I) -> Option<&mut T> {
        let (key, generation) = id.parts();
        self.slab
            .get_mut(key as usize)
            .filter(|(own, _)| *own == generation)
            .map(|(_, value)| value)
    }

    pub(crate) fn remove(&mut self, id: I) -> Option<T> {
        self.get(id)?;
        Some(self.slab.remove(id.parts().0 as usize).1)
    }

    pub(crate) fn len(&self) -> usize {
        self.slab.len()
    }

    /// Gives back the room of the busiest time, as far as places at the end are free.
    pub(crate) fn shrink(&mut self) {
        self.slab.shrink_to_fit();
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (I, &T)> {
        self.slab.iter().map(|(key, (generation, value))| {
            let key = u32::try_from(key).expect("inserted as u32");
            (I::new(key, *generation), value)
        })
    }
}

/// Deadlines, at most one for each owner; cancelling one removes it.
#[derive(Debug)]
pub(crate) struct Deadlines<K> {
    queue: BTreeSet<(Instant, K)>,
}

impl<K: Ord + Copy> Deadlines<K> {
    pub(crate) fn new() -> Self {
        Self {
            queue: BTreeSet::new(),
        }
    }

    /// Moves an owner's deadline; `armed` is where the owner keeps it.
    pub(crate) fn set(&mut self, owner: K, armed: &mut Option<Instant>, next: Option<Instant>) {
        if *armed == next {
            return;
        }
        if let Some(at) = armed.take() {
            self.queue.remove(&(at, owner));
        }
        if let Some(at) = next {
            self.queue.insert((at, owner));
        }
        *armed = next;
    }

    pub(crate) fn first(&self) -> Option<Instant> {
        self.queue.first().map(|(at, _)| *at)
    }

    /// An owner whose deadline is due; it is no longer armed.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<K> {
        let (at, owner) = *self.queue.first()?;
        (at <= now).then(|| {
            self.queue.pop_first();
            owner
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }
}
