import type { CallEnd, CallObservation, CallObserver, ObservedCall } from '../../gateway/call-feed.js';
import { readText } from '../../json/json-text.js';
import { asText, isRecord, parseJson } from '../../json/json-value.js';
import { escapeUnsafe, printable, quotedPath } from '../../json/printable.js';
import { type SplicedMessage, splice, splicedLength } from '../../json/splice.js';
import { METHODS } from '../../mcp/methods.js';
import { createCleaner } from '../../record/clean-message.js';
import type { RecordedGateway } from '../../record/record-to.js';
import type { CallDetail, CallRow, CallsEvent, Failures } from '../control.js';

/** Time between two events with calls. */
const FRAME_MS = 100;
/** Calls of which a row is sent: in one event, and in a second. The others are counted. */
const MAX_ROWS = 200;
const ROWS_PER_MS = 0.5;
/** Latest calls whose messages are kept, and calls in flight whose messages are copied. */
const MAX_KEPT = 200;
/** Longest message that is kept, in bytes. */
const MAX_MESSAGE_BYTES = 16 * 1024;
const MAX_FAILURES = 100;
/** Characters of a name or a reason: as far as it is searched for secrets, and as far as it is shown. */
const MAX_READ_CHARACTERS = 4_096;
const MAX_SHOWN_CHARACTERS = 300;

interface KeptMessage {
  readonly leg: 'client' | 'server';
  readonly direction: 'request' | 'answer';
  readonly bytes: number;
  /** Absent if the message is too long. */
  readonly copy: Uint8Array | undefined;
}

interface KeptCall {
  readonly row: CallRow;
  readonly messages: readonly KeptMessage[];
}

/** Receives events until it returns false, which means that this event was dropped. */
type Emit = (event: CallsEvent) => boolean;

type Counts = Record<string, number>;

