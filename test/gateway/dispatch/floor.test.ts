import { describe, expect, it } from 'vitest';
import { Floor } from '../../../src/gateway/dispatch/floor.js';
import { InMemoryClient } from '../../support/in-memory-client.js';

function floorOf() {
  const floor = new Floor();
  const started: string[] = [];
  const enter = (client: InMemoryClient, name: string) => floor.enter(client, () => started.push(name));
  return { floor, started, enter, one: new InMemoryClient(), other: new InMemoryClient() };
}

describe('the floor', () => {
  it('is had by one client at a time, for as many calls as it likes', () => {
    const { floor, started, enter, one, other } = floorOf();
    enter(one, 'one 1');
    enter(one, 'one 2');
    enter(other, 'other 1');
    expect(started).toEqual(['one 1', 'one 2']);
    floor.leave();
    expect(started).toHaveLength(2);
    floor.leave();
    expect(started).toEqual(['one 1', 'one 2', 'other 1']);
  });

  it('goes on to who came next, although the first one calls again', () => {
    const { floor, started, enter, one, other } = floorOf();
    enter(one, 'one 1');
    enter(other, 'other 1');
    enter(one, 'one 2');
    floor.leave();
    expect(started).toEqual(['one 1', 'other 1']);
    floor.leave();
    expect(started).toEqual(['one 1', 'other 1', 'one 2']);
  });

  it('is not waited for any more by who has left the line', () => {
    const { floor, started, enter, one, other } = floorOf();
    enter(one, 'one 1');
    const leaveLine = enter(other, 'other 1');
    enter(one, 'one 2');
    leaveLine();
    expect(started).toEqual(['one 1', 'one 2']);
    leaveLine();
    floor.leave();
    floor.leave();
    enter(other, 'other 2');
    expect(started).toEqual(['one 1', 'one 2', 'other 2']);
  });
});
