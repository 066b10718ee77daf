// The setting in the address: after the #, which browsers do not send to the server.

/** Longest text that is read from an address. */
const MOST_CHARACTERS = 1 << 20;

const to64 = (bytes) => btoa(Array.from(bytes, (b) => String.fromCharCode(b)).join("")).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
const from64 = (text) => Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));

async function pack(text) {
  const packed = new Blob([text]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  return to64(new Uint8Array(await new Response(packed).arrayBuffer()));
}

async function unpack(packed) {
  const reader = new Blob([from64(packed)]).stream().pipeThrough(new DecompressionStream("deflate-raw")).getReader();
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let text = "";
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    text += decoder.decode(part.value, { stream: true });
    // A short address can hold a text without end.
    if (text.length > MOST_CHARACTERS) {
      await reader.cancel();
      throw new Error("its scenario is larger than 1 MiB");
    }
  }
  return text + decoder.decode();
}

/** The fragment for a setting; its text is null if it is the shipped one. */
export async function write({ name, text, variant, controllers, seed, flow }) {
  const fields = new URLSearchParams({ scenario: name });
  if (variant) fields.set("variant", variant);
  if (controllers) fields.set("controllers", controllers.join(","));
  if (seed !== null) fields.set("seed", seed);
  if (flow) fields.set("flow", flow);
  if (text !== null) fields.set("text", await pack(text));
  return `#${fields.toString().replaceAll("%2F", "/").replaceAll("%2C", ",")}`;
}

/** The setting in a fragment, with null for what it does not say. Fails on a text that is none. */
export async function read(fragment) {
  const fields = new URLSearchParams(fragment.slice(1));
  const seed = fields.get("seed");
  const packed = fields.get("text");
  return {
    name: fields.get("scenario"),
    text: packed === null ? null : await unpack(packed),
    variant: fields.get("variant"),
    controllers: fields.get("controllers")?.split(",").filter(Boolean) ?? null,
    seed: seed !== null && /^\d{1,15}$/.test(seed) ? Number(seed) : null,
    flow: fields.get("flow"),
  };
}
