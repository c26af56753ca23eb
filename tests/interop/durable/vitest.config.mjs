// How vitest finds the suite: one file, with the suite's own time limits.
// In: nothing → out: vitest's configuration.
// May use nothing; a run names its groups on the command line.
// Limits of single tests are changed here.

export default { test: { include: ['suite.test.js'], testTimeout: 15_000, retry: 0 } };
