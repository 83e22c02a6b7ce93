import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  backoffDelayMs,
  type ChildEffect,
  type ChildEvent,
  initialState,
  transition,
} from '../../../src/servers/supervision/transition.js';
import type { LaunchFault } from '../../../src/spec/launch.js';
import type { Awaiting, ChildPhase, ChildState } from '../../../src/spec/server-state.js';
import { missingSpec, sampleSpec } from './sample-spec.js';

const NOW = 1_000_000;
const GENERATION = 7;
/** Pause between two attempts while the network does not reach the child, in milliseconds. */
const NETWORK_MS = 1_500;
const context = { spec: sampleSpec(), now: NOW, random: () => 0.5 };

const stopped: ChildPhase = { kind: 'stopped' };
const queued: ChildPhase = { kind: 'starting', spawnedAt: undefined };
const starting: ChildPhase = { kind: 'starting', spawnedAt: NOW - 10 };
const ready: ChildPhase = { kind: 'ready', readySince: NOW - 20 };
const suspect: ChildPhase = { kind: 'suspect', readySince: NOW - 20 };
const idle: ChildPhase = { kind: 'idle' };
const resting: ChildPhase = { kind: 'stopping', next: 'idle' };
const waking: ChildPhase = { kind: 'stopping', next: 'wake' };
const ending: ChildPhase = { kind: 'stopping', next: 'stopped' };
const replacing: ChildPhase = { kind: 'stopping', next: 'launch' };
const backoff = (awaiting: Awaiting): ChildPhase => ({
  kind: 'backoff',
  retryAt: NOW + 100,
  awaiting,
});
const parked = (awaiting: Awaiting, enteredAt = NOW - 60_000): ChildPhase => ({
  kind: 'parked',
  enteredAt,
  retryAt: NOW + 100,
  awaiting,
});

const offline = (awaiting: Awaiting): ChildPhase => ({ kind: 'offline', retryAt: NOW + NETWORK_MS, awaiting });
const blocked = (awaiting: Awaiting, enteredAt = NOW): ChildPhase => ({ kind: 'blocked', enteredAt, awaiting });

const start: ChildEvent = { kind: 'startRequested' };
const restart: ChildEvent = { kind: 'restartRequested' };
const stop: ChildEvent = { kind: 'stopRequested' };
const demand: ChildEvent = { kind: 'demanded' };
const rest: ChildEvent = { kind: 'restRequested' };
const own = (kind: ChildEvent['kind']) => ({ kind, generation: GENERATION }) as ChildEvent;
const startFailed: ChildEvent = { kind: 'startFailed', generation: GENERATION, reason: 'ENOENT', fault: 'server' };
const hostFailed: ChildEvent = { kind: 'startFailed', generation: GENERATION, reason: 'EMFILE', fault: 'host' };
const failedBy = (kind: 'startFailed' | 'lost', fault: LaunchFault | 'moved') =>
  ({ kind, generation: GENERATION, reason: 'it is away', fault }) as ChildEvent;
const recycle: ChildEvent = { kind: 'foundUnfit', generation: GENERATION, reason: 'violations' };
const cleanExit: ChildEvent = { kind: 'exited', generation: GENERATION, exit: { code: 0, signal: null } };

const launchNext: ChildEffect = { kind: 'launch', generation: GENERATION + 1 };
const hurry: ChildEffect = { kind: 'hurry' };
const endGroup: ChildEffect = { kind: 'endGroup', generation: GENERATION };
const timer = (delayMs: number, event: ChildEvent): ChildEffect => ({ kind: 'setTimer', delayMs, event });
const retryIn = (delayMs: number): ChildEffect => timer(delayMs, own('retryDue'));

const firstBackoff: ChildPhase = { kind: 'backoff', retryAt: NOW + 500, awaiting: 'both' };

type Row = [from: ChildPhase, event: ChildEvent, to: ChildPhase, effects: ChildEffect[]];

