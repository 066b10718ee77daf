// What the page asks of the service it came from. The key stays in this tab.

const KEY = "weir.coverage.key";

export const key = {
  get: () => sessionStorage.getItem(KEY) ?? "",
  set: (text) => sessionStorage.setItem(KEY, text.trim()),
};

export class Refused extends Error {
  constructor(status, detail, again) {
    super(detail);
    this.status = status;
    this.again = again;
  }
}

/** Posts a question and gives the answer; throws what the service says otherwise. */
export async function ask(path, question, signal) {
  const answer = await fetch(path, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${key.get()}` },
    body: JSON.stringify(question),
    signal,
  });
  const content = await answer.json().catch(() => ({}));
  if (!answer.ok) {
    throw new Refused(answer.status, content.detail ?? answer.statusText, Number(answer.headers.get("retry-after")));
  }
  return content;
}

/** The feed of changes. It is opened again after a loss, each time later, up to a minute. */
export class Live {
  #socket = null;
  #wait = 1_000;
  #timer = 0;
  #watched = null;
  #followed = null;

  /** `heard` gets each message; `state` whether the feed is open. */
  constructor(heard, state) {
    this.heard = heard;
    this.state = state;
  }

  get open() {
    return this.#socket?.readyState === WebSocket.OPEN;
  }

  connect() {
    clearTimeout(this.#timer);
    if (this.#socket) {
      this.#socket.onclose = null;
      this.#socket.close();
    }
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const socket = new WebSocket(`${scheme}://${location.host}/v1/live`, ["weir.coverage", `bearer.${key.get()}`]);
    this.#socket = socket;
    socket.onopen = () => {
      this.#wait = 1_000;
      this.state(true);
      this.#send(this.#watched);
      this.#send(this.#followed);
    };
    socket.onmessage = (event) => this.heard(JSON.parse(event.data));
    socket.onclose = () => {
      this.state(false);
      this.#timer = setTimeout(() => this.connect(), this.#wait);
      this.#wait = Math.min(this.#wait * 2, 60_000);
    };
  }

  watch(request) {
    this.#watched = { type: "watch", ...request };
    this.#send(this.#watched);
  }

  follow(device) {
    this.#followed = { type: "follow", device };
    this.#send(this.#followed);
  }

  #send(message) {
    if (message && this.open) this.#socket.send(JSON.stringify(message));
  }
}
