import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { UiAliases, type UiServer } from '../../../src/gateway/catalog/catalog.js';
import type { ExposedList } from '../../../src/gateway/catalog/exposed-list.js';
import type { ListKind } from '../../../src/wire/mcp/methods.js';
import { uiAlias } from '../../../src/wire/mcp/ui-uris.js';
import { exposing } from '../../support/exposing.js';
import { sha256 } from '../../support/sha256.js';

const MAIN = 'ui://app/main.html';
const OTHER = 'ui://app/other.html';
const SCHEMA = '"inputSchema":{"type":"object"}';
const alias = (key: string, uri = MAIN) => uiAlias(key, uri, sha256);

function exposed(kind: ListKind, key: string, entries: readonly string[]): ExposedList {
  return exposing(entries, { kind, key, deny: ['denied*'] });
}

/** A server by the URIs that it lists, and the URIs that its tools name. A text that begins with `{` is a whole entry. */
function server(key: string, listed: readonly string[], pointed: readonly string[] = []): UiServer {
  const resource = (uri: string) => (uri.startsWith('{') ? uri : JSON.stringify({ uri, name: 'n' }));
  const tool = (uri: string, index: number) =>
    uri.startsWith('{') ? uri : `{"name":"t${index}",${SCHEMA},"_meta":{"ui":{"resourceUri":${JSON.stringify(uri)}}}}`;
  return {
    key,
    resources: exposed('resources', key, listed.map(resource)),
    tools: exposed('tools', key, pointed.map(tool)),
  };
}

/** URIs that clients see in the list of a server, and URIs that its tools name. */
function seen(aliases: UiAliases, { key, resources, tools }: UiServer): { listed: string[]; pointed: string[] } {
  const entries = (list: ExposedList) =>
    aliases.apply(key, list).entries.flatMap(({ entry }) => (entry === undefined ? [] : [JSON.parse(text(entry))]));
  return {
    listed: entries(resources).map(({ uri }) => uri),
    pointed: entries(tools).map((tool) => tool._meta.ui.resourceUri),
  };
}

function text(bytes: Uint8Array | undefined): string {
  return Buffer.from(bytes ?? []).toString();
}

describe('a URI of a user interface that two servers have', () => {
  it('stays what it is for the first one, and is an alias for the others', () => {
    const servers = ['a', 'b', 'c'].map((key) => server(key, [MAIN], [MAIN])) as [UiServer, UiServer, UiServer];
    const aliases = new UiAliases(servers);
    expect(servers.map((each) => seen(aliases, each).listed)).toEqual([[MAIN], [alias('b')], [alias('c')]]);
    expect(servers.map((each) => seen(aliases, each).pointed)).toEqual([[MAIN], [alias('b')], [alias('c')]]);
    expect(aliases.resolve(MAIN)).toEqual({ key: 'a', original: MAIN });
    expect(aliases.resolve(alias('b'))).toEqual({ key: 'b', original: MAIN });
  });

  it('belongs to the server that lists it, even if the tool of an earlier one points to it', () => {
    const servers = [server('a', [], [MAIN]), server('b', [MAIN], [MAIN])] as const;
    const aliases = new UiAliases(servers);
    expect(servers.map((each) => seen(aliases, each).pointed)).toEqual([[alias('a')], [MAIN]]);
    expect(aliases.resolve(alias('a'))).toEqual({ key: 'a', original: MAIN });
  });

  it('belongs to a server that withholds the resource only if no other lists it, and not to one whose tool is denied', () => {
    const withheld = server('a', [`{"uri":"${MAIN}","name":"\\u200b"}`]);
    const denied = server('a', [], [`{"name":"denied",${SCHEMA},"_meta":{"ui":{"resourceUri":"${MAIN}"}}}`]);
    const second = server('b', [MAIN]);
    expect(new UiAliases([withheld]).resolve(MAIN)).toEqual({ key: 'a', original: MAIN });
    expect(seen(new UiAliases([withheld, second]), second).listed).toEqual([MAIN]);
    expect(seen(new UiAliases([denied, second]), second).listed).toEqual([MAIN]);
    const aliases = new UiAliases([withheld, second]);
    expect(aliases.apply('a', withheld.resources).entries).toMatchObject([
      { exposed: alias('a'), original: MAIN, entry: undefined },
    ]);
  });
});

