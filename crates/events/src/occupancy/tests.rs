//! Tests of occupied channels: several nodes, a bus that loses messages, kills and cuts, a backend that stops.
//! In: random steps → out: what the backend believes, compared with the subscribers.
//! Uses proptest and a time of its own. Never: sockets.
//! Changed here: faults that the backend's picture must survive.

use proptest::prelude::*;

use super::*;
use crate::queue::EventQueue;

/// A node with its queue, and what it knows of the others.
struct World {
    now: Instant,
    nodes: BTreeMap<String, SimNode>,
    started: u64,
    backend: Backend,
    is_backend_up: bool,
    /// Of so many messages one is lost; 0 for none.
    loss: u32,
    random: u32,
    in_flight: Vec<(String, String, OccupancyReport)>,
}

struct SimNode {
    occupancy: Occupancy,
    own: Mutex<OwnChannels>,
    subscribers: BTreeMap<String, u32>,
    queue: EventQueue,
    made: u64,
    accepted: u64,
    heard_at: BTreeMap<String, Instant>,
    is_cut: bool,
}

/// The rules of docs/events.md.
#[derive(Default)]
struct Backend {
    occupied: BTreeSet<String>,
    stale: BTreeSet<String>,
    received: Vec<String>,
}

impl Backend {
    fn take(&mut self, event: &OutgoingEvent) {
        let channel = event.channel.as_deref().unwrap_or_default().to_owned();
        match event.r#type {
            EventType::Occupied => {
                self.stale.remove(&channel);
                self.occupied.insert(channel.clone());
            }
            EventType::Vacated => drop(self.occupied.remove(&channel)),
            EventType::RecountStarted => self.stale = self.occupied.clone(),
            EventType::RecountEnded => {
                let stale = std::mem::take(&mut self.stale);
                self.occupied.retain(|channel| !stale.contains(channel));
            }
            _ => return,
        }
        self.received.push(format!("{:?} {channel}", event.r#type));
    }
}

impl World {
    fn new() -> Self {
        Self {
            now: Instant::now(),
            nodes: BTreeMap::new(),
            started: 0,
            backend: Backend::default(),
            is_backend_up: true,
            loss: 0,
            random: 1,
            in_flight: Vec::new(),
        }
    }

    /// Starts a node, whose clock is off by `skew_ms`.
    fn start(&mut self, skew_ms: u64) {
        self.started += 1;
        let uid = format!("n{}", self.started);
        let occupancy =
            Occupancy::new(uid.clone(), 1000 * self.started + skew_ms, Duration::from_secs(5));
        let node = SimNode {
            occupancy,
            own: Mutex::default(),
            subscribers: BTreeMap::new(),
            queue: EventQueue::new(16),
            made: 0,
            accepted: 0,
            heard_at: BTreeMap::new(),
            is_cut: false,
        };
        self.nodes.insert(uid, node);
    }

    fn nth(&mut self, index: usize) -> Option<(&String, &mut SimNode)> {
        let count = self.nodes.len().max(1);
        self.nodes.iter_mut().nth(index % count)
    }

    fn enter(&mut self, index: usize, channel: u8) {
        let Some((_, node)) = self.nth(index) else { return };
        *node.subscribers.entry(format!("c{channel}")).or_default() += 1;
        node.own.lock().enter(&format!("c{channel}").into());
    }

    fn leave(&mut self, index: usize, channel: u8) {
        let Some((_, node)) = self.nth(index) else { return };
        let channel = format!("c{channel}");
        let Some(count) = node.subscribers.get_mut(&channel) else { return };
        *count -= 1;
        if *count == 0 {
            node.subscribers.remove(&channel);
        }
        node.own.lock().leave(&channel.into());
    }

    fn kill(&mut self, index: usize) {
        if let Some(uid) = self.nth(index).map(|(uid, _)| uid.clone()) {
            self.nodes.remove(&uid);
        }
    }

    fn chance(&mut self, of: u32) -> bool {
        self.random = self.random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        of > 0 && (self.random >> 8).is_multiple_of(of)
    }

    /// 200 ms pass.
    fn step(&mut self) {
        self.now += Duration::from_millis(200);
        for (from, to, report) in std::mem::take(&mut self.in_flight) {
            let is_lost =
                self.chance(self.loss) || self.nodes.get(&from).is_none_or(|it| it.is_cut);
            if let Some(node) = self.nodes.get_mut(&to).filter(|node| !is_lost && !node.is_cut) {
                node.occupancy.receive(&from, report, self.now);
            }
        }
        let connected: Vec<String> = self
            .nodes
            .iter()
            .filter(|(_, node)| !node.is_cut)
            .map(|(uid, _)| uid.clone())
            .collect();
        let uids: Vec<String> = self.nodes.keys().cloned().collect();
        for uid in uids {
            self.tick(&uid, &connected);
        }
    }