function label({ kind, ...rest }: ChildPhase | ChildEvent): string {
  const details = Object.values(rest).filter((value) => typeof value === 'string' && value !== '');
  return [kind, ...details].join(' ');
}

function stateWith(phase: ChildPhase, facts: Partial<ChildState> = {}): ChildState {
  return { ...initialState(GENERATION), ...facts, phase };
}

const changing: Row[] = [
  [stopped, rest, idle, []],
  [ready, rest, resting, [endGroup]],
  [resting, own('groupGone'), idle, []],
  [resting, demand, waking, []],
  [resting, stop, ending, [endGroup]],
  [waking, own('groupGone'), queued, [launchNext, hurry]],
  [waking, stop, ending, [endGroup]],
  [idle, demand, queued, [launchNext, hurry]],
  [idle, start, queued, [launchNext]],
  [idle, restart, queued, [launchNext]],
  [idle, stop, stopped, []],
  [queued, demand, queued, [hurry]],
  [stopped, start, queued, [launchNext]],
  [stopped, restart, queued, [launchNext]],
  [queued, own('spawned'), { kind: 'starting', spawnedAt: NOW }, []],
  [starting, demand, starting, [hurry]],
  [starting, own('startBegan'), starting, [timer(60_000, own('startTimedOut'))]],
  [starting, own('startAnswered'), starting, [{ kind: 'clearTimer' }]],
  [starting, own('becameReady'), { kind: 'ready', readySince: NOW }, [timer(300_000, own('stableReached'))]],
  [starting, startFailed, firstBackoff, [endGroup, retryIn(500)]],
  [starting, hostFailed, { kind: 'backoff', retryAt: NOW + 5_000, awaiting: 'both' }, [endGroup, retryIn(5_000)]],
  [starting, own('startTimedOut'), firstBackoff, [endGroup, retryIn(500)]],
  [starting, cleanExit, firstBackoff, [endGroup, retryIn(500)]],
  [starting, recycle, firstBackoff, [endGroup, retryIn(500)]],
  [starting, own('endedByProbe'), waking, [endGroup]],
  [ready, cleanExit, firstBackoff, [endGroup, retryIn(500)]],
  [ready, recycle, firstBackoff, [endGroup, retryIn(500)]],

  [ready, own('suspected'), suspect, []],
  [suspect, own('cleared'), ready, [timer(300_000, own('stableReached'))]],
  [suspect, recycle, firstBackoff, [endGroup, retryIn(500)]],
  [suspect, cleanExit, firstBackoff, [endGroup, retryIn(500)]],
  [suspect, stop, ending, [endGroup]],
  [suspect, restart, replacing, [endGroup]],

  [starting, failedBy('startFailed', 'network'), offline('both'), [endGroup, retryIn(NETWORK_MS)]],
  [starting, failedBy('startFailed', 'trouble'), offline('both'), [endGroup, retryIn(NETWORK_MS)]],
  [starting, failedBy('startFailed', 'blocked'), blocked('both'), [endGroup]],
  [ready, failedBy('lost', 'server'), waking, [endGroup]],
  [suspect, failedBy('lost', 'server'), waking, [endGroup]],
  [ready, failedBy('lost', 'moved'), waking, [endGroup]],
  [starting, failedBy('lost', 'moved'), waking, [endGroup]],
  [ready, failedBy('lost', 'network'), offline('both'), [endGroup, retryIn(NETWORK_MS)]],
  [ready, failedBy('lost', 'blocked'), blocked('both'), [endGroup]],
  [offline('both'), own('groupGone'), offline('retry-time'), []],
  [offline('both'), own('retryDue'), offline('group-gone'), []],
  [offline('retry-time'), own('retryDue'), queued, [launchNext]],
  [offline('group-gone'), own('groupGone'), queued, [launchNext]],
  [offline('retry-time'), restart, queued, [launchNext]],
  [offline('retry-time'), stop, stopped, []],
  [blocked('both'), own('groupGone'), blocked('retry-time'), []],
  [blocked('retry-time', NOW - 60_000), demand, queued, [launchNext]],
  [blocked('retry-time'), restart, queued, [launchNext]],
  [blocked('retry-time'), stop, stopped, []],

  [queued, stop, ending, [endGroup]],
  [starting, stop, ending, [endGroup]],
  [ready, stop, ending, [endGroup]],
  [ready, restart, replacing, [endGroup]],
  [ending, own('groupGone'), stopped, []],
  [ending, start, replacing, [endGroup]],
  [ending, restart, replacing, [endGroup]],
  [ending, stop, ending, [endGroup]],
  [replacing, own('groupGone'), queued, [launchNext]],
  [replacing, stop, ending, [endGroup]],

  [backoff('both'), own('retryDue'), backoff('group-gone'), []],
  [backoff('both'), own('groupGone'), backoff('retry-time'), []],
  [backoff('group-gone'), own('groupGone'), queued, [launchNext]],
  [backoff('retry-time'), own('retryDue'), queued, [launchNext]],
  [backoff('both'), stop, ending, [endGroup]],
  [backoff('retry-time'), stop, stopped, []],
  [backoff('group-gone'), restart, replacing, [endGroup]],
  [backoff('retry-time'), restart, queued, [launchNext]],

  [parked('both'), own('retryDue'), parked('group-gone'), []],
  [parked('both'), own('groupGone'), parked('retry-time'), []],
  [parked('group-gone'), own('groupGone'), queued, [launchNext]],
  [parked('retry-time'), own('retryDue'), queued, [launchNext]],
  [parked('retry-time'), demand, queued, [launchNext]],
  [parked('both'), demand, parked('group-gone'), []],
  [parked('both'), stop, ending, [endGroup]],
  [parked('retry-time'), stop, stopped, []],
  [parked('both'), restart, replacing, [endGroup]],
  [parked('retry-time'), restart, queued, [launchNext]],
];

