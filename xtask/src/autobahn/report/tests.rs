//! Tests of the reading of Autobahn's reports.
//! In: an `index.json` as the suite writes it → out: the counts and the summary.
//! Uses nothing but the report; never runs the suite.
//! Which cases are run is decided in `autobahn.rs`.

use super::*;

const INDEX: &str = r#"{
   "fanwire": {
      "1.1.1": {
         "behavior": "OK",
         "behaviorClose": "OK",
         "duration": 2,
         "remoteCloseCode": 1000,
         "reportfile": "fanwire_case_1_1_1.json"
      },
      "6.4.1": {
         "behavior": "NON-STRICT",
         "behaviorClose": "OK",
         "duration": 2,
         "remoteCloseCode": null,
         "reportfile": "fanwire_case_6_4_1.json"
      },
      "7.7.10": {
         "behavior": "OK",
         "behaviorClose": "WRONG CODE",
         "remoteCloseCode": 1002,
         "duration": 2
      },
      "13.3.2": {
         "behavior": "UNIMPLEMENTED",
         "behaviorClose": "OK",
         "duration": 2,
         "remoteCloseCode": 1000
      }
   }
}"#;

#[test]
fn failed_behaviour_and_failed_close_are_failures() {
    let mut report = Report::default();
    report.add(INDEX);
    assert_eq!((report.passed(), report.failed()), (3, 1));
    report.add(&INDEX.replace("\"behavior\": \"OK\"", "\"behavior\": \"FAILED\""));
    assert_eq!((report.passed(), report.failed()), (2, 2));
}

#[test]
fn the_summary_names_what_is_not_plainly_ok() {
    let mut report = Report::default();
    report.add(INDEX);
    let summary = "4 cases, 1 non-strict, 2 ok, 1 unimplemented\n\
                   non-strict: 6.4.1\n\
                   unimplemented: 13.3.2\n\
                   failed 7.7.10: behaviour OK, close WRONG CODE, code 1002";
    assert_eq!(report.to_string(), summary);
}

#[test]
fn a_report_without_cases_has_failed() {
    assert_eq!(Report::default().failed(), 1);
}
