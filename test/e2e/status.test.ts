import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { GatewayProcess, type Message } from '../support/gateway-process.js';

const KEYS = Array.from({ length: 30 }, (_, index) => `server-${index}`);

/** In bytes. All of it goes into the context of a model. */
const LIMITS = { definitions: 500 + 400, text: 1_500, structure: 1_500 };

describe('the status of thirty servers', () => {
  let gateway: GatewayProcess;
  beforeAll(async () => {
    const servers = Object.fromEntries(KEYS.map((key) => [key, { restart: { firstDelay: '1m', maxDelay: '1m' } }]));
    gateway = await GatewayProcess.start({ servers, gateway: { restartTool: true }, stateWithinMs: 60_000 });
    for (const key of KEYS) await gateway.untilState(key, 'ready');
  }, 90_000);
  afterAll(() => gateway.dispose());

  async function status(): Promise<{ text: string; structure: Message }> {
    const { result } = (await gateway.call('trunkline__status')).message;
    return { text: result.content[0].text, structure: result.structuredContent };
  }

  it('is short while all is well, and so are the definitions of the own tools', async () => {
    const own = (await gateway.listTools()).filter(({ name }) => name.startsWith('trunkline__'));
    expect(own.map(({ name }) => name)).toEqual(['trunkline__status', 'trunkline__restart']);
    expect(own.map((tool) => JSON.stringify(tool)).join('').length).toBeLessThanOrEqual(LIMITS.definitions);
    const { text, structure } = await status();
    expect(text).toContain('30 servers, all up.');
    for (const key of KEYS) expect(text).toMatch(new RegExp(`${key} \\(\\d+`));
    expect(text.length).toBeLessThanOrEqual(LIMITS.text);
    expect(structure.servers).toEqual(KEYS.map((server) => ({ server, state: 'ready' })));
    expect(JSON.stringify(structure).length).toBeLessThanOrEqual(LIMITS.structure);
  });

  it('begins with the one server that failed, and stays short', async () => {
    await gateway.call('server-7__die');
    await gateway.untilState('server-7', 'backoff');
    const { text, structure } = await status();
    expect(text.split('\n').slice(0, 5)).toEqual([
      expect.stringMatching(/ 30 servers: 1 with a problem, 29 up\.$/),
      expect.stringMatching(/^- server-7: It failed\. Its \d+ tools stay listed, and calls wait until it is ready\.$/),
      expect.stringMatching(/^ {4}why: it ended with .*, \d+ s ago$/),
      '    failed calls: 1 of 1 (child exited 1)',
      expect.stringMatching(/^ {4}what to do: Trunkline restarts it automatically, in \d+ s\./),
    ]);
    expect(text.length).toBeLessThanOrEqual(LIMITS.text);
    expect(structure.servers[0]).toMatchObject({ server: 'server-7', state: 'backoff', lastFailure: 'exited' });
    expect(structure.servers.slice(1).every((one: Message) => Object.keys(one).length === 2)).toBe(true);
  });
});
