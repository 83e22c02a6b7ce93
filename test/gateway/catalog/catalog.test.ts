import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Catalog, type CatalogPart, type OwnEntry } from '../../../src/gateway/catalog/catalog.js';
import { exposing } from '../../support/exposing.js';
import { hmac } from '../../support/hmac.js';
import { toolOf } from '../../support/scripted-gateway.js';
import { bytesOf } from '../../support/wire.js';

/** One server's part of a catalog. A name with a leading `!` stands for an unsound tool. */
function part(key: string, names: readonly string[], { prefix = key, deny = [] as string[] } = {}): CatalogPart {
  const texts = names.map((name) => (name.startsWith('!') ? `{"name":"${name.slice(1)}"}` : toolOf(name)));
  return { key, prefix, list: exposing(texts, { key, prefix, deny }) };
}

const OWN = [{ name: 'trunkline__status', entry: bytesOf('{"name":"trunkline__status"}') }];

function toolsOf(parts: readonly CatalogPart[], own: readonly OwnEntry[]): Catalog {
  return new Catalog('tools', parts, own, { hmac });
}

function namesIn(catalog: Catalog): string[] {
  const { tools } = JSON.parse(Buffer.from(catalog.pagesFor(undefined).at(undefined) ?? []).toString()) as {
    tools: { name: string }[];
  };
  return tools.map(({ name }) => name);
}

describe('the merged list', () => {
  it('has servers in the order of the configuration, their tools in their own, and ours last', () => {
    const catalog = toolsOf([part('b', ['z', 'a']), part('a', ['m'])], OWN);
    expect(namesIn(catalog)).toEqual(['b__z', 'b__a', 'a__m', 'trunkline__status']);
    expect([...catalog.listed]).toEqual([
      ['b', ['b__z', 'b__a']],
      ['a', ['a__m']],
    ]);
  });

  it('invariant 12: is the same to the byte for the same tools', () => {
    const make = () => toolsOf([part('a', ['x', 'y']), part('b', ['x'])], OWN);
    expect(make().pagesFor(undefined).at(undefined)).toEqual(make().pagesFor(undefined).at(undefined));
    expect(make().equals(make())).toBe(true);
  });

  it('invariant 11: changes no name of one server when another comes or goes', () => {
    const name = fc.constantFrom('read', 'write', 'a.b', 'x'.repeat(60), '__proto__', 'b__read');
    fc.assert(
      fc.property(fc.uniqueArray(name), fc.uniqueArray(name), (ours, theirs) => {
        const alone = toolsOf([part('a', ours)], OWN);
        for (const parts of [
          [part('a', ours), part('b', theirs)],
          [part('b', theirs), part('a', ours)],
        ]) {
          expect(toolsOf(parts, OWN).listed.get('a')).toEqual(alone.listed.get('a'));
        }
      }),
    );
  });

  it('leaves out what is withheld but lets it be called', () => {
    const catalog = toolsOf([part('a', ['!bad', 'good'])], []);
    expect(namesIn(catalog)).toEqual(['a__good']);
    expect(catalog.resolve('a__bad')).toMatchObject({ key: 'a', original: 'bad' });
  });
});

