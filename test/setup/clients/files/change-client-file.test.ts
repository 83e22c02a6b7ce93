import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import {
  ChangeJournal,
  carryOut,
  changesToUndo,
  type Plan,
  planConnect,
  planDisconnect,
  planTakeOut,
  type RunProgram,
  type Undone,
  undoChange,
} from '../../../../src/setup/clients/files/change-client-file.js';
import { clientNamed, type KnownClient } from '../../../../src/setup/clients/files/client-table.js';
import { findServers } from '../../../../src/setup/clients/files/find-servers.js';
import type { ClientSystem } from '../../../../src/setup/clients/files/found-server.js';
import { IS_WINDOWS, shownMode } from '../../../support/platform.js';
import { filesOn, JSON_ENTRY, PLATFORMS } from './client-files.js';
import { ClientHome } from './client-home.js';

let home: ClientHome;
let cliPath: string;
let journal: ChangeJournal;
let run: number;
beforeEach(() => {
  home = new ClientHome();
  cliPath = home.write('opt/trunkline/dist/cli.js', '');
  journal = new ChangeJournal(home.path('data/client-changes.json'));
  run = 0;
});

/** Plays a command: carries the plans out, and tells the outcomes. */
async function change(
  plans: readonly Plan[],
  { system = home.system(), runProgram = noProgram }: { system?: ClientSystem; runProgram?: RunProgram } = {},
): Promise<string[]> {
  run += 1;
  const outcomes: string[] = [];
  for (const plan of plans) {
    if ('because' in plan) {
      outcomes.push(`${plan.kind}: ${plan.because}`);
      continue;
    }
    const now = new Date(2026, 10, 23, 2, 0, run);
    await carryOut(plan, { system, journal, run: `run ${run}`, now, runProgram });
    outcomes.push(plan.kind);
  }
  return outcomes;
}

const noProgram: RunProgram = () => Promise.reject(new Error('no program was expected'));

function plansFor(name: string, system = home.system(), isNamed = true): Promise<Plan[]> {
  const own = { command: '/usr/bin/node', args: ownArgs() };
  return planConnect(named(name), own, { system, cliPath, isNamed, keepsConfig: true });
}

const ownArgs = (config = '/home/ada/trunkline.yaml') => [cliPath, '--config', config];

function named(name: string): KnownClient {
  const client = clientNamed(name);
  if (client === undefined) throw new Error(`no client ${name}`);
  return client;
}

async function undo(clients?: string[], runProgram = noProgram): Promise<Undone[]> {
  const undone: Undone[] = [];
  for (const each of await changesToUndo(journal, clients)) {
    const system = home.system();
    undone.push(await undoChange(each, { system, journal, now: new Date(2026, 10, 23), runProgram, cliPath }));
  }
  return undone;
}

const backupsIn = (folder: string) => readdirSync(home.path(folder)).filter((name) => name.endsWith('.bak'));
const content = (file: string) => readFileSync(home.path(file), 'utf8');

