import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { forget } from '../../../src/cli/commands/logins/forget.js';
import { loginFolder } from '../../../src/state/user-files.js';
import { folderWith } from '../../config/files.js';
import { Browser, LoginPlace } from './login-place.js';

describe('a server with `login: user`', () => {
  it.each<[era: 'legacy' | 'modern', hasFront: boolean]>([
    ['legacy', false],
    ['legacy', true],
    ['modern', false],
    ['modern', true],
  ])('is used by each user of the %s era in their own name (front: %s)', async (era, hasFront) => {
    const place = await LoginPlace.open({ hasFront });
    const [ann, bob] = [await place.connect('ann', { era }), await place.connect('bob', { era })];
    const offered = await ann.offered();
    expect(offered.text).toContain('needs a login');
    const browser = new Browser('ann');
    const first = await browser.open(offered.url);
    if (!hasFront) expect(first.text).toContain(offered.code);
    const last = await place.logIn((await ann.offered()).url, browser, 'ann-at-files');
    expect(last.text).toContain('You are logged in at files');
    await expect.poll(() => ann.call('files__read')).toBe('read done');
    // The login of one user is not that of another.
    expect((await bob.offered()).text).toContain('needs a login');
  });

  it.each(['legacy', 'modern'] as const)('lets the call of a client that opens pages wait (%s)', async (era) => {
    const place = await LoginPlace.open();
    const browser = new Browser('ann');
    const ann = await place.connect('ann', {
      era,
      opens: async ({ url }) => {
        // The person agrees to open the page, and logs in there later.
        setTimeout(() => void place.logIn(url, browser), 200);
        return 'accept';
      },
    });
    await expect.poll(async () => await ann.call('files__read')).toBe('read done');
    const [asked] = ann.asked;
    expect(asked).toMatchObject({
      mode: 'url',
      url: expect.stringContaining(`${place.publicUrl}/login/files?ticket=`),
    });
    expect(asked?.message).toMatch(/code [A-Z2-9]{3}-[A-Z2-9]{3}\./);
  });
});

const ORIGIN = fileURLToPath(new URL('../../fixtures/servers/origin.mjs', import.meta.url));
/** A server with a program that gets the token of its user, and shows it. */
const PRINTER = { command: process.execPath, args: [ORIGIN], env: { SECRET_KEY: '$' + '{login:files}' } };

describe('a server whose variable is a login', () => {
  it('runs for a user when the login is there, with the token of this user, and again when the token is replaced', async () => {
    const place = await LoginPlace.open({ servers: { printer: PRINTER }, lifetimeSeconds: 8 });
    const [ann, bob] = [await place.connect('ann'), await place.connect('bob')];
    const offered = await ann.offered('printer__where');
    expect(offered.url).toContain('/login/files?');
    await place.logIn(offered.url, new Browser('ann'));
    const tokenNow = async () => /"SECRET_KEY":"([^"]+)"/.exec(await ann.call('printer__where'))?.[1];
    await expect.poll(async () => await ann.call('printer__where')).not.toContain('needs a login');
    const first = await tokenNow();
    const stored = (await place.loginOf('ann'))?.tokens?.access_token ?? '?';
    expect(await ann.call('printer__where')).toContain(stored);
    // The token is good for eight seconds, and is replaced before.
    await expect.poll(tokenNow, { timeout: 20_000 }).not.toBe(first);
    expect((await bob.offered('printer__where')).text).toContain('there is no login');
  });

  it('does not run with a token that has ended and cannot be renewed, and offers the login again', async () => {
    const place = await LoginPlace.open({ servers: { printer: PRINTER } });
    const ann = await place.connect('ann');
    await place.logIn((await ann.offered('printer__where')).url, new Browser('ann'));
    await expect.poll(async () => await ann.call('printer__where')).not.toContain('needs a login');
    await place.endTokenOf('ann');
    await expect.poll(async () => await ann.call('printer__where')).toContain('has expired');
    expect((await ann.offered('printer__where')).url).toContain('/login/files?');
  });
});

describe('`trunkline auth forget`', () => {
  it('removes the logins, the variables and the kept lists of one user, and nothing of another', async () => {
    const place = await LoginPlace.open({ variables: 'variables' });
    const [ann, bob] = [await place.connect('ann'), await place.connect('bob')];
    for (const [name, client] of [
      ['ann', ann],
      ['bob', bob],
    ] as const) {
      await place.logIn((await client.offered()).url, new Browser(name));
      await expect.poll(() => client.call('files__read')).toBe('read done');
      const file = join(place.folder, 'variables', 'users', name, 'KEY');
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, 'x');
    }
    const users = () => readdirSync(join(loginFolder(), 'users')).length;
    // One is for the registration that both use.
    expect(users()).toBe(3);
    const settings = { config: place.composition.config.file, verbosity: 0, logFile: undefined };
    expect(await forget({ settings, words: ['ann'], options: {}, isJson: false } as never)).toBe(0);
    expect([await place.loginOf('ann'), users()]).toEqual([undefined, 2]);
    expect(readdirSync(join(place.folder, 'variables', 'users'))).toEqual(['bob']);
    expect((await ann.offered()).text).toContain('needs a login');
    expect(await bob.call('files__read')).toBe('read done');
    const principal = createHash('sha256').update(`${place.provider.issuer}\0bob`).digest('hex');
    const before = place.composition.gateway.pool.of('files').map(({ id }) => id);
    place.composition.forget(principal);
    expect(place.composition.gateway.pool.of('files').filter(({ id }) => !before.includes(id))).toHaveLength(1);
    await expect.poll(() => bob.call('files__read')).toBe('read done');
  });

  it('knows users only where the configuration has some', async () => {
    const file = join(folderWith({ 'trunkline.yaml': 'servers: { a: { command: x } }' }), 'trunkline.yaml');
    const settings = { config: file, verbosity: 0, logFile: undefined };
    await expect(forget({ settings, words: ['ann'], options: {}, isJson: false } as never)).rejects.toThrow(
      'the configuration has no users',
    );
  });
});

describe('the status of a user', () => {
  it('has the page of a login that is missing, and the page of the own logins', async () => {
    const place = await LoginPlace.open({ hasFront: true });
    const ann = await place.connect('ann');
    await ann.offered();
    const text = await ann.call('trunkline__status');
    const [, url = ''] = /log in at (\S+) within/.exec(text) ?? [];
    const browser = new Browser('ann');
    await place.logIn(url, browser);
    await expect.poll(() => ann.call('files__read')).toBe('read done');
    expect(await ann.call('trunkline__status', { server: 'files' })).toContain(`${place.publicUrl}/logins shows it`);
    expect((await browser.open(`${place.publicUrl}/logins`)).text).toContain(place.server.issuer);
  });
});
