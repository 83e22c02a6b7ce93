import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Config } from '../../../src/config/resolve/config.js';
import type { Exchange } from '../../../src/downstream/port.js';
import type { FeatureHost } from '../../../src/extras/feature.js';
import { recording } from '../../../src/extras/record/index.js';
import { CallFeed } from '../../../src/gateway/call-feed.js';
import { KnownSecrets } from '../../../src/host/observe/redact.js';
import { callLogFile } from '../../../src/state/user-files.js';
import { MessageFeed } from '../../../src/wire/io/message-feed.js';
import { unedited } from '../../../src/wire/jsonrpc/message.js';
import { FakeClock } from '../../support/fake-clock.js';
import { InMemoryExchange } from '../../support/in-memory-client.js';
import { dataIn } from '../../support/platform.js';
import { bytesOf } from '../../support/wire.js';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'trunkline-'));
  for (const [name, value] of Object.entries(dataIn(folder))) vi.stubEnv(name, value);
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true });
});

const configOf = (gateway: Partial<Config['gateway']>) => ({
  gateway: { callLog: 'off', metrics: { tools: true }, ...gateway },
  servers: [],
});

function observing(settings: Parameters<typeof recording>[0] = {}) {
  const clock = new FakeClock();
  const messages = new MessageFeed(() => clock.now());
  messages.hold();
  const calls = new CallFeed(clock);
  const logged: string[] = [];
  const log = (facts: object, text: string) => void logged.push(`${text} ${Object.values(facts).join()}`);
  const host = {
    ...{ platform: { messages, clock }, calls, config: configOf({}), secrets: new KnownSecrets() },
    logger: { info: log, warn: log, error: log },
  } as unknown as FeatureHost;
  const feature = recording(settings)(host);
  return {
    ...{ feature, messages, calls, logged },
    apply: async (gateway: Partial<Config['gateway']>) => {
      await feature.apply(configOf(gateway) as unknown as Config);
      messages.letGo();
    },
    call: () => {
      const profile = { clientInfo: {}, capabilities: {}, protocolVersion: '2025-11-25' };
      const view = { serve: (exchange: Exchange) => exchange.succeed(bytesOf('{}')) };
      const params = '{"name":"files__read","arguments":{"path":"a"}}';
      calls.session({ facts: { profile }, view })(new InMemoryExchange('tools/call', params));
    },
    pass: (text: string) => messages.passed('c>g', unedited(bytesOf(text)), { number: 1 }),
  };
}

/** The messages in a recording. */
function messagesIn(file: string): unknown[] {
  return readFileSync(file, 'utf8')
    .split('\n')
    .flatMap((line) => (line === '' ? [] : (JSON.parse(line).raw ?? [])));
}

describe('the recording and the call log of a gateway', () => {
  it('cost nothing if nobody wants them: nothing observes, and nothing is written', async () => {
    const { apply, messages, calls, pass } = observing();
    pass('1');
    await apply({});
    expect([messages.isObserved, calls.isObserved]).toEqual([false, false]);
    expect(existsSync(join(folder, 'trunkline'))).toBe(false);
  });

  it('begin and end with the configuration, the recording with the messages before it, the log with content', async () => {
    const { feature, apply, messages, calls, pass, call } = observing();
    const file = join(folder, 'r.jsonl');
    pass('1');
    await apply({ record: file, callLog: 'full' });
    pass('2');
    call();
    await apply({ record: file, callLog: 'metadata' });
    pass('3');
    call();
    await apply({});
    expect([messages.isObserved, calls.isObserved]).toEqual([false, false]);
    pass('4');
    await feature.close(Promise.resolve());
    expect(messagesIn(file)).toEqual(['1', '2', '3']);
    const lines = readFileSync(callLogFile(), 'utf8').trim().split('\n');
    expect(lines.map((line) => JSON.parse(line).arguments)).toEqual(['{"path":"a"}', undefined]);
  });

  it('follow the command line rather than the configuration', async () => {
    const [given, configured] = [join(folder, 'given.jsonl'), join(folder, 'configured.jsonl')];
    const { feature, apply, pass } = observing({ record: given });
    await apply({ record: configured });
    pass('1');
    await feature.close(Promise.resolve());
    expect(messagesIn(given)).toEqual(['1']);
    expect(existsSync(configured)).toBe(false);
  });

  it('do not end the gateway if they cannot be written, and are tried again with the next configuration', async () => {
    const { feature, apply, messages, logged, pass } = observing();
    const file = join(folder, 'r.jsonl');
    writeFileSync(file, 'precious');
    await apply({ record: file });
    expect(messages.isObserved).toBe(false);
    expect(logged).toEqual([
      `the recording cannot be written; calls are served as usual Error: ${file} is there already and is no recording; name another file, or remove it`,
    ]);
    rmSync(file);
    await apply({ record: file });
    pass('1');
    await feature.close(Promise.resolve());
    expect(messagesIn(file)).toEqual(['1']);
  });
});
