import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createSeal } from '../../../src/state/seal.js';
import { instanceOfTask, unwrapTaskId, wrapTaskId } from '../../../src/wire/mcp/task-id.js';
import { anyCharacter } from '../../support/any-character.js';

const seal = createSeal({ secret: 'a secret of the test' });

/** Any text, including halves of surrogate pairs. */
const text = fc.string({ unit: anyCharacter });
const maker = fc.stringMatching(/^[a-z0-9~-]{1,24}$/);

describe('the wrapped id of a task', () => {
  it('leads back to its maker and the original id, whatever that is, for its holder', () => {
    fc.assert(
      fc.property(maker, text, text, (key, original, holder) => {
        const id = wrapTaskId({ maker: key, instance: 'aaaaaaaaaa', original }, holder, seal);
        expect(unwrapTaskId(id, holder, seal)).toEqual({ maker: key, instance: 'aaaaaaaaaa', original });
      }),
    );
  });

  it('names its process to gateways that cannot verify it, and no other text does', () => {
    fc.assert(
      fc.property(maker, text, (key, original) => {
        expect(instanceOfTask(wrapTaskId({ maker: key, instance: 'aaaaaaaaaa', original }, 'h', seal))).toBe(
          'aaaaaaaaaa',
        );
      }),
    );
    for (const other of ['', 'a', 'a:b', ':b:c']) expect(instanceOfTask(other)).toBeUndefined();
  });

  it('is the same each time, since clients compare ids', () => {
    const wrap = () => wrapTaskId({ maker: 'a', instance: 'aaaaaaaaaa', original: 't' }, 'somebody', seal);
    expect(wrap()).toBe(wrap());
    expect(wrap()).toMatch(/^a:aaaaaaaaaa:[\w-]{22}:t$/);
  });

  it('invariant 15: is no id for any other holder', () => {
    fc.assert(
      fc.property(maker, text, text, text, (key, original, holder, other) => {
        fc.pre(holder !== other);
        expect(
          unwrapTaskId(wrapTaskId({ maker: key, instance: 'aaaaaaaaaa', original }, holder, seal), other, seal),
        ).toBeUndefined();
      }),
    );
  });

  it('invariant 15: is no id any more when one character is another, missing, or too many', () => {
    const character = fc.string({ unit: anyCharacter, minLength: 0, maxLength: 2 });
    fc.assert(
      fc.property(maker, text, text, fc.nat(), character, fc.boolean(), (key, original, holder, at, put, isMore) => {
        const id = wrapTaskId({ maker: key, instance: 'aaaaaaaaaa', original }, holder, seal);
        const position = at % id.length;
        const spoilt = id.slice(0, position) + put + id.slice(position + (isMore ? 0 : 1));
        fc.pre(spoilt !== id);
        expect(unwrapTaskId(spoilt, holder, seal)).toBeUndefined();
      }),
      { numRuns: 1_000 },
    );
  });

  it('is no id under another secret', () => {
    const id = wrapTaskId({ maker: 'a', instance: 'aaaaaaaaaa', original: 't' }, 'somebody', seal);
    expect(unwrapTaskId(id, 'somebody', createSeal({ secret: 'another' }))).toBeUndefined();
    expect(unwrapTaskId(id, 'somebody', createSeal())).toBeUndefined();
    expect(unwrapTaskId(id, 'somebody', createSeal({ secret: 'a secret of the test' }))).toBeDefined();
  });

  it.each(['', ':', ':::', 'a', 'a:b', 'a:b::t', ':b:c:t', 'a:b:c:t', `a:aaaaaaaaaa:${'x'.repeat(22)}:t`])(
    'cannot be made up: "%s"',
    (id) => {
      expect(unwrapTaskId(id, 'somebody', seal)).toBeUndefined();
    },
  );
});
