//! Tests of `window`: chains lead to equal bytes, and to nothing from before the window.
//! Bytes → links.
//! Uses only `window`.
//! Changed here: cases of appending, sliding and forgetting.

use super::*;

#[test]
fn links_lead_to_the_same_four_bytes() {
    let mut window = Window::new(16);
    window.append(b"abcdeabcde");
    assert_eq!(links(&window), [0, 0, 0, 0, 0, 5, 5, 0, 0, 0]);
}

#[test]
fn bytes_of_two_pieces_are_chained_as_if_of_one() {
    let mut window = Window::new(16);
    window.append(b"abcdeab");
    window.append(b"cde");
    assert_eq!(links(&window), [0, 0, 0, 0, 0, 5, 5, 0, 0, 0]);
}

#[test]
fn what_two_pieces_begin_with_is_linked_without_being_hashed() {
    let head = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let pieces = [&head[..], b"-", &head[..], b"+", &head[..], b"."].map(<[u8]>::to_vec);
    let (mut hashed, mut linked) = (Window::new(16), Window::new(16));
    for piece in pieces.chunks(2).map(|pair| pair.concat()) {
        hashed.append(&piece);
        linked.append_like(&piece, if linked.len() == 0 { 0 } else { head.len() + 1 });
        assert_eq!(links(&linked), links(&hashed));
    }
    // The newest places of what is linked only are those of the first piece.
    linked.append(&head[..8]);
    assert_eq!(links(&linked)[3 * (head.len() + 1)..][..5], [3 * (head.len() as u16 + 1); 5]);
    linked.append(&head[head.len() - 8..]);
    let links = links(&linked);
    assert_eq!(links[links.len() - 8..][..5], [17; 5]);
}

#[test]
fn a_piece_unlike_the_one_before_is_hashed_as_any() {
    let (mut any, mut like) = (Window::new(16), Window::new(16));
    for piece in [&b"abcdeabcdeabcdeabcdeabcde"[..], b"abcde", b"eabcdeabcdeabcdeabcdeabcde", b""] {
        let delta = like.len().min(25);
        any.append(piece);
        like.append_like(piece, delta);
        assert_eq!(links(&like), links(&any));
    }
}

#[test]
fn forgotten_bytes_are_not_found() {
    let mut window = Window::new(16);
    window.append(b"abcdeabcde");
    window.reset(100_000);
    window.append(b"abcde");
    assert_eq!(links(&window), [0; 5]);
}

#[test]
fn sliding_keeps_the_chains_of_what_stays() {
    let mut window = Window::new(16);
    window.append(b"abcdeabcde");
    window.slide(5);
    window.append(b"abcd");
    assert_eq!(window.bytes(), b"abcdeabcd");
    assert_eq!(links(&window)[5], 5);
    window.slide(6);
    window.append(b"abcd");
    assert_eq!(links(&window), [0; 7]);
}

#[test]
fn numbering_starts_anew_without_a_false_link() {
    let mut window = Window::new(16);
    window.append(b"abcdeabcde");
    let shift = NUMBERS - 12;
    window.base += shift;
    window.heads.iter_mut().filter(|head| **head > 0).for_each(|head| *head += shift as u16);
    window.slide(5);
    assert_eq!(window.base, NUMBERS - 6);
    window.append(b"abcd");
    assert_eq!(window.base, 1);
    assert_eq!(links(&window)[5], 5);
    window.base = NUMBERS;
    window.reset(5);
    window.append(b"abcd");
    assert_eq!(links(&window), [0; 4]);
}

#[test]
fn numbers_last_for_as_many_messages_as_there_are() {
    let mut window = Window::new(15);
    for _ in 0..20_000 {
        window.reset(10_000);
        window.append(b"abcdeabcde");
        assert_eq!(links(&window), [0, 0, 0, 0, 0, 5, 5, 0, 0, 0]);
    }
}

/// Returns the links of a window; 0 for none.
fn links(window: &Window) -> Vec<u16> {
    let links = window.links().iter().zip(0..);
    links.map(|(link, at)| if *link > at { 0 } else { *link }).collect()
}
