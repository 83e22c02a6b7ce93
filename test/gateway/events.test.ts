import { describe, expect, it } from 'vitest';
import type { GatewayEvent } from '../../src/host/observe/events/events.js';
import { scriptGateway } from '../support/scripted-gateway.js';

type Kind = GatewayEvent['kind'];

/** A gateway with one server and one client, and its events of these kinds. */
async function publishing(kinds: readonly Kind[], limits = {}) {
  const world = scriptGateway({ servers: { a: { tools: ['x'], limits } } });
  const events: GatewayEvent[] = [];
  for (const kind of kinds) world.events.subscribe(kind, (event) => events.push(event));
  await world.startAll();
  const client = world.connect().greet();
  return { ...world, client, child: world.server('a').child, events };
}

const CALL = { server: 'a', instance: 'a', generation: 1, method: 'tools/call' };

describe('the events of a call', () => {
  it('are the start and the end of its attempt, with what the server answered and how long it took', async () => {
    const { client, child, clock, events } = await publishing(['attempt.started', 'attempt.ended']);
    client.request(1, 'tools/call', { name: 'a__x' });
    clock.advance(20);
    child.answer(0);
    client.request(2, 'tools/call', { name: 'a__x' });
    child.answer(1, { isError: true });
    expect(events).toEqual([
      { kind: 'attempt.started', ...CALL, isRepeated: false },
      { kind: 'attempt.ended', ...CALL, outcome: 'answered', durationMs: 20 },
      { kind: 'attempt.started', ...CALL, isRepeated: false },
      { kind: 'attempt.ended', ...CALL, outcome: 'error', durationMs: 0 },
    ]);
  });

  it('tell that the gateway failed it, and whether it was sent', async () => {
    const { client, child, events } = await publishing(['attempt.ended', 'call.failed'], {
      concurrency: 1,
      maxQueued: 0,
    });
    client.request(1, 'tools/call', { name: 'a__x' });
    client.request(2, 'tools/call', { name: 'a__x' });
    child.connection.close('exited');
    const { generation: _, ...call } = CALL;
    expect(events).toEqual([
      { kind: 'call.failed', ...call, reason: 'queue_full', sent: false },
      { kind: 'attempt.ended', ...CALL, outcome: 'failed', durationMs: 0 },
      { kind: 'call.failed', ...call, reason: 'child_exited', sent: true },
    ]);
  });
});

describe('the events of clients', () => {
  it('tell that a client has connected or left, and the number of connected clients', async () => {
    const { connect, events } = await publishing(['client.connected', 'client.left']);
    const other = connect().greet();
    other.session.close();
    expect(events.map((event) => [event.kind, 'clients' in event && event.clients])).toEqual([
      ['client.connected', 1],
      ['client.connected', 2],
      ['client.left', 1],
    ]);
  });
});

describe('the events of lists', () => {
  it('tell how many tools clients see, and of which server if they see only one', async () => {
    const { connect, events, startAll } = scriptGateway({ servers: { a: { tools: ['x', 'y'] }, b: { tools: ['z'] } } });
    const merged: GatewayEvent[] = [];
    for (const who of [{}, { server: 'a' }]) connect(who).initialize();
    events.subscribe('lists.merged', (event) => merged.push(event));
    await startAll();
    expect(merged).toContainEqual({ kind: 'lists.merged', tools: 2, only: 'a' });
    expect(merged.at(-1)).toEqual({ kind: 'lists.merged', tools: 3, only: undefined });
  });
});
