// Clients of the official SDKs that get each answer from the test, and JSON with a few other values somewhere within it.
import { Client as ModernClient } from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import fc from 'fast-check';
import type { Message } from './wire.js';

/** A client of an official SDK that is connected to nothing. */
export class OfficialClient {
  readonly client: Client;
  readonly hasHandshake: boolean;
  #result: Message = {};

  constructor(client: unknown, hasHandshake: boolean) {
    this.client = client as Client;
    this.hasHandshake = hasHandshake;
  }

  async connect(): Promise<void> {
    const transport: Message = { start: async () => {}, close: async () => {} };
    transport.send = async ({ id, method }: Message) => {
      if (id === undefined) return;
      const answers = [
        { jsonrpc: '2.0', id, result: this.#resultOf(method) },
        // A client that dropped the result as no answer at all would wait for its timeout.
        { jsonrpc: '2.0', id, error: { code: -1, message: 'dropped' } },
      ];
      for (const answer of answers) queueMicrotask(() => transport.onmessage(answer));
    };
    await this.client.connect(transport as never);
  }

  /** Whether the client accepts this result of what it is told to ask. */
  async accepts(result: Message, ask: (client: Client) => Promise<unknown>): Promise<boolean> {
    this.#result = result;
    return await ask(this.client).then(
      () => true,
      () => false,
    );
  }

  #resultOf(method: string): Message {
    const capabilities = { tools: {}, prompts: {}, resources: {} };
    const serverInfo = { name: 'server', version: '1' };
    if (method === 'initialize') return { protocolVersion: '2025-11-25', capabilities, serverInfo };
    if (method === 'server/discover') return { ...COMPLETE, supportedVersions: ['2026-07-28'], capabilities };
    return this.#result;
  }
}

/** Members that a modern client needs in the result of a list or a read. */
export const COMPLETE = { resultType: 'complete', ttlMs: 0, cacheScope: 'private' };

/** Clients of both generations, the second one in both eras. They are connected. */
export async function officialClients(): Promise<readonly OfficialClient[]> {
  const about = { name: 'test', version: '1' };
  const clients = [
    new OfficialClient(new Client(about), true),
    new OfficialClient(new ModernClient(about, { versionNegotiation: { mode: 'legacy' } }), true),
    new OfficialClient(new ModernClient(about, { versionNegotiation: { mode: { pin: '2026-07-28' } } }), false),
  ];
  for (const client of clients) await client.connect();
  return clients;
}

type Path = readonly (string | number)[];

/** The paths to all values within a value. */
function pathsIn(value: unknown): Path[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, each]) => [[key], ...pathsIn(each).map((path) => [key, ...path])]);
}

/** Returns the value with another one at a path; without it if that is `undefined`. */
function withValue(value: unknown, [key = '', ...rest]: Path, other: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const copy = Array.isArray(value) ? [...value] : { ...value };
  const inner = rest.length === 0 ? other : withValue(Reflect.get(copy, key), rest, other);
  if (inner === undefined && !Array.isArray(copy)) Reflect.deleteProperty(copy, key);
  else Reflect.set(copy, key, inner ?? null);
  return copy;
}

/** JSON with numbers that are too large for JavaScript. */
function jsonOf(value: unknown): string {
  const replaced = JSON.stringify(value, (_, each) => (Math.abs(each) === Infinity ? `${each}` : each));
  return replaced.replaceAll('"Infinity"', '1e400').replaceAll('"-Infinity"', '-1e400');
}

/** The JSON of a sound object with some members less and up to three values of `junk` somewhere within it. `kept` stay. */
export function almost(sound: Message, junk: readonly unknown[], ...kept: readonly string[]): fc.Arbitrary<string> {
  const isKept = (member: unknown) => kept.includes(`${member}`);
  const paths = pathsIn(sound).filter(([first]) => !isKept(first));
  const members = fc.subarray(Object.keys(sound).filter((member) => !isKept(member)));
  const other = fc.option(fc.constantFrom(...junk), { nil: undefined });
  const changes = fc.array(fc.tuple(fc.constantFrom(...paths), other), { maxLength: 3 });
  return fc.tuple(members, changes).map(([some, changed]) => {
    const left = Object.fromEntries(Object.entries(sound).filter(([key]) => isKept(key) || some.includes(key)));
    return jsonOf(changed.reduce<unknown>((entry, [path, value]) => withValue(entry, path, value), left));
  });
}
