import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ServerConfig } from '../../src/config/resolve/config.js';
import type { ChildSpec } from '../../src/spec/server-spec.js';
import { CacheFolder } from '../../src/state/cache-folder.js';
import { CatalogueCache, cachedToolNames, cachedVerdicts, configurationMark } from '../../src/state/catalogue-cache.js';
import type { ClientProfile } from '../../src/wire/mcp/handshake.js';
import { folderWith } from '../config/files.js';
import { load, loadServer } from '../config/loading.js';
import { FakeClock } from '../support/fake-clock.js';
import { bytesOf, scan } from '../support/wire.js';

const PROFILE: ClientProfile = {
  protocolVersion: '2025-11-25',
  capabilities: { sampling: {} },
  clientInfo: { name: 'host', version: '1.0' },
};
const TOOL = bytesOf('{"name":"x","inputSchema":{"type":"object"}}');
const OFFERED = {
  initializeResult: bytesOf('{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}'),
  lists: new Map([['tools' as const, [{ bytes: TOOL, span: { start: 0, end: TOOL.length } }]]]),
};
const ENTRY = 'servers: { own: { command: node, args: ["canary-1"], env: { KEY: "canary-2" } } }';

function keeping(secret = 'secret', folder = join(folderWith({}), 'catalogue'), clock?: FakeClock) {
  const ignored: string[] = [];
  const files = new CacheFolder({
    folder,
    maxFileBytes: 100_000,
    maxFiles: 10,
    onIgnored: () => {},
    onFault: (error) => {
      throw error;
    },
    ...(clock && { clock }),
  });
  const onIgnored = (_name: string, reason: string) => ignored.push(reason);
  const catalogues = new CatalogueCache({ folder: files, secret, onCached: () => {}, onIgnored, scan });
  return { folder, files, catalogues, ignored };
}

const CONFIG = '/home/ada/trunkline.yaml';

function own(): { server: ServerConfig & { configFile: string }; spec: ChildSpec } {
  const server = { ...loadServer(ENTRY), configFile: CONFIG };
  if (server.spec === undefined) throw new Error('cannot run');
  return { server, spec: server.spec };
}

