import { isDeepStrictEqual } from 'node:util';
import type { DownstreamClient, User } from '../../downstream/port.js';
import { REMOVED, rewriteObject } from '../../wire/json/edit-members.js';
import { elementsOf, hasTwins, readText, type Span, toBytes } from '../../wire/json/json-text.js';
import { isRecord } from '../../wire/json/json-value.js';
import { clipText, printable, withoutHiddenCharacters } from '../../wire/json/printable.js';
import { type Edit, splice } from '../../wire/json/splice.js';
import { METHODS } from '../../wire/mcp/methods.js';
import { type Guard, GuardFailed, MAX_PAYLOAD_BYTES, type Question } from './guard.js';
import { type Interceptor, inOrder, isHooked, type Phase, type Verdict } from './protocol.js';

/** The messages of one server and one client, and the guards that look at them, in the order of the configuration. */
export interface Subject {
  readonly server: string;
  readonly client: DownstreamClient;
  readonly guards: readonly Guard[];
  /** Takes a finding that holds nothing up. */
  readonly note: (finding: Finding) => void;
}

export interface Finding {
  readonly interceptor: string;
  readonly event: string;
  readonly phase: Phase;
  readonly finding: string;
}

/** One message, as JSON. */
export interface Inspected {
  readonly event: string;
  readonly phase: Phase;
  /** Whether Trunkline is about to send the message to the server. Otherwise it has received the message from the server. */
  readonly isToServer: boolean;
  readonly payload: Uint8Array;
  /** Whether it, or what is around it, has a key twice. If it is left out, the payload is read for that. */
  readonly isDoubled?: boolean;
}

/** The end of an inspection: the message that goes on, the same object if it is unchanged, or the reason why none does. */
export type Inspection = Uint8Array | Refused;

export interface Refused {
  /** A clause that begins with *because*, and ends with a period. */
  readonly because: string;
  /** The names of the interceptor. */
  readonly rule: string;
}

interface Hooked extends Interceptor {
  readonly guard: Guard;
}

const MAX_MESSAGE_BYTES = 300;

export interface InspectorOptions {
  readonly redact: (text: string) => string;
  readonly userOf: (client: DownstreamClient) => User | undefined;
  /** The name of a session for the interceptors. */
  readonly sessionOf: (client: DownstreamClient) => string;
}

/** Shows messages to interceptors, in the order of the proposal, and makes one decision of their answers. */
export class Inspector {
  readonly #options: InspectorOptions;

  constructor(options: InspectorOptions) {
    this.#options = options;
  }

  /**
   * Changes come before checks if the message is sent to the server, and after them if it came from there, so that the checks are
   * at the border. All changes apply or none.
   */
  async inspect(subject: Subject, message: Inspected, over: AbortSignal): Promise<Inspection> {
    const { event, phase, isToServer } = message;
    const found = await this.#hooked(subject, message, over);
    if ('because' in found) return found;
    const hooked = found;
    const active = hooked.filter(({ isAudit }) => !isAudit);
    const [first] = active;
    // A larger message is not shown to anybody, and a guard that only watches holds nothing up.
    const isDoubled = () =>
      message.isDoubled ?? (message.payload.length <= MAX_PAYLOAD_BYTES && hasTwins(message.payload));
    if (first !== undefined && isDoubled()) return { because: TWINS, rule: nameOf(first) };
    for (const each of hooked) if (each.isAudit) void this.#audit(each, subject, message, over);
    const mutators = inOrder(
      active.filter(({ type }) => type === 'mutation'),
      phase,
    );
    const validators = active.filter(({ type }) => type === 'validation');
    const steps = [
      (payload: Uint8Array) => this.#change(mutators, subject, { ...message, payload }, over),
      (payload: Uint8Array) => this.#check(validators, subject, { event, phase, isToServer, payload }, over),
    ];
    let inspection: Inspection = message.payload;
    for (const step of isToServer ? steps : steps.reverse()) {
      inspection = await step(inspection);
      if ('because' in inspection) break;
    }
    return inspection;
  }

