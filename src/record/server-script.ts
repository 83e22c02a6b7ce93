import { readText } from '../json/json-text.js';
import { isRecord } from '../json/json-value.js';
import type { Envelope } from '../mcp/envelope.js';
import { METHODS } from '../mcp/methods.js';
import { REDACTED } from '../observe/redact.js';
import { textOf } from './format.js';
import { idOf, matchesRedacted, matchKey, messagesIn, paramsOf } from './recorded-messages.js';
import type { RecordedEntry } from './recording-file.js';

/** Actions of a server after one message, in order. */
export type Step =
  /** `awaits` is the id of the server request that it is, whose answer came later. */
  | { readonly kind: 'send'; readonly message: Envelope }
  /** The server got the answer to its request with this id. */
  | { readonly kind: 'await'; readonly requestId: string };

/** A message to the server, and everything that the server did because of it. */
export interface Scene {
  readonly method: string;
  readonly params: unknown;
  readonly key: string;
  /** The progress token that the gateway sent, as JSON. */
  readonly progressToken: string | undefined;
  readonly isRequest: boolean;
  /** Where it is in the recording. */
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

  /** The next scene that begins with this message. When all of them were used, the last one again. */
  find(method: string, params: unknown): Scene | undefined {
    const key = method === METHODS.initialize ? method : matchKey(method, params);
    const exact = this.scenes.filter((scene) => scene.key === key);
    const alike = exact.length > 0 ? exact : this.scenes.filter((scene) => matchesRedacted(scene.key, key, REDACTED));
    const scene = alike.find(({ isUsed }) => !isUsed) ?? alike.at(-1);
    if (scene !== undefined) scene.isUsed = true;
    return scene;
  }

  /** The recorded request that is most similar, of the same method if there is one. */
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
  /** Which scene each server request belongs to. */
  const asked = new Map<string, Scene>();
  let latest: Scene | undefined;
  for (const entry of entries) {
    for (const message of messagesIn(textOf(entry) ?? '')) {
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

function sceneOf(message: Exclude<Envelope, { kind: 'response' }>, line: number): Scene {
  const { method, bytes, kind } = message;
  const params = paramsOf(message);
  const token = message.tokens.requestProgressToken;
  return {
    ...{ method, params, line, steps: [], isUsed: false, isRequest: kind === 'request' },
    key: method === METHODS.initialize ? method : matchKey(method, params),
    progressToken: token && readText(bytes, token),
  };
}

/** The scene that a message of the server belongs to: that of its id or its token, or of the latest open request. */
function sceneFor(message: Envelope, inFlight: ReadonlyMap<string, Scene>): Scene | undefined {
  if (message.kind === 'response') return inFlight.get(idOf(message));
  const open = [...inFlight.values()];
  const token = message.tokens.progressToken;
  const text = token && readText(message.bytes, token);
  return open.find(({ progressToken }) => text !== undefined && progressToken === text) ?? open.at(-1);
}

/** The values in some parameters, each with the way to it. */
function leavesOf(value: unknown, path = ''): Set<string> {
  if (Array.isArray(value)) return new Set(value.flatMap((each, at) => [...leavesOf(each, `${path}[${at}]`)]));
  if (isRecord(value)) {
    const members = Object.entries(value).filter(([key]) => key !== '_meta');
    return new Set(members.flatMap(([key, each]) => [...leavesOf(each, `${path}.${key}`)]));
  }
  return new Set([`${path}=${JSON.stringify(value)}`]);
}
