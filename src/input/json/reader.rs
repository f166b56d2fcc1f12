//! The grammar: one value after another, each built as a tree or only passed over.

use super::Read;
use crate::input::Diagnostic;
use crate::input::yaml::{Node, Value};

/// Deepest nesting of lists and maps.
const MAX_DEPTH: usize = 32;

/// Refuses a key that a map already has.
pub(super) fn distinct<'n>(mut keys: impl Iterator<Item = &'n Node>, key: &Node) -> Read<()> {
    match keys.any(|other| other.value == key.value) {
        true => Err(key
            .wrong(
                format!("`{}` is given twice", key.text().unwrap_or("")),
                "second mention",
            )
            .help("keep one of the two")),
        false => Ok(()),
    }
}

pub(super) struct Reader<'t> {
    text: &'t str,
    pub at: usize,
    end: usize,
}

impl<'t> Reader<'t> {
    pub(super) fn new(text: &'t str, start: usize, end: usize) -> Self {
        let at = start + usize::from(start == 0 && text.starts_with('\u{feff}')) * 3;
        Self { text, at, end }
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.text.as_bytes()[..self.end].get(self.at).copied()
    }

    pub(super) fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    /// A mistake at the character where the reader stands.
    pub(super) fn wrong(&self, message: impl Into<String>, label: &str) -> Diagnostic {
        let here = self
            .text
            .get(self.at..)
            .and_then(|rest| rest.chars().next());
        let end = self.at + here.map_or(0, char::len_utf8);
        Diagnostic::new(self.at..end, message, label)
    }

    /// A value; with `build` false only its place is kept.
    pub(super) fn value(&mut self, depth: usize, build: bool) -> Read<Node> {
        if depth > MAX_DEPTH {
            return Err(self
                .wrong(
                    format!("nested deeper than {MAX_DEPTH} levels"),
                    "one level too many",
                )
                .help("no key of this format needs that: check the brackets"));
        }
        self.space();
        let start = self.at;
        let value = match self.peek() {
            Some(b'{') => {
                let mut entries: Vec<(Node, Node)> = Vec::new();
                self.map(&mut |reader, key| {
                    let value = reader.value(depth + 1, build)?;
                    if build {
                        distinct(entries.iter().map(|(key, _)| key), &key)?;
                        entries.push((key, value));
                    }
                    Ok(())
                })?;
                Value::Map(entries)
            }
            Some(b'[') => {
                let mut nodes = Vec::new();
                self.sequence(b']', "]", &mut |reader| {
                    let node = reader.value(depth + 1, build)?;
                    if build {
                        nodes.push(node);
                    }
                    Ok(())
                })?;
                Value::List(nodes)
            }
            Some(b'"') => Value::Text(self.string(build)?),
            _ => self.word(build)?,
        };
        let span = start..self.at;
        Ok(Node { span, value })
    }

    /// `{ key: value, … }`; `entry` reads the value.
    pub(super) fn map(&mut self, entry: &mut dyn FnMut(&mut Self, Node) -> Read<()>) -> Read<()> {
        self.sequence(b'}', "}", &mut |reader| {
            let start = reader.at;
            if reader.peek() != Some(b'"') {
                let help = match reader.peek() {
                    Some(b'\'') => "use double quotes: JSON has no others",
                    Some(b'/' | b'#') => "remove the comment: JSON has none",
                    _ => "write the key in double quotes",
                };
                return Err(reader.wrong("a key is missing", "expected `\"`").help(help));
            }
            let value = Value::Text(reader.string(true)?);
            let key = Node {
                span: start..reader.at,
                value,
            };
            reader.space();
            if reader.peek() != Some(b':') {
                return Err(reader
                    .wrong("a key without a value", "expected `:`")
                    .help("write `\"key\": value`"));
            }
            reader.at += 1;
            entry(reader, key)
        })
    }

    /// Comma-separated entries up to the closing bracket; the reader stands on the opening one.
    fn sequence(
        &mut self,
        close: u8,
        name: &str,
        entry: &mut dyn FnMut(&mut Self) -> Read<()>,
    ) -> Read<()> {
        let open = self.at;
        self.at += 1;
        self.space();
        if self.peek() == Some(close) {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.space();
            entry(self)?;
            self.space();
            match self.peek() {
                Some(b',') => {
                    let comma = self.at;
                    self.at += 1;
                    self.space();
                    if self.peek() == Some(close) {
                        self.at = comma;
                        return Err(self
                            .wrong(
                                format!("a comma before `{name}`"),
                                "expected another entry after it",
                            )
                            .help("remove the comma: JSON allows none at the end"));
                    }
                }
                Some(c) if c == close => {
                    self.at += 1;
                    return Ok(());
                }
                None => {
                    return Err(Diagnostic::new(
                        open..open + 1,
                        format!("`{}` is never closed", &self.text[open..=open]),
                        "opened here",
                    )
                    .help(format!("add `{name}`")));
                }
                Some(_) => {
                    return Err(self
                        .wrong(
                            "two entries run together",
                            &format!("expected `,` or `{name}`"),
                        )
                        .help("separate entries by commas"));
                }
            }
        }
    }

