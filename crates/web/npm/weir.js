// Requests to one WebAssembly instance and its answers: what worker.js of the lab's page does, without a worker.

/** A request that could not be answered: what, where in a scenario's text, and a way out if one is known. */
export class Fault extends Error {
  constructor({ kind, message, field, line, column, help }) {
    super(message);
    this.name = "Fault";
    Object.assign(this, { kind, field: field ?? null, line: line ?? null, column: column ?? null, help: help ?? null });
  }
}

const refused = (kind, message, help) => new Fault({ kind, message, help });

export class Weir {
  #module;
  #exports;

  constructor(module) {
    this.#module = module;
    this.#start();
  }

  /** From WebAssembly's bytes, or a module that is compiled. */
  static async from(source) {
    return new Weir(source instanceof WebAssembly.Module ? source : await WebAssembly.compile(source));
  }

  #start() {
    this.#exports = new WebAssembly.Instance(this.#module, {}).exports;
  }

  // Views are made where they are used: memory may move with every call.
  #bytes(which) {
    const { memory, weir_output, weir_output_len } = this.#exports;
    return new Uint8Array(memory.buffer, weir_output(which), weir_output_len(which));
  }

  #text(which) {
    return new TextDecoder().decode(this.#bytes(which));
  }

  #write(at, contents) {
    new Uint8Array(this.#exports.memory.buffer, at, contents.length).set(contents);
  }

  #give(request, files) {
    const given = new TextEncoder().encode(JSON.stringify(request));
    const at = this.#exports.weir_reserve(given.length);
    if (at === 0) throw refused("request", `the request has ${given.length} bytes, and at most 16 MiB are read`);
    this.#write(at, given);
    for (const file of files) {
      const place = this.#exports.weir_attach(file.length);
      if (place === 0) {
        throw refused("recording", `there is no room for a file of ${file.length} bytes`, "weir open on the command line reads larger files.");
      }
      this.#write(place, file);
    }
  }

  /** Answers a request: { text, columns, digest, numbers }. */
  ask(request, files = []) {
    let failed;
    try {
      this.#give(request, files);
      failed = this.#exports.weir_answer() !== 0;
    } catch (e) {
      if (e instanceof Fault) throw e;
      // The instance is unusable after a trap; without a text of its own, memory was refused.
      const why = this.#text(3) || `${e.message} (at most 1 GiB of memory is given)`;
      this.#start();
      throw refused("crash", `the simulator has stopped: ${why}`, "It was started again; a recorded call has to be opened again.");
    }
    const text = this.#text(0);
    if (failed) throw new Fault(JSON.parse(text));
    const { columns, digest } = JSON.parse(this.#text(1));
    return { text, columns, digest, numbers: new Float64Array(this.#bytes(2).slice().buffer) };
  }

  #json(request, files) {
    return JSON.parse(this.ask(request, files).text);
  }

  #withSeries(request, files) {
    const { text, columns, digest, numbers } = this.ask(request, files);
    const series = columns.map(({ kind, owner, name, from, len }) => ({ kind, owner, name, values: numbers.subarray(from, from + len) }));
    return { text, series, digest };
  }

  controllers() {
    return this.#json({ ask: "controllers" });
  }

  scenarios() {
    return this.#json({ ask: "scenarios" });
  }

  schema() {
    return this.#json({ ask: "schema" });
  }

  outline(scenario, text) {
    return this.#json({ ask: "outline", name: scenario, text });
  }

  run(scenario, { text, variant, controller, seed, series = false, digest = false } = {}) {
    const made = this.#withSeries({ ask: "run", name: scenario, text, variant, controller, seed, series, digest });
    return { ...made, result: JSON.parse(made.text) };
  }

  open(files) {
    const named = Array.isArray(files) ? files : [files];
    const made = this.#withSeries({ ask: "open", names: named.map(({ name }) => name) }, named.map(({ bytes }) => bytes));
    return { text: made.text, series: made.series, call: JSON.parse(made.text) };
  }

  replayed() {
    return this.#json({ ask: "replayed" });
  }

  replay(controllers) {
    const { text, series } = this.#withSeries({ ask: "replay", controllers });
    return { text, series, replays: JSON.parse(text) };
  }

  packets(fromS, toS) {
    return this.#json({ ask: "packets", from_s: fromS, to_s: toS });
  }
}
