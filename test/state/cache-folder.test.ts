import { chmodSync, existsSync, mkdirSync, readdirSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { CacheFolder, type CacheFolderOptions } from '../../src/state/cache-folder.js';
import { folderWith } from '../config/files.js';
import { FakeClock } from '../support/fake-clock.js';
import { until } from '../support/processes.js';

function caching(options: Partial<CacheFolderOptions> = {}) {
  const folder = join(folderWith({}), 'data', 'cache');
  const ignored: string[] = [];
  const internalErrors: unknown[] = [];
  const cache = new CacheFolder({
    folder,
    maxFileBytes: 100,
    maxFiles: 3,
    onIgnored: (_file, reason) => ignored.push(reason),
    onFault: (error) => internalErrors.push(error),
    ...options,
  });
  const text = (name: string) => {
    const bytes = cache.read(name);
    return bytes === undefined ? undefined : Buffer.from(bytes).toString();
  };
  return { folder, cache, ignored, internalErrors, text };
}

const daysAgo = (days: number) => new Date(Date.now() - days * 86_400_000);

describe('a cache folder', () => {
  it('has what was written into it last, for its owner only', async () => {
    const { folder, cache, text } = caching();
    cache.write('a', Buffer.from('first'));
    cache.write('a', Buffer.from('second'));
    cache.write('b', Buffer.from('other'));
    await cache.settled();
    expect([text('a'), text('b')]).toEqual(['second', 'other']);
    expect(readdirSync(folder).sort()).toEqual(['a', 'b']);
    if (process.platform === 'win32') return;
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    expect(statSync(join(folder, 'a')).mode & 0o777).toBe(0o600);
  });

  it('with a clock writes a second later, which is long after a client has its first answers', async () => {
    const clock = new FakeClock();
    const { folder, cache } = caching({ clock });
    for (const name of ['a', 'b']) {
      cache.write(name, Buffer.from('text'));
      clock.advance(999);
      expect(existsSync(join(folder, name))).toBe(false);
      clock.advance(1);
      await until('it is written', () => existsSync(join(folder, name)));
      await cache.settled();
    }
    expect(clock.pending).toBe(0);
  });

  it('with a clock writes at once what waits when the gateway ends', async () => {
    const { cache, folder } = caching({ clock: new FakeClock() });
    cache.write('a', Buffer.from('text'));
    await cache.settled();
    expect(readdirSync(folder)).toEqual(['a']);
  });

  it('has what waits to be written, made once', async () => {
    const { cache, folder, text } = caching({ clock: new FakeClock() });
    let made = 0;
    cache.write('a', () => {
      made += 1;
      return Buffer.from('text');
    });
    expect([text('a'), text('a')]).toEqual(['text', 'text']);
    await cache.settled();
    expect([made, readdirSync(folder)]).toEqual([1, ['a']]);
  });

  it('leaves a file as it is that has the content already', async () => {
    const { cache, folder } = caching();
    const inode = async (text: string) => {
      cache.write('a', Buffer.from(text));
      await cache.settled();
      return statSync(join(folder, 'a')).ino;
    };
    const first = await inode('text');
    expect([await inode('text'), (await inode('other')) === first]).toEqual([first, false]);
  });

  it('has nothing under a name that was never written, which is no event', () => {
    const { text, ignored } = caching();
    expect([text('a'), ignored]).toEqual([undefined, []]);
  });

  it('neither reads nor writes a file that is too large', async () => {
    const { folder, cache, text, ignored } = caching();
    cache.write('a', new Uint8Array(101));
    await cache.settled();
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'b'), 'x'.repeat(101), { mode: 0o600 });
    expect([text('a'), text('b')]).toEqual([undefined, undefined]);
    expect(ignored).toEqual(['the content is too large', 'it is too large']);
  });

  it('takes nothing from a file that a power failure has emptied, and names the reason', () => {
    const { folder, text, ignored } = caching();
    mkdirSync(folder, { recursive: true });
    for (const [name, content] of Object.entries({ a: '', b: '\0\0' })) {
      writeFileSync(join(folder, name), content, { mode: 0o600 });
    }
    expect([text('a'), text('b')]).toEqual([undefined, undefined]);
    expect(ignored).toEqual(Array(2).fill('it has no content, as after a power failure'));
  });

  it.skipIf(process.platform === 'win32')('reads nothing that others can change', async () => {
    const { folder, cache, text, ignored } = caching();
    cache.write('a', Buffer.from('text'));
    await cache.settled();
    chmodSync(join(folder, 'a'), 0o620);
    expect(text('a')).toBeUndefined();
    expect(ignored).toHaveLength(1);
  });

  it('keeps the files that were used last, and removes drafts that nobody writes any more', async () => {
    const { folder, cache } = caching({ maxFiles: 2 });
    mkdirSync(folder, { recursive: true });
    for (const [name, days] of [
      ['old', 9],
      ['used', 8],
      ['draft.tmp', 1],
      ['fresh.tmp', 0],
    ] as const) {
      writeFileSync(join(folder, name), 'x', { mode: 0o600 });
      utimesSync(join(folder, name), daysAgo(days), daysAgo(days));
    }
    cache.read('used');
    await until('the file is marked', () => statSync(join(folder, 'used')).mtimeMs > daysAgo(1).getTime());
    cache.write('new', Buffer.from('x'));
    await cache.settled();
    expect(readdirSync(folder).sort()).toEqual(['fresh.tmp', 'new', 'used']);
  });

  it('tells once that nothing can be written, and goes on', async () => {
    const { cache, internalErrors } = caching({ folder: '/dev/null/cache' });
    cache.write('a', Buffer.from('x'));
    await cache.settled();
    cache.write('b', Buffer.from('x'));
    await cache.settled();
    expect(internalErrors).toHaveLength(1);
  });
});
