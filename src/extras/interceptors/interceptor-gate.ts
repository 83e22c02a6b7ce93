import {
  type Answered,
  type Exchange,
  type InputRequest,
  type WithdrawInput,
  type Withheld,
  withMembers,
} from '../../downstream/port.js';
import type { GatedInput, GatedRequest, RequestGate } from '../../gateway/routing/request-gate.js';
import { internalError, type OnInternalError, withErrorBoundaryAsync } from '../../host/errors/internal-error.js';
import { editMembers, REMOVED, rewriteObject } from '../../wire/json/edit-members.js';
import {
  hasTwins,
  isObject,
  membersOf,
  readText,
  type Span,
  stringAt,
  toBytes,
  valuesAt,
} from '../../wire/json/json-text.js';
import { type Edit, splice } from '../../wire/json/splice.js';
import { RPC_CODES, RpcError } from '../../wire/jsonrpc/message.js';
import { type ResponseEnvelope, scanOwn } from '../../wire/mcp/envelope.js';
import { METHODS, TASK_METHODS } from '../../wire/mcp/methods.js';
import { withoutResultMembers } from '../../wire/mcp/older-revisions.js';
import { asResponse, EnvelopeRequest, type RelayedRequest, requestWith } from '../../wire/mcp/relayed-request.js';
import { signedQuestion, visitsIn } from '../../wire/mcp/signed-questions.js';
import { MAX_PAYLOAD_BYTES } from './guard.js';
import { type Inspected, type Inspector, type Refused, type Subject, textOf } from './inspection.js';
import { EVENTS, isHooked, type Phase } from './protocol.js';

export interface InterceptorGateOptions {
  readonly inspector: Inspector;
  /** The guards of a server and of a view. */
  readonly subjectOf: (input: GatedInput, exchange?: Exchange) => Subject;
  readonly onInternalError: OnInternalError | undefined;
}

/** Shows requests, results, questions to clients, and their answers to the interceptors of the configuration. */
export class InterceptorGate implements RequestGate {
  readonly #options: InterceptorGateOptions;
  /** The questions that were looked at already, because a question may pass both seams. */
  readonly #seen = new WeakSet<InputRequest>();

  constructor(options: InterceptorGateOptions) {
    this.#options = options;
  }

  concerns({ exchange, target, view }: GatedRequest): boolean {
    return this.#options.subjectOf({ server: target.backend.key, client: exchange.client, view }).guards.length > 0;
  }

  hold({ exchange, target, view }: GatedRequest, pass: (exchange: Exchange) => void): void {
    const { backend, edits } = target;
    const { request, client } = exchange;
    const input = { server: backend.key, client, view };
    const subject = this.#options.subjectOf(input, exchange);
    const goOn = (next: RelayedRequest) => {
      const review: Exchange['review'] = (answer) => this.#review(subject, exchange, answer);
      const requireInput = this.asking(input, (question) => exchange.requireInput(question));
      pass(withMembers(exchange, { request: next, review, requireInput }));
    };
    const event = eventOf(request);
    const mayStop = event !== undefined && mayConcern(subject, event, 'request');
    if (!mayStop && request.tokens.inputResponses === undefined) {
      goOn(request);
      return;
    }
    const over = cancelling(exchange);
    const looked = async () => {
      const found = await this.#request(subject, request, edits, mayStop ? event : undefined, over);
      if (exchange.isSettled) return;
      if (!('because' in found)) {
        goOn(found);
        return;
      }
      exchange.trail?.routed(backend.key, backend.id, backend.rules.isRemote === true);
      backend.dispatcher.refuse(exchange, 'intercepted', {
        detail: `was not asked, ${found.because}`,
        rule: found.rule,
      });
    };
    this.#run(looked(), () => exchange.fail(internalError()));
  }

  asking(input: GatedInput, ask: Exchange['requireInput']): Exchange['requireInput'] {
    const subject = this.#options.subjectOf(input);
    if (subject.guards.length === 0) return ask;
    return (question) => {
      const isNew = EVENTS.has(question.request.method) && question.isOwn !== true && !this.#seen.has(question);
      return isNew ? this.#ask(subject, question, ask) : ask(question);
    };
  }

