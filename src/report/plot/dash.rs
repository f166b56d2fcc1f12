//! Cuts lines into dashes: plotters' SVG backend draws solid ones only.

/// The pieces of the line that a pattern of strokes and gaps \[px\] leaves; the line itself if the
/// pattern is empty.
pub(super) fn cut(points: &[(f64, f64)], pattern: &[f64]) -> Vec<Vec<(f64, f64)>> {
    let [first, rest @ ..] = points else {
        return Vec::new();
    };
    if pattern.is_empty() || pattern.iter().any(|step| *step <= 0.0) {
        return vec![points.to_vec()];
    }
    let mut pieces = Vec::new();
    let mut piece = vec![*first];
    let (mut at, mut step, mut left) = (*first, 0, pattern[0]);
    for &to in rest {
        loop {
            let length = (to.0 - at.0).hypot(to.1 - at.1);
            if length <= left {
                left -= length;
                at = to;
                break;
            }
            let part = left / length;
            at = (at.0 + part * (to.0 - at.0), at.1 + part * (to.1 - at.1));
            if step % 2 == 0 {
                piece.push(at);
                pieces.push(std::mem::take(&mut piece));
            } else {
                piece = vec![at];
            }
            step = (step + 1) % pattern.len();
            left = pattern[step];
        }
        if step % 2 == 0 {
            piece.push(to);
        }
    }
    if piece.len() > 1 {
        pieces.push(piece);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::cut;

    #[test]
    fn strokes_and_gaps_alternate_round_corners() {
        // 4 on, 2 off along 10 right and 5 down: strokes 0–4, 6–10 and 12–15.
        let pieces = cut(&[(0.0, 0.0), (10.0, 0.0), (10.0, 5.0)], &[4.0, 2.0]);
        let ends: Vec<_> = pieces.iter().map(|p| (p[0], p[p.len() - 1])).collect();
        let expected = [
            ((0.0, 0.0), (4.0, 0.0)),
            ((6.0, 0.0), (10.0, 0.0)),
            ((10.0, 2.0), (10.0, 5.0)),
        ];
        assert_eq!(ends, expected);
    }

    #[test]
    fn no_pattern_is_one_piece_and_no_line_none() {
        let line = [(0.0, 0.0), (1.0, 1.0)];
        assert_eq!(cut(&line, &[]), vec![line.to_vec()]);
        assert!(cut(&[], &[1.0, 1.0]).is_empty());
    }
}