describe('an event that changes something', () => {
  it.each(changing.map((row) => [label(row[0]), label(row[1]), ...row] as const))(
    '%s, %s',
    (_phase, _event, ...row) => {
      const [from, event, to, effects] = row;
      const result = transition(stateWith(from), event, context);
      expect(result.state.phase).toEqual(to);
      expect(result.effects).toEqual(effects);
    },
  );
});

const starts = (['spawned', 'startBegan', 'startAnswered', 'becameReady'] as const).map(own);

const ignoring: [from: ChildPhase, events: ChildEvent[]][] = [
  [stopped, [stop, demand, ...starts, own('endedByProbe'), startFailed, own('groupGone'), own('retryDue'), recycle]],
  [starting, [start, own('suspected'), own('cleared'), own('stableReached'), own('groupGone'), own('retryDue')]],
  [ready, [start, demand, ...starts, startFailed, own('startTimedOut'), own('groupGone'), own('cleared')]],
  [suspect, [start, demand, own('suspected'), own('becameReady'), startFailed, own('stableReached'), own('groupGone')]],
  [ending, [demand, own('suspected'), own('cleared'), ...starts, startFailed, own('startTimedOut'), recycle]],
  [ending, [own('retryDue')]],
  [offline('retry-time'), [demand, own('groupGone'), failedBy('lost', 'network')]],
  [blocked('retry-time'), [demand, failedBy('lost', 'blocked')]],
  [backoff('both'), [start, demand, ...starts, startFailed, recycle]],
  [backoff('group-gone'), [own('retryDue')]],
  [backoff('retry-time'), [own('groupGone')]],
  [parked('retry-time'), [start, own('groupGone'), own('becameReady'), startFailed]],
  [parked('retry-time', NOW - 59_999), [demand]],
];

