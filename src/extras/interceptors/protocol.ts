import { matchesGlob } from '../../wire/json/glob.js';
import { isRecord } from '../../wire/json/json-value.js';
import { METHODS } from '../../wire/mcp/methods.js';

/* The messages of the proposal SEP-2624. Nothing else in Trunkline knows their names. */

export const LIST_INTERCEPTORS = 'interceptors/list';
export const INVOKE_INTERCEPTOR = 'interceptor/invoke';

export type Phase = 'request' | 'response';

/** The events that Trunkline shows to interceptors: the method of the request. */
export const EVENTS: ReadonlySet<string> = new Set([
  METHODS.callTool,
  METHODS.readResource,
  METHODS.getPrompt,
  METHODS.createMessage,
  METHODS.elicit,
]);

/** An interceptor of a server, as its list describes it. */
export interface Interceptor {
  readonly name: string;
  readonly type: 'validation' | 'mutation';
  readonly hooks: readonly Hook[];
  /** Whether it only watches, so that neither its verdict nor its failure holds anything up. */
  readonly isAudit: boolean;
  /** Lower ones change a message first. */
  readonly priority: Readonly<Record<Phase, number>>;
}

interface Hook {
  readonly events: readonly string[];
  readonly phases: readonly Phase[];
}

/** The answer of one interceptor about one message. */
export type Verdict =
  | { readonly type: 'validation'; readonly isBlocking: boolean; readonly findings: readonly string[] }
  /** `payload` is the whole message in its new form. */
  | { readonly type: 'mutation'; readonly payload: Readonly<Record<string, unknown>> | undefined };

/** The server does not keep to the proposal. The message is a clause whose subject is the server. */
export class MalformedAnswer extends Error {}

/** Limits of one server: its interceptors, and the findings about one message. */
const MAX_INTERCEPTORS = 100;
const MAX_FINDINGS = 20;

/** Reads one page of the list. Leaves out the types of later versions, which change and block nothing that Trunkline knows. */
export function readInterceptors(result: unknown): { readonly all: readonly Interceptor[]; readonly next?: string } {
  const { interceptors, nextCursor } = asRecord(result, 'its list');
  if (!Array.isArray(interceptors)) throw new MalformedAnswer('it sent no list of interceptors');
  if (interceptors.length > MAX_INTERCEPTORS) throw new MalformedAnswer('it has too many interceptors');
  const all = interceptors.flatMap((each: unknown) => readInterceptor(each) ?? []);
  return { all, ...(typeof nextCursor === 'string' && { next: nextCursor }) };
}

function readInterceptor(entry: unknown): Interceptor | undefined {
  const {
    name,
    type,
    hook,
    hooks = hook === undefined ? undefined : [hook],
    mode,
    priorityHint,
  } = asRecord(entry, 'its list');
  if (typeof name !== 'string' || name === '') throw new MalformedAnswer('one of its interceptors has no name');
  if (typeof type !== 'string') throw new MalformedAnswer('one of its interceptors has no type');
  if (type !== 'validation' && type !== 'mutation') return undefined;
  if (!Array.isArray(hooks)) throw new MalformedAnswer('one of its interceptors has no hooks');
  const hint = (phase: Phase) => (isRecord(priorityHint) ? priorityHint[phase] : priorityHint);
  const priority = (phase: Phase) => {
    const value = hint(phase);
    return typeof value === 'number' && Number.isFinite(value) ? value : 0;
  };
  return {
    name,
    type,
    hooks: hooks.map(readHook),
    isAudit: mode === 'audit',
    priority: { request: priority('request'), response: priority('response') },
  };
}

function readHook(hook: unknown): Hook {
  const { events, phase } = asRecord(hook, 'a hook in its list');
  if (!Array.isArray(events) || !events.every((event) => typeof event === 'string'))
    throw new MalformedAnswer('a hook in its list has no events');
  if (phase === 'both') return { events, phases: ['request', 'response'] };
  if (phase !== 'request' && phase !== 'response') throw new MalformedAnswer('a hook in its list has no phase');
  return { events, phases: [phase] };
}

/** Whether the interceptor is asked about this event in this phase. `*` stands for any characters, as in `tools/*`. */
export function isHooked({ hooks }: Interceptor, event: string, phase: Phase): boolean {
  return hooks.some(({ events, phases }) => {
    if (!phases.includes(phase)) return false;
    return events.some((each) => each === `*/${phase}` || matchesGlob(each, event));
  });
}

/** The order in which interceptors change a message: by priority, then by name. Equal ones stay in the order of the configuration. */
export function inOrder<T extends Interceptor>(all: readonly T[], phase: Phase): readonly T[] {
  return [...all].sort(
    (one, other) =>
      one.priority[phase] - other.priority[phase] || (one.name < other.name ? -1 : Number(one.name > other.name)),
  );
}

/** Reads the answer of an interceptor. Throws if it is not one to this question. */
export function readVerdict(result: unknown, { name, type }: Interceptor, phase: Phase): Verdict {
  const answer = asRecord(result, 'its answer');
  const said = { interceptor: name, type, phase };
  for (const [member, expected] of Object.entries(said))
    if (answer[member] !== undefined && answer[member] !== expected)
      throw new MalformedAnswer(`it answered for another ${member} than it was asked for`);
  const { valid, modified, payload } = answer;
  if (type === 'validation') {
    if (typeof valid !== 'boolean') throw new MalformedAnswer('its answer does not say whether the message is valid');
    return { type, isBlocking: !valid && severityOf(answer.severity) === 'error', findings: findingsOf(answer) };
  }
  if (typeof modified !== 'boolean')
    throw new MalformedAnswer('its answer does not say whether it changes the message');
  return { type, payload: modified ? asRecord(payload, 'the message that it made') : undefined };
}

/** An answer without a severity blocks, because the check has failed. */
function severityOf(severity: unknown = 'error'): string {
  if (severity !== 'info' && severity !== 'warn' && severity !== 'error')
    throw new MalformedAnswer('its answer has an unknown severity');
  return severity;
}

function findingsOf({ valid, messages = [] }: Readonly<Record<string, unknown>>): readonly string[] {
  if (!Array.isArray(messages)) throw new MalformedAnswer('its messages are no list');
  const found = messages.slice(0, MAX_FINDINGS).map((each: unknown) => {
    const { message, path } = asRecord(each, 'one of its messages');
    if (typeof message !== 'string') throw new MalformedAnswer('one of its messages has no text');
    return typeof path === 'string' ? `${message} (${path})` : message;
  });
  return found.length === 0 && valid === false ? ['it gives no reason'] : found;
}

function asRecord(value: unknown, what: string): Readonly<Record<string, unknown>> {
  if (!isRecord(value)) throw new MalformedAnswer(`${what} is no object`);
  return value;
}
