import { describe, expect, it } from 'vitest';
import { declaredCapabilities } from '../../src/downstream/declared-capabilities.js';

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
