import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RequestRules } from '../../src/config/rules/request-rules.js';
import type { CallRule } from '../../src/config/rules/rule.js';
import { ownRequest } from '../../src/wire/mcp/relayed-request.js';
import { repetitions } from '../support/repetitions.js';

/*
 * A plain evaluator of rules: by recursion over parsed JSON, with regular expressions for globs, and without regard to time. It
 * shares nothing with the one of the program.
 */
type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };

function normal(text: string): string {
  const folded = text.normalize('NFKC').split('\0')[0]?.toLowerCase() ?? '';
  const decoded = folded.replace(/%[0-9a-f]{2}/g, (each) => String.fromCharCode(Number.parseInt(each.slice(1), 16)));
  const slashed = decoded.split('\\').join('/');
  let steps: string[] = [];
  let root = slashed.startsWith('/') ? '/' : '';
  for (const step of slashed.split('/')) {
    if (step === '..' && steps.length === 0) root = '/';
    if (step === '..') steps = steps.slice(0, -1);
    else if (step !== '.' && step !== '') steps = [...steps, step];
  }
  return root + steps.join('/');
}

const FORMS: readonly ((text: string) => string)[] = [
  (text) => text,
  (text) => text.normalize('NFKC').split('\0')[0]?.toLowerCase() ?? '',
  normal,
];

function fits(glob: string, text: string, form: (text: string) => string): boolean {
  const ofFolder = glob.endsWith('/**') ? glob.slice(0, -3) : glob.endsWith('/*') ? glob.slice(0, -2) : '';
  return [glob, ...(ofFolder === '' ? [] : [ofFolder])].some((each) => {
    const pattern = [...form(each)].map((letter) => {
      if (letter === '*') return '.*';
      return letter === '?' ? '.' : letter.replace(/[.[\](){}|^$+\\/]/, '\\$&');
    });
    return new RegExp(`^${pattern.join('')}$`, 'su').test(form(text));
  });
}

function fitsList(globs: readonly string[], text: string, form: (text: string) => string): boolean {
  const negated = globs.filter((glob) => glob[0] === '!');
  const plain = globs.filter((glob) => glob[0] !== '!');
  if (globs.length === 0 || negated.some((glob) => fits(glob.slice(1), text, form))) return false;
  return plain.length === 0 || plain.some((glob) => fits(glob, text, form));
}

/** The values of a path; `null` for a missing one. */
function valuesAt(value: Json, path: readonly string[]): (string | null)[] {
  const [name, ...rest] = path;
  if (name !== undefined && Array.isArray(value))
    return value.length === 0 ? [null] : value.flatMap((each) => valuesAt(each, path));
  if (name !== undefined && typeof value === 'object' && value !== null) {
    const member = (value as { readonly [key: string]: Json })[name];
    return member === undefined ? [null] : valuesAt(member, rest);
  }
  if (typeof value !== 'object' || value === null) return [value === null ? null : String(value)];
  const inner = scalarsIn(value);
  return inner.length === 0 ? [null] : inner;
}

function scalarsIn(value: Json): (string | null)[] {
  if (typeof value === 'object' && value !== null) return Object.values(value).flatMap(scalarsIn);
  return [value === null ? null : String(value)];
}

function verdict(rules: readonly CallRule[], tool: string, args: Json): CallRule['verdict'] {
  for (const rule of rules) {
    const some = rule.verdict !== 'allow';
    const over = <T>(all: readonly T[], test: (each: T) => boolean) => (some ? all.some(test) : all.every(test));
    if (!over(FORMS.slice(0, 2), (form) => fitsList(rule.tools ?? [], tool, form))) continue;
    const isMatch = Object.entries(rule.args ?? {}).every(([path, wanted]) => {
      const globs = wanted.filter((each) => each !== null).map(String);
      return over(valuesAt(args, path.split('[]').join('').split('.')), (value) =>
        value === null ? wanted.includes(null) : over(FORMS, (form) => fitsList(globs, value, form)),
      );
    });
    if (isMatch) return rule.verdict;
  }
  return 'allow';
}

const part = fc.constantFrom('etc', 'home', 'a', 'B', 'b', '..', '.', '', '*', '**', '?', '%61', 'x%2fy', 'A\\a', 'ﬁ');
const glob = fc
  .tuple(fc.constantFrom('', '', '!'), fc.constantFrom('', '/'), fc.array(part, { minLength: 1, maxLength: 3 }))
  .map(([sign, root, parts]) => sign + root + parts.join('/'));
const textPart = fc.constantFrom(
  'etc',
  'home',
  'a',
  'A',
  'b',
  '..',
  '.',
  '',
  'ab',
  '%61',
  'x',
  'y',
  'a\\b',
  'fi',
  '😀',
);
const text = fc
  .tuple(fc.constantFrom('', '/'), fc.array(textPart, { maxLength: 4 }))
  .map(([root, parts]) => root + parts.join('/'));
const name = fc.constantFrom('p', 'q', 'r');
const scalar = fc.oneof(text, fc.integer({ min: -3, max: 30 }), fc.boolean(), fc.constant(null));
const value: fc.Arbitrary<Json> = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    scalar,
    scalar,
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(name, tie('value'), { maxKeys: 3 }),
  ),
})).value;
const path = fc
  .array(fc.tuple(name, fc.constantFrom('', '', '[]')), { minLength: 1, maxLength: 3 })
  .map((steps) => steps.map((step) => step.join('')).join('.'));
const tool = fc.constantFrom('read', 'Read', 'write', 'write_all');
const rule = fc.record(
  {
    tools: fc.array(fc.constantFrom('*', 'read', 'write*', '!read', 'READ', 'w?ite'), { minLength: 1, maxLength: 2 }),
    args: fc.dictionary(path, fc.array(fc.oneof(glob, glob, scalar), { minLength: 1, maxLength: 3 }), {
      minKeys: 1,
      maxKeys: 2,
    }),
    verdict: fc.constantFrom('allow' as const, 'ask' as const, 'deny' as const),
    at: fc.constant('servers.a.rules[0]'),
  },
  { requiredKeys: ['tools', 'verdict', 'at'] },
);

describe('the rules of a configuration', () => {
  it('decide as a plain evaluator does, for any rules and arguments', { timeout: 600_000 }, () => {
    const seen = { allow: 0, ask: 0, deny: 0 };
    fc.assert(
      fc.property(
        fc.array(rule, { minLength: 1, maxLength: 4 }),
        tool,
        fc.dictionary(name, value, { maxKeys: 3 }),
        (rules, called, args) => {
          const request = ownRequest('tools/call', { name: called, arguments: args });
          const ruled = { request, edits: [], server: 'a', original: called };
          const expected = verdict(rules, called, args);
          seen[expected] += 1;
          expect(new RequestRules(rules).decide(ruled)?.verdict ?? 'allow').toBe(expected);
        },
      ),
      { numRuns: repetitions({ short: 1_000, full: 10_000 }) },
    );
    expect(Math.min(...Object.values(seen))).toBeGreaterThan(40);
  });
});
