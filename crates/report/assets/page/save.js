// Downloads: CSV, SVG and PNG, made in the page.
function save(name, type, content) {
  const address = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  const link = element("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
const fileName = text => text.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "");
const field = v => v == null ? "" : typeof v === "number" ? shortest(v) : /[",\r\n]/.test(v) ? `"${v.replaceAll('"', '""')}"` : v;
const column = (name, unit) => unit ? `${name} (${unit})` : name;
const csv = rows => rows.map(row => row.map(field).join(",")).join("\r\n") + "\r\n";

// A copy of a drawing that stands by itself: colours in force in place of CSS variables, a title, a legend and a background.
function standalone(svg, title, legend) {
  const copy = svg.cloneNode(true);
  const width = svg.viewBox.baseVal.width, height = svg.viewBox.baseVal.height;
  copy.querySelectorAll("[data-tip], [aria-label=tip]").forEach(e => e.remove());
  const entries = legend.length ? 26 : 0;
  const out = drawn("svg", { xmlns: SVG, viewBox: `0 0 ${width} ${height + 34 + entries}`, width, height: height + 34 + entries, role: "img", "aria-label": title, "font-family": FONT, "font-size": 12, fill: "var(--text)", color: "var(--text)" },
    drawn("title", {}, title), drawn("rect", { width: "100%", height: "100%", fill: "var(--bg)" }),
    drawn("text", { x: 14, y: 22, "font-size": 15, "font-weight": 600 }, title));
  let x = 14;
  for (const { label, style } of legend) {
    out.append(drawn("line", { x1: x, x2: x + 26, y1: 42, y2: 42, stroke: colour(style), "stroke-width": 2, "stroke-dasharray": dash(style).join(" ") }),
      drawn("text", { x: x + 32, y: 46 }, label));
    x += 52 + label.length * 6.8;
  }
  copy.setAttribute("x", 0);
  copy.setAttribute("y", 34 + entries);
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  out.append(copy);
  const text = new XMLSerializer().serializeToString(out);
  return text.replace(/var\((--[a-z0-9]+)\)/g, (whole, name) => variable(name) || whole);
}

function toPng(text, done) {
  const image = new Image();
  image.onload = () => {
    const canvas = element("canvas", { width: image.width * 2, height: image.height * 2 });
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob(done, "image/png");
  };
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
}

// The menu of a plot. `rows` gives the table behind it, `svg` its drawing as text.
function menu(title, rows, svg) {
  const name = () => fileName(typeof title === "function" ? title() : title);
  const entry = (label, what, act) => {
    const button = element("button", { type: "button", "aria-label": `${label}: ${what}` }, label);
    button.addEventListener("click", () => { act(); details.open = false; });
    return button;
  };
  const details = element("details", { class: "menu" }, element("summary", { "aria-label": `Download: ${typeof title === "function" ? "this plot" : title}`, title: "Download" }, "\u2913"),
    element("div", { class: "entries" },
      entry("CSV", "the plotted values", () => save(`${name()}.csv`, "text/csv", csv(rows()))),
      entry("SVG", "the plot", () => save(`${name()}.svg`, "image/svg+xml", svg())),
      entry("PNG", "the plot", () => toPng(svg(), blob => save(`${name()}.png`, "image/png", blob)))));
  details.addEventListener("keydown", e => {
    if (e.key !== "Escape") return;
    details.open = false;
    details.firstChild.focus();
  });
  details.addEventListener("focusout", e => details.contains(e.relatedTarget) || setTimeout(() => details.open = false, 150));
  details.rows = rows;
  details.svg = svg;
  return details;
}

document.getElementById("runs-csv")?.addEventListener("click", () => save("runs.csv", "text/csv", data.csv));
document.querySelectorAll("[data-save-file]").forEach(b => b.addEventListener("click", () =>
  save(b.dataset.saveFile, "application/toml", b.closest("details").querySelector("pre").textContent)));
document.querySelectorAll("[data-copy]").forEach(b => b.addEventListener("click", async () => {
  // A file opened from disk may have no clipboard; the command can be marked by hand.
  try {
    await navigator.clipboard.writeText(b.previousElementSibling.textContent);
    b.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(b.previousElementSibling);
  }
}));
