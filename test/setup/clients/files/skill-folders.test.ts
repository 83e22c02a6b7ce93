import { describe, expect, it } from 'vitest';
import { skillFile } from '../../../../src/setup/clients/files/client-locations.js';
import { clientNamed } from '../../../../src/setup/clients/files/client-table.js';

function fileOf(name: string, env: NodeJS.ProcessEnv = {}): string | undefined {
  const client = clientNamed(name);
  const system = { platform: 'linux', home: '/home/ann', cwd: '/', env } as const;
  return client && skillFile(client, system)?.replaceAll('\\', '/');
}

describe('the folder of a client for skills of its user', () => {
  it.each([
    ['claude-code', {}, '/home/ann/.claude'],
    ['claude-code', { CLAUDE_CONFIG_DIR: '/c' }, '/c'],
    ['codex', { CODEX_HOME: '/c' }, '/home/ann/.agents'],
    ['copilot', { COPILOT_HOME: '/c' }, '/c'],
    ['copilot', {}, '/home/ann/.copilot'],
    ['cursor', {}, '/home/ann/.cursor'],
    ['gemini', {}, '/home/ann/.gemini'],
    ['opencode', { XDG_CONFIG_HOME: '/c' }, '/c/opencode'],
  ])('is the documented one of %s with %j', (name, env, folder) => {
    expect(fileOf(name, env)).toBe(`${folder}/skills/trunkline/SKILL.md`);
  });

  it('is not guessed', () => {
    expect(fileOf('zed')).toBeUndefined();
  });
});
