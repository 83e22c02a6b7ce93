import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { dataFolder } from '../../src/state/user-files.js';
import { Workplace } from '../cli/cli-run.js';
import { copyInto } from '../support/own-copy.js';
import { lockOf, OFFLINE } from '../support/package-place.js';
import { processesOf, until } from '../support/processes.js';
import { Registry } from '../support/registry.js';

const USED_WHEN =
  /^A running gateway uses the new versions when \S+trunkline\.yaml is saved, or when it is restarted\.\n$/;

let place: Workplace;
let registry: Registry;
beforeEach(async () => {
  place = new Workplace();
  registry = await Registry.open();
  Object.assign(place.env, registry.environment(place.folder));
});
afterEach(async () => {
  await registry.close();
  expect(processesOf(place.folder)).toEqual([]);
  place.dispose();
});

const THIS_NODE = `this is ${process.versions.node} at ${process.execPath}`;
const NEWEST_NEEDS_NODE = `tool 2.0.0 needs Node >=99; ${THIS_NODE}: to use it, start Trunkline with a Node that fits, then run \`trunkline update\``;
const NO_SCRIPTS_OF_OTHER =
  'the install scripts of other were not run, so files that they build or download may be missing; if the server needs them, set `installScripts: true` in its entry, then run `trunkline install`';

describe('install', () => {
  it('installs what is missing, reports it, and changes nothing the second time, without a registry', async () => {
    registry.publish('tool', { version: '1.0.0' });
    registry.publish('other', { version: '2.0.0', hasInstallScript: true });
    place.configure({ a: { package: 'tool' }, b: { package: 'other@2.0.0' }, c: { package: 'tool' }, d: 'ok' });
    const first = await place.run(['install']);
    expect(first).toMatchObject({ code: 0, stderr: '' });
    expect(first.stdout).toBe(
      [
        'SERVER  PACKAGE      RESULT',
        'a       tool         installed 1.0.0',
        'b       other@2.0.0  installed 2.0.0',
        'c       tool         already installed: 1.0.0',
        '',
        'b:',
        `  ${NO_SCRIPTS_OF_OTHER}`,
        '',
      ].join('\n'),
    );
    const lock = readFileSync(join(place.folder, 'trunkline.lock'), 'utf8');
    Object.assign(place.env, OFFLINE);
    const again = await place.run(['install']);
    expect(again).toMatchObject({ code: 0, stderr: '' });
    expect(again.stdout.match(/already installed:/g)).toHaveLength(3);
    expect(readFileSync(join(place.folder, 'trunkline.lock'), 'utf8')).toBe(lock);
    const check = await place.run(['check']);
    expect(check.stdout).toMatch(/\na +ready .*\nb +ready .*\nc +ready .*\nd +ready /);
    expect(check.stdout).toContain(`\n\nb:\n  ${NO_SCRIPTS_OF_OTHER}\n`);
  });

  it('takes no package of the clone that Trunkline runs in', async () => {
    registry.publish('tool', { version: '1.0.0' });
    place.cli = copyInto(place.folder);
    mkdirSync(join(place.folder, 'node_modules/tool'), { recursive: true });
    writeFileSync(join(place.folder, 'node_modules/tool/package.json'), '{"version":"0.9.0","bin":"package.json"}');
    place.configure({ a: { package: 'tool' } });
    const { stdout } = await place.run(['install']);
    expect(stdout).toMatch(/\na +tool +installed 1\.0\.0\n/);
    expect(lockOf(place).tool?.version).toBe('1.0.0');
  });

  it('gives npm the variables of `defaults.env`, as `outdated` does', async () => {
    registry.publish('tool', { version: '1.0.0' });
    Object.assign(place.env, OFFLINE, { REGISTRY: registry.url });
    const text = `defaults: { env: { NPM_CONFIG_REGISTRY: "\${REGISTRY}" } }\nservers: { a: { package: tool } }\n`;
    place.write('trunkline.yaml', text);
    expect(await place.run(['install'])).toMatchObject({ code: 0, stdout: expect.stringContaining('installed 1.0.0') });
    expect((await place.run(['outdated'])).stdout).toMatch(/\na +tool +1\.0\.0 +1\.0\.0 +1\.0\.0 +store\n/);
  });

  it('goes on after one that fails, says why, and exits with 1', async () => {
    registry.publish('tool', { version: '1.0.0' });
    place.configure({
      a: { package: '@nobody/nothing' },
      b: { package: 'tool' },
      // biome-ignore lint/suspicious/noTemplateCurlyInString: this is how the file spells a variable.
      c: { package: '${HIDDEN}' },
      // biome-ignore lint/suspicious/noTemplateCurlyInString: this is how the file spells a variable.
      d: { package: 'tool@${HIDDEN}' },
    });
    place.env.HIDDEN = 'not-to-be-told';
    const { code, stdout, stderr } = await place.run(['install']);
    expect(code).toBe(1);
    expect(stdout).toMatch(/\na +@nobody\/nothing +failed\nb +tool +installed 1\.0\.0\n/);
    expect(stderr).toContain(
      'trunkline: @nobody/nothing could not be installed: E404: the registry has no package `@nobody/nothing`',
    );
    expect(stderr).toContain('  | npm error code E404\n');
    // biome-ignore lint/suspicious/noTemplateCurlyInString: this is how the file spells a variable.
    expect(stderr).toContain('trunkline: ${HIDDEN} could not be installed: E404');
    expect(stderr).toContain(
      // biome-ignore lint/suspicious/noTemplateCurlyInString: this is how the file spells a variable.
      'trunkline: tool@${HIDDEN} could not be installed: ETARGET: the registry has no version `tool@${HIDDEN}`',
    );
    expect(stderr).not.toContain('not-to-be-told');
  });

  it('F179: installs side by side, and leaves nothing behind when it is interrupted', async () => {
    registry.publish('tool', { version: '1.0.0' });
    registry.publish('other', { version: '2.0.0' });
    registry.hold();
    place.configure({ a: { package: 'tool' }, b: { package: 'other' } });
    const { process: running, finished } = place.start(['install']);
    await until('npm downloads both', () => registry.waiting === 2);
    running.kill('SIGINT');
    expect(await finished).toEqual({ code: 130, stdout: '', stderr: '' });
    expect(processesOf(place.folder)).toEqual([]);
  });
});