describe('connecting a client', () => {
  it.each(PLATFORMS)('of any kind on %s, and undoing it, leaves every byte as it was', async (platform) => {
    const system = home.system(platform);
    const files = filesOn(platform).map((each) => ({ ...each, path: home.write(each.file, each.content, 0o664) }));
    for (const { path } of files) chmodSync(path, 0o664);
    for (const { client } of files) {
      expect([client, ...(await change(await plansFor(client, system), { system }))]).toEqual([client, 'add']);
    }
    const { servers } = await findServers(system);
    const ours = servers.filter(({ name }) => name === 'trunkline');
    expect(servers.length).toBe(2 * files.length);
    expect(ours.map(({ place, run }) => [place.client, run.kind === 'command' && [run.command, ...run.args]])).toEqual(
      files.map(({ client }) => [client, ['/usr/bin/node', ...ownArgs()]]),
    );
    for (const { path, content: before } of files) {
      expect(statSync(path).mode & 0o777).toBe(shownMode(0o664));
      const [backup = ''] = readdirSync(dirname(path)).filter((name) =>
        name.startsWith(`${basename(path)}.trunkline-`),
      );
      expect(readFileSync(join(dirname(path), backup), 'utf8')).toBe(before);
    }
    expect(await undo(files.map(({ client }) => client))).toEqual(files.map(() => 'restored'));
    for (const { path, file, content: before } of files) {
      expect(readFileSync(path, 'utf8')).toBe(before);
      expect(backupsIn(dirname(file))).toEqual([]);
    }
    expect(await undo()).toEqual([]);
  });

  it('a second time changes nothing', async () => {
    home.write('.cursor/mcp.json', JSON_ENTRY);
    await change(await plansFor('cursor'));
    expect(await change(await plansFor('cursor'))).toEqual(['unchanged: Trunkline is already registered there']);
  });

  it('with another command replaces the entry, and leaves what the user has added to it', async () => {
    const old = { command: 'npx', args: ['-y', 'trunkline'], env: { KEY: 'v' }, disabled: true };
    const before = JSON.stringify({ mcpServers: { trunkline: old } });
    home.write('.cursor/mcp.json', before);
    expect(await change(await plansFor('cursor'))).toEqual(['replace']);
    const entry = { command: '/usr/bin/node', args: ownArgs(), env: { KEY: 'v' }, disabled: false };
    expect(JSON.parse(content('.cursor/mcp.json'))).toEqual({ mcpServers: { trunkline: entry } });
    expect(await undo(['cursor'])).toEqual(['restored']);
    expect(content('.cursor/mcp.json')).toBe(before);
  });

  it('that has no file yet creates the file, and undoing it removes the file and the folders that were made for it', async () => {
    mkdirSync(home.path('.kiro'));
    expect(await change(await plansFor('kiro'))).toEqual(['add']);
    expect(statSync(home.path('.kiro/settings/mcp.json')).mode & 0o777).toBe(shownMode(0o600));
    expect(await undo()).toEqual(['deleted']);
    expect(existsSync(home.path('.kiro/settings'))).toBe(false);
    expect(existsSync(home.path('.kiro'))).toBe(true);
  });

  it('that is not installed is refused, unless the user names one whose file users create', async () => {
    expect(await change(await plansFor('kiro'))).toEqual(['refused: Kiro is not installed here']);
    expect(await change(await plansFor('cursor', home.system(), false))).toEqual([
      'refused: Cursor is not installed here',
    ]);
    expect(await change(await plansFor('cursor'))).toEqual(['add']);
  });

  it('whose file would not be valid with an entry alone is refused without a file', async () => {
    mkdirSync(home.path('.continue'));
    expect(await change(await plansFor('continue'))).toEqual([
      `refused: Continue has no ${home.path('.continue/config.yaml')} yet; start Continue once`,
    ]);
  });

  it('writes to a symbolic link inside the home folder through the link', async () => {
    home.write('dotfiles/mcp.json', JSON_ENTRY);
    mkdirSync(home.path('.cursor'));
    symlinkSync('../dotfiles/mcp.json', home.path('.cursor/mcp.json'));
    expect(await change(await plansFor('cursor'))).toEqual(['add']);
    expect(lstatSync(home.path('.cursor/mcp.json')).isSymbolicLink()).toBe(true);
    expect(content('dotfiles/mcp.json')).toContain('trunkline');
  });

  it.each([
    ['keeps the configuration that its entry names', (existing: string) => ['--config', existing], 'mine.yaml'],
    ['names a configuration where its entry has none', () => [], '/home/ada/trunkline.yaml'],
    [
      'replaces a configuration that is gone',
      (existing: string) => [`--config=${existing}.old`],
      '/home/ada/trunkline.yaml',
    ],
    ['replaces a configuration that depends on the folder', () => ['-c', 'mine.yaml'], '/home/ada/trunkline.yaml'],
  ])('again %s', async (_, argsFor, config) => {
    const mine = home.write('mine.yaml', '');
    const entry = { command: '/opt/node', args: [cliPath, ...argsFor(mine)] };
    home.write('.cursor/mcp.json', JSON.stringify({ mcpServers: { trunkline: entry } }));
    expect(await change(await plansFor('cursor'))).toEqual(['replace']);
    const { args } = JSON.parse(content('.cursor/mcp.json')).mcpServers.trunkline;
    expect(args).toEqual(ownArgs(config === 'mine.yaml' ? mine : config));
  });

  it('keeps the last five backups', async () => {
    home.write('.cursor/mcp.json', JSON_ENTRY);
    home.write('.cursor/mcp.json.mine.bak', '');
    for (let round = 0; round < 4; round += 1) {
      await change(await plansFor('cursor'));
      await change(await planDisconnect(named('cursor'), { system: home.system(), cliPath }));
    }
    expect(backupsIn('.cursor')).toEqual([
      'mcp.json.mine.bak',
      ...[4, 5, 6, 7, 8].map((second) => `mcp.json.trunkline-20261123-02000${second}.bak`),
    ]);
    expect(content('.cursor/mcp.json')).toBe(JSON_ENTRY);
  });
});

