import { describe, expect, it } from 'vitest';
import { declaredCapabilities } from '../../../src/downstream/declared-capabilities.js';
import { serverResult } from '../../../src/downstream/legacy/handshake.js';
import { scriptGateway } from '../../support/scripted-gateway.js';
import { bytesOf } from '../../support/wire.js';

describe('the capabilities declared to a client', () => {
  it('are all that can be relayed, and tasks where they are known', () => {
    expect(Object.keys(declaredCapabilities('2025-06-18', []))).toEqual([
      'tools',
      'prompts',
      'resources',
      'completions',
      'logging',
    ]);
    expect(declaredCapabilities('2025-11-25', [])).toHaveProperty('tasks.requests.tools.call', {});
  });

  it('is what any server has that we know nothing of, in the words of the first one', () => {
    const one = { tools: {}, extensions: { x: 1, both: 'one' }, vendor: 'one', tasks: { odd: {} } };
    const other = {
      extensions: { y: 2, both: 'other' },
      experimental: { z: {} },
      vendor: 'other',
      resources: { odd: 1 },
    };
    const declared = declaredCapabilities('2025-06-18', [one, other]);
    expect(declared).toMatchObject({ extensions: { x: 1, y: 2, both: 'one' }, experimental: { z: {} }, vendor: 'one' });
    expect(declared.resources).toEqual({ listChanged: true, subscribe: true });
    expect(declared).not.toHaveProperty('tasks');
  });

  it('comes from the servers that are there when it says hello', async () => {
    const hello = { capabilities: { tools: {}, extensions: { 'io.example/skills': { version: 2 } } } };
    const { connect, startAll } = scriptGateway({ servers: { a: { hello } } });
    expect(connect().initialize().result.capabilities).not.toHaveProperty('extensions');
    await startAll();
    expect(connect().initialize().result.capabilities.extensions).toEqual({ 'io.example/skills': { version: 2 } });
  });
});

describe('the initialize result of one server, for a client of 2025-03-26', () => {
  const resultFor = (requestedRevision: string, revision: string) => {
    const result = bytesOf(`{ "protocolVersion": "${revision}", "x": 1 }`);
    const answer = serverResult('2025-03-26', { kind: 'initialized', result, revision, requestedRevision });
    return [answer.revision, Buffer.from(answer.result).toString()];
  };

  it.each([
    ['2025-03-26', '2025-11-25', '2025-11-25'],
    ['2025-03-26', '2024-11-05', '2024-11-05'],
    ['2025-11-25', '2024-11-05', '2024-11-05'],
    ['2025-11-25', '2025-06-18', '2025-03-26'],
  ])('names, if %s was requested and the server chose %s, revision %s', (requested, chosen, named) => {
    expect(resultFor(requested, chosen)).toEqual([named, `{ "protocolVersion": "${named}", "x": 1 }`]);
  });
});
