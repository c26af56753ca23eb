// How vitest finds the suite: one file, with the suite's own time limits.
// In: nothing → out: vitest's configuration.
// May use nothing; a run names its groups on the command line.
// The time limit of tests is changed here: one compares 100,000 bytes one by one, which takes seconds on a busy machine.

export default { test: { include: ['suite.test.js'], testTimeout: 60_000, retry: 0 } };