describe('an event that comes at the wrong time', () => {
  it.each(
    ignoring.flatMap(([from, events]) => events.map((event) => [label(from), label(event), from, event] as const)),
  )('%s, %s', (_phase, _event, from, event) => {
    const state = stateWith(from);
    const result = transition(state, event, context);
    expect(result.state).toBe(state);
    expect(result.effects).toEqual([]);
  });

  it.each([starting, ready, suspect, ending, backoff('both'), parked('both')])(
    'of an old generation, in $kind',
    (phase) => {
      const old = { generation: GENERATION - 1 };
      const state = stateWith(phase);
      for (const event of [own('becameReady'), startFailed, recycle, cleanExit, own('groupGone'), own('retryDue')]) {
        expect(transition(state, { ...event, ...old } as ChildEvent, context).state).toBe(state);
      }
    },
  );
});

describe('a child whose package is missing', () => {
  const lacking = { ...context, spec: missingSpec() };
  const installing: ChildPhase = { kind: 'installing', since: NOW };
  const failed: ChildEvent = { kind: 'installFailed', reason: 'no network' };
  const awaitingRetry: ChildPhase = { kind: 'parked', enteredAt: NOW, retryAt: NOW + 5_000, awaiting: 'retry-time' };

  it.each([
    [stopped, start, installing, [{ kind: 'install' }]],
    [stopped, restart, installing, [{ kind: 'install' }]],
    [installing, failed, awaitingRetry, [retryIn(5_000)]],
    [installing, stop, stopped, []],
    [awaitingRetry, own('retryDue'), installing, [{ kind: 'install' }]],
    [awaitingRetry, restart, installing, [{ kind: 'install' }]],
    [parked('retry-time'), demand, installing, [{ kind: 'install' }]],
    [replacing, own('groupGone'), installing, [{ kind: 'install' }]],
  ] satisfies Row[])('%o, %o', (from, event, to, effects) => {
    const { state, effects: done } = transition(stateWith(from), event, lacking);
    expect(state).toMatchObject({ phase: to, generation: GENERATION, restarts: 0, consecutiveFailures: 0 });
    expect(done).toEqual(effects);
  });

  it('is launched for the first time once that is installed', () => {
    const { state, effects } = transition(
      stateWith(installing, { installFailures: 3 }),
      { kind: 'installed' },
      context,
    );
    expect(state).toEqual({ ...stateWith(queued), generation: GENERATION + 1 });
    expect(effects).toEqual([launchNext]);
  });

  it.each([start, restart, demand, own('groupGone'), own('retryDue'), own('startTimedOut'), recycle])(
    'is not disturbed in its installation by $kind',
    (event) => {
      const state = stateWith(installing);
      expect(transition(state, event, lacking)).toEqual({ state, effects: [] });
    },
  );

  it.each([stopped, starting, ready, parked('retry-time')])('is past hearing of an installation in $kind', (phase) => {
    const state = stateWith(phase);
    for (const event of [{ kind: 'installed' } as const, failed]) {
      expect(transition(state, event, lacking)).toEqual({ state, effects: [] });
    }
  });

  it.each([
    [0, 5_000],
    [1, 10_000],
    [5, 160_000],
    [6, 300_000],
    [500, 300_000],
  ])('after %i failed installations and one more is tried again in %i ms', (installFailures, delayMs) => {
    const { state, effects } = transition(stateWith(installing, { installFailures }), failed, lacking);
    expect(state).toMatchObject({ installFailures: installFailures + 1, lastFailure: { reason: 'no network' } });
    expect(effects).toEqual([retryIn(delayMs)]);
  });
});