describe('outdated', () => {
  it('shows what is installed, where, and what is the newest', async () => {
    registry.publish('tool', { version: '1.0.0' });
    place.configure({ a: { package: 'tool' }, b: { package: 'tool@1.0.0' }, c: { package: 'other' } });
    await place.run(['install', 'a', 'b']);
    registry.publish('tool', { version: '1.1.0' });
    const { code, stdout, stderr } = await place.run(['outdated']);
    expect(code).toBe(1);
    expect(stdout).toBe(
      [
        'SERVER  PACKAGE     INSTALLED  WANTED  NEWEST  WHERE',
        'a       tool        1.0.0      1.1.0   1.1.0   store',
        'b       tool@1.0.0  1.0.0      1.0.0   1.1.0   store',
        'c       other       -          ?       ?       not installed',
        '',
      ].join('\n'),
    );
    expect(stderr).toContain('trunkline: cannot look up the versions of other: E404');
  });
});

describe('a package with a range or a tag', () => {
  it('is resolved once and locked; later runs need no registry and report the exact version', async () => {
    registry.publish('tool', { version: '1.2.0' });
    registry.publish('tool', { version: '1.3.0' });
    registry.publish('tool', { version: '2.0.0' });
    registry.publish('tool', { version: '3.0.0-beta.1', tag: 'next' });
    place.configure({
      caret: { package: 'tool@^1.2' },
      latest: { package: 'tool@latest' },
      next: { package: 'tool@next' },
      wild: { package: 'tool@1.2.x' },
    });
    expect(await place.run(['install'])).toMatchObject({ code: 0, stderr: '' });
    const versions = {
      'tool@^1.2': '1.3.0',
      'tool@latest': '2.0.0',
      'tool@next': '3.0.0-beta.1',
      'tool@1.2.x': '1.2.0',
    };
    const locked = () =>
      Object.fromEntries(Object.entries(lockOf(place)).map(([spec, { version }]) => [spec, version]));
    expect(locked()).toEqual(versions);

    registry.publish('tool', { version: '1.4.0', tag: 'old' });
    Object.assign(place.env, OFFLINE, { npm_config_cache: join(place.folder, 'empty') });
    const check = await place.run(['check']);
    expect(check.stdout).toMatch(
      /\ncaret +ready +1\.3\.0 .*\nlatest +ready +2\.0\.0 .*\nnext +ready +3\.0\.0-beta\.1 .*\nwild +ready +1\.2\.0 /,
    );
    expect((await place.run(['call', 'caret__greet'])).stdout).toBe('1.3.0\n');
    const status = await place.run(['call', 'trunkline__status', '{"server":"next"}']);
    expect(status.stdout).toContain('version: 3.0.0-beta.1');
    expect(locked()).toEqual(versions);
  });
});

