import { Weir } from "./weir.js";

export { Fault, Weir } from "./weir.js";

/** Loads the simulator from the file beside this module, or from what is given. */
export async function load(source) {
  if (source !== undefined) return Weir.from(source);
  const address = new URL("weir.wasm", import.meta.url);
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(`${address}: the server answers ${answer.status}`);
  // Servers that do not know the media type of WebAssembly are fine.
  return Weir.from(await answer.arrayBuffer());
}
