import { chmodSync, mkdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Code } from '../../../src/host/errors/codes.js';
import { type LockedPackage, LockFile } from '../../../src/servers/packages/lock-file.js';
import { openStore } from '../../../src/servers/packages/package-store.js';
import { checkCommands } from '../../../src/setup/doctor/commands.js';
import { isPlaceholder } from '../../../src/setup/doctor/credentials.js';
import { type Finding, repair } from '../../../src/setup/doctor/finding.js';
import { checkPackages } from '../../../src/setup/doctor/packages.js';
import { checkToolAdvice, checkTools, type ListedTool } from '../../../src/setup/doctor/servers.js';
import { HAS_MODES } from '../../support/platform.js';
import { home, useHome } from './doctor-home.js';

useHome();

const LOCKED: LockedPackage = {
  version: '1.0.0',
  integrity: 'sha512-A',
  tree: { 'node_modules/tool': { version: '1.0.0', integrity: 'sha512-A', deprecated: 'use @new/tool' } },
};

/** A server with the package `tool`, which is locked, and installed unless a file is missing. */
function packaged({ isWhole = true, remarks = [] as string[] } = {}): readonly Finding[] {
  home.configure({ a: { package: 'tool' } });
  new LockFile(home.paths).lock('tool', LOCKED);
  const folder = openStore(home.paths).folderOf({ name: 'tool', locked: LOCKED, installScripts: false });
  mkdirSync(join(folder, 'node_modules/tool'), { recursive: true });
  writeFileSync(join(folder, 'node_modules/tool/package.json'), isWhole ? '{"bin":"x.js"}' : '');
  const { servers } = home.config();
  return checkPackages(servers, { paths: home.paths, remarksOn: () => remarks, install: async () => {} });
}

function tools(count: number, size = 100, rest: Partial<ListedTool> = {}): ListedTool[] {
  return Array.from({ length: count }, (_, at) => ({
    server: 's',
    name: `s__t${at}`,
    size,
    descriptionBytes: 10,
    params: [],
    hasHints: true,
    ...rest,
  }));
}

/** Makes what the title says, and expects one finding with this code and sentence. */
function reports(code: Code, says: RegExp, make: () => unknown): void {
  it(`is reported with ${code}: ${says.source}`, async () => {
    const made = await make();
    const findings: readonly Finding[] = Array.isArray(made) ? made : home.checkConfiguration();
    const sentences = findings.filter((found) => found.code === code);
    expect(sentences.map(({ sentence }) => sentence)).toEqual([expect.stringMatching(says)]);
  });
}