    /// A string; the reader stands on its opening quote.
    fn string(&mut self, build: bool) -> Read<String> {
        let open = self.at;
        self.at += 1;
        let mut out = String::new();
        loop {
            let start = self.at;
            while self
                .peek()
                .is_some_and(|c| c != b'"' && c != b'\\' && c >= 0x20)
            {
                self.at += 1;
            }
            if build {
                out.push_str(self.text.get(start..self.at).unwrap_or(""));
            }
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(out);
                }
                Some(b'\\') => out.push(self.escape()?),
                _ => {
                    let span = open..open + 1;
                    return Err(
                        Diagnostic::new(span, "a string is never closed", "opened here")
                            .help("close it with `\"` on the same line"),
                    );
                }
            }
        }
    }

    fn escape(&mut self) -> Read<char> {
        let start = self.at;
        let bad = |end| {
            Diagnostic::new(start..end, "an unknown escape", "here")
                .help("JSON knows \\\" \\\\ \\/ \\b \\f \\n \\r \\t and \\uXXXX")
        };
        self.at += 1;
        let simple = match self.peek() {
            Some(b'u') => None,
            Some(b'b') => Some('\u{8}'),
            Some(b'f') => Some('\u{c}'),
            Some(b'n') => Some('\n'),
            Some(b'r') => Some('\r'),
            Some(b't') => Some('\t'),
            Some(c @ (b'"' | b'\\' | b'/')) => Some(char::from(c)),
            _ => return Err(bad(start + 1)),
        };
        self.at += 1;
        if let Some(c) = simple {
            return Ok(c);
        }
        let mut units = vec![self.hex().ok_or_else(|| bad(start + 2))?];
        if (0xd800..0xdc00).contains(&units[0])
            && self.text.get(self.at..self.at + 2) == Some("\\u")
        {
            self.at += 2;
            units.push(self.hex().ok_or_else(|| bad(start + 2))?);
        }
        let mut chars = char::decode_utf16(units);
        match (chars.next(), chars.next()) {
            (Some(Ok(c)), None) => Ok(c),
            _ => Err(bad(start + 2)),
        }
    }

    /// Four hexadecimal digits.
    fn hex(&mut self) -> Option<u16> {
        let digits = self.text.get(self.at..self.at + 4)?;
        if !digits.bytes().all(|c| c.is_ascii_hexdigit()) {
            return None;
        }
        self.at += 4;
        u16::from_str_radix(digits, 16).ok()
    }

    /// A number, `true`, `false` or `null`, kept as written.
    fn word(&mut self, build: bool) -> Read<Value> {
        let start = self.at;
        let ends = |c: u8| matches!(c, b',' | b']' | b'}' | b':' | b'"' | b'[' | b'{') || c <= b' ';
        while self.peek().is_some_and(|c| !ends(c)) {
            self.at += 1;
        }
        let word = self.text.get(start..self.at).unwrap_or("");
        if word == "null" {
            return Ok(Value::Null);
        }
        if matches!(word, "true" | "false") || is_number(word) {
            return Ok(Value::Text(if build {
                word.to_owned()
            } else {
                String::new()
            }));
        }
        let span = start..self.at.max(start + usize::from(start < self.end));
        let help = match word {
            "" => "write a value here",
            w if w.starts_with('\'') => "use double quotes: JSON has no others",
            w if w.starts_with("//") || w.starts_with('#') || w.starts_with("/*") => {
                "remove the comment: JSON has none"
            }
            _ => "write text in double quotes, numbers without",
        };
        let message = match word {
            "" => "a value is missing".to_owned(),
            word => format!("`{word}` is no JSON value"),
        };
        Err(Diagnostic::new(span, message, "expected a value").help(help))
    }
}

/// JSON's grammar of numbers: no leading zeros, plus signs, bare points or named values.
fn is_number(word: &str) -> bool {
    let rest = word.strip_prefix('-').unwrap_or(word);
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let whole = digits(rest);
    if whole == 0 || (whole > 1 && rest.starts_with('0')) {
        return false;
    }
    let mut rest = &rest[whole..];
    if let Some(fraction) = rest.strip_prefix('.') {
        let len = digits(fraction);
        if len == 0 {
            return false;
        }
        rest = &fraction[len..];
    }
    match rest.strip_prefix(['e', 'E']) {
        None => rest.is_empty(),
        Some(exponent) => {
            let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            !exponent.is_empty() && digits(exponent) == exponent.len()
        }
    }
}
