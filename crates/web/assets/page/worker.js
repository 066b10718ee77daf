// One simulator: a WebAssembly instance that answers requests one after the other.
//
// Messages in: { module }, then { id, request, files }. Messages out: { ready }, then for each request { id, ok, text, about,
// numbers } or, when the program has stopped, { id, crash }; it cannot be used after that.

/** Bytes of a file that are copied at a time. */
const PART = 8 << 20;

let weir = null;

const bytes = (which) => new Uint8Array(weir.memory.buffer, weir.weir_output(which), weir.weir_output_len(which));
const text = (which) => new TextDecoder().decode(bytes(which));

const refused = (kind, message, help) => ({ ok: false, text: JSON.stringify({ kind, message, help }), about: "", numbers: new Float64Array(0) });

/** Copies a file beside the request. Fails where the browser cannot read it. */
async function attach(file) {
  const at = weir.weir_attach(file.size);
  if (at === 0) return false;
  for (let from = 0; from < file.size; from += PART) {
    const part = new Uint8Array(await file.slice(from, from + PART).arrayBuffer());
    new Uint8Array(weir.memory.buffer, at + from, part.length).set(part);
  }
  return true;
}

async function answer(request, files) {
  const given = new TextEncoder().encode(JSON.stringify(request));
  const at = weir.weir_reserve(given.length);
  if (at === 0) return refused("request", `the scenario has ${given.length} bytes, and at most 16 MiB are read`);
  new Uint8Array(weir.memory.buffer, at, given.length).set(given);
  for (const file of files) {
    try {
      if (!(await attach(file))) return refused("recording", `${file.name}: there is no room for its ${file.size} bytes`, "weir open reads larger files.");
    } catch (e) {
      if (!(e instanceof DOMException)) throw e;
      return refused("recording", `${file.name}: ${e.message}`, "A folder cannot be read; a file that has changed since it was chosen has to be chosen again.");
    }
  }
  const ok = weir.weir_answer() === 0;
  // A copy: the memory may move with the next request.
  const numbers = new Float64Array(bytes(2).slice().buffer);
  return { ok, text: text(0), about: text(1), numbers };
}

onmessage = async ({ data }) => {
  if (data.module) {
    weir = (await WebAssembly.instantiate(data.module, {})).exports;
    postMessage({ ready: true });
    return;
  }
  try {
    const made = await answer(data.request, data.files);
    postMessage({ id: data.id, ...made }, [made.numbers.buffer]);
  } catch (e) {
    // Without a text of its own it was ended from outside: where memory is refused there is none.
    postMessage({ id: data.id, crash: text(3) || `${e.message} (at most 1 GiB of memory is given)` });
  }
};
