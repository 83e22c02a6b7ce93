import { describe, expect, it } from 'vitest';
import { type EraVerdict, type EraVerdicts, ServerEra } from '../../src/upstream/server-era.js';

function keeping(verdict?: EraVerdict): EraVerdicts {
  let kept = verdict;
  return {
    find: () => kept,
    put: (next) => {
      kept = next;
    },
    forget: () => {
      kept = undefined;
    },
  };
}

const LEGACY = { era: 'legacy', version: '1' } as const;

describe('the source of the era of a server', () => {
  it.each(['legacy', 'modern'] as const)('is the configuration if that says %s', (setting) => {
    const era = new ServerEra(setting, keeping(LEGACY));
    era.begin();
    expect(era.source).toEqual({ kind: 'configured' });
  });

  it('is the question of this start, and the cached answer at later starts, with the time until it counts', () => {
    const verdicts = keeping();
    const first = new ServerEra('auto', verdicts);
    expect(first.begin()).toBeUndefined();
    first.probing();
    first.opened(LEGACY);
    expect(first.source).toEqual({ kind: 'asked' });
    const later = new ServerEra('auto', keeping({ ...LEGACY, until: '2026-11-24T08:00:00.000Z' }));
    expect(later.begin()).toBe('legacy');
    later.opened(LEGACY);
    expect(later.source).toEqual({ kind: 'cached', until: '2026-11-24T08:00:00.000Z' });
  });

  it('is the question again if the server refuses the era that is cached', () => {
    const era = new ServerEra('auto', keeping({ ...LEGACY, until: '2026-11-24T08:00:00.000Z' }));
    era.begin();
    era.opened({ era: 'modern', version: '2' });
    expect(era.source).toEqual({ kind: 'asked' });
  });

  it('is the exit of the server if the question ended it', () => {
    const era = new ServerEra('auto', keeping());
    era.begin();
    era.probing();
    expect(era.ended()).toBe(true);
    expect(era.begin()).toBe('legacy');
    era.opened(LEGACY);
    expect(era.source).toEqual({ kind: 'exited' });
  });
});
