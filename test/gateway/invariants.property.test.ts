import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { repetitions } from '../support/repetitions.js';
import { requestsTo, World } from './world.js';

const nat = fc.nat(40);
const step = fc.oneof(
  { weight: 8, arbitrary: fc.record({ do: fc.constantFrom('call', 'call with progress'), a: nat, b: nat }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('subscribe', 'unsubscribe', 'list'), a: nat, b: nat }) },
  { weight: 8, arbitrary: fc.record({ do: fc.constantFrom('answer', 'answer', 'progress'), a: nat, b: nat }) },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constantFrom('cancel', 'ask', 'answer server requests'), a: nat, b: nat }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('log', 'update', 'change'), a: nat, b: nat }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('crash', 'start', 'wait'), a: nat, b: nat }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('reload', 'remove and add'), a: nat, b: nat }) },
);
type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never;

async function take({ do: what, a, b }: Step, world: World): Promise<void> {
  const process = world.processes[a % world.processes.length];
  const key = b % 2 === 0 ? 'a' : 'b';
  const id = world.ids()[a % world.ids().length] ?? 'a';
  switch (what) {
    case 'call':
      return world.request(a % 2, key, 'call', false);
    case 'call with progress':
      return world.request(a % 2, key, 'call', true);
    case 'subscribe':
    case 'unsubscribe':
    case 'list':
      return world.request(a % 2, key, what, false);
    case 'answer':
      return world.answer(process, b);
    case 'progress':
      return world.progress(process, b);
    case 'cancel':
      return world.cancel(a);
    case 'ask':
      return world.ask(process, b);
    case 'answer server requests':
      return world.answerQuestions();
    case 'log':
      return world.say(process, 'notifications/message');
    case 'update':
      return world.say(process, 'notifications/resources/updated');
    case 'change':
      return world.say(process, 'notifications/tools/list_changed');
    case 'crash':
      return world.crash(id);
    case 'start':
      return await world.start(id);
    case 'reload':
    case 'remove and add':
      return await world.reload(key, what === 'remove and add');
    default:
      world.advance(b * 100);
      await world.settle();
  }
}

/** Everything that was begun comes to its end: processes are back, and longer than anybody waits has passed. */
async function end(world: World): Promise<void> {
  for (let round = 0; round < 3; round += 1) {
    world.answerQuestions();
    world.advance(10_000);
    await world.settle();
  }
}

function expectInvariants(world: World): void {
  for (const asked of world.asked) {
    const answers = world.answersTo(asked);
    // One answer or a cancellation, and never both.
    expect(answers).toHaveLength(asked.cancelled === 'unanswered' ? 0 : 1);
    const [answer] = answers;
    if (asked.method === 'tools/call' && answer?.result?.marker !== undefined) {
      expect(answer.result.marker).toBe(asked.marker);
    }
  }
  for (const client of [0, 1]) {
    const received = world.received(client);
    // What belongs to one client never reaches the other.
    expect(JSON.stringify(received)).not.toMatch(new RegExp(`(marker|front|token)-${1 - client}-`));
    // Nobody is asked for what they did not declare.
    if (client === 1) expect(received.filter(({ method }) => method === 'elicitation/create')).toEqual([]);
    expectProgressInOrder(world, client);
  }
  for (const { child, serverRequests, lateAnswers, isDead } of world.processes) {
    // What comes too late is dropped, and counted as just that.
    expect(child.connection.counters.late).toBe(lateAnswers);
    const ids = requestsTo(child).map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    // No id or token of a client's is seen by a server.
    expect(child.received.lines.join('')).not.toMatch(/front-|token-/);
    const cancelled = child.cancellations.map(({ params }) => params.requestId);
    expect(new Set(cancelled).size).toBe(cancelled.length);
    expect(cancelled.filter((id) => !ids.includes(id) && !isOurs(child, id))).toEqual([]);
    for (const input of serverRequests) {
      const replies = child.received.messages.filter(({ id, method }) => id === input && method === undefined);
      expect(replies.length).toBeLessThanOrEqual(1);
      if (!isDead) expect(replies).toHaveLength(1);
    }
  }
}

/** Whether the gateway asked it on its own behalf. */
function isOurs(child: World['processes'][number]['child'], id: unknown): boolean {
  return child.received.messages.some((message) => message.id === id && message.method !== undefined);
}

function expectProgressInOrder(world: World, client: number): void {
  const last = new Map<string, number>();
  const answered = new Set<string>();
  const idsByToken = new Map(world.asked.map(({ id, progressToken }) => [progressToken, id]));
  for (const { id, method, params } of world.received(client)) {
    if (method === undefined) answered.add(id);
    if (method !== 'notifications/progress') continue;
    const { progressToken, progress } = params;
    expect(progress).toBeGreaterThan(last.get(progressToken) ?? Number.NEGATIVE_INFINITY);
    expect(answered).not.toContain(idsByToken.get(progressToken));
    last.set(progressToken, progress);
  }
}

describe.each(['profile', 'isolated', 'all'] as const)(
  'between two clients and two servers shared by %s',
  (sharing) => {
    it('whatever happens in whatever order, each request has one end and nothing is crossed', async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
          const world = new World(sharing);
          await world.startAll();
          for (const one of steps) await take(one, world);
          await end(world);
          expectInvariants(world);
        }),
        { numRuns: repetitions({ full: 120, short: 40 }) },
      );
    });

    it('a client that leaves takes its subscriptions along', async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
          const world = new World(sharing);
          await world.startAll();
          for (const one of steps) await take(one, world);
          await end(world);
          world.leave();
          await end(world);
          for (const { child, isDead } of world.processes) {
            if (isDead) continue;
            const changes = child.received.messages.filter(({ method }) => /subscribe$/.test(method ?? ''));
            expect(changes.at(-1)?.method ?? 'resources/unsubscribe').toBe('resources/unsubscribe');
          }
        }),
        { numRuns: repetitions({ full: 40, short: 14 }) },
      );
    });
  },
);
