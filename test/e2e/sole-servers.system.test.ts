// A server that one gateway of a cluster runs for all: the built CLI, several times, and a real Redis.
import { readFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { LAB, type Message } from '../support/gateway-process.js';
import type { RawHttpClient, Running } from '../support/http-place.js';
import { ProcessCluster } from '../support/process-cluster.js';
import { until } from '../support/processes.js';

let place: ProcessCluster;

beforeEach(async () => {
  place = await ProcessCluster.open();
});

afterEach(async () => {
  await place.dispose();
});

/** Makes the store one that has had its leases for long, so that no gateway waits for those of others. */
async function ageStore(): Promise<void> {
  await place.redis.ask('SET', '{trunkline}:record:leases', 'complete');
}

const gateway = ({ args = [], drain = '0s' }: { readonly args?: readonly string[]; readonly drain?: string } = {}) =>
  place.gateway({ lab: { ...place.lab(...args), placement: 'one' } }, { drain });

/** The processes of the server. */
function labs(): readonly number[] {
  return place.leftovers().flatMap(({ pid, args }) => (args.includes(LAB) ? [pid] : []));
}

/** Fails as soon as two processes of the server run, until the returned function is called. */
function watchForTwo(): () => void {
  const seen = new Set<number>();
  const timer = setInterval(() => seen.add(labs().length), 100);
  return () => {
    clearInterval(timer);
    expect([...seen].filter((count) => count > 1)).toEqual([]);
  };
}

const failureOf = ({ result }: Message) => result?._meta?.['trunkline/failure'];

/** Calls the server until it answers. Returns the failures before. */
async function callUntilAnswered(client: RawHttpClient): Promise<Message[]> {
  const failures: Message[] = [];
  await expect
    .poll(
      async () => {
        const answer = await client.request('tools/call', { name: 'lab__echo', arguments: {} });
        if (answer.result?.isError === true || answer.error) failures.push(answer);
        return answer.result?.isError !== true && answer.error === undefined;
      },
      { interval: 250 },
    )
    .toBe(true);
  return failures;
}

/** Two gateways of which the first one runs the server. */
async function two(
  options: Parameters<typeof gateway>[0] = {},
): Promise<{ readonly first: Running; readonly second: Running }> {
  await ageStore();
  const first = await gateway(options);
  await first.untilReady();
  const second = await gateway(options);
  await second.untilReady();
  return { first, second };
}

describe('a server with `placement: one`', () => {
  it('runs once, and the clients of every gateway use it, with progress and what it asks for', async () => {
    const { first, second } = await two();
    const [one, other] = [
      await place.handshake(first),
      await place.handshake(second, { capabilities: { elicitation: {} } }),
    ];
    for (const client of [one, other])
      expect(await client.call('lab__echo', { marker: 'm' })).toContain('"marker":"m"');
    expect(labs()).toHaveLength(1);

    const _meta = { progressToken: 'p' };
    await other.request('tools/call', { name: 'lab__progress', arguments: { marker: 'm' }, _meta });
    expect((await other.next('notifications/progress')).params).toMatchObject({ progressToken: 'p', progress: 1 });

    const asked = other.request('tools/call', {
      name: 'lab__ask',
      arguments: { method: 'elicitation/create', params: { message: 'Well?', requestedSchema: {} } },
    });
    const { id, params } = await other.next('elicitation/create');
    expect(params.message).toBe('Server "lab" asks: Well?');
    await other.respond(id, { action: 'accept', content: { a: 1 } });
    expect((await asked).result.content[0].text).toContain('"content":{"a":1}');
    expect(one.received.filter(({ method }) => method !== 'notifications/tools/list_changed')).toEqual([]);

    const names = async () =>
      (await other.request('tools/list')).result.tools.map(({ name }: { name: string }) => name);
    expect(await names()).not.toContain('lab__added1');
    await one.call('lab__change');
    await other.next('notifications/tools/list_changed');
    expect(await names()).toContain('lab__added1');
  });

  it('F370: runs on the next gateway when the first one is killed, and never twice', async () => {
    const { first, second } = await two();
    const client = await place.handshake(second);
    const [before] = labs();
    const isOnce = watchForTwo();
    const waiting = client.request('tools/call', { name: 'lab__wait', arguments: { delayMs: 60_000 } });
    await client.call('lab__echo');
    first.process.kill('SIGKILL');
    expect(failureOf(await waiting)).toMatchObject({ sent: true, outcome: 'unknown' });
    // A dying process still accepts connections, and breaks them.
    await first.finished;
    const failures = await callUntilAnswered(client);
    expect(failures.map(failureOf)).toEqual(failures.map(() => expect.objectContaining({ outcome: 'not_sent' })));
    expect(labs()).not.toContain(before);
    isOnce();
  });

  it('F371: moves to the next gateway while the first one drains, and no call is lost', async () => {
    const { first, second } = await two({ drain: '30s' });
    const client = await place.handshake(second);
    await client.call('lab__echo');
    const [before] = labs();
    const isOnce = watchForTwo();
    const file = place.file('effects');
    let isOver = false;
    const texts: string[] = [];
    // So many callers that there is no moment without a call in flight by itself.
    const calling = Array.from({ length: 12 }, async (_, at) => {
      for (let n = 0; !isOver; n += 1) {
        const marker = `${at}.${n}`;
        expect(await client.call('lab__effect', { file, marker, delayMs: 200 + at * 37 })).toBe(marker);
        texts.push(marker);
      }
    });
    await until('they call', () => texts.length > 10);
    first.process.kill('SIGTERM');
    await until('the next process runs', () => labs().length === 1 && labs()[0] !== before);
    const count = texts.length;
    await until('they call the next process', () => texts.length > count + 10);
    isOver = true;
    await Promise.all(calling);
    await first.finished;
    isOnce();
    expect(readFileSync(file, 'utf8').trim().split('\n').sort()).toEqual(texts.sort());
  });

  it('F372: ends when the store is away for longer than its lease allows, and runs again when the store is back', async () => {
    const { first, second } = await two();
    const [one, other] = [await place.handshake(first), await place.handshake(second)];
    const isOnce = watchForTwo();
    place.redis.signal('SIGSTOP');
    await until('the process has ended', () => labs().length === 0);
    for (const client of [one, other]) {
      const { result } = await client.request('tools/call', { name: 'lab__echo', arguments: {} });
      expect(result.content[0].text).toMatch(/cannot be reached, because the store of the cluster .* was not sent/);
    }
    place.redis.signal('SIGCONT');
    for (const client of [one, other]) await callUntilAnswered(client);
    expect(labs()).toHaveLength(1);
    isOnce();
  });
});
