import { expect } from 'vitest';
import { HTTP_FAULTS, type HttpFault, HttpPeer, type Network } from '../../support/http-peer.js';
import { type ScriptedServer, type ServerScript, scriptGateway } from '../../support/scripted-gateway.js';
import { flush } from '../../support/wire.js';
import { ChangingLists } from './changing-lists.js';
import { AttachedWire, directWire } from './client-wire.js';
import type { Event, Setting } from './events.js';
import { type Asked, CAPABILITIES, Person, type Received } from './person.js';
import { ServerProcess } from './server-process.js';

/** Longer than the longest wait, which is the one for an absent client. */
const LONGEST_WAIT_MS = 660_000;

/** Longest time without a byte on the answers of a server behind a URL. */
const KEEP_ALIVE_MS = 250_000;

/** What a process does because of a call. */
const BUSINESS = new Set<Event['kind']>(['ask', 'ask undeclared', 'answer', 'fail', 'progress']);

/** A list that a client received. */
interface Listed {
  readonly person: Person;
  readonly line: string;
  /** Number of the latest change that the list may show. */
  readonly change: number;
}

/**
 * Two clients, two servers of different eras, and all events that can come between a request and its answer. Rules
 * about the order of messages are checked as messages come; `invariants.ts` checks the others at the end.
 */
export class World {
  readonly people: readonly [Person, Person];
  readonly processes: ServerProcess[] = [];
  readonly listed: Listed[] = [];
  /** The gateway and its servers. */
  #world: ReturnType<typeof scriptGateway>;
  /** The wires of the clients, if they are attached to a hub. */
  readonly #attached: readonly AttachedWire[];
  readonly #servers: Readonly<Record<string, ServerScript>>;
  readonly #lists = new ChangingLists(['old', 'new', 'extra']);
  /** The networks to the servers behind a URL. */
  readonly #networks = new Map<string, Network>();
  /** Servers that could not be reached at their last start. */
  readonly #unreached = new Set<ScriptedServer>();
  readonly #isSearch: boolean;
  #hasExtra = false;
  #changes = 0;

