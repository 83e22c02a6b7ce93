import { describe, expect, it } from 'vitest';
import type { Config } from '../../src/config/resolve/config.js';
import type { Feature } from '../../src/extras/feature.js';
import { createOwnTool, textResult } from '../../src/gateway/routing/own-tool.js';
import { InProcessGateway, textOf } from '../support/in-process-gateway.js';

const TOOL = createOwnTool({ name: 'trunkline__hello', inputSchema: { type: 'object' } }, () => textResult('hello'));

describe('a gateway process', () => {
  it('relays calls without any feature', async () => {
    const gateway = InProcessGateway.start({ servers: { one: {} } });
    const client = await gateway.connect();
    await gateway.untilState('one', 'ready');
    expect(await client.listTools()).toEqual(expect.arrayContaining(['one__answer', 'trunkline__status']));
    expect(textOf(await client.call('one__answer', { nonce: 'hi' }))).toContain('hi');
    expect(gateway.composition.features.texts).toEqual({});
  });

  it('has the tools, texts and facts of its features, which follow each configuration until the end', async () => {
    const applied: (readonly string[])[] = [];
    let isClosed = false;
    const feature = (): Feature => ({
      apply: ({ servers }: Config) => void applied.push(servers.map(({ key }) => key)),
      close: () => {
        isClosed = true;
      },
      tools: [TOOL],
      texts: { hello: async () => 'hello' },
      facts: { notices: ['hello'] },
    });
    const gateway = new InProcessGateway({ servers: { one: {} }, features: [feature] });
    const client = await gateway.connect();
    expect(textOf(await client.call('trunkline__hello'))).toBe('hello');
    expect(await gateway.composition.features.texts.hello?.()).toBe('hello');
    expect(gateway.composition.status().notices).toEqual(['hello']);
    gateway.change({ one: {}, two: {} });
    expect(applied).toEqual([['one'], ['one', 'two']]);
    await gateway.end();
    expect(isClosed).toBe(true);
  });
});
