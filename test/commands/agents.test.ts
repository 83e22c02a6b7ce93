import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Workplace } from '../cli/cli-run.js';
import { WITH_HUB } from '../support/hub-place.js';
import { killAll, processesWith, until } from '../support/processes.js';

let place: Workplace;
/** The folders of hubs; short, because the path of a socket is. */
let hubs: string;
beforeEach(() => {
  place = new Workplace();
  hubs = mkdtempSync(join(tmpdir(), 'tl-'));
  Object.assign(place.env, { ...WITH_HUB, TRUNKLINE_HUB_DIR: hubs });
  // biome-ignore lint/suspicious/noThenProperty: a key of the file
  const rules = [{ tools: ['secret'], then: 'deny', say: 'Not this one.' }];
  place.configure({ good: { fixture: 'ok', rules }, bad: 'exits-at-once' });
});
afterEach(async () => {
  await place.run(['stop']);
  try {
    await until('nothing is left', () => processesWith(hubs).length + place.leftovers().length === 0);
  } finally {
    killAll(hubs);
    place.dispose();
    rmSync(hubs, { recursive: true, force: true });
  }
});

describe('an agent with a shell', () => {
  it('starts the hub with its first command, and finds, describes and calls tools there', async () => {
    const found = await place.run(['find', '--hub', '--server', 'good', 'echo']);
    expect(found).toMatchObject({ code: 0, stdout: 'good__echo\n  The echo tool\n' });
    const [hub, ...others] = processesWith(hubs).filter(({ args }) => args.includes('hub serve'));
    expect(others).toEqual([]);
    const described = await place.run(['describe', 'good.echo', 'good__ecko']);
    expect(described).toEqual({
      code: 4,
      stdout: 'good__echo\n  > The echo tool\n  > in two lines\n',
      stderr: 'Unknown tool: good__ecko; did you mean `good__echo`?\n',
    });
    const { stdout } = await place.run(['describe', 'good__echo', '--json']);
    expect(JSON.parse(stdout).tools).toMatchObject([{ name: 'good__echo', inputSchema: { type: 'object' } }]);
    const called = await place.run(['call', '--quiet', 'good.echo', 'n:=1.0']);
    expect(called).toEqual({ code: 0, stdout: '{"n":1.0}\n', stderr: '' });
    expect(processesWith(hubs).find(({ args }) => args.includes('hub serve'))?.pid).toBe(hub?.pid);
  });

  it.each<[string, string[], number, RegExp]>([
    ['a tool that fails', ['good.fail'], 1, /^it did not work\n$/],
    ['arguments that are none', ['good.echo', 'x'], 2, /must be a JSON object/],
    ['a server that is not there', ['godo.echo'], 2, /did you mean `good`/],
    ['a tool that is not there', ['good.ecko'], 4, /did you mean `good__echo`/],
    ['a name that nobody has', ['ecko'], 4, /Unknown tool: ecko/],
    ['a rule', ['good.secret'], 5, /denies this: Not this one\./],
    ['a server that does not run', ['bad.x'], 8, /"bad"/],
  ])('is told %s apart by the exit code', async (_, args, expected, message) => {
    const { code, stdout, stderr } = await place.run(['call', '--hub', '--quiet', ...args]);
    expect({ code, stdout }).toEqual({ code: expected, stdout: '' });
    expect(stderr).toMatch(message);
  });

  it('finds the same without a hub, which it does not start then', async () => {
    const { stdout } = await place.run(['find', 'echo', '--server', 'good', '--json']);
    expect(JSON.parse(stdout).tools).toMatchObject([{ name: 'good__echo', server: 'good' }]);
    expect(processesWith(hubs)).toEqual([]);
    expect(await place.run(['find', 'zzzz', '--server', 'good'])).toMatchObject({ code: 1, stdout: '' });
    expect(await place.run(['find'])).toMatchObject({ code: 2, stderr: expect.stringContaining('--server') });
    expect(await place.run(['describe', 'good__echo'])).toMatchObject({ code: 0, stderr: '' });
  });

  it('gets no skill with the configuration of a folder, or of a path that would write lines into it', async () => {
    place.configure({ good: 'ok' });
    const own = join(place.folder, 'trunkline.yaml');
    const ofFolder = await place.run(['skill', '--install', 'claude']);
    expect(ofFolder).toMatchObject({ code: 2, stderr: expect.stringContaining('no configuration file found') });
    const odd = join(place.folder, 'a\u2028b.yaml');
    copyFileSync(own, odd);
    const refused = await place.run(['skill', '--install', 'claude', '--config', odd]);
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('a\\u{2028}b.yaml') });
    expect(existsSync(join(place.folder, '.claude', 'skills', 'trunkline', 'SKILL.md'))).toBe(false);
  });

  it('gets a skill in its folder, which replaces only a file of Trunkline', async () => {
    place.configure({ good: 'ok' });
    place.env.TRUNKLINE_CONFIG = join(place.folder, 'trunkline.yaml');
    const file = join(place.folder, '.claude', 'skills', 'trunkline', 'SKILL.md');
    const installed = await place.run(['skill', '--install', 'claude', '--quiet']);
    expect(installed).toEqual({ code: 0, stdout: '', stderr: '' });
    const text = readFileSync(file, 'utf8');
    expect(text).toContain(`--config ${join(place.folder, 'trunkline.yaml')} find --hub `);
    expect((await place.run(['skill'])).stdout).toBe(text);
    expect((await place.run(['skill', '--install', 'claude-code', '--json'])).stdout).toBe(
      `${JSON.stringify({ file, result: 'written' })}\n`,
    );
    writeFileSync(file, 'mine');
    for (const option of ['--install', '--remove']) {
      const refused = await place.run(['skill', option, 'claude']);
      expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('add `--force`') });
      expect(readFileSync(file, 'utf8')).toBe('mine');
    }
    await place.run(['skill', '--install', 'claude', '--force']);
    expect(readFileSync(file, 'utf8')).toBe(text);
    writeFileSync(join(dirname(file), 'other.md'), 'mine');
    expect(await place.run(['skill', '--remove', 'claude'])).toMatchObject({ code: 0 });
    expect([existsSync(file), existsSync(join(dirname(file), 'other.md'))]).toEqual([false, true]);
    expect((await place.run(['skill', '--remove', 'claude', '--json'])).stdout).toContain('"result":"none"');
  });

  it('gets it where its own variable says, and an unknown agent is refused before a server starts', async () => {
    place.configure({ good: 'ok' });
    place.env.TRUNKLINE_CONFIG = join(place.folder, 'trunkline.yaml');
    place.env.CLAUDE_CONFIG_DIR = join(place.folder, 'elsewhere');
    mkdirSync(place.env.CLAUDE_CONFIG_DIR);
    await place.run(['skill', '--install', 'claude']);
    expect(existsSync(join(place.folder, 'elsewhere', 'skills', 'trunkline', 'SKILL.md'))).toBe(true);
    const { code, stderr } = await place.run(['skill', '--install', 'zed']);
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: expect.stringContaining('claude-code, cursor, codex, gemini, opencode, copilot'),
    });
  });
});
