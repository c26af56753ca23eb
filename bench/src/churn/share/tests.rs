//! What the share in context is made of.
//! In: a page of metrics, random numbers → out: counts, channels, payloads.
//! Uses `share` alone; starts nothing.
//! Changed here: what is expected of them; the scenario as a whole is run by hand.

use super::*;

#[test]
fn deliveries_are_added_up_by_whether_they_refer_to_earlier_ones() {
    let page = "\
# TYPE fanwire_compression_deliveries counter
fanwire_compression_deliveries_total{namespace=\"\",kind=\"raw\",depth=\"0\"} 1
fanwire_compression_deliveries_total{namespace=\"\",kind=\"standalone\",depth=\"0\"} 3
fanwire_compression_deliveries_total{namespace=\"\",kind=\"several\",depth=\"2\"} 10
fanwire_compression_deliveries_total{namespace=\"\",kind=\"several\",depth=\"4\"} 20
fanwire_compression_deliveries_total{namespace=\"b\",kind=\"run\",depth=\"all\"} 6
fanwire_compression_emits_total{namespace=\"\"} 99
";
    let deliveries = Deliveries::read(page).expect("a page");
    assert_eq!(deliveries, Deliveries { in_context: 36, all: 40 });
    assert_eq!(deliveries.share_since(Deliveries { in_context: 34, all: 36 }), 0.5);
    assert!(Deliveries::read("HTTP/1.1 404 Not Found").is_err());
}

#[test]
fn clients_have_one_to_five_channels_and_mostly_the_first_ones() {
    let mut random = Random(7);
    let (mut counts, mut of_channel) = ([0; 6], [0; 100]);
    for _ in 0..1_000 {
        let chosen = zipf(&mut random, 100);
        counts[chosen.len()] += 1;
        chosen.iter().for_each(|channel| of_channel[*channel] += 1);
    }
    assert_eq!(counts[0], 0);
    assert!(counts[1..].iter().all(|count| *count > 50), "{counts:?}");
    let tail: i32 = of_channel[50..].iter().sum();
    assert!(of_channel[0] > 2 * of_channel[3] && tail > 0, "{of_channel:?}");
    assert_eq!(zipf(&mut random, 1), [0]);
}

#[test]
fn payloads_are_json_of_about_the_asked_size_and_resemble_the_one_before() {
    for bytes in [0, 200, 2_000] {
        let text = data(3, 70, bytes);
        let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(value["n"], 70);
        assert!((bytes..bytes + 40).contains(&text.len()), "{text}");
    }
    let rows = |n| data(3, n, 2_000).split(',').map(str::to_owned).collect::<Vec<_>>();
    let same = rows(70).iter().zip(rows(71)).filter(|(one, other)| *one == other).count();
    assert!(same * 10 > rows(70).len() * 7, "{same}");
}
