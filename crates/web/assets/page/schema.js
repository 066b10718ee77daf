// What may stand at a place of a scenario file, by its JSON schema.

/** The tables around a place, as keys: from the last header before it and the keys before it in its line. */
export function context(text, at) {
  const before = text.slice(0, at).split("\n");
  const line = before.at(-1);
  let header = [];
  for (const above of before.slice(0, -1)) {
    const found = /^\s*\[\[?\s*([^\]#]+?)\s*\]\]?/.exec(above);
    if (found && !/^\s*\[\s*[{"[]/.test(above)) header = keys(found[1]);
  }
  const open = /^\s*\[\[?([\w$."-]*)$/.exec(line);
  if (open) return { kind: "header", path: keys(open[1]).slice(0, -1), word: open[1].split(".").at(-1) };
  // A table of a list that is written over several lines.
  const member = /^\s*\{(?:.*,)?\s*([\w.-]*)$/.exec(line);
  const list = member && before.slice(0, -1).reverse().map((above) => /^\s*([\w.-]+)\s*=\s*\[\s*$/.exec(above)).find(Boolean);
  if (member) return list ? { kind: "key", path: [...header, ...keys(list[1])], word: member[1] } : null;
  // Inside an inline table: the keys before it lead there.
  const value = /^\s*([\w."-]+)\s*=\s*(.*)$/.exec(line);
  const inner = value && /^(?:\[\s*)?\{(?:.*,)?\s*([\w.-]*)$/.exec(value[2]);
  if (inner) return { kind: "key", path: [...header, ...keys(value[1])], word: inner[1] };
  const inside = value && /([\w-]+)\s*=\s*"?([\w-]*)$/.exec(value[2]);
  if (inside && value[2].includes("{")) return { kind: "value", path: [...header, ...keys(value[1]), inside[1]], word: inside[2] };
  if (value) return { kind: "value", path: [...header, ...keys(value[1])], word: /"?([\w-]*)$/.exec(value[2])[1] };
  const dotted = /^\s*([\w.-]*)$/.exec(line);
  if (!dotted) return null;
  const parts = keys(dotted[1]);
  return { kind: "key", path: [...header, ...(dotted[1].includes(".") ? parts.slice(0, -1) : [])], word: dotted[1].split(".").at(-1) };
}

const keys = (path) => path.split(".").map((key) => key.trim().replace(/^["']|["']$/g, "")).filter((key) => key !== "");

export class Schema {
  #root;
  #controllers;

  constructor(root, controllers) {
    this.#root = root;
    this.#controllers = controllers;
  }

  /** A schema and all that it may be instead. */
  #spread(schema, depth = 0) {
    if (!schema || typeof schema !== "object" || depth > 8) return [];
    const from = schema.$ref ? this.#spread(this.#root.$defs?.[schema.$ref.split("/").at(-1)], depth + 1) : [];
    const others = [...(schema.anyOf ?? []), ...(schema.oneOf ?? []), ...(schema.allOf ?? [])];
    const items = schema.items ? this.#spread(schema.items, depth + 1) : [];
    return [schema, ...from, ...others.flatMap((s) => this.#spread(s, depth + 1)), ...items];
  }

  #at(path) {
    let here = this.#spread(this.#root);
    for (const key of path) {
      here = here.flatMap((s) => {
        const next = s.properties?.[key] ?? (typeof s.additionalProperties === "object" ? s.additionalProperties : null);
        return this.#spread(next);
      });
    }
    return here;
  }

  /** What can stand there: { text, about }. */
  offers(place) {
    const all = new Map();
    const add = (text, about) => all.has(text) || all.set(text, (about ?? "").split("\n")[0]);
    const [table, name] = place.path;
    if (place.kind === "value") {
      if (place.path.at(-1) === "controller" || table === "compare") this.#controllers.forEach((c) => add(c.name, c.summary));
      if (place.path.at(-1) === "controller") add("$controller", "the one that is compared");
      for (const s of this.#at(place.path)) {
        if (s.const !== undefined) add(String(s.const), s.description);
        s.enum?.forEach((v) => add(String(v), s.description));
      }
    } else {
      for (const s of this.#at(place.path)) {
        for (const [key, of] of Object.entries(s.properties ?? {})) add(key, of.description ?? this.#spread(of).find((x) => x.description)?.description);
      }
      if (table === "controllers" && place.path.length === 1) this.#controllers.forEach((c) => add(c.name, c.summary));
      if (table === "controllers" && place.path[2] === "params") {
        const found = this.#controllers.find((c) => c.name === name);
        found?.params.forEach((p) => add(p.name, `${p.default} ${p.unit}: ${p.doc}`));
      }
    }
    const word = place.word.toLowerCase();
    const fits = [...all].filter(([text]) => text.toLowerCase().includes(word) && text.toLowerCase() !== word);
    const rank = ([text]) => (text.toLowerCase().startsWith(word) ? 0 : 1);
    return fits.sort((a, b) => rank(a) - rank(b)).slice(0, 40).map(([text, about]) => ({ text, about, quote: place.kind === "value" }));
  }
}