    fn tick(&mut self, uid: &str, connected: &[String]) {
        let now = self.now;
        let takes = self.is_backend_up && !self.chance(3);
        let node = self.nodes.get_mut(uid).expect("it lives");
        match node.is_cut {
            // A node that cannot send takes no other for dead.
            true => node.heard_at.values_mut().for_each(|at| *at = now),
            false => node.heard_at.extend(connected.iter().map(|other| (other.clone(), now))),
        }
        node.heard_at.retain(|_, at| now < *at + Duration::from_secs(10));
        let present = node.heard_at.keys().cloned().chain([uid.to_owned()]).collect();
        let around = Surroundings {
            now,
            present: &present,
            is_in_cluster: true,
            room: node.queue.room(),
            told: node.made + node.accepted,
            own: &node.own,
        };
        let output = node.occupancy.tick(&around);
        let is_cut_off = node.occupancy.is_cut_off(&around);
        for event in output.events {
            match node.queue.push(event, 0) {
                true => node.made += 1,
                false => node.occupancy.recount(),
            }
        }
        if takes && !(is_cut_off && node.made > node.accepted) {
            let batch: Vec<_> = node.queue.batch(7, 0).into_iter().cloned().collect();
            node.accepted += node.queue.remove(batch.len());
            batch.iter().for_each(|event| self.backend.take(event));
        }
        for (to, report) in output.messages {
            let all = || self.nodes.keys().cloned().collect();
            let receivers: Vec<String> = to.map_or_else(all, |to| vec![to]);
            let messages = receivers.into_iter().map(|to| (uid.to_owned(), to, report.clone()));
            self.in_flight.extend(messages);
        }
    }

    fn steps(&mut self, seconds: u32) {
        (0..seconds * 5).for_each(|_| self.step());
    }

    /// All faults end, and there is time.
    fn settle(&mut self) {
        (self.is_backend_up, self.loss) = (true, 0);
        self.nodes.values_mut().for_each(|node| node.is_cut = false);
        self.steps(60);
    }

    fn occupied(&self) -> BTreeSet<String> {
        self.nodes.values().flat_map(|node| node.subscribers.keys().cloned()).collect()
    }
}

#[test]
fn a_channel_on_two_nodes_is_occupied_once_and_vacated_once() {
    let mut world = World::new();
    world.start(0);
    world.start(0);
    world.steps(20);
    assert_eq!(world.backend.received, ["RecountStarted ", "RecountEnded "]);
    world.backend.received.clear();
    world.enter(1, 1);
    world.steps(1);
    world.enter(0, 1);
    world.leave(1, 1);
    world.steps(20);
    assert_eq!(world.backend.received, ["Occupied c1"]);
    world.leave(0, 1);
    world.steps(3);
    world.enter(1, 1);
    world.steps(20);
    assert_eq!(world.backend.received, ["Occupied c1"], "somebody returned within the delay");
    world.kill(1);
    world.steps(20);
    assert_eq!(world.backend.received, ["Occupied c1", "Vacated c1"], "its only node is gone");
}

#[test]
fn the_next_node_tells_when_the_first_is_killed() {
    let mut world = World::new();
    (0..3).for_each(|_| world.start(0));
    (0..3).for_each(|node| world.enter(node, node as u8));
    world.steps(20);
    world.kill(0);
    world.leave(1, 2);
    world.steps(20);
    assert_eq!(world.backend.occupied, world.occupied());
    assert_eq!(world.backend.occupied.len(), 1);
}

#[derive(Clone, Debug)]
enum Step {
    Start(u64),
    Enter(usize, u8),
    Leave(usize, u8),
    Kill(usize),
    Cut(usize),
    Heal(usize),
    Backend(bool),
    Lose(u32),
    Pass(u32),
}

fn step() -> impl Strategy<Value = Step> {
    let (node, channel) = (0_usize..4, 0_u8..24);
    prop_oneof![
        2 => (0_u64..4000).prop_map(Step::Start),
        24 => (node.clone(), channel.clone()).prop_map(|(node, channel)| Step::Enter(node, channel)),
        18 => (node.clone(), channel).prop_map(|(node, channel)| Step::Leave(node, channel)),
        2 => node.clone().prop_map(Step::Kill),
        2 => node.clone().prop_map(Step::Cut),
        2 => node.prop_map(Step::Heal),
        2 => any::<bool>().prop_map(Step::Backend),
        1 => (0_u32..6).prop_map(Step::Lose),
        12 => (1_u32..14).prop_map(Step::Pass),
    ]
}

proptest! {
    #[test]
    fn after_faults_the_backend_knows_which_channels_are_occupied(
        steps in prop::collection::vec(step(), 1..120),
        random in any::<u32>(),
    ) {
        let mut world = World::new();
        world.random = random;
        world.start(0);
        world.start(0);
        for step in steps {
            match step {
                Step::Start(skew) if world.nodes.len() < 4 => world.start(skew),
                Step::Start(_) => {}
                Step::Enter(node, channel) => world.enter(node, channel),
                Step::Leave(node, channel) => world.leave(node, channel),
                Step::Kill(node) => world.kill(node),
                Step::Cut(node) => drop(world.nth(node).map(|(_, node)| node.is_cut = true)),
                Step::Heal(node) => drop(world.nth(node).map(|(_, node)| node.is_cut = false)),
                Step::Backend(is_up) => world.is_backend_up = is_up,
                Step::Lose(loss) => world.loss = loss,
                Step::Pass(seconds) => world.steps(seconds),
            }
        }
        if world.nodes.is_empty() {
            world.start(0);
        }
        world.settle();
        prop_assert_eq!(&world.backend.occupied, &world.occupied());
    }
}