describe('a file is left alone', () => {
  it('F118: if it has changed since the preview', async () => {
    home.write('.cursor/mcp.json', JSON_ENTRY);
    const plans = await plansFor('cursor');
    home.write('.cursor/mcp.json', `${JSON_ENTRY}\n`);
    await expect(change(plans)).rejects.toThrow('it has changed meanwhile');
    expect(content('.cursor/mcp.json')).toBe(`${JSON_ENTRY}\n`);
    expect(backupsIn('.cursor')).toEqual([]);
  });

  it.each([
    ['{ "mcpServers": s3cret }', 'it is not valid JSON: the mistake is in line 1'],
    ['{ "mcpServers": "s3cret" }', 'what should hold the servers is something else there'],
    ['{ "mcpServers": { "trunkline": { "command": "s3cret" } } }', /^its entry `trunkline` is another server; rename/],
    ['{ "mcpServers": { "trunkline": null } }', /^its entry `trunkline` is another server/],
    [Uint8Array.of(0x7b, 0xff, 0x7d), /^it is not/],
  ])('if it is %s', async (before, because) => {
    const path = home.write('.cursor/mcp.json', before);
    const bytes = readFileSync(path);
    const [plan] = await plansFor('cursor');
    expect(plan).toMatchObject({ kind: 'refused', because: expect.stringMatching(because) });
    expect(readFileSync(path)).toEqual(bytes);
    expect(plan?.kind === 'refused' && plan.because).not.toContain('s3cret');
  });

  it.skipIf(process.platform === 'win32')('if its folder is a file', async () => {
    home.write('.cursor', '');
    const because =
      'its folder cannot be used: a part of its path is a file, not a folder (ENOTDIR); choose another path, or move that file away';
    expect(await plansFor('cursor')).toMatchObject([{ kind: 'refused', because }]);
  });

  it('if its owner has made it read-only, although the folder would let it be replaced', async () => {
    const path = home.write('.cursor/mcp.json', JSON_ENTRY);
    chmodSync(path, 0o444);
    expect(await change(await plansFor('cursor'))).toEqual([
      'refused: it is read-only; make it writable first if Trunkline may change it',
    ]);
    expect(content('.cursor/mcp.json')).toBe(JSON_ENTRY);
  });

  it.skipIf(process.platform === 'win32')(
    'F119: if it is a link out of the home folder, a link to nothing, or a pipe',
    async () => {
      const outside = new ClientHome();
      for (const folder of ['.cursor', '.lmstudio', '.kimi-code']) mkdirSync(home.path(folder));
      symlinkSync(outside.write('mcp.json', JSON_ENTRY), home.path('.cursor/mcp.json'));
      symlinkSync(home.path('nowhere'), home.path('.lmstudio/mcp.json'));
      execFileSync('mkfifo', [home.path('.kimi-code/mcp.json')]);
      const plans = [...(await plansFor('cursor')), ...(await plansFor('lm-studio')), ...(await plansFor('kimi'))];

      expect(await change(plans)).toEqual([
        'refused: it is a symbolic link that leads out of your home folder',
        'refused: it is a symbolic link that leads nowhere',
        'refused: it is a pipe, not a regular file',
      ]);
    },
  );
});