  /** Looks at a request, and at the answers of the client that it brings along. Resolves with the request that goes on. */
  async #request(
    subject: Subject,
    request: RelayedRequest,
    edits: readonly Edit[],
    event: string | undefined,
    over: AbortSignal,
  ): Promise<RelayedRequest | Refused> {
    const { bytes, method } = request;
    const params = request.params ?? { start: 0, end: 0 };
    const changed = new Map<string, Uint8Array | typeof REMOVED>();
    const { inputResponses } = request.tokens;
    const answers = inputResponses === undefined ? [] : membersOf(bytes, inputResponses);
    const newAnswers = new Map<string, Uint8Array>();
    for (const [key, value] of answers) {
      const kind = kindOfAnswer(bytes, value);
      if (kind === undefined) continue;
      const payload = bytes.slice(value.start, value.end);
      const found = await this.#inspect(subject, { event: kind, phase: 'response', isToServer: true, payload }, over);
      if ('because' in found) return found;
      if (found !== payload) newAnswers.set(key, found);
    }
    if (inputResponses !== undefined && newAnswers.size > 0)
      changed.set('inputResponses', rewriteObject(bytes, inputResponses, { change: (name) => newAnswers.get(name) }));
    if (event !== undefined) {
      const payload = paramsOf(request, edits);
      const found = await this.#inspect(subject, { event, phase: 'request', isToServer: true, payload }, over);
      if ('because' in found) return found;
      // The rest of the message is unchanged, and has the names that the client uses.
      const [args] = found === payload ? [] : valuesAt(found, { start: 0, end: found.length }, ['arguments']);
      if (found !== payload) changed.set('arguments', args === undefined ? REMOVED : found.slice(args.start, args.end));
    }
    if (changed.size === 0) return request;
    const rewritten = rewriteObject(bytes, params, {
      change: (name) => changed.get(name),
      insert: (names) => {
        const args = changed.get('arguments');
        return names.has('arguments') || !(args instanceof Uint8Array) ? [] : [toBytes(`"arguments":${textOf(args)}`)];
      },
    });
    return requestWith(method, rewritten) ?? TOO_DEEP;
  }

  /** Looks at an answer of the server. */
  #review(subject: Subject, exchange: Exchange, answer: Answered): Promise<Answered | Withheld> | undefined {
    const { bytes, span } = answer.response;
    const event = eventOf(exchange.request, true);
    const parts = (response: ResponseEnvelope) =>
      partsOf(exchange.request.method, event, response).filter((part) => mayConcern(subject, part.event, part.phase));
    if (parts(answer.response).length === 0) return undefined;
    const copy = asResponse(bytes.slice(span.start, span.end));
    return this.#answer(subject, { ...answer, response: copy }, parts(copy), cancelling(exchange));
  }

  async #answer(
    subject: Subject,
    answer: Answered,
    parts: readonly Part[],
    over: AbortSignal,
  ): Promise<Answered | Withheld> {
    const { bytes, span, result, error } = answer.response;
    const whole = result ?? error ?? span;
    const isSmall = whole.end - whole.start <= MAX_PAYLOAD_BYTES;
    // A client reads the parts in their place, so names that are doubled around a part count, too.
    const isDoubled = isSmall && hasTwins(bytes.subarray(whole.start, whole.end));
    const edits: Edit[] = [];
    // A large answer is one large message for each event.
    const events = new Map(parts.map(({ event, phase }) => [`${event} ${phase}`, { at: whole, event, phase }]));
    const shown: Iterable<Part> = isSmall ? parts : events.values();
    for (const { at, without, event, phase } of shown) {
      const isRemoved = (name: string) => without?.has(name) === true;
      const payload = rewriteObject(bytes, at, { change: (name) => (isRemoved(name) ? REMOVED : undefined) });
      const found = await this.#inspect(subject, { event, phase, isToServer: false, payload, isDoubled }, over);
      if ('because' in found)
        return { kind: 'withheld', detail: `answered, but its answer is withheld, ${found.because}`, rule: found.rule };
      if (found !== payload)
        edits.push(...(without === undefined ? [{ span: at, text: found }] : editsOf(bytes, at, { found, isRemoved })));
    }
    const response = edits.length === 0 ? answer.response : asResponse(splice({ bytes, span, edits }));
    return { ...answer, response, ...(answer.edits && { edits: withoutResultMembers(response) }) };
  }

  /** Asks a client, once the interceptors have looked at the question, and passes on the answer, once they have looked at it. */
  #ask(subject: Subject, question: InputRequest, ask: Exchange['requireInput']): WithdrawInput {
    const over = new AbortController();
    const { method } = question.request;
    const text = splice(question.request.message(ID, question.edits));
    let withdraw: WithdrawInput = () => {};
    const fail = (what: string, { because, rule }: Refused) => {
      const data = { reason: 'intercepted', code: 'TL-CALL-INTERCEPTED', rule } as const;
      question.fail(new RpcError(RPC_CODES.internalError, `${what}, ${because}`, data));
    };
    const asked = async () => {
      const envelope = scanOwn(text);
      if (envelope.kind !== 'request') throw new Error('The question cannot be read');
      const copy = new EnvelopeRequest(envelope);
      const payload = paramsOf(copy, []);
      const found = await this.#inspect(
        subject,
        { event: method, phase: 'request', isToServer: false, payload },
        over.signal,
      );
      if (over.signal.aborted) return;
      const request = 'because' in found || found === payload ? copy : requestWith(method, found);
      if ('because' in found || request === undefined) {
        fail('The client was not asked', 'because' in found ? found : TOO_DEEP);
        return;
      }
      // An interceptor may have removed the name of the server, or written that of Trunkline.
      const signed = signedQuestion(subject.server, request);
      if (signed instanceof RpcError) {
        question.fail(signed);
        return;
      }
      const passed: InputRequest = {
        request,
        edits: signed,
        progress: (notification) => question.progress(notification),
        fail: (error) => question.fail(error),
        answer: (response, keepProgress) => {
          const copied = asResponse(response.bytes.slice(response.span.start, response.span.end));
          const { result } = copied;
          if (result === undefined) {
            question.answer(response, keepProgress);
            return;
          }
          const message = copied.bytes.slice(result.start, result.end);
          const answered = async () => {
            const end = await this.#inspect(
              subject,
              { event: method, phase: 'response', isToServer: true, payload: message },
              over.signal,
            );
            if (over.signal.aborted) return;
            const { bytes, span } = copied;
            if ('because' in end) fail('The server does not get the answer of the client', end);
            else if (end === message) question.answer(copied, keepProgress);
            else
              question.answer(asResponse(splice({ bytes, span, edits: [{ span: result, text: end }] })), keepProgress);
          };
          this.#run(answered(), () => question.fail(internalError()));
        },
      };
      this.#seen.add(passed);
      withdraw = ask(passed);
    };
    this.#run(asked(), () => question.fail(internalError()));
    return (notification, edits) => {
      over.abort();
      withdraw(notification, edits);
    };
  }

  #inspect(subject: Subject, message: Inspected, over: AbortSignal) {
    return this.#options.inspector.inspect(subject, message, over);
  }

  #run(work: Promise<void>, failed: () => void): void {
    void withErrorBoundaryAsync(work, this.#options.onInternalError, failed);
  }
}