/** The calls of all clients while a page is open. Secrets are removed from everything that leaves it. */
export class FollowedCalls implements CallObserver {
  readonly #gateway: RecordedGateway;
  readonly #configFile: string;
  readonly #nextId: () => number;
  readonly #stop: () => void;
  /** Begin of the observation, and of the time in which calls were followed without a pause. */
  readonly #since = Date.now();
  #followedSince = 0;
  /** The receivers of calls, each with the counts of the calls that it has not got. */
  readonly #followers = new Map<Emit, Counts>();
  /** Rows that may be sent now. */
  #room = MAX_ROWS;
  #roomAt = 0;
  #copying = 0;
  #rows: CallRow[] = [];
  #left: Counts = {};
  readonly #kept = new Map<number, KeptCall>();
  readonly #failures: CallRow[] = [];
  #cancelFlush: (() => void) | undefined;
  /** Observation of a call without a row. One object for all of them. */
  readonly #counted: CallObservation = {
    ended: (call, end) => {
      const { outcome } = call;
      if (outcome !== 'ok') this.#failed(this.#rowOf(call, end));
      if (this.#followers.size > 0) this.#count(outcome);
    },
  };
  /** Observation of a call that begins without a follower. It has a row if there is one at its end. */
  readonly #unfollowed: CallObservation = {
    ended: (call, end) => {
      const hasRow = this.#followers.size > 0 && this.#takesRow(this.#gateway.calls.now());
      if (hasRow) this.#ended(call, end, []);
      else this.#counted.ended?.(call, end);
    },
  };

  constructor(gateway: RecordedGateway, configFile: string, nextId: () => number) {
    this.#nextId = nextId;
    this.#gateway = gateway;
    this.#configFile = configFile;
    this.#stop = gateway.calls.observe(this);
  }

  close(): void {
    this.#stop();
    this.#cancelFlush?.();
  }

  /** Sends calls until the returned function is called. The first event has the kept ones without a pause among them. */
  follow(emit: Emit): () => void {
    // Rows that wait are kept ones too, and would come twice.
    if (this.#cancelFlush !== undefined) this.#flush();
    if (this.#followers.size === 0) this.#followedSince = Date.now();
    this.#followers.set(emit, {});
    const rows = [...this.#kept.values()].map(({ row }) => row).filter(({ at }) => at >= this.#followedSince);
    const calls = this.#cleaned(rows);
    emit({ calls, left: {}, since: this.#followedSince });
    return () => this.#followers.delete(emit);
  }

  /** The latest failed calls of a server, the newest first. */
  failuresOf(server: string): Failures {
    return {
      since: this.#since,
      calls: this.#cleaned(this.#failures.filter((row) => row.server === server).reverse()),
    };
  }

  /** A call with its messages; `undefined` if it is not kept any more. */
  detailOf(id: number): CallDetail | undefined {
    const failure = this.#failures.find((row) => row.id === id);
    const kept = this.#kept.get(id) ?? (failure && { row: failure, messages: [] });
    if (kept === undefined) return undefined;
    const clean = createCleaner(this.#gateway.secrets.find);
    const messages = kept.messages.map(({ copy, ...about }) => {
      return { ...about, text: copy === undefined ? null : clean(new TextDecoder().decode(copy)) };
    });
    const [call = kept.row] = this.#cleaned([kept.row]);
    const request = messages.find(({ leg, direction }) => leg === 'client' && direction === 'request');
    return { call, messages, command: this.#commandOf(call, request?.text ?? null) };
  }

  begin(call: ObservedCall): CallObservation {
    if (this.#followers.size === 0) return this.#unfollowed;
    if (!this.#takesRow(call.startedAt)) return this.#counted;
    if (this.#copying >= MAX_KEPT) return { ended: (ended, end) => this.#ended(ended, end, []) };
    this.#copying += 1;
    const messages = [copyOf('client', 'request', call.exchange.received)];
    return {
      sent: (_, message) => {
        // A call that is sent again, or asks for input, keeps its latest request.
        const before = messages.findIndex(({ leg }) => leg === 'server');
        messages.splice(before < 0 ? messages.length : before, 1, copyOf('server', 'request', message));
      },
      ended: (ended, end: CallEnd) => {
        const { response, message } = end;
        this.#copying -= 1;
        if (response !== undefined) messages.push(copyOf('server', 'answer', { ...response, edits: [] }));
        if (message !== undefined) messages.push(copyOf('client', 'answer', message));
        this.#ended(ended, end, messages);
      },
    };
  }

  #takesRow(now: number): boolean {
    this.#room = Math.min(MAX_ROWS, this.#room + (now - this.#roomAt) * ROWS_PER_MS);
    this.#roomAt = now;
    if (this.#room < 1) return false;
    this.#room -= 1;
    return true;
  }

  #ended(call: ObservedCall, end: CallEnd, messages: readonly KeptMessage[]): void {
    const row = this.#rowOf(call, end);
    if (row.outcome !== 'ok') this.#failed(row);
    // Its last follower may have left.
    if (this.#followers.size === 0) return;
    this.#kept.set(row.id, { row, messages });
    const [oldest = row.id] = this.#kept.keys();
    if (this.#kept.size > MAX_KEPT) this.#kept.delete(oldest);
    if (this.#rows.length < MAX_ROWS) this.#rows.push(row);
    else this.#count(row.outcome);
    this.#planFlush();
  }

  #count(outcome: CallRow['outcome']): void {
    this.#left[outcome] = (this.#left[outcome] ?? 0) + 1;
    this.#planFlush();
  }

  #failed(row: CallRow): void {
    this.#failures.push(row);
    if (this.#failures.length > MAX_FAILURES) this.#failures.shift();
  }

  #rowOf(call: ObservedCall, end: CallEnd): CallRow {
    const { client, method, outcome, isSent } = call;
    const reason = outcome === 'ok' ? null : (call.reason ?? errorTextOf(end));
    return {
      ...{
        id: this.#nextId(),
        at: Date.now(),
        session: client.session,
        client: `${client.name} ${client.version}`.trim(),
      },
      ...{ server: call.server ?? null, method, name: call.name ?? null, outcome, reason },
      ...{ ms: rounded(call.durationMs), queueMs: isSent ? rounded(call.waitedMs) : null },
      ...{ serverMs: isSent ? rounded(call.servedMs) : null, bytesIn: call.bytesIn, bytesOut: call.bytesOut },
    };
  }

  #planFlush(): void {
    this.#cancelFlush ??= this.#gateway.platform.clock.schedule(FRAME_MS, () => this.#flush());
  }

  #flush(): void {
    this.#cancelFlush?.();
    this.#cancelFlush = undefined;
    const calls = this.#cleaned(this.#rows);
    for (const [emit, missed] of this.#followers) {
      const left = sum(missed, this.#left);
      const isTaken = emit({ calls, left });
      const lost = isTaken ? {} : calls.reduce((counts, { outcome }) => sum(counts, { [outcome]: 1 }), left);
      this.#followers.set(emit, lost);
    }
    this.#rows = [];
    this.#left = {};
  }

  /** Rows without secrets and without characters that hide text. Most names come again, so each is cleaned once. */
  #cleaned(rows: readonly CallRow[]): CallRow[] {
    const known = new Map<string, string>();
    const clean = (text: string | null) => {
      if (text === null) return null;
      const found = known.get(text) ?? this.#clean(text);
      known.set(text, found);
      return found;
    };
    return rows.map((row) => ({
      ...{ ...row, client: clean(row.client) ?? '', name: clean(row.name), reason: clean(row.reason) },
      method: clean(row.method) ?? '',
    }));
  }

  #clean(text: string): string {
    const clean = printable(this.#gateway.secrets.redact(text.slice(0, MAX_READ_CHARACTERS)));
    return clean.length > MAX_SHOWN_CHARACTERS ? `${clean.slice(0, MAX_SHOWN_CHARACTERS)}…` : clean;
  }

  /** The command that repeats a call of a tool; null for others, and if the request was not kept. */
  #commandOf({ method, name }: CallRow, request: string | null): string | null {
    if (method !== METHODS.callTool || name === null || request === null) return null;
    const message = parseJson(request);
    const params = isRecord(message) && isRecord(message.params) ? message.params : {};
    const quoted = (text: string) => quotedPath(text, process.platform);
    const words = [asText(params.name) || name, escapeUnsafe(JSON.stringify(params.arguments ?? {}))];
    return `trunkline call ${words.map(quoted).join(' ')} --config ${quoted(this.#configFile)}`;
  }
}

function copyOf(leg: KeptMessage['leg'], direction: KeptMessage['direction'], message: SplicedMessage): KeptMessage {
  const bytes = splicedLength(message);
  return { leg, direction, bytes, copy: bytes > MAX_MESSAGE_BYTES ? undefined : splice(message) };
}

/** First line of the text with which a tool or a server says why it failed. */
function errorTextOf({ response }: CallEnd): string | null {
  if (response === undefined || response.span.end - response.span.start > MAX_MESSAGE_BYTES) return null;
  const message = parseJson(readText(response.bytes, response.span));
  const { error, result } = isRecord(message) ? message : {};
  const content = isRecord(result) && Array.isArray(result.content) ? result.content : [];
  const texts = isRecord(error) ? [error.message] : content.map((each) => (isRecord(each) ? each.text : ''));
  const line = texts.map((text) => asText(text).trim().split('\n')[0]).find(Boolean);
  return line ?? null;
}

function rounded(ms: number): number {
  return Math.round(ms * 10) / 10;
}

function sum(one: Counts, other: Counts): Counts {
  const all = { ...one };
  for (const [outcome, count] of Object.entries(other)) all[outcome] = (all[outcome] ?? 0) + count;
  return all;
}