describe('files that a server has written beside its program', () => {
  it('are carried over by `update`, follow what the old version writes until it ends, and are named by `remove`', async () => {
    registry.publish('tool', { version: '1.0.0' });
    place.configure({ a: { package: 'tool' }, d: 'ok' });
    await place.run(['install']);
    const data = dataFolder({ env: place.env, home: place.folder, platform: process.platform });
    const store = join(data, 'store');
    const stateOf = (version: string) => {
      const folder = readdirSync(store).find((name) => name.startsWith(`tool@${version}-`)) ?? '';
      return join(store, folder, 'node_modules/tool/state.json');
    };
    writeFileSync(stateOf('1.0.0'), 'first');
    registry.publish('tool', { version: '2.0.0' });
    const { code, stdout } = await place.run(['update']);
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: expect.stringMatching(/carried over: .*tool@1\.0\.0-.*state\.json, which/),
    });
    expect(readFileSync(stateOf('2.0.0'), 'utf8')).toBe('first');
    writeFileSync(stateOf('1.0.0'), 'second');
    await place.run(['check', 'a']);
    expect(readFileSync(stateOf('2.0.0'), 'utf8')).toBe('second');
    const removed = await place.run(['remove', 'a']);
    expect(removed.stderr).toMatch(/It has written .*tool@2\.0\.0-.*state\.json, which stays\./);
    expect(readFileSync(stateOf('1.0.0'), 'utf8')).toBe('second');
  });
});

