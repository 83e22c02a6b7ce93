import type { Seeded } from '../../support/seeded.js';

/** What the property tests watch: leaves, a member that is both watched and on the way, and a key with a slash. */
export const WATCH = {
  name: ['params', 'name'],
  meta: ['params', '_meta'],
  progressToken: ['params', '_meta', 'progressToken'],
  relatedTask: ['params', '_meta', 'io.example/related-task', 'taskId'],
  nextCursor: ['result', 'nextCursor'],
  resultTools: ['result', 'tools'],
} as const;

export const MAX_DEPTH = 512;
export const MAX_ELEMENTS = 4;

/** One line that is a message, or nearly one. */
export function randomLine(random: Seeded): Uint8Array {
  const message = random.chance(0.06) ? randomValue(random, 3) : randomMessage(random);
  const line = Buffer.from(space(random) + message + space(random), 'latin1');
  return random.chance(0.5) ? mutate(random, line) : line;
}

/** A line that is a message unless one of its values happens to be no JSON. */
export function unspoiltLine(random: Seeded): Uint8Array {
  const members = random.shuffle(soundMembers(random, 'members'));
  return Buffer.from(space(random) + object(random, members) + space(random), 'latin1');
}

type Member = readonly [key: string, value: string];

function randomMessage(random: Seeded): string {
  const members = soundMembers(random, random.chance(0.02) ? 'deep' : 'members');
  if (random.chance(0.1)) members.splice(random.below(members.length), 1);
  if (random.chance(0.1)) members.push([random.pick(ROOT_KEYS), randomValue(random, 2)]);
  if (random.chance(0.1)) members.push(random.pick(members));
  if (random.chance(0.02)) members.push([random.pick(LOOKALIKES), randomValue(random, 2)]);
  return object(random, random.shuffle(members));
}

function soundMembers(random: Seeded, payload: 'members' | 'deep'): Member[] {
  const inner = (keys: readonly string[]) => (payload === 'deep' ? deepValue(random, keys) : payloadOf(random, keys));
  const id = random.chance(0.5) ? String(random.below(1000)) : random.pick(IDS);
  const version: Member = ['jsonrpc', random.chance(0.1) ? '"2\\u002e0"' : '"2.0"'];
  const strangers = random.chance(0.3) ? [member(random, randomKey(random))] : [];
  const params: Member[] = random.chance(0.8) ? [['params', inner(PARAMS_KEYS)]] : [];
  switch (random.below(4)) {
    case 0:
      return [version, ['id', id], ['method', random.pick(METHODS)], ...params, ...strangers];
    case 1:
      return [version, ['method', random.pick(METHODS)], ...params, ...strangers];
    case 2:
      return [version, ['id', id], ['result', inner(RESULT_KEYS)], ...strangers];
    default:
      return [version, ['id', random.chance(0.2) ? 'null' : id], ['error', '{"code":-32603}'], ...strangers];
  }
}

/** An object with some of `keys`, each once, and others as often as they come. */
function payloadOf(random: Seeded, keys: readonly string[]): string {
  const watched = keys
    .filter(() => random.chance(0.4))
    .map((key): Member => {
      if (key === '_meta') return [key, payloadOf(random, META_KEYS)];
      if (key === 'io.example/related-task') return [key, payloadOf(random, ['taskId'])];
      return member(random, key);
    });
  const others = Array.from({ length: random.below(3) }, () => member(random, randomKey(random)));
  if (others[0] !== undefined && random.chance(0.3)) others.push(others[0]);
  if (watched[0] !== undefined && random.chance(0.04)) others.push(watched[0]);
  return object(random, random.shuffle([...watched, ...others]));
}

/** Nests close to the limit, in a member that is watched or in one that is not. The root is the first level. */
function deepValue(random: Seeded, keys: readonly string[]): string {
  const levels = MAX_DEPTH - 8 + random.below(14);
  const nested = random.chance(0.5)
    ? '['.repeat(levels) + ']'.repeat(levels)
    : `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`;
  return object(random, [[random.chance(0.5) ? random.pick(keys) : 'other', nested]]);
}

function member(random: Seeded, key: string): Member {
  return [key, randomValue(random, 2)];
}

function randomValue(random: Seeded, depth: number): string {
  const kind = random.below(depth > 0 ? 8 : 5);
  if (kind < 2) return random.pick(NUMBERS);
  if (kind < 4) return randomString(random);
  if (kind === 4) return random.pick(['true', 'false', 'null', 'nul', 'True', '']);
  const length = random.below(4);
  if (kind === 5) {
    const elements = Array.from({ length }, () => space(random) + randomValue(random, depth - 1) + space(random));
    return `[${elements.join(',') || space(random)}]`;
  }
  return object(
    random,
    Array.from({ length }, () => [randomKey(random), randomValue(random, depth - 1)] as const),
  );
}

