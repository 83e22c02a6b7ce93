import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ClientOrigin } from '../../../src/downstream/port.js';
import type { Sharing } from '../../../src/gateway/registry/server-instances.js';
import { repetitions } from '../../support/repetitions.js';
import { OWN_ORIGIN, type ScriptedClient, type ServerScript, scriptGateway } from '../../support/scripted-gateway.js';
import { flush } from '../../support/wire.js';

const IDLE_STOP_MS = 600_000;
const MODES = ['auto', 'profile', 'folder', 'isolated', 'all'] as const satisfies readonly Sharing[];

interface Looks {
  readonly name: string;
  readonly capabilities: object;
  /** Where the client runs; absent if it runs where the gateway does. */
  readonly origin: ClientOrigin | undefined;
}

interface Attached extends Looks {
  readonly client: ScriptedClient;
}

const origin = fc.record({
  environment: fc.dictionary(fc.constantFrom('A', 'B', 'C'), fc.constantFrom('1', '2', ''), { noNullPrototype: true }),
  folder: fc.constantFrom('/own', '/x', '/y'),
});
const looks = fc.record({
  name: fc.constantFrom('one', 'two'),
  capabilities: fc.constantFrom({}, { sampling: {} }, { roots: {} }),
  origin: fc.option(origin, { nil: undefined, freq: 4 }),
});
const which = fc.nat(20);
/** The variables in the entry of each server. */
const named = fc.tuple(...MODES.map(() => fc.subarray(['A', 'B', 'C'])));
const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('attach' as const), looks }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('detach' as const), which }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.nat(IDLE_STOP_MS) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('ask for roots' as const), which }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('die' as const) }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('reload' as const), named, replaced: fc.subarray([...MODES]) }),
  },
);
type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never;

/** One server for each mode, all of a revision with sessions, named after the mode, and clients that come and go. */
class World {
  readonly clients: Attached[] = [];
  named: readonly (readonly string[])[];
  /** False once servers changed or request roots, because clients that could share may then keep their processes. */
  isAsAtFirst = true;
  gateway: ReturnType<typeof scriptGateway>;

  constructor(variables: readonly (readonly string[])[]) {
    this.named = variables;
    this.gateway = this.#start();
  }

  async take(one: Step): Promise<void> {
    switch (one.do) {
      case 'attach': {
        this.#attach(one.looks);
        break;
      }
      case 'die': {
        // The process of the gateway has died with its servers. Its clients attach to the next one.
        const left = this.clients.splice(0);
        this.gateway = this.#start();
        this.isAsAtFirst = true;
        for (const { name, capabilities, origin } of left) this.#attach({ name, capabilities, origin });
        break;
      }
      case 'detach':
        for (const { client } of this.clients.splice(one.which, 1)) client.session.close();
        break;
      case 'wait':
        this.gateway.clock.advance(one.ms);
        break;
      case 'ask for roots': {
        const id = this.gateway.ids()[one.which % this.gateway.ids().length] ?? '';
        const server = this.gateway.server(id);
        if (server.isEnded) break;
        if (server.generation === 0) await server.start();
        server.child.say({ jsonrpc: '2.0', id: 'roots', method: 'roots/list' });
        this.isAsAtFirst = false;
        break;
      }
      default:
        this.named = one.named;
        this.gateway.change(this.#servers, one.replaced);
        this.isAsAtFirst = false;
    }
    await flush();
  }

  #start(): ReturnType<typeof scriptGateway> {
    const gateway = scriptGateway({ servers: this.#servers });
    gateway.gateway.start();
    return gateway;
  }

  #attach(looks: Looks): void {
    const client = this.gateway.connect({ origin: looks.origin }).greet('2025-11-25', looks.capabilities, looks.name);
    this.clients.push({ ...looks, client });
  }

  backendOf({ client }: Attached, mode: Sharing) {
    return this.gateway.gateway.pool.of(mode).find(({ clients }) => clients.has(client.downstream));
  }

  valuesOf({ origin = OWN_ORIGIN }: Pick<Looks, 'origin'>, mode: Sharing): readonly (string | undefined)[] {
    return (this.named[MODES.indexOf(mode as (typeof MODES)[number])] ?? []).map((name) => origin.environment[name]);
  }

  get #servers(): Readonly<Record<string, ServerScript>> {
    return Object.fromEntries(MODES.map((sharing, at) => [sharing, { sharing, variables: this.named[at] ?? [] }]));
  }
}

/** Whether a server cannot distinguish these clients, and may show each of them what it knows of the other. */
function mayShare(world: World, mode: Sharing, one: Attached, other: Attached): boolean {
  const folderOf = ({ origin: { folder } = OWN_ORIGIN }: Attached) => folder;
  const isSame = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b);
  if (mode === 'isolated' || mode === 'auto' || !isSame(world.valuesOf(one, mode), world.valuesOf(other, mode)))
    return false;
  if (mode === 'all') return true;
  if (mode === 'folder' && folderOf(one) !== folderOf(other)) return false;
  return one.name === other.name && isSame(one.capabilities, other.capabilities);
}

function expectInvariants(world: World): void {
  for (const mode of MODES) {
    for (const [at, one] of world.clients.entries()) {
      const backend = world.backendOf(one, mode);
      expect(backend).toBeDefined();
      // Its process has the variables of this client and, with `folder`, the client's folder.
      const server = world.gateway.server(backend?.id ?? '');
      expect(server.isEnded).toBe(false);
      expect(world.valuesOf(server, mode)).toEqual(world.valuesOf(one, mode));
      if (mode === 'folder') expect((server.origin ?? OWN_ORIGIN).folder).toBe((one.origin ?? OWN_ORIGIN).folder);
      for (const other of world.clients.slice(at + 1)) {
        const isShared = world.backendOf(other, mode) === backend;
        if (isShared) expect(mayShare(world, mode, one, other)).toBe(true);
        else if (world.isAsAtFirst) expect(mayShare(world, mode, one, other)).toBe(false);
      }
    }
  }
}

describe('clients with profiles, variables and folders of their own that come and go, as does the hub', () => {
  it('share a process only where the mode of the server, its variables and the folder allow it', async () => {
    await fc.assert(
      fc.asyncProperty(named, fc.array(step, { maxLength: 40 }), async (variables, steps) => {
        const world = new World(variables);
        for (const one of steps) {
          await world.take(one);
          expectInvariants(world);
        }
      }),
      { numRuns: repetitions({ full: 1_000, short: 30 }) },
    );
  });

  it('leave no process behind that waits longer than idleStop', async () => {
    await fc.assert(
      fc.asyncProperty(named, fc.array(step, { maxLength: 40 }), async (variables, steps) => {
        const world = new World(variables);
        for (const one of steps) await world.take(one);
        const claimed = new Set(
          MODES.flatMap((mode) => world.clients.flatMap((one) => world.backendOf(one, mode)?.id ?? [])),
        );
        for (const { client } of world.clients.splice(0)) client.session.close();
        await flush();
        world.gateway.clock.advance(IDLE_STOP_MS);
        await flush();
        for (const id of world.gateway.ids()) {
          const { isEnded, origin, backend } = world.gateway.server(id);
          // The first process for all clients stays. So does a process that waits for its first client.
          const stays = origin === undefined && (backend.key === 'all' || !claimed.has(id));
          if (!isEnded) expect([id, stays, backend.clients.size]).toEqual([id, true, 0]);
        }
        expect(world.gateway.clock.pending).toBe(0);
      }),
      { numRuns: repetitions({ full: 500, short: 20 }) },
    );
  });
});
