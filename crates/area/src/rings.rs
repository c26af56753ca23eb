//! Rings around views: how far they reach, and in which updates their tiles get texts.
//! In: distances and paces, or texts of a configuration → out: rings of a grid.
//! Uses nothing of ours. Never: tiles; `grid.rs` has them.
//! Changed here: how many rings there are, and what is no ring.

/// The rings of a grid, from the nearest to the farthest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rings([Option<Ring>; RINGS_MAX]);

/// Tiles at most so far from a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ring {
    /// In the unit of the coordinates; at least 1, and more than that of the ring before.
    pub(crate) distance: u32,
    /// Its tiles get texts in every such update; at least 2, and more than that of the ring before.
    pub(crate) every: u32,
}

/// Rings of one grid.
pub const RINGS_MAX: usize = 3;

impl Rings {
    /// A view without rings.
    pub(crate) const NONE: Self = Self([None; RINGS_MAX]);

    /// `None` for more than [`RINGS_MAX`], or if a ring does not reach farther or is not slower than the one before.
    pub(crate) fn new(rings: &[Ring]) -> Option<Self> {
        let before = [Ring { distance: 0, every: 1 }];
        let are_in_order = before
            .iter()
            .chain(rings)
            .zip(rings)
            .all(|(inner, outer)| inner.distance < outer.distance && inner.every < outer.every);
        if rings.len() > RINGS_MAX || !are_in_order {
            return None;
        }
        Some(Self(std::array::from_fn(|at| rings.get(at).copied())))
    }

    /// Reads texts such as `200/5`: distance and pace.
    pub(crate) fn parse(texts: &[impl AsRef<str>]) -> Option<Self> {
        let ring = |text: &str| {
            let (distance, every) = text.split_once('/')?;
            Some(Ring { distance: distance.parse().ok()?, every: every.parse().ok()? })
        };
        let rings: Option<Vec<_>> = texts.iter().map(|text| ring(text.as_ref())).collect();
        Self::new(&rings?)
    }

    /// The distances of the view itself and of each ring, by number.
    pub(crate) fn distances(&self) -> impl Iterator<Item = f64> {
        let count = self.0.iter().flatten().count();
        (0..=count).map(|number| match number {
            0 => 0.0,
            number => self.0[number - 1].map_or(0.0, |ring| f64::from(ring.distance)),
        })
    }

    /// The paces of the rings; the first one has number 1.
    pub(crate) fn paces(&self) -> impl Iterator<Item = u32> {
        self.0.iter().flatten().map(|ring| ring.every)
    }
}