describe('a remote child', () => {
  const lapsed = failedBy('lost', 'server');
  const troubled = failedBy('startFailed', 'trouble');
  const again = (delayMs: number) => [endGroup, retryIn(delayMs)];

  it.each([
    [0, 1_500],
    [1, 3_000],
    [4, 24_000],
    [5, 30_000],
    [500, 30_000],
  ])(
    'F261: that was in trouble %i times, and is so again, is asked in %i ms, and nothing is counted',
    (setbacks, delayMs) => {
      const { state, effects } = transition(stateWith(starting, { setbacks }), troubled, context);
      expect(state).toMatchObject({ setbacks: setbacks + 1, consecutiveFailures: 0, phase: { kind: 'offline' } });
      expect(effects).toEqual(again(delayMs));
    },
  );

  it.each([
    [60_000, 60_000],
    [100, 1_500],
    [1e9, 3_600_000],
  ])('that wants a pause of %i ms is asked in %i ms', (retryAfterMs, delayMs) => {
    const event = { ...troubled, retryAfterMs } as ChildEvent;
    expect(transition(stateWith(starting), event, context).effects).toEqual(again(delayMs));
  });

  it('is asked at the usual pace while the network does not reach it, whatever was before', () => {
    const away = failedBy('startFailed', 'network');
    expect(transition(stateWith(starting, { setbacks: 9 }), away, context).effects).toEqual(again(NETWORK_MS));
  });

  it('that forgets one session after the other is connected less and less often', () => {
    for (const phase of [starting, ready]) {
      const { state, effects } = transition(stateWith(phase, { setbacks: 2 }), lapsed, context);
      expect(state).toMatchObject({ setbacks: 3, consecutiveFailures: 0, phase: { kind: 'backoff' } });
      expect(state.lastFailure?.reason).toBe('it is away');
      expect(effects).toEqual(again(3_000));
    }
  });

  it('that forgets a session of some length is connected at once', () => {
    const old: ChildPhase = { kind: 'ready', readySince: NOW - 10_000 };
    const { state, effects } = transition(stateWith(old, { setbacks: 9 }), lapsed, context);
    expect([state.phase, state.setbacks, effects]).toEqual([waking, 1, [endGroup]]);
  });

  it.each([
    [ready, own('stableReached')],
    [idle, start],
    [offline('retry-time'), restart],
  ] as const)('has no setbacks any more after %o, %o', (phase, event) => {
    expect(transition(stateWith(phase, { setbacks: 5 }), event, context).state.setbacks).toBe(0);
  });
});

