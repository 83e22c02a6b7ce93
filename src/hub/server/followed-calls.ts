import { createCleaner } from '../../extras/record/clean-message.js';
import type { RecordedGateway } from '../../extras/record/record-to.js';
import type { CallEnd, CallObservation, CallObserver, ObservedCall } from '../../gateway/call-feed.js';
import { NewestMap } from '../../wire/io/newest-map.js';
import { readText } from '../../wire/json/json-text.js';
import { asText, isRecord, parseJson } from '../../wire/json/json-value.js';
import { escapeUnsafe, printable, quotedPath } from '../../wire/json/printable.js';
import { type SplicedMessage, splice, splicedLength } from '../../wire/json/splice.js';
import { METHODS } from '../../wire/mcp/methods.js';
import type { CallDetail, CallRow, CallsEvent } from '../control.js';

/** Time between two events with calls. */
const FRAME_MS = 100;
/** Limits of the calls that get a row, in one event and per millisecond. Further calls are only counted. */
const MAX_ROWS = 200;
const ROWS_PER_MS = 0.5;
/** Latest calls whose messages are kept, and calls in flight whose messages are copied. */
const MAX_KEPT = 200;
const MAX_MESSAGE_BYTES = 16 * 1024;
/** Limits of the characters of a name or a reason that are searched for secrets, and that are shown. */
const MAX_READ_CHARACTERS = 4_096;
const MAX_SHOWN_CHARACTERS = 300;

interface KeptMessage {
  readonly leg: 'client' | 'server';
  readonly direction: 'request' | 'answer';
  readonly bytes: number;
  /** Absent if the message is too long. */
  readonly copy: Uint8Array | undefined;
}

/** Receives events until it returns false, which means that this event was dropped. */
type Emit = (event: CallsEvent) => boolean;

type Counts = Record<string, number>;

/** The calls of all clients while a page is open. Secrets are removed from everything that leaves it. */
export class FollowedCalls implements CallObserver {
  readonly #gateway: RecordedGateway;
  readonly #configFile: string;
  /** The receivers of calls, each with the counts of the calls that it has not got. */
  readonly #followers = new Map<Emit, Counts>();
  #stop = () => {};
  /** Begins with the time, because a link to a call of an earlier hub must not open a call of this hub. */
  #lastId = Date.now() * 1_000;
  /** Rows that may be sent now. */
  #room = MAX_ROWS;
  #roomAt = 0;
  #copying = 0;
  #rows: CallRow[] = [];
  #left: Counts = {};
  readonly #kept = new NewestMap<number, { readonly row: CallRow; readonly messages: readonly KeptMessage[] }>(
    MAX_KEPT,
  );
  #cancelFlush: (() => void) | undefined;
  /** Observation of a call whose messages are not kept. One object for all of them. A failed call gets a row while the event has room. */
  readonly #unkept: CallObservation = {
    ended: (call, end) => {
      if (call.outcome !== 'ok' || this.#takesRow(this.#gateway.calls.clock.now())) this.#ended(call, end, []);
      else this.#count(call.outcome);
    },
  };

  constructor(gateway: RecordedGateway, configFile: string) {
    this.#gateway = gateway;
    this.#configFile = configFile;
  }

  /** Sends the calls that end from now on, until the returned function is called. */
  follow(emit: Emit): () => void {
    if (this.#followers.size === 0) this.#stop = this.#gateway.calls.observe(this);
    this.#followers.set(emit, {});
    emit({ calls: [], left: {}, since: Date.now() });
    return () => {
      this.#followers.delete(emit);
      if (this.#followers.size > 0) return;
      this.#stop();
      this.#flush();
      this.#kept.clear();
    };
  }

  /** A call with its messages; `undefined` if it is not kept any more. */
  detailOf(id: number): CallDetail | undefined {
    const kept = this.#kept.get(id);
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
    if (this.#copying >= MAX_KEPT || !this.#takesRow(call.startedAt)) return this.#unkept;
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
    // The last follower may have left.
    if (this.#followers.size === 0) return;
    if (this.#rows.length >= MAX_ROWS) {
      this.#count(call.outcome);
      return;
    }
    const row = this.#rowOf(call, end);
    this.#rows.push(row);
    this.#kept.set(row.id, { row, messages });
    this.#planFlush();
  }

  #count(outcome: CallRow['outcome']): void {
    if (this.#followers.size === 0) return;
    this.#left[outcome] = (this.#left[outcome] ?? 0) + 1;
    this.#planFlush();
  }

  #rowOf(call: ObservedCall, end: CallEnd): CallRow {
    const { client, method, outcome, isSent, bytesIn, bytesOut } = call;
    this.#lastId += 1;
    return {
      id: this.#lastId,
      at: Date.now(),
      session: client.session,
      client: `${client.name} ${client.version}`.trim(),
      server: call.server ?? null,
      method,
      name: call.name ?? null,
      outcome,
      reason: outcome === 'ok' ? null : (call.reason ?? errorTextOf(end)),
      ms: rounded(call.durationMs),
      queueMs: isSent ? rounded(call.waitedMs) : null,
      serverMs: isSent ? rounded(call.servedMs) : null,
      bytesIn,
      bytesOut,
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
    const clean = (text: string) => {
      const found = known.get(text) ?? this.#clean(text);
      known.set(text, found);
      return found;
    };
    return rows.map((row) => ({
      ...row,
      client: clean(row.client),
      method: clean(row.method),
      name: row.name && clean(row.name),
      reason: row.reason && clean(row.reason),
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
