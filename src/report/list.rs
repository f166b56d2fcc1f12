//! A list of records as JSON and CSV; tables of lists are drawn with [`super::grid`].

use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::{csv, json};

/// Records with the same keys.
#[derive(Clone, Debug, Default)]
pub struct List {
    keys: Vec<&'static str>,
    rows: Vec<Vec<Value>>,
}

impl List {
    /// An empty list of records with these keys, in this order.
    pub fn new(keys: &[&'static str]) -> Self {
        Self {
            keys: keys.to_vec(),
            rows: Vec::new(),
        }
    }

    /// A record; one value per key.
    pub fn row(&mut self, values: Vec<Value>) {
        debug_assert_eq!(values.len(), self.keys.len());
        self.rows.push(values);
    }

    /// An array of objects.
    ///
    /// # Errors
    /// As [`serde_json::to_string`].
    pub fn json(&self) -> Result<String, serde_json::Error> {
        json::pretty(self)
    }

    /// A header and a line per record; arrays are joined by spaces, nothing is empty.
    pub fn csv(&self) -> String {
        let rows = self.rows.iter().map(|row| row.iter().map(cell).collect());
        csv::records(&self.keys, rows)
    }
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(cell).collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    }
}

impl Serialize for List {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut seq = serializer.serialize_seq(Some(self.rows.len()))?;
        for row in &self.rows {
            seq.serialize_element(&Record(&self.keys, row))?;
        }
        seq.end()
    }
}

/// One record; its keys keep their order.
struct Record<'a>(&'a [&'static str], &'a [Value]);

impl Serialize for Record<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in self.0.iter().zip(self.1) {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_keep_their_order() {
        let mut list = List::new(&["name", "gpus", "ops"]);
        list.row(vec!["b".into(), 8.into(), json!(["x", "y"])]);
        list.row(vec!["a".into(), Value::Null, json!([])]);
        assert_eq!(list.csv(), "name,gpus,ops\nb,8,x y\na,,\n");
        let text: String = list.json().unwrap().split_whitespace().collect();
        assert_eq!(
            text,
            r#"[{"name":"b","gpus":8,"ops":["x","y"]},{"name":"a","gpus":null,"ops":[]}]"#
        );
    }
}
