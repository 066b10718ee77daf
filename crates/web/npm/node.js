import { readFile } from "node:fs/promises";
import { Weir } from "./weir.js";

export { Fault, Weir } from "./weir.js";

/** Loads the simulator from the package's own file, or from what is given. */
export async function load(source) {
  return Weir.from(source ?? (await readFile(new URL("weir.wasm", import.meta.url))));
}