describe('Claude Desktop on Windows', () => {
  const inPackage = (name: string) =>
    `AppData/Local/Packages/${name}/LocalCache/Roaming/Claude/claude_desktop_config.json`;
  const CLASSIC = 'AppData/Roaming/Claude/claude_desktop_config.json';

  it('gets the entry in the folder of its package, and a stale one in the other folder goes', async () => {
    const system = home.system('win32');
    const stale = { mcpServers: { a: { command: 'a' }, trunkline: { command: 'node', args: [cliPath] } } };
    home.write(CLASSIC, JSON.stringify(stale));
    mkdirSync(home.path('AppData/Local/Packages/Claude_pzs8sxrjxfjjc/LocalCache/Roaming'), { recursive: true });
    expect(await change(await plansFor('claude-desktop', system), { system })).toEqual(['add', 'remove']);
    expect(content(inPackage('Claude_pzs8sxrjxfjjc'))).toContain('trunkline');
    expect(JSON.parse(content(CLASSIC))).toEqual({ mcpServers: { a: { command: 'a' } } });
    expect(await undo()).toEqual(['restored', 'deleted']);
    expect(content(CLASSIC)).toBe(JSON.stringify(stale));
  });

  it('gets it in the classic folder without a package', async () => {
    const system = home.system('win32');
    await change(await plansFor('claude-desktop', system), { system });
    expect(content(CLASSIC)).toContain('trunkline');
  });

  it('is refused with two packages, unless one of them has a file', async () => {
    const system = home.system('win32');
    for (const name of ['Claude_a', 'Claude_b']) {
      mkdirSync(home.path(`AppData/Local/Packages/${name}/LocalCache/Roaming`), { recursive: true });
    }
    expect((await change(await plansFor('claude-desktop', system), { system }))[0]).toMatch(
      /^refused: Claude Desktop is installed more than once/,
    );
    home.write(inPackage('Claude_b'), '{}');
    expect(await change(await plansFor('claude-desktop', system), { system })).toEqual(['add']);
    expect(content(inPackage('Claude_b'))).toContain('trunkline');
  });
});

describe('undoing', () => {
  it('F120: a change of a file that has changed since removes the entry of Trunkline only', async () => {
    home.write('.cursor/mcp.json', JSON_ENTRY);
    await change(await plansFor('cursor'));
    const later = content('.cursor/mcp.json').replace('"KEY":"v"', '"KEY":"w"');
    home.write('.cursor/mcp.json', later);
    expect(await undo()).toEqual(['entries']);
    expect(content('.cursor/mcp.json')).toBe(JSON_ENTRY.replace('"KEY":"v"', '"KEY":"w"'));
  });

  it('takes back the last command, with all its clients, or the last one for a client', async () => {
    home.write('.cursor/mcp.json', JSON_ENTRY);
    home.write('.lmstudio/mcp.json', JSON_ENTRY);
    home.write('.kimi-code/mcp.json', JSON_ENTRY);
    await change(await plansFor('cursor'));
    await change([...(await plansFor('lm-studio')), ...(await plansFor('kimi'))]);
    expect(await undo(['cursor'])).toEqual(['restored']);
    expect(await undo()).toEqual(['restored', 'restored']);
    expect((await findServers(home.system())).servers.map(({ name }) => name)).toEqual(['files', 'files', 'files']);
  });

  it('does nothing if the entry or the file is gone', async () => {
    home.write('.cursor/mcp.json', JSON_ENTRY);
    home.write('.lmstudio/mcp.json', '{}');
    await change([...(await plansFor('cursor')), ...(await plansFor('lm-studio'))]);
    home.write('.cursor/mcp.json', '{}');
    rmSync(home.path('.lmstudio/mcp.json'));
    expect(await undo()).toEqual(['nothing', 'nothing']);
    expect(content('.cursor/mcp.json')).toBe('{}');
  });

  it('works without its backup as long as nothing is needed from it', async () => {
    home.write('.cursor/mcp.json', JSON_ENTRY);
    await change(await plansFor('cursor'));
    for (const name of backupsIn('.cursor')) rmSync(home.path(`.cursor/${name}`));
    expect(await undo()).toEqual(['entries']);
    expect(content('.cursor/mcp.json')).toBe(JSON_ENTRY);
  });

  it('does not fail over a damaged journal', async () => {
    home.write('data/client-changes.json', '{"changes": [{"run": 1}, null]}', 0o600);
    expect(await undo()).toEqual([]);
  });
});