describe('a URI that clients may have seen', () => {
  const [a, b] = [server('a', [MAIN], [MAIN]), server('b', [MAIN], [MAIN])];
  const gone = (key: string) => server(key, []);

  it('keeps its owner when an earlier server comes that has it too', () => {
    const before = new UiAliases([gone('a'), b]);
    const aliases = new UiAliases([a, b], before);
    expect(seen(aliases, b)).toEqual({ listed: [MAIN], pointed: [MAIN] });
    expect(seen(aliases, a)).toEqual({ listed: [alias('a')], pointed: [alias('a')] });
    expect(new UiAliases([a, b]).resolve(MAIN)?.key).toBe('a');
  });

  it('leads nowhere once its owner has it no more, and is its owner’s again when that has it again', () => {
    const without = new UiAliases([gone('a'), b], new UiAliases([a, b]));
    expect(seen(without, b)).toEqual({ listed: [alias('b')], pointed: [alias('b')] });
    for (const uri of [MAIN, alias('a')]) {
      expect(without.resolve(uri)).toBeUndefined();
      expect(without.isClaimed(uri)).toBe(true);
    }
    expect(new UiAliases([a, b], without).resolve(MAIN)).toEqual({ key: 'a', original: MAIN });
  });

  it('leads under its alias to its server, even if no client is shown the alias', () => {
    expect(new UiAliases([gone('a'), b]).resolve(alias('b'))).toEqual({ key: 'b', original: MAIN });
  });
});

describe('a URI that has the form of an alias', () => {
  it('is never another server’s, so that none can pass for it', () => {
    const [victim, thief] = [server('b', [MAIN], [MAIN]), server('c', [alias('b')], [alias('b')])];
    for (const servers of [
      [thief, server('a', [MAIN]), victim],
      [server('a', [MAIN]), victim, thief],
      [thief, victim],
    ]) {
      const aliases = new UiAliases(servers);
      expect(aliases.resolve(alias('b'))).toEqual({ key: 'b', original: MAIN });
      expect(seen(aliases, thief).listed).toEqual([alias('c', alias('b'))]);
      expect(aliases.resolve(alias('c', alias('b')))).toEqual({ key: 'c', original: alias('b') });
    }
  });

  it('of a server that there is not is a URI like any other', () => {
    const one = server('a', [alias('unknown')]);
    expect(seen(new UiAliases([one]), one).listed).toEqual([alias('unknown')]);
  });
});

