//! In a channel between two columns of boxes, wires that end on another row than they begin need
//! an upright piece each, on a track of its own.

/// For each wire, by the rows of its left and right end, the number of its track from the left;
/// `None` for one that is straight. No answer: two wires would have to lie on each other.
///
/// On a row where one wire ends and another begins, the one that begins must have turned away
/// before the other comes to it (the left-edge rule of channel routing, Hashimoto and Stevens
/// 1971, with its vertical constraints turned by a right angle).
pub(super) fn tracks(rows: &[[usize; 2]]) -> Option<Vec<Option<usize>>> {
    let mut waiting: Vec<usize> = (0..rows.len())
        .filter(|&i| rows[i][0] != rows[i][1])
        .collect();
    // Neighbours that go the same way do not cross if the upper one that goes down turns last.
    waiting.sort_by_key(|&i| {
        let [start, end] = rows[i];
        if end > start {
            (1, usize::MAX - start)
        } else {
            (0, start)
        }
    });
    let mut tracks = vec![None; rows.len()];
    let mut next = 0;
    while !waiting.is_empty() {
        let is_free = |i: usize| {
            let mut others = waiting.iter().filter(|&&other| other != i);
            others.all(|&other| rows[other][0] != rows[i][1])
        };
        let at = waiting.iter().position(|&i| is_free(i))?;
        tracks[waiting.remove(at)] = Some(next);
        next += 1;
    }
    Some(tracks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_straight_wire_needs_no_track() {
        assert_eq!(tracks(&[[1, 1], [2, 2]]), Some(vec![None, None]));
    }

    #[test]
    fn wires_that_go_the_same_way_do_not_cross() {
        assert_eq!(tracks(&[[1, 5], [2, 6]]), Some(vec![Some(1), Some(0)]));
        assert_eq!(tracks(&[[5, 1], [6, 2]]), Some(vec![Some(0), Some(1)]));
    }

    #[test]
    fn a_wire_that_ends_on_a_row_comes_there_after_the_one_that_begins_on_it() {
        assert_eq!(tracks(&[[1, 2], [2, 3]]), Some(vec![Some(1), Some(0)]));
        assert_eq!(tracks(&[[2, 1], [3, 2]]), Some(vec![Some(0), Some(1)]));
    }

    #[test]
    fn two_that_change_places_have_no_tracks() {
        assert_eq!(tracks(&[[1, 2], [2, 1]]), None);
    }
}