describe('the catalogue of the last run', () => {
  it('is found by the next run, and nothing of the configuration stands in it', async () => {
    const { folder, catalogues } = keeping();
    const { server, spec } = own();
    catalogues.of(server, spec, PROFILE).put(OFFERED);
    await catalogues.settled();
    const next = keeping('secret', folder);
    expect(next.catalogues.of(server, spec, PROFILE).find()).toMatchObject({ capabilities: { tools: {} } });
    for (const name of readdirSync(folder)) {
      expect(name).toMatch(/^own-[0-9a-f]{32}$/);
      expect(readFileSync(join(folder, name), 'utf8')).not.toContain('canary');
    }
  });

  it('is told apart from that of a server with the same key in another configuration', async () => {
    const { folder, catalogues } = keeping();
    const { server, spec } = own();
    catalogues.of(server, spec, PROFILE).put(OFFERED);
    await catalogues.settled();
    const names = (file: string) => cachedToolNames(folder, 'own', configurationMark(file, 'secret'));
    expect([names(CONFIG), names('/home/ada/other.yaml')]).toEqual([['x'], undefined]);
    expect(catalogues.of({ ...server, configFile: '/home/ada/other.yaml' }, spec, PROFILE).find()).toBeUndefined();
  });

  it('is what it was when it was put, although it is written later', async () => {
    const { folder, catalogues } = keeping('secret', undefined, new FakeClock());
    const { server, spec } = own();
    const lists = new Map(OFFERED.lists);
    catalogues.of(server, spec, PROFILE).put({ ...OFFERED, lists });
    lists.set('tools', []);
    await catalogues.settled();
    const [name = ''] = readdirSync(folder);
    expect(readFileSync(join(folder, name), 'utf8')).toContain('"name":"x"');
  });

  it('is remembered as missed when it was not ready, until it has a catalogue', async () => {
    const { folder, catalogues } = keeping();
    const { server, spec } = own();
    catalogues.of(server, spec, PROFILE).putMissed();
    await catalogues.settled();
    const next = keeping('secret', folder);
    expect(next.catalogues.of(server, spec, PROFILE).find()).toBe('missed');
    next.catalogues.of(server, spec, PROFILE).put(OFFERED);
    await next.catalogues.settled();
    const last = keeping('secret', folder);
    expect(last.catalogues.of(server, spec, PROFILE).find()).toMatchObject({ capabilities: { tools: {} } });
    expect([...next.ignored, ...last.ignored]).toEqual([]);
  });

  it('is not that of another package which is not installed either', async () => {
    const { folder, catalogues } = keeping();
    const config = load(`servers: { own: { package: "\${PART}" } }`);
    const entryOf = (PART: string, of = catalogues) => {
      const server = config.serverFor('own', { environment: { PART }, folder: '/' });
      if (server?.spec === undefined) throw new Error('cannot run');
      return of.of({ ...server, configFile: CONFIG }, server.spec, PROFILE);
    };
    entryOf('one').putMissed();
    await catalogues.settled();
    const next = keeping('secret', folder).catalogues;
    expect([entryOf('one', next).find(), entryOf('two', next).find()]).toEqual(['missed', undefined]);
  });

  it('is found for a client that was updated, and not for one with another name, revision, user or capabilities', async () => {
    const { catalogues } = keeping();
    const { server, spec } = own();
    catalogues.of(server, spec, PROFILE).put(OFFERED);
    await catalogues.settled();
    const found = (profile: Partial<ClientProfile>) =>
      catalogues.of(server, spec, { ...PROFILE, ...profile }).find() !== undefined;
    expect(found({ clientInfo: { name: 'host', version: '2.0' } })).toBe(true);
    expect(found({ clientInfo: { name: 'other' } })).toBe(false);
    expect(found({ protocolVersion: '2025-06-18' })).toBe(false);
    expect(found({ capabilities: {} })).toBe(false);
    expect(found({ principal: 'of ann' })).toBe(false);
  });

  it.each([
    ['command', { command: '/usr/bin/node' }],
    ['arguments', { args: ['canary-1', 'more'] }],
    ['folder', { cwd: '/' }],
    ['value of a variable', { env: { KEY: 'canary-3' } }],
    ['name of a variable', { env: { LOCK: 'canary-2' } }],
  ] as const)('is not found for another %s', async (_what, change) => {
    const { catalogues } = keeping();
    const { server, spec } = own();
    catalogues.of(server, spec, PROFILE).put(OFFERED);
    await catalogues.settled();
    expect(catalogues.of(server, { ...spec, ...change }, PROFILE).find()).toBeUndefined();
    expect(catalogues.of(server, spec, PROFILE).find()).toBeDefined();
  });

  it('is not found when its program is another one now, while its data may change', async () => {
    const { catalogues } = keeping();
    const { server, spec } = own();
    const folder = folderWith({ 'server.mjs': '1', 'data.db': '1' });
    const program = { ...spec, args: [join(folder, 'server.mjs'), join(folder, 'data.db')] };
    catalogues.of(server, program, PROFILE).put(OFFERED);
    await catalogues.settled();
    writeFileSync(join(folder, 'data.db'), 'other');
    expect(catalogues.of(server, program, PROFILE).find()).toBeDefined();
    writeFileSync(join(folder, 'server.mjs'), 'other');
    expect(catalogues.of(server, program, PROFILE).find()).toBeUndefined();
  });

  it('is not found under another secret, nor when the file is of another format', async () => {
    const { folder, catalogues, ignored } = keeping();
    const { server, spec } = own();
    catalogues.of(server, spec, PROFILE).put(OFFERED);
    await catalogues.settled();
    expect(keeping('other', folder).catalogues.of(server, spec, PROFILE).find()).toBeUndefined();
    const [name = ''] = readdirSync(folder);
    writeFileSync(join(folder, name), '{"format":0}\n');
    expect(catalogues.of(server, spec, PROFILE).find()).toBeUndefined();
    expect(ignored).toEqual(['the file has another format']);
  });
});