describe('an entry with an alias', () => {
  const first = server('first', [MAIN]);
  const activeConfig = (entry: string, kind: 'tools' | 'resources') => {
    const list = exposed(kind, 'k', [entry]);
    const aliases = new UiAliases([first, { key: 'k', resources: list, tools: list }]);
    return text(aliases.apply('k', list).entries[0]?.entry);
  };

  it.each([
    `{ "x":9007199254740993, "uri" : "${MAIN}" ,"name":"n","_meta":{"ui":{"csp":{"a":[1.0]}}} }`,
    `{"name":"u\\u0069","u\\u0072i":"ui:\\/\\/app/main.html","description":"${MAIN}"}`,
    `{"uri":"ui://x","name":"n","uri":"${MAIN}"}`,
  ])('of a resource is otherwise as the server wrote it: %s', (entry) => {
    const expected = entry.replace(/("u(?:r|\\u0072)i"\s*:\s*)"[^"]*"/g, `$1"${alias('k')}"`);
    expect(activeConfig(entry, 'resources')).toBe(expected);
    expect(expected).not.toBe(entry);
  });

  it('of a tool is otherwise as the server wrote it, whatever unknown members it has', () => {
    const value = fc.oneof(fc.json(), fc.constantFrom('9007199254740993', '1.0', '-0', '{"a":1,"a":2}', `"${MAIN}"`));
    const members = fc
      .array(fc.tuple(fc.string(), value), { maxLength: 3 })
      .map((list) => list.map(([key, json]) => `${JSON.stringify(`x-${key}`)} :${json}, `).join(''));
    const uri = fc.constantFrom(JSON.stringify(MAIN), '"u\\u0069://app\\/main.html"');
    fc.assert(
      fc.property(members, members, members, uri, uri, uri, (x, y, z, ...uris) => {
        const entry = (name: string, nested: string, flat: string, openai: string) =>
          `{${x}"_meta":{${y}"ui/resourceUri":${flat}, "ui" : {${z}"resourceUri": ${nested},"visibility":["app"]},"openai/outputTemplate":${openai}},"name":"${name}",${SCHEMA}}`;
        const shown = JSON.stringify(alias('k'));
        expect(activeConfig(entry('t', ...uris), 'tools')).toBe(entry('k__t', shown, shown, shown));
      }),
    );
  });

  it('of a tool that loses members which must not be null has it in the right place', () => {
    const entry = `{"title":null, "_meta":{"ui":{"resourceUri":"${MAIN}"}},"name":"t",${SCHEMA},"annotations":null}`;
    expect(activeConfig(entry, 'tools')).toBe(
      `{"_meta":{"ui":{"resourceUri":"${alias('k')}"}},"name":"k__t",${SCHEMA}}`,
    );
  });
});

describe('with any lists and references of servers that come and go', () => {
  const uri = fc.constantFrom(MAIN, OTHER, 'ui://x', alias('a'), alias('b'), alias('c', 'ui://x'), alias('d'));
  const uris = fc.uniqueArray(uri, { maxLength: 4 });
  const moment = fc.array(fc.tuple(uris, uris), { minLength: 3, maxLength: 3 });
  const toServers = (offers: [string[], string[]][]) =>
    offers.map(([listed, pointed], index) => server('abc'[index] ?? '', listed, pointed));

  it('each URI that clients see leads to the server that has it, under its own URI, and to no other', () => {
    fc.assert(
      fc.property(fc.array(moment, { minLength: 1, maxLength: 3 }), (moments) => {
        let aliases: UiAliases | undefined;
        for (const offers of moments) {
          const servers = toServers(offers);
          aliases = new UiAliases(servers, aliases);
          const meanings = new Map<string, string>();
          servers.forEach((each, index) => {
            const { listed, pointed } = seen(aliases as UiAliases, each);
            const originals = [...(offers[index]?.[0] ?? []), ...(offers[index]?.[1] ?? [])];
            [...listed, ...pointed].forEach((shown, position) => {
              const original = originals[position];
              expect(aliases?.resolve(shown)).toEqual({ key: each.key, original });
              expect(meanings.get(shown) ?? each.key).toBe(each.key);
              meanings.set(shown, each.key);
              if (shown !== original) expect(shown).toBe(alias(each.key, original));
            });
          });
        }
      }),
    );
  });

  it('no server that comes or goes changes what clients see of another that stays as it is', () => {
    fc.assert(
      fc.property(moment, fc.nat(2), fc.tuple(uris, uris), (offers, moving, next) => {
        const before = new UiAliases(toServers(offers));
        const later = offers.map((offer, index) => (index === moving ? next : offer));
        const after = new UiAliases(toServers(later), before);
        toServers(offers).forEach((each, index) => {
          if (index === moving) return;
          expect(seen(after, each)).toEqual(seen(before, each));
        });
      }),
    );
  });
});
