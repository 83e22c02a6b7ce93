import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { Workplace } from '../cli/cli-run.js';
import { configIn, dataFolderIn, dataIn } from '../support/platform.js';

/** A user whose own file has the server `docs`, and whose current folder is that of a project with this file. */
function inProject(text: string) {
  const place = new Workplace();
  onTestFinished(() => place.dispose());
  Object.assign(place.env, dataIn(join(place.folder, 'data')));
  place.configure({ docs: 'ok' });
  const own = join(place.folder, 'trunkline.yaml');
  const folder = join(place.folder, 'shop');
  mkdirSync(folder);
  const write = (now: string) => writeFileSync(join(folder, 'trunkline.yaml'), now);
  write(text);
  const run = async (...args: string[]) => {
    const finished = await place.run(args, '', ['/bin/sh', '-c', 'cd "$0" && exec "$@"', folder]);
    return { ...finished, json: finished.stdout.startsWith('{') ? JSON.parse(finished.stdout) : undefined };
  };
  const trust = (...args: string[]) => run('trust', '--config', own, ...args);
  return { place, own, folder, file: join(folder, 'trunkline.yaml'), write, run, trust };
}

describe('trunkline trust', () => {
  it('shows what would run, without hidden characters, and trusts nothing without an answer', async () => {
    const text = `servers:
  docs: { command: node, args: [evil.mjs, "a b"], env: { KEY: "\${SHOP_KEY}", T: "\${secret:TOKEN}" } }
  web: { url: "https://shop.example/mcp" } # \u001b[2K
gateway: { hub: off }
`;
    const { trust } = inProject(text);
    const { code, stdout, stderr } = await trust();
    expect(code).toBe(1);
    expect(stderr).toContain('Nothing was trusted');
    expect(stdout).toContain("docs: runs node evil.mjs 'a b', with all that you may do, in place of your server docs");
    expect(stdout).toContain('web: connects to https://shop.example/mcp');
    expect(stdout).toContain('1 variable of yours (SHOP_KEY) and 1 secret of yours (TOKEN)');
    expect(stdout).toContain("Not used of a project's file: gateway.");
    expect(stdout).toContain('\\u{1b}[2K');
    expect(stdout).not.toContain('\u001b[2K');
    expect((await trust('--list', '--json')).json).toEqual({ projects: [] });
  });

  it('says what has changed since, keeps the text that it has shown, and takes it back', async () => {
    const { trust, write, file } = inProject('servers:\n  db: { command: before }\n');
    const facts = { file, servers: ['db'], disabled: [] };
    expect((await trust('--yes', '--json')).json).toEqual({ ...facts, change: 'new', state: 'trusted' });
    expect((await trust('--json')).json).toEqual({ ...facts, change: null, state: 'trusted' });
    write('servers:\n  db: { command: after }\n');
    const { stdout } = await trust();
    expect(stdout).toContain('    servers:\n  -   db: { command: before }\n  +   db: { command: after }\n');
    expect((await trust('--list', '--json')).json).toEqual({ projects: [{ file, state: 'changed' }] });
    expect((await trust('--remove', '--json')).json).toEqual({ removed: [file] });
    expect((await trust('--remove')).code).toBe(1);
  });

  it('refuses the own file, a folder without a file, a file with mistakes, and a damaged list', async () => {
    const { run, trust, place, folder, file, write } = inProject('servers: { db: { comand: x } }');
    expect((await trust('--yes')).stderr).toContain('did you mean `command`');
    const nowhere = join(folder, 'inner');
    mkdirSync(join(nowhere, '.git'), { recursive: true });
    expect((await trust('--yes', nowhere)).stderr).toContain('there is no trunkline.yaml in');
    expect((await trust('--yes', place.folder)).stderr).toContain('a file in the home folder is no project');
    write('servers: { db: { command: x } }');
    expect((await run('trust', '--yes', '--config', file)).stderr).toContain('is your own configuration');
    await trust('--yes');
    writeFileSync(join(dataFolderIn(join(place.folder, 'data')), 'trusted.json'), '{');
    const refused = await trust('--yes');
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain('is not used: it is damaged');
  });
});

describe('the commands in the folder of a project', () => {
  it('use the project alone before it is trusted, and then the file of the user with the project', async () => {
    const { place, file, run, trust, write } = inProject('');
    const entry = (name: string) => ({
      command: 'node',
      args: [join(import.meta.dirname, `../fixtures/cli/${name}.mjs`)],
    });
    write(JSON.stringify({ servers: { db: entry('ok') } }));
    // The file of the user is where all commands find it.
    place.env.TRUNKLINE_HUB = 'off';
    Object.assign(place.env, configIn(join(place.folder, 'config')));
    mkdirSync(join(place.folder, 'config/trunkline'), { recursive: true });
    writeFileSync(
      join(place.folder, 'config/trunkline/trunkline.yaml'),
      JSON.stringify({ servers: { mine: entry('ok') } }),
    );
    const servers = async () => [
      ...new Set([...(await run('tools')).stdout.matchAll(/^\S+__\S+ +(\S+)/gm)].map(([, server]) => server)),
    ];
    expect(await servers()).toEqual(['db', 'trunkline']);
    await trust('--yes');
    expect(await servers()).toEqual(['mine', expect.stringMatching(/^db@shop-[0-9a-f]{32}$/), 'trunkline']);
    expect(await run('check', 'db')).toMatchObject({ code: 0 });
    expect((await run('doctor', '--no-start', '--offline', '--json')).stdout).not.toContain('TL-CONFIG-SHADOWED');
    renameSync(file, file.replace(/yaml$/, 'yml'));
    const refused = await run('tools');
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain('is trusted, and this file is not');
    expect((await trust()).stdout).toContain('Clients in');
  });
});
