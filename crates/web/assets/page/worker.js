// One simulator: a WebAssembly instance that answers requests one after the other.
//
// Messages in: { module }, then { id, request }. Messages out: { ready }, then for each request { id, ok, text, about,
// numbers } or, when the program has stopped, { id, crash }; it cannot be used after that.

let weir = null;

const bytes = (which) => new Uint8Array(weir.memory.buffer, weir.weir_output(which), weir.weir_output_len(which));
const text = (which) => new TextDecoder().decode(bytes(which));

function answer(request) {
  const given = new TextEncoder().encode(JSON.stringify(request));
  const at = weir.weir_reserve(given.length);
  if (at === 0) {
    const message = `the scenario has ${given.length} bytes, and at most 16 MiB are read`;
    return { ok: false, text: JSON.stringify({ kind: "request", message }), about: "", numbers: new Float64Array(0) };
  }
  new Uint8Array(weir.memory.buffer, at, given.length).set(given);
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
    const made = answer(data.request);
    postMessage({ id: data.id, ...made }, [made.numbers.buffer]);
  } catch (e) {
    // Without a text of its own it was ended from outside: where memory is refused there is none.
    postMessage({ id: data.id, crash: text(3) || `${e.message} (at most 1 GiB of memory is given)` });
  }
};
