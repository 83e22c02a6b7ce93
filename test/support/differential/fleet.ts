// Runs the same client script against the odd server directly and through Trunkline in several ways, and returns what
// each side received, so that a test can compare the transcripts.
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { find, replaceAt, tokenAt } from '../../fixtures/servers/odd/raw-json.mjs';
import { CLI } from '../gateway-process.js';
import { Place } from '../http-place.js';
import { WITH_HUB } from '../hub-place.js';
import { HttpWire } from './http-wire.js';
import { Peer } from './peer.js';
import { Recording } from './recording.js';
import { StdioWire } from './stdio-wire.js';
import type { Transcript } from './transcript.js';
import type { OnMessage, Wire } from './wire.js';

const ODD = fileURLToPath(new URL('../../fixtures/servers/odd.mjs', import.meta.url));

/** The ways to the odd server. The first is what the others are compared with. */
export const WAYS = [
  'directly',
  'over stdio through a hub, with prefixes',
  'over stdio through trunkline__call_tool',
  'over HTTP',
  'over HTTP to its own endpoint',
] as const;

export type WayName = (typeof WAYS)[number];

/** A client in search mode, which sees other lists. */
export const CALL_TOOL_WAY: WayName = 'over stdio through trunkline__call_tool';

/** Actions of a client on one of the ways. It has to wait for all that it causes. */
export type Script = (client: Peer) => Promise<void>;

interface Way {
  readonly name: WayName;
  readonly peer: Peer;
  readonly recording: Recording;
  readonly initializeResult: InitializeResult;
}

/** Beginning of a session: the answer to `initialize`, and the lines that the server heard by then. */
export interface InitializeResult {
  readonly answer: string;
  readonly server: readonly string[];
}

export interface Played {
  readonly way: WayName;
  readonly transcript: Transcript;
}

/** One client on each of the ways, each with a server of its own. */
export class Fleet {
  readonly #place = new Place();
  #ways: readonly Way[] = [];

  /** Every client says `initialize` in these words. */
  static async open(initialize: string): Promise<Fleet> {
    const fleet = new Fleet();
    try {
      fleet.#ways = await Promise.all(WAYS.map((name, index) => fleet.#openWay(name, index, initialize)));
    } catch (error) {
      await fleet.close();
      throw error;
    }
    return fleet;
  }

  initializeResult(name: WayName): InitializeResult {
    const way = this.#ways.find((each) => each.name === name);
    if (way === undefined) throw new Error(`There is no way ${name}`);
    return way.initializeResult;
  }

  /** Plays the script on some of the ways at once. */
  async play(script: Script, names: readonly WayName[]): Promise<Played[]> {
    const ways = this.#ways.filter(({ name }) => names.includes(name));
    return await Promise.all(
      ways.map(async ({ name, peer, recording }) => {
        const fault = await script(peer).then(
          () => undefined,
          (error: unknown) => error,
        );
        // Whatever became of the script, the next one has to begin with nothing left of it.
        const received = await peer.finish();
        const transcript = { server: recording.take(), ...received };
        if (fault !== undefined) throw new Error(`The script failed ${name}`, { cause: fault });
        return { way: name, transcript };
      }),
    );
  }

  /** Ends everything, and fails when something did not end in an orderly way. */
  async close(): Promise<void> {
    try {
      await Promise.all(this.#ways.map(({ peer }) => peer.close()));
    } finally {
      await this.#place.dispose();
    }
  }

  async #openWay(name: WayName, index: number, initialize: string): Promise<Way> {
    const recording = new Recording(this.#place.file(`${index}.jsonl`));
    const server = [ODD, `record=${recording.file}`];
    const hasPrefix = name === 'over stdio through a hub, with prefixes';
    const config = this.#place.file(`${index}.yaml`);
    // The server alone is not asked for its era.
    const entry = { command: 'node', args: server, era: 'legacy', ...(hasPrefix ? {} : { prefix: '' }) };
    // All scripts at once ask more often than a person does.
    const http = { requestsPerSecond: 10_000, requestBurst: 10_000 };
    // A hub that ends at once with its last client.
    const mode = name === CALL_TOOL_WAY ? 'search' : 'direct';
    writeFileSync(config, JSON.stringify({ servers: { odd: entry }, gateway: { http, mode, hubIdle: '1ms' } }));

    const prefix = hasPrefix ? 'odd__' : '';
    const peer = new Peer(prefix, await this.#opener(name, server, config));
    const answer = await peer.initialize(initialize);
    await peer.finish();
    return { name, peer, recording, initializeResult: { answer, server: recording.takeLines() } };
  }

  async #opener(name: WayName, server: readonly string[], config: string): Promise<(onMessage: OnMessage) => Wire> {
    if (name === 'directly') return (onMessage) => new StdioWire(server, onMessage);
    if (name === 'over stdio through a hub, with prefixes') {
      const env = { ...WITH_HUB, TRUNKLINE_HUB_DIR: this.#place.file('hubs') };
      return (onMessage) => new StdioWire([CLI, '--config', config], onMessage, env);
    }
    if (name === CALL_TOOL_WAY)
      return (onMessage) => throughCallTool(new StdioWire([CLI, '--config', config], onMessage));
    if (!name.startsWith('over HTTP')) return (onMessage) => new StdioWire([CLI, '--config', config], onMessage);
    const { url: all } = await this.#place.serve({ config, args: ['--no-auth'] });
    const url = name === 'over HTTP' ? all : `${all}/odd`;
    return (onMessage) => new HttpWire(url, onMessage);
  }
}

/** A wire that makes each call of a tool a call of `trunkline__call_tool`. All other bytes stay. */
function throughCallTool(wire: Wire): Wire {
  return {
    send: (text) => wire.send(wrapped(text)),
    listen: () => wire.listen(),
    close: () => wire.close(),
  };
}

function wrapped(text: string): string {
  const name = find(text, ['params', 'name']);
  if (JSON.parse(text).method !== 'tools/call' || name === undefined) return text;
  const token = text.slice(name.start, name.end);
  const args = tokenAt(text, ['params', 'arguments']);
  const named = replaceAt(text, ['params', 'name'], () => '"trunkline__call_tool"');
  if (args !== undefined)
    return replaceAt(named, ['params', 'arguments'], () => `{"name":${token},"arguments":${args}}`);
  // Before the name, so that nothing of it is left when it is taken out.
  const key = /"(?:[^"\\]|\\.)*"\s*:\s*$/.exec(named.slice(0, name.start))?.index ?? 0;
  return `${named.slice(0, key)}"arguments":{"name":${token}},${named.slice(key)}`;
}
