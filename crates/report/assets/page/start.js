// Colours, keys in tables, and the page's check of itself.
document.querySelectorAll("line[data-style]").forEach(paint);
const redraw = () => redraws.forEach(again => again());
const setTheme = theme => {
  root.dataset.theme = theme;
  document.querySelectorAll("[data-set-theme]").forEach(b => b.setAttribute("aria-pressed", String(b.dataset.setTheme === theme)));
  redraw();
};
document.querySelectorAll("[data-set-theme]").forEach(b => b.addEventListener("click", () => {
  setTheme(b.dataset.setTheme);
  // A file opened from disk may have no storage.
  try { localStorage.setItem("weir-theme", b.dataset.setTheme); } catch { }
}));
let stored = null;
try { stored = localStorage.getItem("weir-theme"); } catch { }
const theme = asked("theme");
setTheme(theme === "light" || theme === "dark" ? theme : stored ?? "auto");
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
addEventListener("beforeprint", redraw);
addEventListener("afterprint", redraw);

// With #check in the address: for each plot how many of its pixels have the colour of each of its lines, and what the first
// plot's downloads hold.
if (asked("check") != null || location.hash.startsWith("#check")) setTimeout(() => {
  for (const { u, figure } of plots) {
    const { width, height } = u.ctx.canvas, seen = u.ctx.getImageData(0, 0, width, height).data;
    const wanted = u.places.map(at => {
      const s = u.series[at], c = element("canvas", { width: 1, height: 1 }).getContext("2d");
      c.fillStyle = typeof s.stroke === "function" ? s.stroke(u, at) : s.stroke;
      c.fillRect(0, 0, 1, 1);
      return c.getImageData(0, 0, 1, 1).data;
    });
    const counts = wanted.map(() => 0);
    for (let i = 0; i < seen.length; i += 4) {
      if (seen[i + 3] < 200) continue;
      wanted.forEach((c, k) => {
        if (Math.abs(seen[i] - c[0]) + Math.abs(seen[i + 1] - c[1]) + Math.abs(seen[i + 2] - c[2]) < 24) counts[k]++;
      });
    }
    figure.dataset.drawn = counts.join(" ");
  }
  const first = document.querySelector(".charts .menu"), scatters = document.querySelector(".against .menu");
  const held = (id, text) => document.body.append(element("pre", { id, hidden: "" }, text));
  if (first) held("check-csv", csv(first.rows()));
  if (first) held("check-svg", first.svg());
  if (scatters) held("check-points", csv(scatters.rows()));
  if (scatters) toPng(scatters.svg(), blob => {
    root.dataset.png = blob?.size ?? 0;
    root.dataset.checked = plots.length;
  });
  else root.dataset.checked = plots.length;
}, 300);