  constructor({ areModern, hasOnePrincipal, sharing, isHub, areRemote, isSearch }: Setting) {
    this.#isSearch = isSearch;
    if (areRemote) for (const key of ['old', 'new', 'extra']) this.#networks.set(key, { fault: undefined });
    const script = (key: string, isModern: boolean): ServerScript => ({
      ...this.#lists.of(key),
      hello: { capabilities: { tools: { listChanged: true }, resources: {}, logging: {} } },
      // Pinned, so that the clients learn the names from the list.
      ...(isSearch && { shapes: { pin: ['*'] } }),
      ...{ hasBridge: true, sharing, isModern, clientCapabilities: CAPABILITIES, network: this.#networks.get(key) },
    });
    this.#servers = { old: script('old', false), new: script('new', true), extra: script('extra', false) };
    this.#world = this.#start();
    const principals = ['one', hasOnePrincipal ? 'one' : 'another'];
    this.#attached = isHub ? principals.map((principal) => new AttachedWire(principal)) : [];
    const [one, other] = isHub ? this.#attached : principals.map((principal) => directWire(this.#world, principal));
    if (one === undefined || other === undefined) throw new Error('Two clients');
    this.people = [
      new Person(one, areModern[0], 'FIRST', isSearch),
      new Person(other, areModern[1], 'SECOND', isSearch),
    ];
    for (const wire of this.#attached) wire.attach(this.#world);
  }

  /** Starts the servers, and lets each client read a list. */
  async begin(): Promise<void> {
    for (const person of this.people) {
      person.initialize();
      person.request('tools/list');
    }
    await this.#settle();
  }

  async take(event: Event): Promise<void> {
    if ('client' in event) await this.#clientDoes(event, this.#whoCan(event.kind, this.people[event.client]));
    else if ('ms' in event) await this.#pass(event.ms);
    else if (event.kind === 'start') await this.#startMissing(true);
    else await this.#happens(event.kind, event.which);
    await this.#settle();
  }

  /** Lets more time pass than the longest wait. */
  async end(): Promise<void> {
    for (let round = 0; round < 2; round += 1) await this.#pass(LONGEST_WAIT_MS);
  }

  async #pass(ms: number): Promise<void> {
    const { clock } = this.#world;
    if (this.#networks.size === 0) clock.advance(ms);
    else await this.#settle();
    for (let left = this.#networks.size === 0 ? 0 : ms; left > 0; left -= KEEP_ALIVE_MS) {
      await clock.advanceSlowly(Math.min(left, KEEP_ALIVE_MS), flush);
      for (const { child } of this.#remote()) child.keepAlive();
      await this.#settle();
    }
    await this.#settle();
  }

  /** Changes tools that every client sees, and checks that listening clients get the announcement. */
  async expectListening(): Promise<void> {
    for (const process of this.processes) if (!process.isDead && process.isHung) process.hang();
    this.#mendNetworks();
    await this.#startMissing(true);
    this.#lists.mend();
    // The streams on which servers announce changes are opened again meanwhile.
    await this.end();
    for (const key of ['old', 'new']) this.#announce(key);
    await this.end();
    const listens = this.people.flatMap((person) => [...person.listens].filter(([id]) => person.isOpen(id)));
    const before = listens.map(([, { length }]) => length);
    this.#changeTools('old');
    // The gateway waits for further changes, reads the lists, and waits again.
    for (let round = 0; round < 4; round += 1) await this.#pass(1_000);
    for (const [at, [, methods]] of listens.entries())
      expect(methods.length, 'invariant 25: hears of a change').toBeGreaterThan(before[at] ?? 0);
  }

  /** Ends the clients and the unused servers. Returns the number of clock tasks that are left. */
  async leave(): Promise<number> {
    for (const { wire } of this.people) wire.close();
    await this.end();
    // A process for all clients stays. For one that hangs, the gateway would try again without end.
    for (const process of this.processes) if (!process.isDead) process.crash();
    await this.end();
    return this.#world.clock.pending;
  }

  /** The client that can answer or repeat something. If neither or both can, the chosen one. */
  #whoCan(kind: Event['kind'], chosen: Person): Person {
    const can = ({ questions, retries, open }: Person) => {
      if (kind === 'input') return questions.length > 0;
      if (kind === 'forge') return retries.length + questions.length > 0;
      if (kind === 'again') return retries.length > 0;
      return kind !== 'cancel' || open.length > 0;
    };
    return [chosen, ...this.people].find(can) ?? chosen;
  }

  async #clientDoes({ kind, which }: Extract<Event, { client: number }>, person: Person): Promise<void> {
    const hasLists = (key: string) => this.#lists.areWhole(key);
    if (kind === 'call') person.call(which, hasLists);
    if (kind === 'read') person.readResource(which % 2 === 0 ? 'old' : 'new');
    if (kind === 'list') person.request('tools/list');
    if (kind === 'listen') person.listen();
    if (kind === 'notify') person.notify();
    if (kind === 'input') person.answer(which, hasLists);
    if (kind === 'again') person.again(which, hasLists);
    if (kind === 'ping' && !person.isModern) await this.#expectAnswered(person.request('ping'));
    if (kind === 'cancel') await this.#expectCancelled(person.cancel(which));
    if (kind === 'forge') await this.#expectRefused(person, person.forge(which));
  }

  async #happens(kind: Event['kind'], which: number): Promise<void> {
    const alive = this.processes.filter(({ isDead }) => !isDead);
    const busy = alive.filter(({ calls, isHung }) => !isHung && calls.some(({ state }) => state === 'open'));
    const some = BUSINESS.has(kind) && busy.length > 0 ? busy : alive;
    const process = some[which % Math.max(1, some.length)];
    if (kind === 'ask') process?.ask(which, true);
    if (kind === 'ask undeclared') process?.ask(which, false);
    if (kind === 'answer') process?.answer(which, false);
    if (kind === 'fail') process?.answer(which, true);
    if (kind === 'answer late') await process?.answerLate(which);
    if (kind === 'progress') process?.progress(which);
    if (kind === 'log') process?.log();
    if (kind === 'garbage') process?.child.say('{"jsonrpc":"2.0","id":{}}');
    if (kind === 'hang') process?.hang();
    if (kind === 'crash') process?.crash();
    if (kind === 'hang' || kind === 'crash') this.#changes += 1;
    const key = which % 2 === 0 ? 'old' : 'new';
    if (kind === 'break lists') this.#breakLists(key);
    if (kind === 'change tools') this.#changeTools(key);
    if (kind === 'reconfigure') this.#reconfigure(which);
    if (kind === 'hub death') this.#dieAndStart(which);
    if (kind === 'break network') this.#breakNetwork(key, HTTP_FAULTS[(which >> 1) % HTTP_FAULTS.length]);
    if (kind === 'mend network') this.#mendNetworks();
    if (kind === 'reset') this.#reset(key);
  }