describe('a name that two claim', () => {
  it('belongs to the first server, and the other is told of', () => {
    const catalog = toolsOf([part('a', ['read'], { prefix: '' }), part('b', ['read'], { prefix: '' })], []);
    expect(namesIn(catalog)).toEqual(['read']);
    expect(catalog.resolve('read')).toMatchObject({ key: 'a', original: 'read' });
    expect(catalog.shadowed).toEqual([{ key: 'b', exposed: 'read', owner: 'a' }]);
    expect(catalog.listed.get('b')).toEqual([]);
  });

  it.each(['tools', 'prompts'] as const)(
    'of %s never begins with the prefix of another server, in either order',
    (kind) => {
      const bank = part('bank', ['pay']);
      const bare = part('bare', ['bank__balance', 'bank__pay', 'bankless', 'other__x'], { prefix: '' });
      const odd = part('odd', ['bank__é', 'bank__'], { prefix: '' });
      for (const parts of [
        [bank, bare, odd],
        [bare, odd, bank],
      ]) {
        const catalog = new Catalog(kind, parts, [], { hmac });
        expect(Object.fromEntries(catalog.listed)).toEqual({
          bank: ['bank__pay'],
          bare: ['bankless', 'other__x'],
          odd: [],
        });
        expect(catalog.resolve('bank__balance')).toMatchObject({ key: 'bank', original: 'balance' });
        expect(catalog.shadowed).toContainEqual({ key: 'bare', exposed: 'bank__pay', owner: 'bank', prefix: 'bank' });
        expect(catalog.shadowed.map(({ key }) => key)).toEqual(['bare', 'bare', 'odd', 'odd']);
      }
      const uris = new Catalog('resources', [bank, bare], [], { hmac });
      expect(uris.listed.get('bare')).toEqual(['bank__balance', 'bankless', 'other__x']);
    },
  );

  it('never belongs to a withheld tool, so that it hides no listed one', () => {
    const catalog = toolsOf([part('a', ['!read'], { prefix: '' }), part('b', ['read'], { prefix: '' })], []);
    expect(namesIn(catalog)).toEqual(['read']);
    expect(catalog.resolve('read')).toMatchObject({ key: 'b', original: 'read' });
    expect(catalog.shadowed).toEqual([]);
  });

  it('leads to the listed tool by its original name, and nowhere if two withheld ones have it', () => {
    const catalog = toolsOf([part('a', ['!read', '!only']), part('b', ['read', '!only'])], []);
    expect(catalog.resolve('read')).toMatchObject({ key: 'b' });
    expect(catalog.resolve('only')).toBeUndefined();
  });
});

describe('where a name leads', () => {
  const catalog = toolsOf(
    [
      part('a', ['read', 'only', 'a.b', 'x'.repeat(80)]),
      part('b', ['read', 'c__d']),
      part('bare', ['free'], { prefix: '' }),
    ],
    OWN,
  );

  it('is the same tool for every listed name', () => {
    for (const [key, names] of catalog.listed) {
      for (const name of names) expect(catalog.resolve(name)?.key).toBe(key);
    }
    const [, , dotted = '', long = ''] = catalog.listed.get('a') ?? [];
    expect(catalog.resolve(dotted)).toMatchObject({ key: 'a', original: 'a.b' });
    expect(catalog.resolve(long)).toMatchObject({ key: 'a', original: 'x'.repeat(80) });
  });

  it.each([
    ['a__hidden', { key: 'a', original: 'hidden' }, 'a tool that its server does not list'],
    ['a__a.b', { key: 'a', original: 'a.b' }, 'the original name behind the prefix'],
    ['b__c__d', { key: 'b', original: 'c__d' }, 'a name with a separator of its own'],
    ['a__', { key: 'a', original: '' }, 'an empty name'],
    ['only', { key: 'a', original: 'only' }, 'an original name that one server has'],
    ['c__d', { key: 'b', original: 'c__d' }, 'an original name with an unknown prefix'],
    ['free', { key: 'bare', original: 'free' }, 'a name without a prefix'],
  ])('%s leads to %j: %s', (name, route) => {
    expect(catalog.resolve(name)).toMatchObject(route);
  });

  it.each(['read', 'missing', '', '__', '__read', 'bare__free', 'c__read', '__proto__', 'constructor', 'toString'])(
    '%j leads nowhere',
    (name) => {
      expect(catalog.resolve(name)).toBeUndefined();
    },
  );

  it('is not changed by a name like those of every object', () => {
    const odd = toolsOf([part('a', ['__proto__', 'constructor'])], []);
    expect(odd.resolve('a____proto__')).toMatchObject({ key: 'a', original: '__proto__' });
    expect(odd.resolve('__proto__')).toMatchObject({ key: 'a', original: '__proto__' });
    expect(odd.resolve('toString')).toBeUndefined();
  });
});

describe('whether a client would see a difference', () => {
  it.each([
    ['another tool', [part('a', ['x', 'z'])], false],
    ['another order', [part('a', ['y', 'x'])], false],
    ['a tool less', [part('a', ['x'])], false],
    ['another tool that is withheld', [part('a', ['x', 'y', '!z'])], true],
    ['another denied tool', [part('a', ['x', 'y', 'z'], { deny: ['z'] })], true],
    ['a server without tools', [part('a', ['x', 'y']), part('b', [])], true],
  ])('it does with %s: %s', (_, parts, isSame) => {
    const before = toolsOf([part('a', ['x', 'y'])], OWN);
    expect(toolsOf(parts, OWN).equals(before)).toBe(isSame);
    expect(before.equals(toolsOf(parts, OWN))).toBe(isSame);
  });
});
