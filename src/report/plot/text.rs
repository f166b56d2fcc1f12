//! How wide a text is: advance widths of DejaVu Sans 2.37, the font that PNG pictures are set in.
//!
//! The tables spare drawing a parser of font files; a test compares them with what the font
//! renderer makes of the bundled font.

/// Units per em of the tables.
const EM: f64 = 2048.0;
/// Height of a capital [em].
pub(super) const CAPITAL: f64 = 0.729;

/// U+0020 to U+007E.
const REGULAR: [u16; 95] = [
    651, 821, 942, 1716, 1303, 1946, 1597, 563, 799, 799, 1024, 1716, 651, 739, 651, 690, 1303,
    1303, 1303, 1303, 1303, 1303, 1303, 1303, 1303, 1303, 690, 690, 1716, 1716, 1716, 1087, 2048,
    1401, 1405, 1430, 1577, 1294, 1178, 1587, 1540, 604, 604, 1343, 1141, 1767, 1532, 1612, 1235,
    1612, 1423, 1300, 1251, 1499, 1401, 2025, 1403, 1251, 1403, 799, 690, 799, 1716, 1024, 1024,
    1255, 1300, 1126, 1300, 1260, 721, 1300, 1298, 569, 569, 1186, 569, 1995, 1298, 1253, 1300,
    1300, 842, 1067, 803, 1298, 1212, 1675, 1212, 1212, 1075, 1303, 690, 1303, 1716,
];
const BOLD: [u16; 95] = [
    713, 934, 1067, 1716, 1425, 2052, 1786, 627, 936, 936, 1071, 1716, 778, 850, 778, 748, 1425,
    1425, 1425, 1425, 1425, 1425, 1425, 1425, 1425, 1425, 819, 819, 1716, 1716, 1716, 1188, 2048,
    1585, 1561, 1503, 1700, 1399, 1399, 1681, 1714, 762, 762, 1587, 1305, 2038, 1714, 1741, 1501,
    1741, 1577, 1475, 1397, 1663, 1585, 2259, 1579, 1483, 1485, 936, 748, 936, 1716, 1024, 1024,
    1382, 1466, 1214, 1466, 1389, 891, 1466, 1458, 702, 702, 1362, 702, 2134, 1458, 1407, 1466,
    1466, 1010, 1219, 979, 1458, 1335, 1892, 1321, 1335, 1192, 1458, 748, 1458, 1716,
];
/// What else figures use, ascending, with the widths of both weights.
const FURTHER: [(char, u16, u16); 27] = [
    ('°', 1024, 1024),
    ('±', 1716, 1716),
    ('²', 821, 897),
    ('³', 821, 897),
    ('µ', 1303, 1507),
    ('·', 651, 778),
    ('×', 1716, 1716),
    ('÷', 1716, 1716),
    ('α', 1350, 1407),
    ('β', 1307, 1466),
    ('λ', 1212, 1296),
    ('π', 1233, 1620),
    ('–', 1024, 1024),
    ('—', 2048, 2048),
    ('‘', 651, 778),
    ('’', 651, 778),
    ('“', 1061, 1346),
    ('”', 1061, 1346),
    ('…', 2048, 2048),
    ('←', 1716, 1716),
    ('→', 1716, 1716),
    ('−', 1716, 1716),
    ('≈', 1716, 1716),
    ('≤', 1716, 1716),
    ('≥', 1716, 1716),
    ('★', 1836, 1836),
    ('✓', 1716, 1716),
];

/// The width of a text in pixels; an unknown character counts as wide as the widest known.
pub(super) fn width(text: &str, size: f64, bold: bool) -> f64 {
    let units: f64 = text.chars().map(|c| f64::from(advance(c, bold))).sum();
    units / EM * size
}

fn advance(c: char, bold: bool) -> u16 {
    let at = (c as usize).wrapping_sub(0x20);
    if at < REGULAR.len() {
        return if bold { BOLD[at] } else { REGULAR[at] };
    }
    match FURTHER.binary_search_by_key(&c, |row| row.0) {
        Ok(row) if bold => FURTHER[row].2,
        Ok(row) => FURTHER[row].1,
        Err(_) => 2259,
    }
}

/// Lines of at most this width, broken at blanks; a word that is wider alone is broken anywhere.
pub(super) fn wrap(text: &str, size: f64, bold: bool, limit: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        let longer = if line.is_empty() {
            word.to_owned()
        } else {
            format!("{line} {word}")
        };
        if width(&longer, size, bold) <= limit {
            line = longer;
            continue;
        }
        if !line.is_empty() {
            lines.push(std::mem::take(&mut line));
        }
        for c in word.chars() {
            line.push(c);
            if width(&line, size, bold) > limit && line.chars().count() > 1 {
                line.pop();
                lines.push(std::mem::replace(&mut line, c.to_string()));
            }
        }
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

/// The text, or as much of it as fits and `…`.
pub(super) fn shorten(text: &str, size: f64, bold: bool, limit: f64) -> String {
    if width(text, size, bold) <= limit {
        return text.to_owned();
    }
    let mut kept: Vec<char> = text.chars().collect();
    loop {
        kept.pop();
        let short: String = kept.iter().collect::<String>().trim_end().to_owned() + "…";
        if kept.is_empty() || width(&short, size, bold) <= limit {
            return short;
        }
    }
}