const ID = { text: toBytes('0'), part: { start: 0, end: 1 } };

const TOO_DEEP: Refused = { because: 'because it became too deep to be sent.', rule: 'interceptors' };

/** Methods with a URI that get nothing of the resource. */
const SUBSCRIPTIONS: ReadonlySet<string> = new Set([METHODS.subscribe, METHODS.unsubscribe]);

/** The event of a request of a client, or of its answer. Extensions of MCP read resources with methods of their own. */
function eventOf({ method, tokens }: RelayedRequest, isAnswer = false): string | undefined {
  if (EVENTS.has(method)) return method;
  if (isAnswer && TASK_METHODS.has(method)) return METHODS.callTool;
  return tokens.uri === undefined || SUBSCRIPTIONS.has(method) ? undefined : METHODS.readResource;
}

/** A part of an answer that is a message of its own. */
interface Part {
  readonly at: Span;
  readonly event: string;
  readonly phase: Phase;
  /** The members of the object that are left out, because they are messages of their own, or for the server alone. */
  readonly without?: ReadonlySet<string>;
}

/**
 * The parts of an answer: the result of a finished task, the questions of the server, and all other members together, whatever the
 * server calls the result, so that none passes unseen.
 */
function partsOf(
  method: string,
  event: string | undefined,
  { bytes, result, error, tokens }: ResponseEnvelope,
): Part[] {
  if (result === undefined)
    return visitsIn(bytes, error, tokens.errorCode).map((at) => ({ at, event: METHODS.elicit, phase: 'request' }));
  const { inputRequests } = tokens;
  const inputs = membersOf(bytes, inputRequests).map(([, input]) => input);
  const questions = inputs.flatMap((input): Part[] => {
    const asked = stringAt(bytes, valuesAt(bytes, input, ['method'])[0]) ?? '';
    const [at] = valuesAt(bytes, input, ['params']);
    return EVENTS.has(asked) && at !== undefined ? [{ at, event: asked, phase: 'request' }] : [];
  });
  if (event === undefined) return questions;
  const phase = 'response';
  const isState = method === METHODS.getTask;
  const isPlain = inputRequests === undefined && tokens.resultState === undefined && !isState;
  if (isPlain) return [{ at: result, event, phase }];
  // An input that is no question, or has other members, is shown with the rest.
  const isAllShown =
    inputRequests !== undefined &&
    isObject(bytes, inputRequests) &&
    questions.length === inputs.length &&
    inputs.every((input) => membersOf(bytes, input).length === 2);
  const without = new Set(['requestState', ...(isAllShown ? ['inputRequests'] : []), ...(isState ? ['result'] : [])]);
  const hasMore = membersOf(bytes, result).some(([name]) => name !== 'resultType' && !without.has(name));
  const inner = isState ? valuesAt(bytes, result, ['result']) : [];
  return [
    ...inner.map((at): Part => ({ at, event, phase })),
    ...questions,
    ...(hasMore ? [{ at: result, event, phase, without } as const] : []),
  ];
}

