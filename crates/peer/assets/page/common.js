// What the pages of calls have in common.

import { ask, setToken } from "/page/call.js";

/** Interval and time for which a lost call is made again. */
const AGAIN_MS = 500;
const PATIENCE_MS = 60000;
/** Time for which a connection may be lost before the call is made again. */
export const LOST_MS = 1500;

export const $ = (id) => document.getElementById(id);

/** Takes the token from the fragment, which browsers do not send, and returns what else is there. */
export function open() {
  const given = new URLSearchParams(location.hash.slice(1));
  if (given.has("token")) sessionStorage.setItem("token", given.get("token"));
  setToken(sessionStorage.getItem("token") ?? "");
  history.replaceState(null, "", location.pathname + location.search);
  return given;
}

export function notice(text) {
  $("notice").textContent = text;
  $("notice").hidden = !text;
}

/** Shows what the chosen controller is. */
export function about(menu) {
  $("about").textContent = menu.controllers.find((c) => c.name === $("controller").value)?.summary ?? "";
}

/** Camera and microphone, or the camera alone; null for none. */
export async function openMedia(video, sound) {
  if (!navigator.mediaDevices) return null;
  for (const audio of sound ? [true, false] : [false]) {
    try {
      return await navigator.mediaDevices.getUserMedia({ video, audio });
    } catch {
      // Without a microphone the camera is asked for alone.
    }
  }
  return null;
}

/** Waits for a service that was lost while `isWanted`; whether it answers. Says why not. */
export async function answers(isWanted, why, way) {
  const until = Date.now() + PATIENCE_MS;
  while (isWanted() && Date.now() < until) {
    try {
      await ask("/controllers", { signal: AbortSignal.timeout(AGAIN_MS * 4) });
      return true;
    } catch (e) {
      if (e.status === 401) {
        notice("The service was started again with another token: open the address that it has printed.");
        return false;
      }
    }
    await new Promise((done) => setTimeout(done, AGAIN_MS));
  }
  if (isWanted()) notice(`${why}, and the service does not answer. ${way}.`);
  return false;
}

export const kbps = (bps) => (bps === null || bps === undefined ? "-" : (bps / 1e3).toFixed(0));

export function row(cells) {
  const line = document.createElement("tr");
  for (const text of cells) line.insertCell().textContent = text;
  return line;
}

/** The controller's own values, as rows. */
export function showInternals(internals) {
  const shown = (value) => (value === null ? "-" : Number(value.toPrecision(5)).toString());
  $("internals").replaceChildren(...internals.slice(0, 24).map(([name, value]) => row([name.replaceAll("_", " "), shown(value)])));
}

/** Has the browser save a file. */
export function download(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

/** What a run can be saved as: the button, and what is said of it. */
const FORMS = {
  "report.html": ["Report", "The report is a page with both ends' numbers and plots."],
  "scenario.toml": ["Scenario", "The scenario repeats link, codec, controllers and limits in the simulator: weir run FILE."],
  "packets.pcapng": ["Packets", "Packets are RTP and RTCP headers, for Wireshark."],
};

/** Fills the fieldset `saves` with buttons for these files of the run that `of` returns. */
export function saves(files, of) {
  const legend = document.createElement("legend");
  legend.textContent = "Save the run";
  const help = document.createElement("p");
  [help.id, help.className] = ["about-saves", "help"];
  help.textContent = ["While it runs or after it.", ...files.map((file) => FORMS[file][1])].join(" ");
  const buttons = files.map((file) => {
    const button = document.createElement("button");
    [button.id, button.type, button.textContent, button.dataset.file] = [`save-${file.split(".")[0]}`, "button", FORMS[file][0], file];
    button.setAttribute("aria-describedby", help.id);
    button.addEventListener("click", () => save(button, of));
    return button;
  });
  $("saves").append(legend, ...buttons, help);
}

async function save(button, of) {
  button.disabled = true;
  try {
    const { blob, name } = await (await of()).file(button.dataset.file);
    download(blob, name);
    document.body.dataset.saved = `${name} ${blob.size}`;
    notice("");
  } catch (e) {
    notice(`Not saved: ${e.status === 404 ? "the service does not have this call any more" : e.message}.`);
  }
  button.disabled = false;
}
