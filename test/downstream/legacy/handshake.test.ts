import { describe, expect, it } from 'vitest';
import { declaredCapabilities } from '../../../src/downstream/declared-capabilities.js';
import { serverResult } from '../../../src/downstream/legacy/legacy-session.js';
import { scriptGateway } from '../../support/scripted-gateway.js';
import { bytesOf } from '../../support/wire.js';

describe('the capabilities declared to a client', () => {
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

const TASKS = 'io.modelcontextprotocol/tasks';
const UI = 'io.modelcontextprotocol/ui';
const SKILLS = 'io.modelcontextprotocol/skills';
const LEGACY_TASKS = { tasks: { requests: { tools: { call: {} } } } };

function declared(revision: string, ...servers: Record<string, unknown>[]): Record<string, unknown> | undefined {
  return declaredCapabilities(revision, servers).extensions as Record<string, unknown> | undefined;
}

describe('the extensions declared to a client', () => {
  it('have tasks without a handshake if any server makes tasks of calls, in whichever form', () => {
    const modern = { extensions: { [TASKS]: {} } };
    expect(declared('2026-07-28', {}, LEGACY_TASKS)).toEqual({ [TASKS]: {} });
    expect(declared('2026-07-28', modern)).toEqual({ [TASKS]: {} });
    expect(declared('2026-07-28', { tasks: { list: {} } })).toBeUndefined();
    expect(declaredCapabilities('2026-07-28', [LEGACY_TASKS])).not.toHaveProperty('tasks');
  });

  it('have no tasks with a handshake', () => {
    expect(declared('2025-11-25', { extensions: { [TASKS]: {}, other: {} } }, LEGACY_TASKS)).toEqual({ other: {} });
  });

  it.each(['2025-11-25', '2026-07-28'])('have the user interfaces and skills of all servers (%s)', (revision) => {
    const one = { extensions: { [UI]: { mimeTypes: ['a', 'b'], more: 1 }, [SKILLS]: {} } };
    const other = { extensions: { [UI]: { mimeTypes: ['b', 'c'] }, [SKILLS]: { directoryRead: true } } };
    expect(declared(revision, one, other)).toEqual({
      [UI]: { mimeTypes: ['a', 'b', 'c'], more: 1 },
      [SKILLS]: { directoryRead: true },
    });
  });
});
