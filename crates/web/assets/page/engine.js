// Simulators in workers of their own: the page never waits, and a simulator that stops is started again.

/** A run takes longer than this in ms when a newer one makes it useless: then its worker is ended. */
const WORTH_WAITING_MS = 150;

export class Fault extends Error {
  constructor(fault) {
    super(fault.message);
    this.fault = fault;
  }
}

const SIMULATOR = { what: "The simulator", help: "It was started again: change the scenario and go on." };

/** Compiled once; workers get it from here. Servers that do not know the media type of WebAssembly are fine. */
async function compile(address) {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(`${address}: the server answers ${answer.status}`);
  return WebAssembly.compile(await answer.arrayBuffer());
}

export class Engine {
  #module;
  #workers = [];
  #waiting = [];
  #next = 1;
  /** How often a simulator had to be started again. */
  restarts = 0;

  /** `words`: what has stopped after a crash, and what can be done then. `module`: of another engine. */
  constructor(size, base, { module, words = SIMULATOR } = {}) {
    this.base = base;
    this.words = words;
    this.#module = module ?? compile(new URL("weir.wasm", base));
    for (let i = 0; i < size; i++) this.#workers.push(this.#start({}));
  }

  get module() {
    return this.#module;
  }

  #start(slot) {
    slot.worker = new Worker(new URL("worker.js", this.base));
    slot.job = null;
    slot.ready = false;
    slot.worker.onmessage = ({ data }) => this.#heard(slot, data);
    slot.worker.onerror = (e) => {
      e.preventDefault();
      this.#crashed(slot, e.message || "the worker could not be loaded");
    };
    this.#module.then(
      (module) => slot.worker.postMessage({ module }),
      (e) => this.#breaks(e.message),
    );
    return slot;
  }

  /** Without a simulator there is nothing to wait for. */
  #breaks(why) {
    this.broken = new Fault({ kind: "load", message: `The simulator cannot be loaded: ${why}.`, help: "Load the page again." });
    const failed = [...this.#workers.map((slot) => slot.job), ...this.#waiting].filter(Boolean);
    this.#waiting = [];
    failed.forEach((job) => job.fail(this.broken));
  }

  #heard(slot, data) {
    if (data.ready) {
      slot.ready = true;
      return this.#pass();
    }
    if (data.crash !== undefined) return this.#crashed(slot, data.crash);
    const { job } = slot;
    slot.job = null;
    if (data.ok) {
      job?.done({ text: data.text, ...JSON.parse(data.about), numbers: data.numbers });
    } else {
      job?.fail(new Fault(JSON.parse(data.text)));
    }
    this.#pass();
  }

  #crashed(slot, why) {
    const { job } = slot;
    slot.worker.terminate();
    if (!slot.ready) return this.#breaks(why);
    this.restarts += 1;
    this.#start(slot);
    job?.fail(new Fault({ kind: "crash", message: `${this.words.what} has stopped: ${why}.`, help: this.words.help }));
  }

  #pass() {
    for (const slot of this.#workers) {
      if (!slot.ready || slot.job || this.#waiting.length === 0) continue;
      slot.job = this.#waiting.shift();
      slot.job.since = performance.now();
      slot.worker.postMessage({ id: slot.job.id, request: slot.job.request, files: slot.job.files });
    }
  }

  /** The answer to a request: { text, columns, digest, numbers }. Fails with a Fault. `of` names what it is for, `files` go with it. */
  ask(request, of = "", files = []) {
    if (this.broken) return Promise.reject(this.broken);
    return new Promise((done, fail) => {
      this.#waiting.push({ id: this.#next++, request, of, files, done, fail });
      this.#pass();
    });
  }

  /** Nobody needs the answers for `of` any more. They fail with null. */
  forget(of, now = false) {
    const stale = (job) => job.of === of;
    this.#waiting.filter(stale).forEach((job) => job.fail(null));
    this.#waiting = this.#waiting.filter((job) => !stale(job));
    for (const slot of this.#workers) {
      if (!slot.job || !stale(slot.job)) continue;
      slot.job.fail(null);
      // A short run is left to end, which is quicker than a new worker.
      if (!now && performance.now() - slot.job.since < WORTH_WAITING_MS) continue;
      slot.worker.terminate();
      this.#start(slot);
    }
  }
}