  #breakNetwork(key: string, fault: HttpFault | undefined): void {
    const network = this.#networks.get(key);
    if (network === undefined) return;
    this.#changes += 1;
    if (fault !== 'forgotten session') network.fault = fault;
    for (const process of this.#remote(key)) {
      process.hasLostMessages = true;
      if (fault === 'forgotten session') process.child.isForgotten = true;
      if (fault === 'offline') process.child.reset();
    }
  }

  #mendNetworks(): void {
    for (const network of this.#networks.values()) network.fault = undefined;
    for (const { child } of this.#remote()) child.isForgotten = false;
    this.#changes += 1;
  }

  #reset(key: string): void {
    for (const process of this.#remote(key)) {
      process.hasLostMessages = true;
      process.child.reset();
    }
  }

  /** The connections to servers behind a URL. */
  #remote(key?: string): (ServerProcess & { readonly child: HttpPeer })[] {
    return this.processes.filter(
      (process): process is ServerProcess & { readonly child: HttpPeer } =>
        process.child instanceof HttpPeer && (key === undefined || process.server.backend.key === key),
    );
  }

  /** Ends the hub with its servers. The clients continue at the next hub. */
  #dieAndStart(which: number): void {
    if (this.#attached.length === 0) return;
    for (const wire of this.#attached) wire.die(which % 3);
    for (const person of this.people) {
      this.#sort(person, person.read());
      person.movedToNextHub();
    }
    for (const process of this.processes) process.die();
    this.#world = this.#start();
    this.#changes += 1;
    this.#lists.mend();
    for (const wire of this.#attached) wire.attach(this.#world);
  }

  #start(): ReturnType<typeof scriptGateway> {
    const mode = this.#isSearch ? 'search' : 'direct';
    return scriptGateway({ servers: this.#configured, startupWaitMs: 500, mode });
  }

  #breakLists(key: string): void {
    this.#lists.break(key);
    this.#announce(key);
  }

  #changeTools(key: string): void {
    this.#lists.change(key);
    this.#announce(key);
  }

  #announce(key: string): void {
    this.#changes += 1;
    for (const { child, server, isDead } of this.processes)
      if (!isDead && server.backend.key === key)
        child.say({ jsonrpc: '2.0', method: 'notifications/tools/list_changed' });
  }

  /** Adds or removes a third server, or replaces the process of another one. */
  #reconfigure(which: number): void {
    this.#changes += 1;
    const isReplacement = which % 3 === 0;
    if (!isReplacement) this.#hasExtra = !this.#hasExtra;
    this.#world.change(this.#configured, isReplacement ? [which % 2 === 0 ? 'old' : 'new'] : []);
  }

  get #configured(): Readonly<Record<string, ServerScript>> {
    const { extra, ...others } = this.#servers;
    return this.#hasExtra && extra !== undefined ? { ...others, extra } : others;
  }

  async #settle(): Promise<void> {
    let hasRead = true;
    for (let turn = 0; turn < 2 || hasRead; turn += 1) {
      await flush();
      await this.#startMissing();
      hasRead = this.#read();
    }
  }

  /** Starts processes that the gateway wants, or all after a crash. */
  async #startMissing(isAfterCrash = false): Promise<void> {
    for (const id of this.#world.ids()) {
      const server = this.#world.server(id);
      if (server.isEnded) continue;
      const last = this.processes.findLast((process) => process.server === server);
      const isMissing = this.#unreached.has(server)
        ? isAfterCrash
        : last === undefined || (isAfterCrash && last.isDead);
      if (!isMissing || !(await this.#hasStarted(server))) continue;
      this.processes.push(new ServerProcess(server));
      this.#changes += 1;
    }
  }

  /** Starts the server, which may fail if its network is broken. */
  async #hasStarted(server: ScriptedServer): Promise<boolean> {
    this.#unreached.delete(server);
    try {
      await server.start();
      return true;
    } catch (error) {
      if (server.script.network?.fault === undefined) throw error;
      this.#unreached.add(server);
      return false;
    }
  }

  /** Reads new messages. Returns whether there were any. */
  #read(): boolean {
    let hasRead = false;
    for (const process of this.processes) {
      const received = process.read();
      hasRead ||= received.length > 0;
      if (received.some(({ message }) => message.method === 'tools/list')) this.#changes += 1;
    }
    for (const person of this.people) {
      const received = person.read();
      hasRead ||= received.length > 0;
      this.#sort(person, received);
    }
    return hasRead;
  }

  #sort(person: Person, received: readonly Received[]): void {
    for (const { line, message } of received) {
      const method = person.asked.get(message.id)?.method;
      if (message.method !== undefined || method !== 'tools/list') continue;
      const result = line.slice(line.indexOf('"result"'));
      this.listed.push({ person, line: result, change: this.#changes });
    }
  }

  /** Checks that a request is answered, whatever hangs. */
  async #expectAnswered(asked: Asked): Promise<void> {
    await this.#settle();
    expect(asked.state, 'invariant 30').toBe('answered');
  }

  /** Checks that no other call than that of the request was cancelled. */
  async #expectCancelled(asked: Asked | undefined): Promise<void> {
    const cancelled = () => this.processes.flatMap(({ calls }) => calls.filter(({ state }) => state === 'cancelled'));
    const before = new Set(cancelled());
    await this.#settle();
    const now = cancelled().filter((call) => !before.has(call));
    expect(now.length, 'invariant 8').toBeLessThanOrEqual(1);
    expect(
      now.filter(({ marker }) => marker !== asked?.marker),
      'invariant 8',
    ).toEqual([]);
  }

  /** Checks that a state which the gateway did not make is refused, and that no server learns about it. */
  async #expectRefused(person: Person, asked: Asked | undefined): Promise<void> {
    if (asked === undefined) return;
    const before = this.processes.map(({ calls }) => calls.length);
    await this.#settle();
    const answer = person.received.find(({ message }) => message.id === asked.id);
    expect(answer?.message.error?.code, `invariant 15: ${answer?.line}`).toBe(-32602);
    expect(
      this.processes.slice(0, before.length).map(({ calls }) => calls.length),
      'invariant 15',
    ).toEqual(before);
  }
}
