// Colours, and the order of each table.
const root = document.documentElement;
const setTheme = theme => {
  root.dataset.theme = theme;
  document.querySelectorAll("[data-set-theme]").forEach(b => b.setAttribute("aria-pressed", String(b.dataset.setTheme === theme)));
};
document.querySelectorAll("[data-set-theme]").forEach(b => b.addEventListener("click", () => {
  setTheme(b.dataset.setTheme);
  // A file opened from disk may have no storage.
  try { localStorage.setItem("weir-theme", b.dataset.setTheme); } catch { }
}));
try { setTheme(localStorage.getItem("weir-theme") ?? "auto"); } catch { }

document.querySelectorAll("table.board").forEach(table => {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  // A value that is absent stands last in either direction.
  const sortBy = (of, down) => {
    const all = [...body.rows].map(row => [of(row), row]);
    all.sort(([a], [b]) => a === null ? (b === null ? 0 : 1) : b === null ? -1 : down ? b - a : a - b);
    body.append(...all.map(([, row]) => row));
  };
  heads.filter(h => h.dataset.sort).forEach(head => head.querySelector("button").addEventListener("click", () => {
    const down = head.getAttribute("aria-sort") === "ascending";
    heads.forEach(h => h.dataset.sort && h.setAttribute("aria-sort", "none"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const at = head.dataset.sort;
    const value = row => {
      const text = row.cells[3 + Number(at)].dataset.key;
      return text === "" ? null : Number(text);
    };
    sortBy(at === "place" ? row => Number(row.dataset.place) : value, down);
  }));
});