/** The edits that make an object as it was found to be good, except for the members that were not shown. */
function editsOf(
  bytes: Uint8Array,
  object: Span,
  { found, isRemoved }: { readonly found: Uint8Array; readonly isRemoved: (name: string) => boolean },
): Edit[] {
  const shown = membersOf(found, { start: 0, end: found.length }).filter(([name]) => !isRemoved(name));
  const next = new Map(shown.map(([name, value]) => [name, value]));
  const members = membersOf(bytes, object);
  const added = [...next].filter(([name]) => !members.some(([own]) => own === name));
  const kept = members.flatMap(([name, span]): Edit[] => {
    const value = next.get(name);
    return value === undefined ? [] : [{ span, text: found.slice(value.start, value.end) }];
  });
  const add = added
    .map(([name, { start, end }]) => `${JSON.stringify(name)}:${readText(found, { start, end })}`)
    .join();
  const removes = (name: string) => !isRemoved(name) && !next.has(name);
  return [...editMembers(bytes, object, { removes, add: add === '' ? undefined : toBytes(add) }), ...kept];
}

/** The kind of the question that a client has answered, by the members that only its answers have. */
function kindOfAnswer(bytes: Uint8Array, answer: Span): string | undefined {
  if (!isObject(bytes, answer)) return undefined;
  const names = new Set(membersOf(bytes, answer).map(([name]) => name));
  if (names.has('action')) return METHODS.elicit;
  return names.has('roots') ? undefined : METHODS.createMessage;
}

/** Whether the guards may look at the event in this phase. Only a guard whose list is known can tell that it does not. */
function mayConcern({ guards }: Subject, event: string, phase: Phase): boolean {
  return guards.some(({ known }) => known?.some((each) => isHooked(each, event, phase)) ?? true);
}

/**
 * The params as the server, or the client, will get them. Answers of the client are messages of their own, and the state is the
 * server's.
 */
function paramsOf(request: RelayedRequest, edits: readonly Edit[]): Uint8Array {
  const sent = scanOwn(splice(request.message(ID, edits)));
  if (sent.kind !== 'request' || sent.params === undefined) return toBytes('{}');
  const { bytes, params, tokens } = sent;
  if (tokens.inputResponses === undefined && tokens.requestState === undefined)
    return bytes.slice(params.start, params.end);
  return rewriteObject(bytes, params, { change: (name) => (OF_ROUNDS.has(name) ? REMOVED : undefined) });
}

const OF_ROUNDS: ReadonlySet<string> = new Set(['inputResponses', 'requestState']);

/** A signal that is aborted when the client cancels the request, or leaves. */
function cancelling(exchange: Exchange): AbortSignal {
  const over = new AbortController();
  exchange.onCancel(() => over.abort());
  return over.signal;
}
