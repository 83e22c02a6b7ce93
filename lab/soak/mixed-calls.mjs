import { outcomeOf } from './client.mjs';
import { pick } from './random.mjs';

const LARGE_TEXT = 'a large text '.repeat(4_000);

/** Out of how many calls one is of this kind, on average; all others are answered at once. */
const ONE_IN = {
  die: 25_000,
  hang: 2_000,
  large: 1_000,
  unknown: 1_000,
  status: 5_000,
  list: 5_000,
  report: 200,
  cancelled: 100,
};

/** Calls as fast as they are answered, and what each should have come to. */
export class MixedCalls {
  made = 0;
  busyMs = 0;
  ends = new Map();
  /** What must not have been, as texts; the first of them. */
  wrong = [];
  #client;
  #random;
  #keys;
  #inFlight;
  #open = 0;
  #target = 0;
  #done = () => {};

  constructor({ client, random, keys, inFlight }) {
    this.#client = client;
    this.#random = random;
    this.#keys = keys;
    this.#inFlight = inFlight;
  }

  /** Resolves when so many calls were made, and all of them have ended. */
  async callUntil(target) {
    const startedAt = performance.now();
    this.#target = target;
    await new Promise((resolve) => {
      this.#done = resolve;
      while (this.#open < this.#inFlight && this.made < target) this.#next();
    });
    this.busyMs += performance.now() - startedAt;
  }

  #next() {
    this.made += 1;
    this.#open += 1;
    const kind = this.#kind();
    const key = pick(this.#random, this.#keys);
    if (kind === 'status') this.#request(kind, 'tools/call', { name: 'trunkline__status', arguments: {} }, isDone);
    else if (kind === 'list') this.#request(kind, 'tools/list', {}, isDone);
    else if (kind === 'unknown') this.#request(kind, 'tools/call', { name: `${key}__none`, arguments: {} }, isRefused);
    else this.#call(kind, key);
  }

  #kind() {
    let share = this.#random();
    for (const [kind, oneIn] of Object.entries(ONE_IN)) {
      share -= 1 / oneIn;
      if (share < 0) return kind;
    }
    return 'echo';
  }

  #call(kind, key) {
    const nonce = this.made;
    const text = kind === 'large' ? LARGE_TEXT : '';
    const isCancelled = kind === 'cancelled';
    const tool = kind === 'large' || isCancelled ? 'echo' : kind;
    const params = {
      name: `${key}__${tool}`,
      arguments: { nonce, text, ...(isCancelled && { delayMs: this.#random() * 4 }) },
    };
    if (kind === 'report') params._meta = { progressToken: nonce };
    const id = this.#request(kind, 'tools/call', params, (message) => {
      const { kind: end, text: answer, reason } = outcomeOf(message);
      if (end === 'answered') return kind !== 'hang' && kind !== 'die' && answer === `${key} ${nonce}${text}`;
      // Its process may have been killed by another call.
      return end === 'unknown' && (reason === 'child_exited' || (kind === 'hang' && reason === 'timeout'));
    });
    if (isCancelled) setTimeout(() => this.#client.cancel(id) && this.#ended('taken back'), this.#random() * 4);
  }

  #request(kind, method, params, isRight) {
    return this.#client.request(method, params, (message) => {
      const { kind: end, reason = '' } = outcomeOf(message);
      if (!isRight(message) && this.wrong.length < 10)
        this.wrong.push(`${kind}: ${JSON.stringify(message).slice(0, 300)}`);
      this.#ended(method === 'tools/call' ? `${end} ${end === 'error' ? '' : reason}`.trim() : 'answered');
    });
  }

  #ended(end) {
    this.ends.set(`ended: ${end}`, (this.ends.get(`ended: ${end}`) ?? 0) + 1);
    this.#open -= 1;
    if (this.made < this.#target) this.#next();
    else if (this.#open === 0) this.#done();
  }
}

function isDone({ result }) {
  return result !== undefined && result.isError !== true;
}

/** By the server, if it is there. */
function isRefused(message) {
  return message.error?.code === -32602 || outcomeOf(message).reason === 'child_exited';
}
