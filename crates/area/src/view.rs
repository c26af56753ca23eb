//! View of a viewer on a world: a rectangle or a circle, and a margin in which the viewer keeps what it saw.
//! In: numbers, or JSON of a client → out: the view, or why it is impossible.
//! Uses serde. Never: tiles; `grid.rs` has them.
//! Changed here: shapes of views and their JSON.

use serde::Deserialize;

use crate::AreaError;

/// A part of a world.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct View {
    /// The centre.
    pub x: f64,
    pub y: f64,
    pub layer: i32,
    pub shape: Shape,
    /// A tile that was entered is left when it is farther than this from the view, so that a viewer that walks along a border
    /// does not enter and leave it again and again. At least 0.
    pub margin: f64,
}

/// The form of a view around its centre.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    Rectangle { width: f64, height: f64 },
    Circle { radius: f64 },
}

#[derive(Deserialize)]
struct Data {
    view: Option<Json>,
}

#[derive(Deserialize)]
struct Json {
    x: f64,
    y: f64,
    #[serde(default)]
    layer: i32,
    width: Option<f64>,
    height: Option<f64>,
    radius: Option<f64>,
    #[serde(default)]
    margin: f64,
}

impl View {
    /// Reads the member `view` of a JSON object: `x`, `y`, and either `width` and `height` or `radius`; `layer` and `margin` are
    /// 0 by default. `None` without that member, or when the data is no JSON object.
    ///
    /// # Errors
    /// [`AreaError::View`] for a `view` without these members or with other types.
    pub fn in_data(data: &[u8]) -> Result<Option<Self>, AreaError> {
        if !data.trim_ascii_start().starts_with(b"{") {
            return Ok(None);
        }
        let data: Data = serde_json::from_slice(data).map_err(|_| AreaError::View)?;
        data.view.map(Self::try_from).transpose()
    }

    /// Reads such a view by itself.
    ///
    /// # Errors
    /// [`AreaError::View`].
    pub fn from_json(view: &[u8]) -> Result<Self, AreaError> {
        serde_json::from_slice::<Json>(view).map_err(|_| AreaError::View)?.try_into()
    }

    /// The text that [`from_json`](Self::from_json) reads.
    pub fn to_json(&self) -> String {
        let Self { x, y, layer, shape, margin } = self;
        let shape = match shape {
            Shape::Rectangle { width, height } => format!(r#""width":{width},"height":{height}"#),
            Shape::Circle { radius } => format!(r#""radius":{radius}"#),
        };
        format!(r#"{{"x":{x},"y":{y},"layer":{layer},{shape},"margin":{margin}}}"#)
    }

    /// Whether all numbers are finite and no size is negative.
    pub(crate) fn is_possible(&self) -> bool {
        let sizes = match self.shape {
            Shape::Rectangle { width, height } => [width, height],
            Shape::Circle { radius } => [radius, radius],
        };
        self.x.is_finite()
            && self.y.is_finite()
            && [self.margin].iter().chain(&sizes).all(|size| size.is_finite() && *size >= 0.0)
    }

    /// Half of the width and half of the height.
    pub(crate) fn half_sizes(&self) -> (f64, f64) {
        match self.shape {
            Shape::Rectangle { width, height } => (width / 2.0, height / 2.0),
            Shape::Circle { radius } => (radius, radius),
        }
    }
}

impl TryFrom<Json> for View {
    type Error = AreaError;

    fn try_from(json: Json) -> Result<Self, AreaError> {
        let shape = match (json.width, json.height, json.radius) {
            (Some(width), Some(height), None) => Shape::Rectangle { width, height },
            (None, None, Some(radius)) => Shape::Circle { radius },
            _ => return Err(AreaError::View),
        };
        Ok(Self { x: json.x, y: json.y, layer: json.layer, shape, margin: json.margin })
    }
}
