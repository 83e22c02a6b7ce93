import { readText } from '../json/json-text.js';
import { isRecord } from '../json/json-value.js';
import { RPC_CODES } from '../jsonrpc/rpc-error.js';
import type { Envelope, RequestEnvelope } from '../mcp/envelope.js';
import { METHODS } from '../mcp/methods.js';
import { LATEST_LEGACY_REVISION } from '../mcp/revisions.js';
import { idOf, messagesIn, paramsOf, withToken } from './recorded-messages.js';
import type { Scene, ServerScript } from './server-script.js';

export interface StandInOptions {
  readonly script: ServerScript;
  readonly server: string;
  /** Writes one message. */
  readonly send: (text: string) => void;
}

/** A request on the stage. */
interface Performance {
  readonly scene: Scene;
  /** The id and the progress token of the request, as JSON. */
  readonly id: string | undefined;
  readonly progressToken: string | undefined;
  isCancelled: boolean;
}

/** Stands in for a server: answers each request as the server did in the recording, at once. */
export class StandIn {
  readonly #options: StandInOptions;
  readonly #performances = new Set<Performance>();
  /** The ids of its own requests, and who waits for the answers. */
  readonly #asked = new Map<string, () => void>();
  #lastId = 0;

  constructor(options: StandInOptions) {
    this.#options = options;
  }

  /** Takes one line. */
  receive(text: string): void {
    for (const message of messagesIn(text)) this.#received(message);
  }

  #received(message: Envelope): void {
    if (message.kind === 'response') {
      this.#asked.get(idOf(message))?.();
      this.#asked.delete(idOf(message));
      return;
    }
    const { method, bytes, tokens } = message;
    const params = paramsOf(message);
    if (method === METHODS.cancelled && tokens.requestId !== undefined) this.#cancel(readText(bytes, tokens.requestId));
    const scene = this.#options.script.find(method, params);
    const token = tokens.requestProgressToken;
    if (scene !== undefined) {
      const id = message.kind === 'request' ? idOf(message) : undefined;
      const progressToken = token && readText(bytes, token);
      void this.#perform({ scene, id, progressToken, isCancelled: false });
    } else if (message.kind === 'request') {
      this.#improvise(message, params);
    }
  }

  async #perform(performance: Performance): Promise<void> {
    this.#performances.add(performance);
    const answers = new Map<string, Promise<void>>();
    for (const step of performance.scene.steps) {
      if (step.kind === 'await') await answers.get(step.requestId);
      if (performance.isCancelled) break;
      if (step.kind === 'send') this.#send(step.message, performance, answers);
    }
    this.#performances.delete(performance);
  }

  #send(message: Envelope, { id, progressToken }: Performance, answers: Map<string, Promise<void>>): void {
    const { send } = this.#options;
    if (message.kind === 'response') {
      if (id !== undefined) send(withToken(message, message.id, id));
    } else if (message.kind === 'request') {
      this.#lastId += 1;
      const own = String(this.#lastId);
      answers.set(idOf(message), new Promise((resolve) => this.#asked.set(own, resolve)));
      send(withToken(message, message.id, own));
    } else if (message.tokens.progressToken === undefined) {
      send(readText(message.bytes, message.span));
    } else if (progressToken !== undefined) {
      send(withToken(message, message.tokens.progressToken, progressToken));
    }
  }

  #cancel(id: string): void {
    for (const performance of this.#performances) if (performance.id === id) performance.isCancelled = true;
  }

  /** Answers what the recording has no answer to: what every server can, and otherwise an error. */
  #improvise(request: RequestEnvelope, params: unknown): void {
    const { script, server, send } = this.#options;
    const { method } = request;
    const id = idOf(request);
    const own = ownResult(method, params, script, server);
    const error = { code: RPC_CODES.invalidParams, message: describeMissing(method, params, script, server) };
    const outcome = own === undefined ? `"error":${JSON.stringify(error)}` : `"result":${JSON.stringify(own)}`;
    send(`{"jsonrpc":"2.0","id":${id},${outcome}}`);
  }
}

const LIST_TOOLS = 'tools/list';

/** The handshake and the tools of a server that ran already when the recording began. */
function ownResult(method: string, params: unknown, script: ServerScript, server: string): unknown {
  switch (method) {
    case METHODS.ping:
      return {};
    case METHODS.initialize: {
      const protocolVersion = (isRecord(params) && params.protocolVersion) || LATEST_LEGACY_REVISION;
      return { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: server, version: 'recorded' } };
    }
    case LIST_TOOLS: {
      if (script.has(method)) return undefined;
      const called = script.scenes.flatMap((scene) =>
        scene.method === METHODS.callTool && isRecord(scene.params) ? [String(scene.params.name)] : [],
      );
      return { tools: [...new Set(called)].map((name) => ({ name, inputSchema: { type: 'object' } })) };
    }
    default:
      return undefined;
  }
}

const LONGEST_PARAMS = 300;

/** Why there is no answer, with the recorded request that was perhaps meant. */
function describeMissing(method: string, params: unknown, script: ServerScript, server: string): string {
  const nearest = script.nearest(method, params);
  const missing = `The recording of "${server}" has no answer to ${requestText(method, params)}.`;
  return nearest === undefined
    ? `${missing} It has no ${method} at all.`
    : `${missing} The nearest recorded request is ${requestText(method, nearest.params)} (line ${nearest.line}).`;
}

function requestText(method: string, params: unknown): string {
  if (!isRecord(params)) return method;
  const { _meta, ...rest } = params;
  const text = JSON.stringify(rest);
  return `${method} ${text.length > LONGEST_PARAMS ? `${text.slice(0, LONGEST_PARAMS)}…` : text}`;
}
