// The processes that the tests start: none keeps a test file from ending, and none outlives it.
// In: a child process → out: the same, of which the event loop does not wait for anything any more.
// May use Node's own modules only; whoever waits for a process does so with a limit (`within` in server.js).
// What is started, and how it is ended in good order, stands where it is started.

/** The running ones. */
const running = new Set();

/**
 * Takes charge of a process. A test that fails before it stops its server leaves it running: then the file ends all the
 * same, because nothing waits for the process, and the process ends with the file.
 */
export function inCharge(child) {
  running.add(child);
  child.once('exit', () => running.delete(child));
  child.unref();
  for (const pipe of child.stdio) pipe?.unref();
  return child;
}

process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => process.exit(1));