function object(random: Seeded, members: readonly Member[]): string {
  const parts = members.map(([key, value]) => {
    return `${space(random)}${spell(random, key)}${space(random)}:${space(random)}${value}${space(random)}`;
  });
  return `{${parts.join(',') || space(random)}}`;
}

/** The key as a string literal, some of its characters as escapes. */
function spell(random: Seeded, key: string): string {
  if (random.chance(0.85)) return `"${key}"`;
  const characters = [...key].map((character) => {
    if (character === '/' && random.chance(0.5)) return '\\/';
    if (character === '\\' || random.chance(0.6)) return character;
    const code = character.charCodeAt(0).toString(16).padStart(4, '0');
    return `\\u${random.chance(0.5) ? code : code.toUpperCase()}`;
  });
  return key.includes('\\') ? `"${key}"` : `"${characters.join('')}"`;
}

function randomString(random: Seeded): string {
  return `"${Array.from({ length: random.below(6) }, () => random.pick(FRAGMENTS)).join('')}"`;
}

function randomKey(random: Seeded): string {
  return random.pick(OTHER_KEYS);
}

function space(random: Seeded): string {
  return random.chance(0.85) ? '' : Array.from({ length: 1 + random.below(3) }, () => random.pick(SPACES)).join('');
}

function mutate(random: Seeded, line: Buffer): Uint8Array {
  let bytes = [...line];
  for (let count = 1 + random.below(2); count > 0; count -= 1) {
    const at = random.below(bytes.length + 1);
    switch (random.below(5)) {
      case 0:
        bytes[Math.min(at, bytes.length - 1)] = (bytes[Math.min(at, bytes.length - 1)] ?? 0) ^ (1 << random.below(8));
        break;
      case 1:
        bytes.splice(at, 0, random.chance(0.5) ? random.below(256) : random.pick(STRUCTURAL));
        break;
      case 2:
        bytes.splice(at, 1 + random.below(3));
        break;
      case 3:
        bytes.splice(at, 0, ...bytes.slice(at, at + random.below(40)));
        break;
      default:
        bytes = bytes.slice(0, at);
    }
  }
  return Uint8Array.from(bytes);
}

/** Bytes as Latin-1 characters, so that a line can be put together as text and hold anything. */
function utf8(text: string): string {
  return Buffer.from(text).toString('latin1');
}

const ROOT_KEYS = ['jsonrpc', 'id', 'method', 'params', 'result', 'error', 'extra', '__proto__'];
const LOOKALIKES = ['Id', 'METHOD', utf8('paramſ'), utf8('reſult'), 'jsonrpC', utf8('ıd')];
const PARAMS_KEYS = ['name', '_meta'];
const META_KEYS = ['progressToken', 'io.example/related-task'];
const RESULT_KEYS = ['nextCursor', 'tools'];
const OTHER_KEYS = ['a', 'id', 'nam', 'namee', 'method', '__proto__', 'constructor', '', utf8('ключ'), '\\n', 'params'];
const METHODS = ['"tools/call"', '"tools\\/call"', '"notifications/\\u0070rogress"', `"${utf8('é')}"`, '""'];
const IDS = ['"a"', '"1"', '""', `"${utf8('猫')}"`, '-0', '1.0', '9007199254740993', '1e400', '"\\u0031"', '0.5'];
const NUMBERS = [
  ...['9007199254740993', '1.0', '-0', '1e400', '-1E-7', '0', '12', '3.25e+10', '-0.0'],
  ...['01', '+1', '.5', '1.', '-', '1e', '0x10', 'NaN', '1e+', '--1'],
].flatMap((number, index) => (index < 9 ? [number, number, number] : [number]));
const FRAGMENTS = [
  ...[
    'a',
    'bc',
    ' ',
    '\\"',
    '\\\\',
    '\\/',
    '\\b\\f\\n\\r\\t',
    '\\u00e9',
    '\\uD83D\\uDE00',
    '\\ud800',
    '{',
    '}',
    '[1,2]',
    ',',
  ],
  ...[utf8('é'), utf8('猫'), utf8('😀'), utf8('\u2028'), utf8('\ufeff'), '\x7f'],
  ...['\\x', '\\u12', '\x00', '\t', '\n', '\xff', '\xc0\x80', '\xed\xa0\x80', '\xf4\x90\x80\x80', '\xe7\x8c'],
].flatMap((fragment, index) => (index < 20 ? [fragment, fragment, fragment, fragment, fragment] : [fragment]));
const SPACES = [' ', ' ', '\t', '\r', '\n'];
const STRUCTURAL = [...Buffer.from('{}[]",:\\ \t\n0-.eutfn\x00\x1f\xff', 'latin1')];
