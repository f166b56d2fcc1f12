//! Which category wins where, over two axes.

use super::page::Caption;
use super::palette::Look;

/// A category of a map.
#[derive(Clone, Debug, PartialEq)]
pub struct Category {
    pub name: String,
    pub look: Look,
}

/// A cell: the index of its category, and a few characters to stand in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    pub category: usize,
    pub text: String,
}

/// One map of a [`CategoryMap`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MapPanel {
    pub title: String,
    /// `cells[row][column]`, rows as in `y`; missing ones stay blank.
    pub cells: Vec<Vec<Option<Cell>>>,
}

/// A figure of maps.
#[derive(Clone, Debug, PartialEq)]
pub struct CategoryMap {
    pub caption: Caption,
    pub x_label: String,
    pub y_label: String,
    /// Names of the columns, left to right.
    pub x: Vec<String>,
    /// Names of the rows, bottom to top.
    pub y: Vec<String>,
    pub categories: Vec<Category>,
    pub panels: Vec<MapPanel>,
    /// Panels beside one another; 0 chooses.
    pub columns: usize,
}
