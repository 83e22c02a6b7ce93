import { REDACTED } from '../../host/observe/redact.js';
import { readText } from '../../wire/json/json-text.js';
import { isRecord } from '../../wire/json/json-value.js';
import { RPC_CODES } from '../../wire/jsonrpc/message.js';
import type { Envelope, RequestEnvelope } from '../../wire/mcp/envelope.js';
import { METHODS } from '../../wire/mcp/methods.js';
import { LATEST_LEGACY_REVISION } from '../../wire/mcp/revisions.js';
import { textOfMessage } from './format.js';
import { idOf, matchesRedacted, matchKey, messagesIn, paramsOf, replaceToken } from './recorded-messages.js';
import type { RecordedEntry } from './recording-file.js';

export interface StandInOptions {
  readonly script: ServerScript;
  readonly server: string;
  readonly send: (text: string) => void;
}

/** A message for which the stand-in is sending the recorded steps. */
interface Performance {
  readonly scene: Scene;
  /** The id and the progress token of the message, as JSON. A notification has no id. */
  readonly id: string | undefined;
  readonly progressToken: string | undefined;
  isCancelled: boolean;
}

/** Stands in for a server. Answers each request at once, as the server did in the recording. */
export class StandIn {
  readonly #options: StandInOptions;
  readonly #performances = new Set<Performance>();
  /** Callbacks that wait for the answers to its own requests, by id. */
  readonly #asked = new Map<string, () => void>();
  #lastId = 0;

  constructor(options: StandInOptions) {
    this.#options = options;
  }

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
    const scene = this.#options.script.find(message);
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
      if (id !== undefined) send(replaceToken(message, message.id, id));
    } else if (message.kind === 'request') {
      this.#lastId += 1;
      const own = String(this.#lastId);
      answers.set(idOf(message), new Promise((resolve) => this.#asked.set(own, resolve)));
      send(replaceToken(message, message.id, own));
    } else if (message.tokens.progressToken === undefined) {
      send(readText(message.bytes, message.span));
    } else if (progressToken !== undefined) {
      send(replaceToken(message, message.tokens.progressToken, progressToken));
    }
  }

  #cancel(id: string): void {
    for (const performance of this.#performances) if (performance.id === id) performance.isCancelled = true;
  }

  /** Answers a request without a recorded answer: with a result to a ping, the handshake or `tools/list`, otherwise with an error. */
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

/** Handshake and tools for a server that was already running when the recording began. */
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

/** Says that there is no answer, and names the most similar recorded request. */
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

/** Actions of a server after one message, in order. */
export type Step =
  | { readonly kind: 'send'; readonly message: Envelope }
  /** The server got the answer to its request with this id. */
  | { readonly kind: 'await'; readonly requestId: string };

/** A message to the server, and the messages of the server that followed from it. */
export interface Scene {
  readonly method: string;
  readonly params: unknown;
  readonly key: string;
  /** The progress token that the gateway sent, as JSON. */
  readonly progressToken: string | undefined;
  readonly isRequest: boolean;
  readonly line: number;
  readonly steps: Step[];
  isUsed: boolean;
}

/** The scenes of one server in a recording, in the order of its messages. */
export class ServerScript {
  readonly scenes: readonly Scene[];

  constructor(entries: readonly RecordedEntry[], server: string) {
    const byConnection = new Map<number, RecordedEntry[]>();
    for (const entry of entries) {
      if (entry.server !== server || (entry.dir !== 'g>s' && entry.dir !== 's>g')) continue;
      byConnection.set(entry.conn, [...(byConnection.get(entry.conn) ?? []), entry]);
    }
    this.scenes = [...byConnection.values()].flatMap(scenesOf);
  }

  /** Returns the next scene that begins with this message. After all of them were used, returns the last one again. */
  find(message: Exclude<Envelope, { kind: 'response' }>): Scene | undefined {
    const key = keyOf(message);
    const exact = this.scenes.filter((scene) => scene.key === key);
    const alike = exact.length > 0 ? exact : this.scenes.filter((scene) => matchesRedacted(scene.key, key, REDACTED));
    const scene = alike.find(({ isUsed }) => !isUsed) ?? alike.at(-1);
    if (scene !== undefined) scene.isUsed = true;
    return scene;
  }

  /** Returns the most similar recorded request of the same method. */
  nearest(method: string, params: unknown): Scene | undefined {
    const requests = this.scenes.filter(({ isRequest }) => isRequest);
    const same = requests.filter((scene) => scene.method === method);
    const wanted = leavesOf(params);
    let best: { scene: Scene; score: number } | undefined;
    for (const scene of same) {
      const leaves = leavesOf(scene.params);
      const shared = [...leaves].filter((leaf) => wanted.has(leaf)).length;
      const score = shared / Math.max(1, leaves.size + wanted.size - shared);
      if (best === undefined || score > best.score) best = { scene, score };
    }
    return best?.scene;
  }

  has(method: string): boolean {
    return this.scenes.some((scene) => scene.method === method);
  }
}

function scenesOf(entries: readonly RecordedEntry[]): Scene[] {
  const scenes: Scene[] = [];
  const inFlight = new Map<string, Scene>();
  const asked = new Map<string, Scene>();
  let latest: Scene | undefined;
  for (const entry of entries) {
    for (const message of messagesIn(textOfMessage(entry) ?? '')) {
      if (entry.dir === 'g>s') {
        if (message.kind === 'response') {
          const requestId = idOf(message);
          asked.get(requestId)?.steps.push({ kind: 'await', requestId });
        } else {
          latest = sceneOf(message, entry.line);
          scenes.push(latest);
          if (message.kind === 'request') inFlight.set(idOf(message), latest);
        }
      } else {
        const scene = sceneFor(message, inFlight) ?? latest;
        scene?.steps.push({ kind: 'send', message });
        if (message.kind === 'request' && scene !== undefined) asked.set(idOf(message), scene);
        if (message.kind === 'response') {
          latest = scene ?? latest;
          inFlight.delete(idOf(message));
        }
      }
    }
  }
  return scenes;
}

function keyOf(message: Exclude<Envelope, { kind: 'response' }>): string {
  return message.method === METHODS.initialize ? message.method : matchKey(message);
}

function sceneOf(message: Exclude<Envelope, { kind: 'response' }>, line: number): Scene {
  const { method, bytes, kind } = message;
  const params = paramsOf(message);
  const token = message.tokens.requestProgressToken;
  return {
    method,
    params,
    line,
    steps: [],
    isUsed: false,
    isRequest: kind === 'request',
    key: keyOf(message),
    progressToken: token && readText(bytes, token),
  };
}

/** Returns the scene of a server's message: by its id or token, or else that of the latest open request. */
function sceneFor(message: Envelope, inFlight: ReadonlyMap<string, Scene>): Scene | undefined {
  if (message.kind === 'response') return inFlight.get(idOf(message));
  const open = [...inFlight.values()];
  const token = message.tokens.progressToken;
  const text = token && readText(message.bytes, token);
  return open.find(({ progressToken }) => text !== undefined && progressToken === text) ?? open.at(-1);
}

/** Returns the values in some parameters, each with its path. */
function leavesOf(value: unknown, path = ''): Set<string> {
  if (Array.isArray(value)) return new Set(value.flatMap((each, at) => [...leavesOf(each, `${path}[${at}]`)]));
  if (isRecord(value)) {
    const members = Object.entries(value).filter(([key]) => key !== '_meta');
    return new Set(members.flatMap(([key, each]) => [...leavesOf(each, `${path}.${key}`)]));
  }
  return new Set([`${path}=${JSON.stringify(value)}`]);
}
