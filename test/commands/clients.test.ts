import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CLI, Workplace } from '../cli/cli-run.js';

let work: Workplace;
beforeEach(() => {
  work = new Workplace();
  Object.assign(work.env, { XDG_DATA_HOME: join(work.folder, 'data'), USERPROFILE: work.folder, PATH: '' });
  mkdirSync(join(work.folder, '.cursor'));
  mkdirSync(join(work.folder, '.codex'));
});
afterEach(() => work.dispose());

const SECRET = 's3cret-value';
const JSON_FILE = `{\r\n  "mcpServers": { "a": { "command": "a", "env": { "KEY": "${SECRET}" } } }\r\n}`;
const TOML_FILE = `# mine\n[mcp_servers.a]\ncommand = "a"\nenv = { KEY = "${SECRET}" }`;

describe('trunkline connect', () => {
  it('registers this program with clients, and undo leaves their files as they were', async () => {
    const cursor = work.write('.cursor/mcp.json', JSON_FILE);
    const codex = work.write('.codex/config.toml', TOML_FILE);
    const config = work.write('mine.yaml', 'servers: {}\n');
    const { code, stdout, stderr } = await work.run(['connect', 'cursor', 'codex', '--config', 'mine.yaml']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toContain('Cursor: has a new entry `trunkline` in ~/.cursor/mcp.json');
    expect(stdout).toContain('Restart Codex.');
    expect(stdout).not.toContain(SECRET);
    const entry = { command: process.execPath, args: [CLI, '--config', config] };
    expect(JSON.parse(readFileSync(cursor, 'utf8')).mcpServers.trunkline).toEqual(entry);
    expect(readFileSync(codex, 'utf8').startsWith(`${TOML_FILE}\n\n[mcp_servers.trunkline]\n`)).toBe(true);

    const starts = [process.execPath, CLI, '--config', config].join(' ');
    expect(stdout).toContain(`  starts: \`${starts}\`\n`);

    expect((await work.run(['undo'])).stdout).toContain('Codex: ~/.codex/config.toml is as it was');
    expect(readFileSync(cursor, 'utf8')).toBe(JSON_FILE);
    expect(readFileSync(codex, 'utf8')).toBe(TOML_FILE);
    expect(readdirSync(join(work.folder, '.cursor'))).toEqual(['mcp.json']);
  });

  it('shows what it would do with all clients, as text or as JSON, and does nothing', async () => {
    const file = work.write('.cursor/mcp.json', JSON_FILE);
    const { stdout } = await work.run(['connect', '--all', '--dry-run']);
    expect(stdout).toContain('Cursor: would add `trunkline` to ~/.cursor/mcp.json');
    const { changes } = JSON.parse((await work.run(['connect', '--all', '--dry-run', '--json'])).stdout);
    expect(changes).toMatchObject([
      { client: 'cursor', title: 'Cursor', file, action: 'add' },
      { client: 'codex', title: 'Codex', file: join(work.folder, '.codex/config.toml'), action: 'add' },
    ]);
    expect(readFileSync(file, 'utf8')).toBe(JSON_FILE);
    expect(existsSync(join(work.folder, 'data'))).toBe(false);
  });

  it('says which clients there are, why one is left alone, and that another folder has another configuration', async () => {
    expect(await work.run(['connect'])).toMatchObject({ code: 2, stderr: expect.stringContaining('cursor, codex') });
    expect(await work.run(['connect', 'curser'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('`cursor`'),
    });
    work.write('.cursor/mcp.json', `{ "a": ${SECRET} }`);
    work.write('trunkline.yaml', 'servers: {}\n');
    const { code, stdout, stderr } = await work.run(['connect', 'cursor', 'codex']);
    expect({ code, stdout }).toMatchObject({ code: 1, stdout: expect.stringContaining('Codex: has a new entry') });
    expect(stderr).toContain(
      'Cursor: not changed (~/.cursor/mcp.json): it is not valid JSON: the mistake is in line 1',
    );
    expect(stderr).toContain(`\`--config ${join(work.folder, 'trunkline.yaml')}\` uses it alone`);
    expect(stderr).not.toContain(SECRET);
    expect((await work.run(['disconnect', '--all'])).stdout).toContain('Codex: has no entry `trunkline` any more');
  });
});
