//! The smallest plan that still breaks the same promise: faults, clients and habits are left out while it does.
//! In: a plan that fails → out: a smaller one that fails, and how often it was played.
//! Uses the world. Never: another seed, because what is left out changes nothing else.
//! Changed here: what can be left out.

use std::time::Duration;

use crate::plan::SeedPlan;
use crate::world::World;

/// Leaves out of a failing plan what is not needed.
pub fn shrink(plan: &SeedPlan) -> SeedPlan {
    let mut smallest = plan.clone();
    let Some(promise) = broken(&smallest) else { return smallest };
    for _ in 0..ROUNDS_MAX {
        let next = smaller(&smallest).into_iter().find(|plan| broken(plan) == Some(promise));
        match next {
            Some(next) => smallest = next,
            None => break,
        }
    }
    smallest
}

/// A plan is made smaller at most this often.
const ROUNDS_MAX: usize = 40;

/// The promise that a plan breaks.
fn broken(plan: &SeedPlan) -> Option<&'static str> {
    World::new(plan.clone(), false).run().violation.map(|violation| violation.promise)
}

/// Plans with one thing less, the largest thing first.
fn smaller(plan: &SeedPlan) -> Vec<SeedPlan> {
    let mut plans = Vec::new();
    let mut add = |change: &dyn Fn(&mut SeedPlan)| {
        let mut changed = plan.clone();
        change(&mut changed);
        plans.push(changed);
    };
    if plan.busy > Duration::from_secs(10) {
        add(&|plan| plan.busy = plan.busy.mul_f64(0.6));
    }
    for number in 0..plan.faults.len() {
        add(&|plan| drop(plan.faults.remove(number)));
    }
    if plan.clients > 1 {
        add(&|plan| plan.leave_out_clients(plan.clients / 2));
        add(&|plan| plan.leave_out_clients(1));
    }
    let habits: [fn(&mut SeedPlan) -> &mut u64; 9] = [
        |plan| &mut plan.habits.questions,
        |plan| &mut plan.habits.commands,
        |plan| &mut plan.habits.blocks,
        |plan| &mut plan.habits.calls,
        |plan| &mut plan.habits.publishes,
        |plan| &mut plan.habits.resubscribes,
        |plan| &mut plan.habits.reconnects,
        |plan| &mut plan.habits.lazy,
        |plan| &mut plan.habits.silences,
    ];
    for habit in habits {
        if *habit(&mut plan.clone()) > 0 {
            add(&move |plan| *habit(plan) = 0);
        }
    }
    plans
}
