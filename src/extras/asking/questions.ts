import { createHash, randomInt } from 'node:crypto';
import type { ClientFacts, DownstreamClient, Exchange } from '../../downstream/port.js';
import type { GatedRequest } from '../../gateway/routing/request-gate.js';
import type { OpenQuestion } from '../../status/status-facts.js';
import { stringAt, valuesAt } from '../../wire/json/json-text.js';

import { METHODS } from '../../wire/mcp/methods.js';
import { ownNotification, ownRequest } from '../../wire/mcp/relayed-request.js';
import type { Clock } from '../../wire/timing/clock.js';
import { shownArguments, shownName, Unaskable } from './shown-arguments.js';

/** Time for which a question can be answered, and for which a yes holds whose call has ended, in milliseconds. */
const VALID_MS = 120_000;
/** Time between two notifications of progress of a call that waits, and between two of the desktop, in milliseconds. */
const PROGRESS_EVERY_MS = 5_000;
const NOTIFY_EVERY_MS = 10_000;
/** Time within which no person answers a form, in milliseconds. Clients that run without a person decline or cancel a form at once. */
const UNREAD_MS = 1_000;
/** Limit of the questions that can be answered: of one principal, and in all. */
const MAX_PER_PRINCIPAL = 64;
const MAX_QUESTIONS = 512;

/** An answer of a person. `session` is a yes for all further calls of the same tool in the session of the client. */
export type Answer = 'yes' | 'no' | 'session';

/** The end of a wait: an answer, none within the time, or the end of Trunkline. */
type Outcome = Answer | 'unanswered' | 'overdue' | 'ended';

/** Clauses and sentences for the client, by outcome. */
const REFUSALS = {
  no: ['who said no', 'Do not repeat this call. Ask your user what to do instead.'],
  overdue: ['and nobody has answered', 'Repeat this call only when your user is there to answer.'],
  full: ['and too many calls wait for an answer already', 'Try again when some are answered.'],
  ended: ['and Trunkline ends', 'The call was not sent, so repeating it is safe.'],
} as const satisfies Readonly<Record<string, readonly [string, string]>>;

/** A call that waits for an answer, or the answer that waits for the call to come again. */
interface Question {
  readonly facts: OpenQuestion;
  readonly client: DownstreamClient;
  readonly digest: string;
  /** Ends the wait of the call. Absent when the call has ended without an answer. */
  settle?: ((outcome: Outcome) => void) | undefined;
  /** Whether a person has said yes after the call had ended. The next call with the same digest takes the yes. */
  isAllowed: boolean;
  /** Cancels the timer that drops the question. */
  forget: () => void;
}

type ShownRequest = Omit<OpenQuestion, 'id' | 'until'>;

const KINDS: ReadonlyMap<string, OpenQuestion['kind']> = new Map([
  [METHODS.callTool, 'tool'],
  [METHODS.getPrompt, 'prompt'],
]);

export interface QuestionsOptions {
  readonly clock: Clock;
  readonly gateway: { readonly connected: ReadonlyMap<DownstreamClient, { readonly facts: ClientFacts }> };
  readonly redact: (text: string) => string;
  /** The place where the user answers: a page over HTTP, or else those of the user of this machine. */
  readonly place: () => string;
  /** The present settings. */
  readonly settings: () => { readonly timeoutMs: number; readonly notify: boolean };
  /** Shows two texts on the desktop. */
  readonly notify: (title: string, text: string) => void;
}

/**
 * The questions about calls, which persons answer. A yes is for one call: of one client, with the same server, tool and arguments. If
 * the call has ended meanwhile, because its client waits only so long, the same call may come again and takes the yes.
 */
export class Questions {
  readonly #options: QuestionsOptions;
  readonly #all = new Map<string, Question>();
  /** The tools that each client may call for its session, as `SERVER TOOL`. */
  readonly #sessions = new WeakMap<DownstreamClient, Set<string>>();
  #notifiedAt = Number.NEGATIVE_INFINITY;

  constructor(options: QuestionsOptions) {
    this.#options = options;
  }

