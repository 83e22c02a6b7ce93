import { describe, expect, it } from 'vitest';
import { CachedCatalogue, serializeCatalogue } from '../../../src/gateway/catalog/cached-catalogue.js';
import { FirstStart } from '../../../src/gateway/registry/first-start.js';
import { FakeClock } from '../../support/fake-clock.js';
import { bytesOf, scan } from '../../support/wire.js';

function starting() {
  const clock = new FakeClock();
  let missed = 0;
  const first = new FirstStart({
    clock,
    onStartMissed: () => {
      missed += 1;
    },
  });
  return { clock, first, missed: () => missed };
}

function emptyCatalogue(): CachedCatalogue {
  const initializeResult = bytesOf('{"protocolVersion":"2025-11-25","capabilities":{}}');
  const catalogue = CachedCatalogue.read(serializeCatalogue({ initializeResult, lists: new Map() }), scan);
  return typeof catalogue === 'string' ? expect.fail(catalogue) : catalogue;
}

describe('a first start', () => {
  it('is recorded half a second after it turned out to be slow, since Trunkline may be killed at any time', () => {
    const { clock, first, missed } = starting();
    first.stateChanged('starting');
    first.turnedOutSlow();
    clock.advance(499);
    expect(missed()).toBe(0);
    clock.advance(1);
    expect([missed(), clock.pending]).toEqual([1, 0]);
  });

  it('is not recorded while the server waits for a slot, uses the processor, or is being installed', () => {
    const { clock, first, missed } = starting();
    for (const state of ['installing', 'starting'] as const) {
      first.stateChanged(state);
      clock.advance(60_000);
    }
    expect(missed()).toBe(0);
  });

  it.each(['ready', 'idle', 'stopping', 'stopped'] as const)('is not recorded once the server is %s', (state) => {
    const { clock, first, missed } = starting();
    first.turnedOutSlow();
    first.stateChanged(state);
    expect(clock.pending).toBe(0);
    clock.advance(60_000);
    expect(missed()).toBe(0);
  });

  it('is not recorded once its backend is closed', () => {
    const { clock, first, missed } = starting();
    first.turnedOutSlow();
    first.close();
    first.turnedOutSlow();
    first.stateChanged('parked');
    expect([missed(), clock.pending]).toEqual([0, 0]);
  });

  it.each(['backoff', 'parked'] as const)('is recorded at once when it fails and the server is in %s', (state) => {
    const { first, missed } = starting();
    first.stateChanged('starting');
    first.stateChanged(state);
    expect(missed()).toBe(1);
  });

  it('is recorded once, whatever follows', () => {
    const { clock, first, missed } = starting();
    first.turnedOutSlow();
    clock.advance(500);
    first.stateChanged('backoff');
    first.stateChanged('starting');
    first.turnedOutSlow();
    clock.advance(60_000);
    first.stateChanged('parked');
    expect([missed(), clock.pending]).toEqual([1, 0]);
  });

  it('is over when the server is ready, so that a later failure says nothing about the next run', () => {
    const { clock, first, missed } = starting();
    first.turnedOutSlow();
    first.stateChanged('ready');
    first.stateChanged('backoff');
    first.stateChanged('starting');
    first.turnedOutSlow();
    clock.advance(60_000);
    expect([missed(), clock.pending]).toEqual([0, 0]);
  });

  it('is not recorded over a cached catalogue', () => {
    const { clock, first, missed } = starting();
    first.catalogue = emptyCatalogue();
    first.turnedOutSlow();
    clock.advance(60_000);
    first.stateChanged('backoff');
    expect([missed(), clock.pending]).toEqual([0, 0]);
  });
});
