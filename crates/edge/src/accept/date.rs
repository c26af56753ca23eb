//! The header `Date` of responses that shards send; hyper adds it to its own (RFC 9110 §6.6.1).
//! In: the time of the system → out: the line of a head.
//! Uses httpdate, at most once a second per thread; never a timer.
//! Changed here: how often the text is made. The responses live in `plain_request`, `response_stream` and `unidirectional`.

use std::{
    cell::RefCell,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

thread_local! {
    /// The second of the last response of this thread, with its line.
    static LATEST: RefCell<(u64, String)> = const { RefCell::new((0, String::new())) };
}

/// `Date: …` with the end of the line.
pub(crate) fn line() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    LATEST.with_borrow_mut(|(second, line)| {
        if *second != now.as_secs() || line.is_empty() {
            (*second, *line) = (now.as_secs(), line_of(now));
        }
        line.clone()
    })
}

fn line_of(now: Duration) -> String {
    format!("Date: {}\r\n", httpdate::fmt_http_date(UNIX_EPOCH + now))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    #[test]
    fn a_date_is_an_imf_fixdate_in_gmt() {
        let line = super::line_of(Duration::from_secs(784_111_777)); // the example of RFC 9110 §5.6.7
        assert_eq!(line, "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n");
        assert_eq!(super::line().len(), line.len());
    }
}
