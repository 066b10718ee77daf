// The editor: a text field with line numbers, a marked line and completions.

import { context } from "./schema.js";

export class Editor {
  #text;
  #lines;
  #names;
  #offers = [];
  #chosen = 0;
  #word = "";
  #marked = null;
  #count = 0;
  schema = null;

  constructor(text, lines, names, { changed, run }) {
    this.#text = text;
    this.#lines = lines;
    this.#names = names;
    text.addEventListener("input", () => {
      this.#number();
      changed(text.value);
      this.#complete(false);
    });
    text.addEventListener("scroll", () => {
      lines.scrollTop = text.scrollTop;
      if (this.#offers.length > 0) this.#place();
    });
    text.addEventListener("blur", () => this.close());
    text.addEventListener("click", () => this.close());
    text.addEventListener("keydown", (e) => this.#key(e, run));
    // Before the field loses the focus.
    names.addEventListener("pointerdown", (e) => {
      const item = e.target.closest("li");
      e.preventDefault();
      if (item) this.#take(Number(item.dataset.index));
    });
  }

  get value() {
    return this.#text.value;
  }
  set value(text) {
    if (text === this.#text.value) return;
    const { selectionStart, selectionEnd, scrollTop } = this.#text;
    this.#text.value = text;
    this.#text.setSelectionRange(Math.min(selectionStart, text.length), Math.min(selectionEnd, text.length));
    this.#text.scrollTop = scrollTop;
    this.#number();
  }

  /** Marks a line, or none. */
  mark(line) {
    this.#marked = line;
    this.#number(true);
  }
  /** Puts the cursor on a place. */
  go(line, column) {
    const start = this.#text.value.split("\n").slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
    this.#text.focus();
    this.#text.setSelectionRange(start + column - 1, start + column - 1);
    this.#text.scrollTop = Math.max(0, (line - 6) * this.#rowHeight());
  }
  #rowHeight() {
    return parseFloat(getComputedStyle(this.#text).lineHeight);
  }

  #number(always = false) {
    const count = this.#text.value.split("\n").length;
    if (count === this.#count && !always) return;
    this.#count = count;
    const rows = [];
    for (let i = 1; i <= count; i++) {
      const row = document.createElement(i === this.#marked ? "b" : "span");
      row.textContent = i;
      rows.push(row, "\n");
    }
    this.#lines.replaceChildren(...rows);
    this.#lines.scrollTop = this.#text.scrollTop;
  }

  close() {
    this.#offers = [];
    this.#names.hidden = true;
    this.#text.removeAttribute("aria-activedescendant");
  }

  #complete(asked) {
    const at = this.#text.selectionStart;
    const place = this.schema && at === this.#text.selectionEnd ? context(this.#text.value, at) : null;
    if (!place || (!asked && place.word.length < 1)) return this.close();
    this.#offers = this.schema.offers(place);
    this.#word = place.word;
    this.#chosen = 0;
    if (this.#offers.length === 0) return this.close();
    this.#names.replaceChildren(...this.#offers.map(({ text, about }, index) => {
      const item = document.createElement("li");
      const small = document.createElement("small");
      small.textContent = about;
      item.id = `name-${index}`;
      item.dataset.index = index;
      item.role = "option";
      item.append(text, small);
      return item;
    }));
    this.#names.hidden = false;
    this.#select(0);
    this.#place();
  }

  /** Puts the list beside the cursor. */
  #place() {
    const before = this.#text.value.slice(0, this.#text.selectionStart).split("\n");
    const character = 7.85;
    const editor = this.#text.parentElement;
    const top = this.#text.offsetTop + before.length * this.#rowHeight() + 8 - this.#text.scrollTop;
    const below = top + Math.min(this.#names.offsetHeight, 224) < editor.clientHeight;
    const left = this.#text.offsetLeft + (before.at(-1).length - this.#word.length) * character - this.#text.scrollLeft;
    this.#names.style.left = `${Math.max(0, Math.min(left, editor.clientWidth - this.#names.offsetWidth))}px`;
    this.#names.style.top = `${below ? top : Math.max(0, top - this.#rowHeight() - 8 - this.#names.offsetHeight)}px`;
  }

  #select(index) {
    this.#chosen = (index + this.#offers.length) % this.#offers.length;
    [...this.#names.children].forEach((item, i) => item.setAttribute("aria-selected", i === this.#chosen));
    this.#names.children[this.#chosen].scrollIntoView({ block: "nearest" });
    this.#text.setAttribute("aria-activedescendant", `name-${this.#chosen}`);
  }

  #take(index) {
    const { text, quote } = this.#offers[index];
    const at = this.#text.selectionStart;
    const from = at - this.#word.length;
    const mark = (place) => (quote && this.#text.value[place] !== '"' ? '"' : "");
    this.#text.setRangeText(mark(from - 1) + text + mark(at), from, at, "end");
    this.close();
    this.#text.dispatchEvent(new Event("input"));
    this.close();
  }

  #key(e, run) {
    if (e.ctrlKey && e.key === " ") {
      e.preventDefault();
      return this.#complete(true);
    }
    if ((e.ctrlKey || e.metaKey) && e.key === "Enter") {
      e.preventDefault();
      return run();
    }
    if (this.#offers.length === 0) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
    if (step) this.#select(this.#chosen + step);
    else if (e.key === "Enter" || e.key === "Tab") this.#take(this.#chosen);
    else if (e.key === "Escape") this.close();
    else return;
    e.preventDefault();
  }
}
