//! Tests of what a subscription may be, where no dialogue can show it.
//! In: namespaces and requests → out: yes or no.
//! Uses: the rules alone. Never: a node.
//! Dialogues are in `tests/it/`.

use fanwire_protocol::FilterNode;

use super::*;

#[test]
fn deltas_are_for_those_who_ask_where_they_are_allowed_and_never_with_a_filter() {
    let fossil = vec![Namespace::FOSSIL.to_owned()];
    let allows = Namespace { allowed_delta_types: fossil, ..Namespace::default() };
    let request = |delta: &str| SubscribeRequest { delta: delta.into(), ..Default::default() };
    fn begin(
        namespace: &Namespace,
        tracking: Tracking,
        request: SubscribeRequest,
    ) -> Option<DeltaState> {
        deltas(namespace, tracking, &request)
    }
    let none = Tracking::None;
    let positioned = Tracking::Positioned;
    assert_eq!(begin(&allows, positioned, request("fossil")), Some(DeltaState::AwaitsStream));
    assert_eq!(begin(&allows, none, request("fossil")), Some(DeltaState::Full));
    assert_eq!(begin(&allows, positioned, request("")), None);
    assert_eq!(begin(&Namespace::default(), positioned, request("fossil")), None);
    let filtered = SubscribeRequest { tf: Some(FilterNode::default()), ..request("fossil") };
    assert_eq!(begin(&allows, positioned, filtered), None);
    let keeps = Namespace { keep_latest_publication: true, ..allows };
    assert_eq!(begin(&keeps, none, request("fossil")), Some(DeltaState::AwaitsLatest));
    assert_eq!(begin(&keeps, positioned, request("fossil")), Some(DeltaState::AwaitsStream));
}