describe('update', () => {
  const definition = (description: string) => ({ name: 'edit', description, inputSchema: { type: 'object' } });

  /** `tool` 1.0.0 is installed once; every test gets a copy. */
  const installed = new Workplace();
  let published: Registry;
  beforeAll(async () => {
    published = await Registry.open();
    Object.assign(installed.env, published.environment(installed.folder));
    published.publish('tool', { version: '1.0.0', tools: ['greet', 'leave', definition('Edits')] });
    installed.configure({ a: { package: 'tool' }, pinned: { package: 'tool@1.0.0' } });
    expect((await installed.run(['install'])).code).toBe(0);
  });
  afterAll(async () => {
    await published.close();
    installed.dispose();
  });
  beforeEach(async () => {
    await registry.close();
    registry = await Registry.open(published);
    Object.assign(place.env, registry.environment(place.folder));
    cpSync(installed.folder, place.folder, { recursive: true, verbatimSymlinks: true });
  });

  it('reports which tools were added, removed and changed, and locks the new version', async () => {
    const reordered = { inputSchema: { type: 'object' }, name: 'greet' };
    const gateway = place.start(['--no-hub']);
    await expect.poll(() => place.run(['restart', 'a'])).toMatchObject({ code: 0, stdout: '' });
    registry.publish('tool', { version: '1.1.0', tools: [reordered, definition('Edits at once'), 'stay'] });
    const { code, stdout, stderr } = await place.run(['update']);
    // A restart alone keeps the version that the gateway has read.
    expect((await place.run(['restart', 'a'])).stderr).toContain('It runs version 1.0.0 again, although 1.1.0 is');
    gateway.process.stdin.end();
    await gateway.finished;
    expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringMatching(USED_WHEN) });
    expect(stdout).toBe(
      [
        'a: tool updated: 1.0.0 to 1.1.0',
        '  a: + stay',
        '  a: - leave',
        '  a: ~ edit (description)',
        'pinned: tool@1.0.0 is a fixed version in the configuration',
        '',
      ].join('\n'),
    );
    expect(lockOf(place).tool?.version).toBe('1.1.0');
    expect((await place.run(['call', 'a__stay'])).stdout).toBe('1.1.0\n');
    expect((await place.run(['call', 'pinned__greet'])).stdout).toBe('1.0.0\n');
    expect((await place.run(['update', 'a'])).stdout).toBe('a: tool is up to date: 1.1.0\n');
  });

  it('prints the same as JSON, as install and outdated do', async () => {
    const json = async (...args: string[]) => JSON.parse((await place.run([...args, '--json'])).stdout);
    registry.publish('tool', { version: '1.1.0', tools: ['greet', 'leave', definition('Edits at once'), 'stay'] });
    const outdated = { server: 'a', package: 'tool', installed: '1.0.0', wanted: '1.1.0', newest: '1.1.0' };
    expect((await json('outdated')).servers[0]).toEqual({ ...outdated, where: 'store', remarks: [] });
    const tools = { added: ['stay'], removed: [], changed: [{ name: 'edit', members: ['description'] }] };
    expect(await json('update', 'a')).toEqual({
      packages: [
        {
          ...{ servers: ['a'], package: 'tool', result: 'updated', from: '1.0.0', to: '1.1.0' },
          ...{ changes: [{ server: 'a', tools }], remarks: [] },
        },
      ],
    });
    const present = { server: 'a', package: 'tool', result: 'present', version: '1.1.0', remarks: [], failure: null };
    expect(await json('install', 'a')).toEqual({ servers: [present] });
  });

  it('says which newer version needs another Node instead of only that the package is up to date', async () => {
    registry.publish('tool', { version: '2.0.0', node: '>=99' });
    const { code, stdout } = await place.run(['update', 'a']);
    expect(code).toBe(0);
    expect(stdout).toBe(`a: tool is up to date: 1.0.0, the newest version for this Node\n  ${NEWEST_NEEDS_NODE}\n`);
  });

  it('keeps the old version when the new one does not start, and says why', async () => {
    registry.publish('tool', { version: '1.1.0', fault: 'needs a licence' });
    const { code, stdout, stderr } = await place.run(['update']);
    expect(code).toBe(1);
    expect(stdout).not.toContain('updated');
    expect(stderr).toContain('trunkline: the new version of a cannot be used: it ended with exit code 1');
    expect(stderr).toContain('  | needs a licence\n');
    expect(stderr).toContain('trunkline: a: tool stays at 1.0.0\n');
    expect(lockOf(place).tool?.version).toBe('1.0.0');
    expect((await place.run(['call', 'a__greet'])).stdout).toBe('1.0.0\n');
  });

  it('suggests the name of a server or package that it knows', async () => {
    const { code, stderr } = await place.run(['update', 'tooll']);
    expect(code).toBe(2);
    expect(stderr).toBe(
      'trunkline: there is no server or package `tooll` in the configuration; did you mean `tool`?\n',
    );
  });
});