  /** The calls that a person can answer, the oldest first. */
  get open(): readonly OpenQuestion[] {
    return [...this.#all.values()].flatMap(({ facts, isAllowed }) => (isAllowed ? [] : [facts]));
  }

  /** Answers a question, or takes a yes back whose call has not come again. Returns false if there is nothing to answer. */
  answer(id: string, answer: Answer): boolean {
    const question = this.#all.get(id);
    if (question === undefined || (question.isAllowed && answer !== 'no')) return false;
    if (question.settle !== undefined) question.settle(answer);
    else if (answer === 'no') this.#drop(question);
    else question.isAllowed = true;
    return true;
  }

  /** Asks about a request, and passes it on, or refuses it. */
  hold({ exchange, target, asks }: GatedRequest, pass: (exchange: Exchange) => void): void {
    if (exchange.isSettled || asks === undefined) return;
    const { client, request } = exchange;
    const { identity, name } = asks;
    const digest = createHash('sha256').update(identity).digest('base64');
    const tool = request.method === METHODS.callTool ? `${target.backend.key} ${name}` : undefined;
    const allow = () => {
      exchange.allowed = identity;
      pass(exchange);
    };
    const refuse = ([because, more]: readonly [string, string]) =>
      target.backend.dispatcher.refuse(exchange, 'denied', asks.notAllowed(because, more));
    if ((tool !== undefined && this.#sessions.get(client)?.has(tool) === true) || this.#takeYes(client, digest)) {
      allow();
      return;
    }
    let shown: ShownRequest;
    try {
      shown = this.#describe(exchange, target, asks);
    } catch (error) {
      if (!(error instanceof Unaskable)) throw error;
      refuse([error.message, 'Nobody was asked.']);
      return;
    }
    // The same call may wait already, because its client has given up and tries again. It keeps its id, which a person may be typing.
    const earlier = [...this.#all.values()].find(
      (each) => each.client === client && each.digest === digest && each.settle === undefined,
    );
    if (earlier !== undefined) this.#drop(earlier);
    if (!this.#makeRoom(client.principal)) {
      refuse(REFUSALS.full);
      return;
    }
    const until = this.#options.clock.now() + VALID_MS;
    const facts = { ...shown, id: earlier?.facts.id ?? newId(), until };
    const question: Question = { facts, client, digest, isAllowed: false, forget: () => {} };
    this.#wait(exchange, question, (answer) => {
      if (answer === 'session' && tool !== undefined) {
        const tools = this.#sessions.get(client) ?? new Set();
        this.#sessions.set(client, tools.add(tool));
      }
      if (answer === 'yes' || answer === 'session') allow();
      else if (answer === 'unanswered')
        refuse([
          'and nobody has answered',
          `Ask your user to allow it ${this.#options.place()}, then repeat the call. A yes within two minutes still counts.`,
        ]);
      else refuse(REFUSALS[answer]);
    });
  }