describe('the catalogue that a command leaves', () => {
  it('is found by the clients that the server takes for the command, and as a substitute by all others', async () => {
    const { catalogues } = keeping();
    const { server, spec } = own();
    const command = catalogues.forCommand().of(server, spec, PROFILE);
    command.put(OFFERED);
    await catalogues.settled();
    expect(command.find()).toBeUndefined();
    expect(catalogues.of(server, spec, PROFILE).find()).toMatchObject({ capabilities: { tools: {} } });
    const other = catalogues.of(server, spec, { ...PROFILE, clientInfo: { name: 'other' } });
    expect(other.find()).toBeUndefined();
    expect(other.findForAll()).toMatchObject({ capabilities: { tools: {} } });
    const changed = catalogues.of(server, { ...spec, args: ['canary-1', 'more'] }, PROFILE);
    expect(changed.findForAll()).toBeUndefined();
  });

  it('is not replaced when the command cannot start the server', async () => {
    const { catalogues } = keeping();
    const { server, spec } = own();
    catalogues.of(server, spec, PROFILE).put(OFFERED);
    catalogues.forCommand().of(server, spec, PROFILE).putMissed();
    await catalogues.settled();
    expect(catalogues.of(server, spec, PROFILE).find()).toMatchObject({ capabilities: { tools: {} } });
  });
});

const HOUR_MS = 60 * 60 * 1_000;
const DAY_MS = 24 * HOUR_MS;

/** Verdicts in a folder that the test has, and a clock that it moves. */
function caching() {
  const files = new Map<string, Uint8Array>();
  let now = 1_000;
  let sealed = 0;
  const verdicts = cachedVerdicts({
    folder: { read: (name) => files.get(name), write: (name, bytes) => void files.set(name, bytes) },
    name: () => 'files-era',
    onCached: () => {
      sealed += 1;
    },
    now: () => now,
  });
  return {
    ...{ files, verdicts },
    sealed: () => sealed,
    wait: (ms: number) => {
      now += ms;
    },
  };
}

describe('the cached era of a server', () => {
  it('is what the last start found out, with the version of the server', () => {
    const { verdicts, sealed } = caching();
    expect(verdicts.find()).toBeUndefined();
    verdicts.put({ era: 'legacy', version: '1.2' });
    const until = new Date(1_000 + DAY_MS).toISOString();
    expect(verdicts.find()).toEqual({ era: 'legacy', version: '1.2', until });
    verdicts.put({ era: 'modern', version: undefined });
    expect(verdicts.find()).toEqual({ era: 'modern', version: undefined });
    expect(sealed()).toBe(2);
    verdicts.forget();
    expect(verdicts.find()).toBeUndefined();
  });

  it('counts for a day if it is legacy, and for ever if it is modern', () => {
    const { verdicts, wait } = caching();
    verdicts.put({ era: 'legacy', version: '1' });
    wait(DAY_MS - 1);
    expect(verdicts.find()?.era).toBe('legacy');
    wait(1);
    expect(verdicts.find()).toBeUndefined();
    verdicts.put({ era: 'modern', version: '1' });
    wait(1_000 * DAY_MS);
    expect(verdicts.find()?.era).toBe('modern');
  });

  it('invariant 32: is asked anew as soon as a day is over, whatever was found out and however the clock is set', () => {
    const hours = fc.constantFrom(-30, -1, 0, 1, 12, 23, 24, 48);
    const found = fc.constantFrom<'legacy' | 'modern' | undefined>('legacy', 'modern', undefined);
    fc.assert(
      fc.property(fc.array(fc.tuple(found, hours)), (steps) => {
        const { verdicts, wait } = caching();
        let last: { readonly era: 'legacy' | 'modern'; ageMs: number } | undefined;
        for (const [era, passed] of steps) {
          if (era !== undefined) {
            verdicts.put({ era, version: '1' });
            last = { era, ageMs: 0 };
          }
          wait(passed * HOUR_MS);
          if (last !== undefined) last.ageMs += passed * HOUR_MS;
          const counts = last?.era === 'modern' || (last !== undefined && last.ageMs >= 0 && last.ageMs < DAY_MS);
          expect(verdicts.find()?.era).toBe(counts ? last?.era : undefined);
        }
      }),
    );
  });

  it('does not count if it is of a time to come', () => {
    const { verdicts, wait } = caching();
    verdicts.put({ era: 'legacy', version: '1' });
    wait(-1);
    expect(verdicts.find()).toBeUndefined();
  });

  it.each(['', '{', '[]', '{"era":"old","at":1000}', '{"era":"legacy"}', '{"era":"legacy","at":"now"}'])(
    'is unknown if the file says %j',
    (text) => {
      const { files, verdicts } = caching();
      files.set('files-era', Buffer.from(text));
      expect(verdicts.find()).toBeUndefined();
    },
  );
});