describe('the configuration', () => {
  reports('TL-CONFIG-UNREADABLE', /cannot be read: it is a folder/, () => mkdirSync(home.path('trunkline.yaml')));
  reports('TL-CONFIG-WARNING', /timeout is longer than maxTimeout/, () =>
    home.configure({ a: { command: 'node', timeout: '2h', maxTimeout: '1h' } }),
  );
  reports('TL-CONFIG-DISABLED', /all servers are disabled: a$/, () =>
    home.configure({ a: { command: 'node', disabled: true } }),
  );
  if (HAS_MODES)
    reports('TL-CONFIG-WRITABLE', /other users can write .*trunkline\.yaml/, () =>
      home.configure({ a: { command: 'node' } }, 0o666),
    );
  reports('TL-VAR-EMPTY', /the variable KEY of server `a` is empty/, () =>
    home.configure({ a: { command: 'node', env: { KEY: '' } } }),
  );
  reports('TL-WSL-MIXED', /between Windows and WSL/, () => {
    const command = home.executable('node.exe', '');
    home.configure({ a: { command } });
    const machine = home.machine({ env: { WSL_DISTRO_NAME: 'Debian' } });
    return checkCommands(home.config().servers, { desktop: '/usr/bin', shell: undefined }, machine);
  });
  reports('TL-PACKAGE-DEPRECATED', /is deprecated/, () => packaged());
  reports('TL-PACKAGE-REMARK', /may not work here/, () => packaged({ remarks: ['needs Node 24'] }));
  reports('TL-PACKAGE-DAMAGED', /lacks files/, () => packaged({ isWhole: false }));
  reports('TL-PACKAGE-MISSING', /is not installed/, () => home.configure({ a: { package: 'tool' } }));
  reports('TL-PACKAGE-OK', /the packages of a are installed/, () => {
    home.configure({ a: { package: 'tool' } });
    home.write('node_modules/tool/package.json', '{"name":"tool","version":"1.0.0","bin":"x.js"}');
    home.write('node_modules/tool/x.js', '');
  });
  reports('TL-LOCK-UNREADABLE', /trunkline\.lock/, () => {
    home.configure({ a: { package: 'tool' } });
    const { servers } = home.config();
    home.write('trunkline.lock', '<<<<<<< HEAD');
    return checkPackages(servers, { paths: home.paths, remarksOn: () => [], install: async () => {} });
  });
  reports('TL-NAMES-LONG', /^1 tool with names/, () => checkTools(tools(1, 100, { name: 'x'.repeat(49) })));
  reports(
    'TL-TOOLS-MANY',
    /^129 tools are listed; Cursor shows 40, Windsurf shows 100, GitHub Copilot shows 128$/,
    () => checkTools(tools(129)),
  );
  reports('TL-TOOLS-MANY', /^81 tools are listed, and Cursor shows 40$/, () =>
    checkTools(tools(81), ['Cursor (user, as trunkline)']),
  );
  reports('TL-TOOLS-UNUSED', /^a server has tools that were not called for 30 days$/, () =>
    checkToolAdvice([{ kind: 'unused', text: 'x', server: 'a', yaml: 'tools: { deny: [x] }' }]),
  );
  reports('TL-TOOLS-TWINS', /^2 pairs of servers have tools of the same name$/, () =>
    checkToolAdvice(['b', 'c'].map((server) => ({ kind: 'twins', text: 'x', server, yaml: 'tools: { deny: [x] }' }))),
  );
  reports('TL-TOOLS-HEAVY', /about 25000 tokens/, () => checkTools(tools(10, 10_000)));
  reports('TL-TOOLS-UNMARKED', /^1 tool that may destroy data, without a hint that says so$/, () =>
    checkTools([
      ...tools(1, 100, { name: 's__delete_file', hasHints: false }),
      ...tools(1, 100, { name: 's__drop_table' }),
      ...tools(1, 100, { name: 's__undeleted', hasHints: false }),
    ]),
  );
  reports('TL-SERVER-LONG-TEXT', /^1 tool with desc/, () => checkTools(tools(1, 100, { descriptionBytes: 3_000 })));

  it('finds no long list for clients that search instead', () => {
    const many = tools(129, 1_000);
    const codes = (mode: 'direct' | 'auto' | 'search') => checkTools(many, [], mode).map(({ code }) => code);
    expect(codes('direct')).toEqual(['TL-TOOLS-MANY', 'TL-TOOLS-HEAVY']);
    // Other clients still get the whole list.
    expect(codes('auto')).toEqual(['TL-TOOLS-HEAVY']);
    expect(codes('search')).toEqual([]);
  });

  it('has evidence for what the author of a package says', () => {
    expect(packaged()).toContainEqual(expect.objectContaining({ evidence: ['use @new/tool'] }));
  });

  it.each(['YOUR_API_KEY', '<token>', 'sk-...', 'xxxx', 'changeme', 'your-key-here', 'ghp_xxxxx', 'API_KEY', 'todo'])(
    'takes %s for a placeholder',
    (value) => expect(isPlaceholder(value)).toBe(true),
  );

  it.each([
    'production',
    'en',
    'http://localhost:3000',
    '/home/me/notes',
    'gho_16C7e42F292c6912E7710c838347Ae',
    'true',
    'here',
  ])('takes %s for a value', (value) => expect(isPlaceholder(value)).toBe(false));

  it('accepts a server whose variables only users have, and says how to try it', () => {
    const servers = { own: { command: 'node', env: { TOKEN: '$' + '{user:TOKEN}' } }, other: { command: 'node' } };
    const configure = (gateway: object) => home.configure(JSON.stringify({ servers, gateway }));
    configure({ http: { auth: { tokens: 'machines', variables: 'variables' } } });
    const [first] = home.checkConfiguration();
    expect(first).toMatchObject({ code: 'TL-CONFIG-OK' });
    expect(first?.sentence).toMatch(/2 servers; `trunkline check --user NAME` starts those of users: own$/);
    // Without the folder, no user can have the variable.
    configure({ http: { auth: { tokens: 'machines' } } });
    expect(home.checkConfiguration().map(({ code }) => code)).toContain('TL-SERVER-MISCONFIGURED');
  });

  it('does not take paths, switches and references for credentials', () => {
    const env = {
      KEY_FILE: '/home/me/some/file.pem',
      API_KEY: '$' + '{API_KEY:-none}',
      MAX_TOKENS: '100000000',
      A_KEY: '/a/long/path',
    };
    home.configure({ a: { command: 'node', env } });
    expect(home.checkConfiguration().map(({ code }) => code)).not.toContain('TL-SECRET-LITERAL');
  });

  it.runIf(HAS_MODES)('is closed to others by `--fix` if it has a credential', async () => {
    const file = home.configure({ a: { command: 'node', env: { API_KEY: 'abcdefgh12345678' } } });
    chmodSync(file, 0o644);
    const findings = home.checkConfiguration();
    expect(findings).toContainEqual(
      expect.objectContaining({ code: 'TL-CONFIG-EXPOSED', remedy: `chmod 600 ${file}` }),
    );
    const mended = await repair(findings);
    expect(mended).toContainEqual(expect.objectContaining({ code: 'TL-FIX-DONE' }));
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(home.checkConfiguration().map(({ code }) => code)).not.toContain('TL-CONFIG-EXPOSED');
  });

  it('is not suspected because of another file if an option names it', () => {
    home.write('.config/trunkline/trunkline.yaml', 'servers: {}');
    home.configure({ a: { command: process.execPath } });
    expect(home.checkConfiguration({ source: '--config' }).map(({ code }) => code)).toEqual(['TL-CONFIG-OK']);
  });
});
