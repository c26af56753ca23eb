// A value that changes, in the form that React's useSyncExternalStore and Svelte's stores expect.
// In: a first value, a function that starts the work → out: each new value, to every listener.
// May use nothing else. The work runs while there is a listener.
// What the values mean is changed in the other files.

export class Store {
  #value;
  #start;
  #stop;
  #listeners = new Set();

  /** `start` gets a function that sets the value, and returns the function that ends the work. */
  constructor(value, start) {
    this.#value = value;
    this.#start = start;
  }

  get value() {
    return this.#value;
  }

  /** The value, as a function that needs no `this`. */
  getSnapshot = () => this.#value;

  /** Calls `listener` with the value now and after each change. Returns a function that ends that. */
  subscribe = (listener) => {
    const entry = { listener }; // one function may listen twice
    this.#listeners.add(entry);
    if (this.#listeners.size === 1) this.#stop = this.#start(this.#set);
    listener(this.#value);
    return () => {
      if (!this.#listeners.delete(entry) || this.#listeners.size > 0) return;
      this.#stop();
    };
  };

  #set = (value) => {
    this.#value = value;
    for (const { listener } of [...this.#listeners]) listener(value);
  };
}