describe('taking servers over', () => {
  it('removes all of one file in one change, and undoing it puts them back, also if the file has changed', async () => {
    const server = { command: 'a' };
    const before = {
      x: 1,
      mcpServers: { one: server, two: server },
      projects: { '/w': { mcpServers: { three: server } } },
    };
    home.write('.claude.json', JSON.stringify(before, null, 2));
    const { servers } = await findServers(home.system());
    const taken = servers.filter(({ name }) => name !== 'two');
    expect(await change(await planTakeOut(taken, home.system()))).toEqual(['remove']);
    const after = { x: 1, mcpServers: { two: server }, projects: { '/w': { mcpServers: {} } } };
    expect(JSON.parse(content('.claude.json'))).toEqual(after);
    expect(backupsIn('.')).toHaveLength(1);
    home.write('.claude.json', JSON.stringify({ ...after, x: 2 }));
    expect(await undo()).toEqual(['entries']);
    expect(JSON.parse(content('.claude.json'))).toEqual({ ...before, x: 2 });
  });

  it('and connecting in one command is undone at once', async () => {
    home.write('.cursor/mcp.json', JSON_ENTRY);
    const { servers } = await findServers(home.system());
    await change(await planTakeOut(servers, home.system()));
    run -= 1;
    await change(await plansFor('cursor'));
    expect(await undo()).toEqual(['restored', 'restored']);
    expect(content('.cursor/mcp.json')).toBe(JSON_ENTRY);
  });
});

describe("a client's own program", () => {
  /** Plays `claude`: it writes the whole file anew. */
  function playClaude(file: string): { runProgram: RunProgram; calls: (readonly string[])[]; system: ClientSystem } {
    const calls: (readonly string[])[] = [];
    const platform = IS_WINDOWS ? 'win32' : 'linux';
    home.write(IS_WINDOWS ? 'bin/claude.exe' : 'bin/claude', '');
    const runProgram: RunProgram = (_, args) => {
      calls.push(args);
      const data = JSON.parse(readFileSync(file, 'utf8'));
      if (args[1] === 'remove') delete data.mcpServers.trunkline;
      else data.mcpServers = { ...data.mcpServers, trunkline: JSON.parse(args[3] ?? '') };
      writeFileSync(file, JSON.stringify({ ...data, sessions: calls.length }));
      return Promise.resolve(true);
    };
    return { runProgram, calls, system: home.system(platform, { env: { PATH: home.path('bin') } }) };
  }

  it('makes the change where it is installed, and what it has written can be undone', async () => {
    const file = home.write('.claude.json', '{"sessions": 0}');
    const { runProgram, calls, system } = playClaude(file);
    await change(await plansFor('claude-code', system), { system, runProgram });
    const entry = JSON.stringify({ type: 'stdio', command: '/usr/bin/node', args: ownArgs() });
    expect(calls).toEqual([['mcp', 'add-json', 'trunkline', entry, '--scope', 'user']]);
    expect(content('.claude.json')).toContain('"sessions":1');
    expect(await undo()).toEqual(['restored']);
    expect(content('.claude.json')).toBe('{"sessions": 0}');
  });

  it('removes the entry when the file has changed since', async () => {
    const file = home.write('.claude.json', '{}');
    const { runProgram, calls, system } = playClaude(file);
    await change(await plansFor('claude-code', system), { system, runProgram });
    home.write('.claude.json', content('.claude.json').replace('"sessions":1', '"sessions":7'));
    const [record] = await changesToUndo(journal, undefined);
    if (record === undefined) throw new Error('nothing was recorded');
    await undoChange(record, { system, journal, now: new Date(), runProgram, cliPath });
    expect(calls[1]).toEqual(['mcp', 'remove', 'trunkline', '--scope', 'user']);
    expect(JSON.parse(content('.claude.json'))).toEqual({ mcpServers: {}, sessions: 2 });
  });

  it('F121: is replaced by an edit of the file if it fails', async () => {
    home.write('.claude.json', '{"a":  1}');
    const { system } = playClaude('');
    const failing: RunProgram = () => Promise.resolve(false);
    expect(await change(await plansFor('claude-code', system), { system, runProgram: failing })).toEqual(['add']);
    expect(content('.claude.json')).toMatch(/^\{"a": {2}1,"mcpServers": \{"trunkline":/);
  });

  it('does not get what the user has added to the entry, since others can read command lines', async () => {
    const old = { command: 'npx', args: ['-y', 'trunkline'], env: { KEY: 's3cret' } };
    home.write('.claude.json', JSON.stringify({ mcpServers: { trunkline: old } }));
    const { system } = playClaude('');
    expect(await change(await plansFor('claude-code', system), { system })).toEqual(['replace']);
    expect(content('.claude.json')).toContain('s3cret');
  });
});