  /** The interceptors for this message, or the refusal because a guard cannot say whether it has any. */
  async #hooked(
    subject: Subject,
    { event, phase }: Inspected,
    over: AbortSignal,
  ): Promise<readonly Hooked[] | Refused> {
    const lists = await Promise.all(
      subject.guards.map(async (guard): Promise<readonly Hooked[] | Refused> => {
        try {
          const all = await guard.interceptors(over);
          return all.filter((each) => isHooked(each, event, phase)).map((each) => ({ ...each, guard }));
        } catch (error) {
          return this.#failed(guard, undefined, error, { subject, event, phase }) ?? [];
        }
      }),
    );
    return lists.find((list): list is Refused => 'because' in list) ?? (lists as (readonly Hooked[])[]).flat();
  }

  async #change(
    mutators: readonly Hooked[],
    subject: Subject,
    message: Inspected,
    over: AbortSignal,
  ): Promise<Inspection> {
    let { payload } = message;
    for (const each of mutators) {
      try {
        const verdict = await this.#ask(each, subject, { ...message, payload }, over);
        if (verdict.type === 'mutation' && verdict.payload !== undefined) {
          const before: unknown = JSON.parse(textOf(payload));
          assertAllowed(message, before, verdict.payload, each.guard);
          const whole = { start: 0, end: payload.length };
          payload = changedText(payload, whole, { before, after: verdict.payload }) ?? payload;
        }
      } catch (error) {
        const refused = this.#failed(each.guard, each, error, { subject, ...message });
        if (refused !== undefined) return refused;
      }
    }
    return payload;
  }

  async #check(
    validators: readonly Hooked[],
    subject: Subject,
    message: Inspected,
    over: AbortSignal,
  ): Promise<Inspection> {
    const verdicts = await Promise.all(
      validators.map(async (each): Promise<Refused | undefined> => {
        try {
          const verdict = await this.#ask(each, subject, message, over);
          if (verdict.type === 'mutation') return undefined;
          if (!verdict.isBlocking) {
            this.#note(each, subject, message, verdict);
            return undefined;
          }
          const said = this.#clean(verdict.findings.join('; '));
          const end = /[.!?…]$/.test(said) ? '' : '.';
          const { guard, name } = each;
          const because = `because the interceptor "${this.#clean(name)}" of "${guard.key}" refuses it: ${said}${end}`;
          return { because, rule: nameOf(each) };
        } catch (error) {
          return this.#failed(each.guard, each, error, { subject, ...message });
        }
      }),
    );
    return verdicts.find((refused) => refused !== undefined) ?? message.payload;
  }

  /** Asks an interceptor that only watches. */
  async #audit(each: Hooked, subject: Subject, message: Inspected, over: AbortSignal): Promise<void> {
    try {
      this.#note(each, subject, message, await this.#ask(each, subject, message, over));
    } catch (error) {
      const { event, phase } = message;
      const finding = error instanceof GuardFailed ? `failed: ${error.message}` : 'failed';
      subject.note({ interceptor: nameOf(each), event, phase, finding: this.#clean(finding) });
    }
  }

  #note(each: Hooked, { note }: Subject, { event, phase }: Inspected, verdict: Verdict): void {
    const changes = verdict.type === 'mutation' && verdict.payload !== undefined ? ['it would change the message'] : [];
    const findings = verdict.type === 'validation' ? verdict.findings : changes;
    if (findings.length > 0)
      note({ interceptor: nameOf(each), event, phase, finding: this.#clean(findings.join('; ')) });
  }

  #ask(each: Hooked, { server, client }: Subject, message: Inspected, over: AbortSignal): Promise<Verdict> {
    const { event, phase, payload } = message;
    const user = this.#options.userOf(client);
    const type = user === undefined ? 'anonymous' : user.kind === 'machine' ? 'service' : 'user';
    const context = {
      principal: { type, id: user?.principal },
      sessionId: this.#options.sessionOf(client),
      timestamp: new Date().toISOString(),
    };
    const question: Question = { event, phase, payload, context, server, over };
    return each.guard.ask(each, question);
  }

  /** The refusal because of a guard that has failed; `undefined` if the configuration lets messages pass then. */
  #failed(
    guard: Guard,
    interceptor: Interceptor | undefined,
    error: unknown,
    { subject, event, phase }: { readonly subject: Subject; readonly event: string; readonly phase: Phase },
  ): Refused | undefined {
    if (!(error instanceof GuardFailed)) throw error;
    const rule = nameOf({ guard, name: interceptor?.name ?? '' });
    if (!guard.options.failsOpen)
      return { because: `because "${guard.key}", which has to look at it, failed: ${error.message}.`, rule };
    subject.note({ interceptor: rule, event, phase, finding: `failed, so the message passed: ${error.message}` });
    return undefined;
  }

  #clean(text: string): string {
    return clipText(printable(withoutHiddenCharacters(this.#options.redact(text))), MAX_MESSAGE_BYTES, ' …');
  }
}

function nameOf({ guard, name }: { readonly guard: Guard; readonly name: string }): string {
  return clipText(printable(`interceptor ${guard.key}${name === '' ? '' : `/${name}`}`), MAX_MESSAGE_BYTES, '…');
}

/** Members of a result that an interceptor may not change: a person's decision, and what the result is. */
const FIXED_IN_RESULTS: ReadonlySet<string> = new Set([
  ...['action', 'resultType', 'inputRequests', 'requestState'],
  ...['task', 'taskId', 'status'],
]);
/** Members of a question to a client that an interceptor may not change, because they are the question itself, or ids. */
const FIXED_IN_QUESTIONS: ReadonlySet<string> = new Set(['mode', 'url', 'elicitationId', 'task', '_meta']);

/** Throws if an interceptor changes a part of the message that is not for it. */
function assertAllowed(
  { event, phase }: Inspected,
  before: unknown,
  after: Readonly<Record<string, unknown>>,
  guard: Guard,
) {
  if (!isRecord(before)) return;
  const isFixed = (name: string) => {
    if (phase === 'response') return FIXED_IN_RESULTS.has(name);
    return event === METHODS.createMessage || event === METHODS.elicit
      ? FIXED_IN_QUESTIONS.has(name)
      : name !== 'arguments' || event === METHODS.readResource;
  };
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  const changed = [...names].find((name) => isFixed(name) && !isDeepStrictEqual(before[name], after[name]));
  const fault = changed ?? (phase === 'response' ? changedIdentity(before, after) : undefined);
  if (fault === undefined) return;
  guard.fault = `it changed \`${printable(fault.slice(0, 100))}\`, which an interceptor may not change`;
  throw new GuardFailed(guard.fault);
}

/** The member of a result that names something else than before. */
function changedIdentity(before: Readonly<Record<string, unknown>>, after: Readonly<Record<string, unknown>>) {
  const ownMeta = ({ _meta }: Readonly<Record<string, unknown>>) =>
    Object.entries(isRecord(_meta) ? _meta : {}).filter(([name]) =>
      /^(?:trunkline|io\.modelcontextprotocol)\//.test(name),
    );
  if (!isDeepStrictEqual(ownMeta(before), ownMeta(after))) return '_meta';
  const known = new Set(urisIn(before));
  return urisIn(after).every((uri) => known.has(uri)) ? undefined : 'uri';
}

/** The URIs of the resources, links to resources and embedded resources of a result. Structured content is data of the tool. */
function urisIn({ content, contents, messages }: Readonly<Record<string, unknown>>): readonly unknown[] {
  const found: unknown[] = [];
  const add = (value: unknown) => {
    if (typeof value !== 'object' || value === null) return;
    if ('uri' in value) found.push(value.uri);
    Object.values(value).forEach(add);
  };
  for (const part of [content, contents, messages]) add(part);
  return found;
}

const TWINS =
  'because it has a key twice in one object, or two that differ only in case, and readers differ in which one they take.';

export function textOf(bytes: Uint8Array): string {
  return readText(bytes, { start: 0, end: bytes.length });
}

/** Levels within which unchanged members keep their bytes. Each level reads the text once more. */
const MAX_KEPT_DEPTH = 8;

/**
 * The new text of a changed value, `undefined` if it is the same. What did not change keeps its bytes, because a value does not have
 * all digits of a large number.
 */
function changedText(
  bytes: Uint8Array,
  span: Span,
  { before, after }: { readonly before: unknown; readonly after: unknown },
  depth = MAX_KEPT_DEPTH,
): Uint8Array | undefined {
  if (depth > 0 && isRecord(before) && isRecord(after)) {
    let isSame = true;
    const text = rewriteObject(bytes, span, {
      change: (name, value) => {
        const becomes = Object.hasOwn(after, name)
          ? changedText(bytes, value, { before: before[name], after: after[name] }, depth - 1)
          : REMOVED;
        isSame &&= becomes === undefined;
        return becomes;
      },
      insert: (names) => {
        const added = Object.entries(after).filter(([name]) => !names.has(name));
        isSame &&= added.length === 0;
        return added.map(([name, value]) => toBytes(`${JSON.stringify(name)}:${newText(value)}`));
      },
    });
    return isSame ? undefined : text;
  }
  if (depth > 0 && Array.isArray(before) && Array.isArray(after) && before.length === after.length) {
    const edits = elementsOf(bytes, span).flatMap((element, at): Edit[] => {
      const text = changedText(bytes, element, { before: before[at], after: after[at] }, depth - 1);
      return text === undefined ? [] : [{ span: element, text }];
    });
    return edits.length === 0 ? undefined : splice({ bytes, span, edits });
  }
  return isDeepStrictEqual(before, after) ? undefined : toBytes(newText(after));
}

/** Writes a part that an interceptor changed. Throws if the part has a number whose digits were lost when it was read. */
function newText(value: unknown): string {
  return JSON.stringify(value, (_, each: unknown) => {
    if (typeof each === 'number' && Number.isInteger(each) && !Number.isSafeInteger(each))
      throw new GuardFailed(
        'it changed a part of the message with a number of more than 53 bits, which would be rounded',
      );
    return each;
  });
}