describe('the record of failures', () => {
  it('F6: counts an exit that nobody asked for as a failure, even with code 0', () => {
    const { state } = transition(stateWith(ready, { consecutiveFailures: 2 }), cleanExit, context);
    expect(state.consecutiveFailures).toBe(3);
    expect(state.lastExit).toEqual({ code: 0, signal: null, at: NOW });
    expect(state.lastFailure).toEqual({ reason: 'exited', code: 0, signal: null, at: NOW });
  });

  it.each([ending, replacing, backoff('both'), parked('both')])('notes an exit in $kind without blame', (phase) => {
    const { state, effects } = transition(stateWith(phase), cleanExit, context);
    expect(state).toEqual(stateWith(phase, { lastExit: { code: 0, signal: null, at: NOW } }));
    expect(effects).toEqual([]);
  });

  it('does not blame the child for a failure of the host', () => {
    const { state } = transition(stateWith(starting, { consecutiveFailures: 4 }), hostFailed, context);
    expect(state.consecutiveFailures).toBe(4);
    expect(state.lastFailure?.reason).toBe('EMFILE');
  });

  it('forgets failures only after lasting readiness', () => {
    const failing = stateWith(starting, { consecutiveFailures: 4 });
    const up = transition(failing, own('becameReady'), context).state;
    expect(up.consecutiveFailures).toBe(4);
    expect(transition(up, own('stableReached'), context).state.consecutiveFailures).toBe(0);
  });

  it.each([
    ['unfit', recycle, { reason: 'violations', isUnfit: true }],
    ['ended', cleanExit, { reason: 'exited' }],
  ])('is why it failed, until it was ready for long: %s', (_, event, reason) => {
    const lastFailure = { ...reason, code: event === cleanExit ? 0 : null, signal: null, at: NOW };
    const failed = transition(stateWith(ready), event, context).state;
    expect(failed.lastFailure).toEqual(lastFailure);
    // The exit of the process that was ended is noted, and is not the reason.
    const gone = transition(failed, cleanExit, context).state;
    expect(gone.lastFailure).toEqual(lastFailure);
    const again = transition({ ...gone, phase: starting }, own('becameReady'), context).state;
    expect(again.lastFailure).toEqual(lastFailure);
    expect(transition(again, restart, context).state.lastFailure).toEqual(lastFailure);
    expect(transition(again, own('stableReached'), context).state.lastFailure).toBeUndefined();
  });

  it.each([ready, parked('both'), parked('retry-time'), stopped])(
    'an operator’s restart in $kind forgives',
    (phase) => {
      expect(transition(stateWith(phase, { consecutiveFailures: 5 }), restart, context).state.consecutiveFailures).toBe(
        0,
      );
    },
  );

  it('counts every launch but the first as a restart', () => {
    expect(transition(stateWith(stopped), start, context).state.restarts).toBe(0);
    expect(transition(stateWith(replacing, { restarts: 2 }), own('groupGone'), context).state.restarts).toBe(3);
    expect(transition(stateWith(backoff('retry-time')), own('retryDue'), context).state.restarts).toBe(1);
  });

  it.each([
    { fault: 'network', before: 'startFailed', restarts: 0 },
    { fault: 'trouble', before: 'startFailed', restarts: 0 },
    { fault: 'host', before: 'startFailed', restarts: 0 },
    { fault: 'network', before: 'lost', restarts: 1 },
    { fault: 'server', before: 'startFailed', restarts: 1 },
  ] as const)('counts $restarts restarts when $before by $fault is followed by the next launch', (row) => {
    let state = stateWith(row.before === 'lost' ? ready : starting);
    // The second attempt cannot reach the child either.
    for (const event of [failedBy(row.before, row.fault), failedBy('startFailed', 'network')]) {
      state = transition(state, { ...event, generation: state.generation } as ChildEvent, context).state;
      for (const kind of ['groupGone', 'retryDue'] as const)
        state = transition(state, { kind, generation: state.generation }, context).state;
    }
    expect(state).toMatchObject({ phase: queued, restarts: row.restarts });
  });
});

describe('after the last failure of the budget', () => {
  it.each([
    [3, 'backoff', 4_000],
    [4, 'parked', 300_000],
    [5, 'parked', 600_000],
    [8, 'parked', 3_600_000],
    [2_000, 'parked', 3_600_000],
  ])('with %i failures before it is in %s for %i ms', (consecutiveFailures, kind, delayMs) => {
    const { state, effects } = transition(stateWith(starting, { consecutiveFailures }), startFailed, context);
    expect(state.phase).toMatchObject({ kind, retryAt: NOW + delayMs, awaiting: 'both' });
    expect(effects).toEqual([endGroup, retryIn(delayMs)]);
  });
});

const options = { firstDelayMs: 500, maxDelayMs: 30_000 };
const noJitter = () => 0.5;

describe('backoffDelayMs', () => {
  it('doubles with each attempt up to the longest delay', () => {
    const delays = [0, 1, 2, 3, 4, 5, 6, 7, 2_000].map((attempt) => backoffDelayMs(attempt, options, noJitter));
    expect(delays).toEqual([500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000]);
  });

  it('stays within a fifth of the delay without jitter', () => {
    fc.assert(
      fc.property(fc.nat(40), fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), (attempt, drawn) => {
        const ratio = backoffDelayMs(attempt, options, () => drawn) / backoffDelayMs(attempt, options, noJitter);
        expect(ratio).toBeGreaterThanOrEqual(0.8 - 1e-9);
        expect(ratio).toBeLessThanOrEqual(1.2 + 1e-9);
      }),
    );
  });
});
