import { describe, expect, it } from 'vitest';
import { drainClient } from '../../src/app/drain-client.js';
import { scriptGateway } from '../support/scripted-gateway.js';
import { flush } from '../support/wire.js';

/** A client with one unanswered request, and servers that the test starts. */
function waiting(isLive = true) {
  const { clock, events, gateway, server, connect } = scriptGateway({ servers: { a: { tools: ['x'] } } });
  const said: string[] = [];
  let endInput = () => {};
  const inputEnded = new Promise<void>((resolve) => {
    endInput = resolve;
  });
  let leave = () => {};
  const left = new Promise<void>((resolve) => {
    leave = resolve;
  });
  const client = {
    inputEnded,
    left,
    inFlight: 1,
    isLive,
    probe: () => void said.push(`probe at ${clock.now()}`),
    close: () => {
      said.push(`close at ${clock.now()}`);
      leave();
    },
  };
  const logger = { warn: (facts: unknown) => void said.push(JSON.stringify(facts)) };
  const signal = new AbortController();
  const { signal: ending } = signal;
  const drained = drainClient(client, { clock, events, gateway, startupWaitMs: 10_000, logger, ending });
  return {
    clock,
    server,
    connect,
    drained,
    said: () => said.filter((text) => !text.startsWith('probe')),
    probes: () => said.filter((text) => text.startsWith('probe')),
    abort: () => signal.abort(),
    leave: async () => {
      leave();
      await flush();
    },
    endInput: async () => {
      endInput();
      await flush();
    },
    /** As the supervisor reports it. */
    changed: () => events.emit({ kind: 'server.changed', instance: 'a', snapshot: {} as never }),
  };
}

describe('a client that has closed stdin and waits for answers', () => {
  it('is given up after two seconds', async () => {
    const { clock, server, connect, endInput, drained, said } = waiting();
    connect().initialize();
    await server('a').start();
    clock.advance(60_000);
    await endInput();
    clock.advance(1_999);
    expect(said()).toEqual([]);
    clock.advance(1);
    expect(said()).toEqual(['{"unanswered":1}', 'close at 62000']);
    await drained;
    expect(clock.pending).toBe(0);
  });

  it('has two seconds from the first start of the servers on, however long that takes', async () => {
    const { clock, server, connect, endInput, changed, said } = waiting();
    connect().initialize();
    server('a').moved('starting');
    await endInput();
    clock.advance(9_000);
    expect(said()).toEqual([]);
    await server('a').start();
    changed();
    clock.advance(1_999);
    expect(said()).toEqual([]);
    clock.advance(1);
    expect(said()).toHaveLength(2);
  });

  it('has two seconds from the start of an idle server on that its call started', async () => {
    const { clock, server, connect, endInput, changed, said } = waiting();
    const client = connect();
    client.initialize();
    await server('a').start();
    server('a').moved('idle');
    server('a').child.connection.close('stopped');
    client.call(1, 'a__x');
    await endInput();
    clock.advance(1_000);
    server('a').moved('starting');
    changed();
    clock.advance(5_000);
    expect(said()).toEqual([]);
    await server('a').start();
    changed();
    clock.advance(2_000);
    expect(said()).toHaveLength(2);
  });

  it('does not wait longer for a start than its requests do', async () => {
    const { clock, server, connect, endInput, said } = waiting();
    connect().initialize();
    server('a').moved('starting');
    await endInput();
    clock.advance(11_999);
    expect(said()).toEqual([]);
    clock.advance(1);
    expect(said()).toHaveLength(2);
  });

  it('gets nothing any more at a signal, not even that the servers are stopped', async () => {
    const { connect, endInput, abort, drained, said, clock } = waiting();
    connect().initialize();
    await endInput();
    abort();
    await drained;
    expect([said(), clock.pending]).toEqual([['close at 0'], 0]);
  });

  it('is never given up if it is a pipe with a list of messages, whose requests have timeouts of their own', async () => {
    const { clock, server, connect, endInput, leave, drained, said } = waiting(false);
    connect().initialize();
    await server('a').start();
    await endInput();
    clock.advance(600_000);
    expect(said()).toEqual([]);
    await leave();
    await drained;
    expect(clock.pending).toBe(0);
  });

  it('is asked less and less often whether it still reads, until it has left', async () => {
    const { clock, connect, endInput, leave, said, probes } = waiting();
    connect().initialize();
    await endInput();
    clock.advance(1_000);
    expect(probes()).toEqual(['probe at 100', 'probe at 300', 'probe at 700']);
    await leave();
    expect([said(), clock.pending]).toEqual([[], 0]);
  });
});
