import { HttpSession } from './http-client.mjs';

/** Sessions that are opened at the same time; more would measure the queue of new connections. */
const OPENING = 20;

/** Many clients of one server, each with a session of its own. */
export class HttpLoad {
  #sessions;
  #tool;
  /** Connections on which nothing is asked just now; who was asked longest ago stands first. */
  #free = [];
  #lastId = 0;
  /** Ends whatever is being waited for, now or next, when a connection fails. */
  #fail = (error) => {
    this.#failure ??= error;
    this.#reject(error);
  };
  #failure;
  #reject = () => {};

  constructor(server, { sessions, tool }) {
    this.#tool = tool;
    this.#sessions = Array.from({ length: sessions }, () => new HttpSession(server, this.#fail));
  }

  /** Opens all sessions, with at least `connections` connections in all. */
  async open(connections) {
    const each = Math.ceil(connections / this.#sessions.length);
    await this.#forEach((session) => session.open(each));
    this.#free = this.#sessions.flatMap((session) => session.connections);
  }

  async listen() {
    await this.#forEach((session) => session.listen());
  }

  /** Calls the tool `count` times, each time on the next connection. Milliseconds, of each call and of the whole. */
  call({ count, inFlight }) {
    const durations = new Float64Array(count);
    let sent = 0;
    let answered = 0;
    return this.#operation((resolve) => {
      const startedAt = performance.now();
      const next = () => {
        const index = sent;
        sent += 1;
        const place = this.#free.shift();
        this.#lastId += 1;
        const text = `call ${this.#lastId}`;
        const sentAt = performance.now();
        const done = () => {
          const answeredAt = performance.now();
          durations[index] = answeredAt - sentAt;
          this.#free.push(place);
          answered += 1;
          if (sent < count) next();
          if (answered === count) resolve({ durations, elapsed: answeredAt - startedAt });
        };
        place.session.call({ connection: place.connection, tool: this.#tool, id: this.#lastId, text, done });
      };
      while (sent < Math.min(inFlight, count)) next();
    });
  }

  /** Ends all sessions, as clients do that leave. */
  async end() {
    await this.#forEach((session) => session.end());
  }

  close() {
    for (const session of this.#sessions) session.close();
  }

  #forEach(act) {
    return this.#operation(async (resolve, reject) => {
      try {
        for (let from = 0; from < this.#sessions.length; from += OPENING) {
          await Promise.all(this.#sessions.slice(from, from + OPENING).map(act));
        }
        resolve();
      } catch (error) {
        reject(error);
      }
    });
  }

  #operation(run) {
    return new Promise((resolve, reject) => {
      this.#reject = reject;
      if (this.#failure === undefined) run(resolve, reject);
      else reject(this.#failure);
    });
  }
}
