import { pick } from '../random.mjs';

/**
 * Sorts of garbage: messages that are well formed and make no sense, output that is no message, messages that are
 * broken, and all of it.
 */
export const SORTS = ['senseless', 'noise', 'broken', 'all'];

const NEWLINE = Buffer.from('\n');
const MIB = 1024 * 1024;
const LONGEST_LINE_BYTES = 6 * MIB;
/** Out of how many lines one is very long or very deep. */
const LARGE_ONE_IN = 2_000;
const DEEP_ONE_IN = 1_000;
const DEEPEST = 200_000;
const KEPT_IDS = 64;

const METHODS = [
  'notifications/message',
  'notifications/progress',
  'notifications/cancelled',
  'notifications/tools/list_changed',
  'notifications/resources/list_changed',
  'notifications/resources/updated',
  'notifications/tasks/status',
  'notifications/elicitation/complete',
  'notifications/x',
  'sampling/createMessage',
  'elicitation/create',
  'roots/list',
  'ping',
  'tools/call',
  'initialize',
  '__proto__',
  '',
];
const TEXTS = [
  '',
  'text',
  'Zürich 🦊',
  '\u0000\u001b[31m',
  '\u202e',
  '__proto__',
  'constructor',
  '\ud800',
  '{"jsonrpc":"2.0"}',
];
const NUMBERS = [0, -0, -1, 1, 1.5, 2 ** 53 + 2, 1e308, 64];
const NOISE = [
  '',
  ' ',
  '\r',
  'Server running on stdio',
  '[dotenv] injected 3 variables',
  '[1,2]',
  '[]',
  '[[]]',
  '"text"',
  'null',
  '12',
  'undefined',
  '\u001b[2J',
];

/** Lines of garbage, each with its newline. */
export class GarbageLines {
  #random;
  /** Of calls, so that some garbage seems to answer them. */
  #ids = [1];

  constructor(random) {
    this.#random = random;
  }

  /** There is a call that may be answered with garbage. */
  asked(id) {
    this.#ids.push(id);
    if (this.#ids.length > KEPT_IDS) this.#ids.shift();
  }

  /** Entries of a list of tools that are none. */
  tools() {
    return Array.from({ length: this.#random() * 3 }, () => this.#value(2));
  }

  line(sort) {
    const kind = sort === 'all' ? pick(this.#random, SORTS.slice(0, 3)) : sort;
    return Buffer.concat([this.#bytes(kind), NEWLINE]);
  }

  #bytes(kind) {
    switch (kind) {
      case 'noise':
        return Buffer.from(this.#chance(0.5) ? pick(this.#random, NOISE) : `log ${JSON.stringify(this.#value(2))}`);
      case 'senseless':
        return this.#chance(1 / LARGE_ONE_IN) ? this.#large() : Buffer.from(JSON.stringify(this.#senseless()));
      default:
        return this.#broken();
    }
  }

  #broken() {
    if (this.#chance(1 / DEEP_ONE_IN)) return this.#deep();
    const bytes = Buffer.from(JSON.stringify(this.#senseless()));
    const at = this.#below(bytes.length);
    switch (this.#below(7)) {
      case 0:
        return bytes.subarray(0, at);
      case 1:
        return Buffer.concat([bytes.subarray(0, at), bytes.subarray(this.#below(bytes.length))]);
      case 2:
        return Buffer.concat([bytes, bytes.subarray(at)]);
      case 3:
        // Half of such bytes are no UTF-8.
        for (let times = this.#below(4); times >= 0; times -= 1) bytes[this.#below(bytes.length)] = this.#below(256);
        return bytes;
      case 4:
        return Buffer.concat([Buffer.from('{'), this.#randomBytes(this.#below(200))]);
      case 5:
        return Buffer.from(JSON.stringify(this.#misshapen()));
      default:
        return this.#randomBytes(this.#below(200));
    }
  }

  /** By the rules of JSON-RPC, and of nothing else. */
  #senseless() {
    const message = { jsonrpc: '2.0' };
    const isAnswer = this.#chance(0.3);
    if (isAnswer || this.#chance(0.4)) message.id = this.#id();
    if (!isAnswer) {
      message.method = pick(this.#random, METHODS);
      message.params = this.#params();
    } else if (this.#chance(0.5)) {
      message.result = { ...this.#value(3) };
    } else {
      message.error = { code: this.#below(1e5), message: pick(this.#random, TEXTS), data: this.#value(2) };
    }
    return this.#chance(0.02) ? Array.from({ length: 1 + this.#below(99) }, () => message) : message;
  }

  /** An object that nearly is a message, with members of any kind. */
  #misshapen() {
    const message = { jsonrpc: this.#chance(0.8) ? '2.0' : this.#value(1) };
    for (const member of ['id', 'method', 'params', 'result', 'error']) {
      if (this.#chance(0.5)) message[member] = this.#value(3);
    }
    return this.#chance(0.05) ? Array.from({ length: this.#below(120) }, () => message) : message;
  }

  #params() {
    return {
      _meta: { progressToken: this.#id() },
      progressToken: this.#id(),
      progress: this.#value(0),
      requestId: this.#id(),
      taskId: this.#value(0),
      level: 'info',
      data: this.#value(2),
      uri: 'garbage://1',
    };
  }

  /** Often that of a call that was made, or a near one. */
  #id() {
    const known = pick(this.#random, this.#ids);
    switch (this.#below(5)) {
      case 0:
        return known;
      case 1:
        return known + this.#below(20) - 10;
      case 2:
        return String(known);
      case 3:
        return this.#below(1e9);
      default:
        return pick(this.#random, TEXTS);
    }
  }

  /** Anything that JSON can say, `depth` levels deep. */
  #value(depth) {
    switch (this.#below(depth > 0 ? 6 : 4)) {
      case 0:
        return pick(this.#random, TEXTS);
      case 1:
        return pick(this.#random, NUMBERS);
      case 2:
        return pick(this.#random, [null, true, false]);
      case 3:
        return this.#below(1e9);
      case 4:
        return Array.from({ length: this.#below(4) }, () => this.#value(depth - 1));
      default:
        return Object.fromEntries(Array.from({ length: this.#below(4) }, () => [this.#key(), this.#value(depth - 1)]));
    }
  }

  #key() {
    return pick(this.#random, [
      'content',
      'tools',
      'task',
      'isError',
      'nextCursor',
      '_meta',
      'message',
      'code',
      ...TEXTS,
    ]);
  }

  #large() {
    const text = 'x'.repeat(LONGEST_LINE_BYTES ** this.#random());
    return Buffer.from(
      JSON.stringify({ jsonrpc: '2.0', id: this.#id(), result: { content: [{ type: 'text', text }] } }),
    );
  }

  #deep() {
    const depth = this.#below(DEEPEST);
    const [open, close] = this.#chance(0.5) ? ['[', ']'] : ['{"a":', '}'];
    const value = `${open.repeat(depth)}1${close.repeat(depth)}`;
    return Buffer.from(`{"jsonrpc":"2.0","id":${JSON.stringify(this.#id())},"result":${value}}`);
  }

  #randomBytes(length) {
    return Buffer.from(Uint8Array.from({ length }, () => this.#below(256)));
  }

  #chance(share) {
    return this.#random() < share;
  }

  #below(limit) {
    return Math.floor(this.#random() * limit);
  }
}
