//! The connections of each user inside one shard, as lists linked through one table.
//! In: connection indices with their user → out: all indices of a user, newest first; adding and removing in O(1).
//! Uses: a map of heads and 8 bytes per connection. Never: sessions, counts over shards (`registry.rs`).
//! Changed here: how connections of a user are found.

use std::sync::Arc;

use hashbrown::HashMap;

/// Doubly linked lists by connection index.
#[derive(Debug, Default)]
pub(crate) struct Users {
    heads: HashMap<Arc<str>, u32>,
    links: Vec<Link>,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    next: u32,
    previous: u32,
}

impl Users {
    /// Adds a connection that is in no list.
    pub(crate) fn add(&mut self, user: &Arc<str>, index: u32) {
        if self.links.len() <= index as usize {
            self.links.resize(index as usize + 1, Link { next: NONE, previous: NONE });
        }
        let next = self.heads.insert(Arc::clone(user), index).unwrap_or(NONE);
        self.links[index as usize] = Link { next, previous: NONE };
        if next != NONE {
            self.links[next as usize].previous = index;
        }
    }

    /// Removes a connection that was added for this user.
    pub(crate) fn remove(&mut self, user: &str, index: u32) {
        let Link { next, previous } = self.links[index as usize];
        if next != NONE {
            self.links[next as usize].previous = previous;
        }
        if previous != NONE {
            self.links[previous as usize].next = next;
        } else if next != NONE {
            *self.heads.get_mut(user).expect("a user with connections has a head") = next;
        } else {
            self.heads.remove(user);
        }
    }

    /// All users with the numbers of their connections.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (&Arc<str>, usize)> {
        self.heads.keys().map(|user| (user, self.of(user).count()))
    }

    /// The connections of a user.
    pub(crate) fn of(&self, user: &str) -> impl Iterator<Item = u32> + '_ {
        let first = self.heads.get(user).copied();
        std::iter::successors(first, |index| {
            Some(self.links[*index as usize].next).filter(|next| *next != NONE)
        })
    }
}

const NONE: u32 = u32::MAX;

#[cfg(test)]
mod tests;