  close(): void {
    for (const question of [...this.#all.values()]) {
      question.settle?.('ended');
      this.#drop(question);
    }
  }

  /** Lets a call wait for its answer, which `settled` gets. */
  #wait(exchange: Exchange, question: Question, settled: (outcome: Outcome) => void): void {
    const { clock } = this.#options;
    const { facts } = question;
    const { timeoutMs } = this.#options.settings();
    const isForm = exchange.elicits('form');
    let until = 0;
    let withdraw = () => {};
    let stopProgress = () => {};
    let cancelWait = () => {};
    // Without its call, the question stays, because the call may come again.
    const leave = () => {
      question.settle = undefined;
      cancelWait();
      stopProgress();
      withdraw();
    };
    const waitFor = (ms: number) => {
      cancelWait();
      until = clock.now() + ms;
      this.#forgetAfter(Math.max(VALID_MS, ms), question);
      cancelWait = clock.schedule(ms, () => {
        leave();
        settled(ms < VALID_MS ? 'unanswered' : 'overdue');
      });
    };
    waitFor(isForm ? VALID_MS : timeoutMs);
    question.settle = (outcome) => {
      leave();
      this.#drop(question);
      settled(outcome);
    };
    this.#all.set(facts.id, question);
    exchange.onCancel(leave);
    if (exchange.wantsProgress) stopProgress = this.#reportProgress(exchange, () => until);
    if (!isForm) {
      this.#notify(facts);
      return;
    }
    withdraw = this.#elicit(exchange, facts, () => {
      if (question.settle === undefined) return;
      waitFor(timeoutMs);
      this.#notify(facts);
    });
  }

  #takeYes(client: DownstreamClient, digest: string): boolean {
    for (const question of this.#all.values()) {
      if (!question.isAllowed || question.client !== client || question.digest !== digest) continue;
      this.#drop(question);
      return true;
    }
    return false;
  }

  /** Schedules the end of a question. Holds the question only, and not the call, which may be large. */
  #forgetAfter(ms: number, question: Question): void {
    question.forget();
    question.forget = this.#options.clock.schedule(ms, () => this.#drop(question));
  }

  #drop(question: Question): void {
    question.forget();
    if (this.#all.get(question.facts.id) === question) this.#all.delete(question.facts.id);
  }

  /** Returns false if a principal, or all of them, have too many calls that wait. Drops the oldest question without a call first. */
  #makeRoom(principal: string): boolean {
    const all = [...this.#all.values()];
    const own = all.filter(({ facts }) => facts.principal === principal);
    const full = own.length >= MAX_PER_PRINCIPAL ? own : all.length >= MAX_QUESTIONS ? all : [];
    const idle = full.find(({ settle }) => settle === undefined);
    if (idle !== undefined) this.#drop(idle);
    return full.length === 0 || idle !== undefined;
  }

  #describe(
    { client, request }: Exchange,
    { backend }: GatedRequest['target'],
    { rule, name, arguments: args }: NonNullable<GatedRequest['asks']>,
  ): ShownRequest {
    const { gateway, redact } = this.#options;
    if (name === undefined) throw new Unaskable('but it names nothing that a person could be asked about');
    const { facts } = gateway.connected.get(client) ?? {};
    return {
      principal: client.principal,
      caller: client,
      server: backend.key,
      kind: KINDS.get(request.method) ?? 'resource',
      name: shownName(name, redact),
      arguments: shownArguments(args, redact),
      client: shownName(String(facts?.profile.clientInfo.name ?? ''), redact),
      user: facts?.user === undefined ? undefined : shownName(facts.user.name, redact),
      rule: rule.at,
      say: rule.say,
    };
  }

  /** Asks with a form in the client. Calls `unseen` if no person has seen the form. Returns the function that withdraws it. */
  #elicit(exchange: Exchange, facts: OpenQuestion, unseen: () => void): () => void {
    const mayLast = exchange.client.hasSession && facts.kind === 'tool';
    const { clock } = this.#options;
    const askedAt = clock.now();
    const request = ownRequest(METHODS.elicit, {
      mode: 'form',
      message: describeQuestion(facts),
      requestedSchema: {
        type: 'object',
        properties: {
          answer: { type: 'string', title: 'Allow this call?', enum: mayLast ? [NO, YES, SESSION] : [NO, YES] },
        },
        required: ['answer'],
      },
    });
    return exchange.requireInput({
      request,
      isOwn: true,
      edits: [],
      answer: ({ bytes, result }) => {
        const textAt = (...path: readonly string[]) =>
          result === undefined ? undefined : stringAt(bytes, valuesAt(bytes, result, path)[0]);
        const chosen = textAt('action') === 'accept' ? textAt('content', 'answer') : undefined;
        const isUnread = chosen === undefined && clock.now() - askedAt < UNREAD_MS;
        if (result === undefined || isUnread) unseen();
        else if (chosen === SESSION && mayLast) this.answer(facts.id, 'session');
        else this.answer(facts.id, chosen === YES ? 'yes' : 'no');
      },
      fail: unseen,
      progress: () => {},
    });
  }

  /** Shows a question on the desktop of the person whose gateway this is. Users over HTTP have other desktops. */
  #notify({ user, server, kind, name }: OpenQuestion): void {
    const now = this.#options.clock.now();
    if (!this.#options.settings().notify || user !== undefined || now - this.#notifiedAt < NOTIFY_EVERY_MS) return;
    this.#notifiedAt = now;
    this.#options.notify(
      `Allow a call of server ${server}? The ${kind} is ${name}`,
      'Answer on the page of `trunkline web`, or with: trunkline allow',
    );
  }

  #reportProgress(exchange: Exchange, until: () => number): () => void {
    const { clock } = this.#options;
    let cancel = () => {};
    const report = () => {
      const left = Math.round((until() - clock.now()) / 1_000);
      // Progress must grow, and the server begins at 0 or later.
      const params = {
        progressToken: 0,
        progress: -left,
        message: `Waits for a person to allow the call ${this.#options.place()} (${left} s left)`,
      };
      const notification = left > 0 ? ownNotification(METHODS.progress, params) : undefined;
      if (notification !== undefined) exchange.progress(notification);
      cancel = clock.schedule(PROGRESS_EVERY_MS, report);
    };
    report();
    return () => cancel();
  }
}

/** Choices of the form. The no is the first, because Codex sends the first one when a person who was typing presses Enter. */
const NO = 'no';
const YES = 'yes';
const SESSION = 'yes, for this tool until the session ends';

/**
 * The question as a person reads it. Names and arguments are the words of a model or a server, so they are quoted and come last. There
 * are two lines, because Claude Code shows three lines and hides the others.
 */
function describeQuestion({ server, kind, name, arguments: args, rule, say }: OpenQuestion): string {
  const why = `The configuration asks first (${rule})${say === undefined ? '.' : `: ${say}`}`;
  return `Allow this call of the server "${server}"? ${why}\nThe ${kind} is ${name}, ${args === '' ? 'without arguments' : `with ${args}`}`;
}

/** Letters that no one takes for others, because people type the id. */
const ALPHABET = 'abcdefghjkmnpqrstuvwxyz23456789';

function newId(): string {
  return Array.from({ length: 8 }, () => ALPHABET[randomInt(ALPHABET.length)]).join('');
}
