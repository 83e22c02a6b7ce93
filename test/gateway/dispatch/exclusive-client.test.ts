import { describe, expect, it } from 'vitest';
import { ExclusiveClient } from '../../../src/gateway/dispatch/admission.js';
import { InMemoryClient } from '../../support/in-memory-client.js';

interface NamedCall {
  readonly client: InMemoryClient;
  readonly name: string;
}

function admitting() {
  const admitted: string[] = [];
  const exclusive = new ExclusiveClient<NamedCall>(({ name }) => admitted.push(name));
  const enter = (client: InMemoryClient, name: string): NamedCall => {
    const call = { client, name };
    if (exclusive.enter(call)) admitted.push(name);
    return call;
  };
  return { exclusive, admitted, enter, one: new InMemoryClient(), other: new InMemoryClient() };
}

describe('a server that serves one client at a time', () => {
  it('admits as many calls of the client that is in as come, and nobody else until they are done', () => {
    const { exclusive, admitted, enter, one, other } = admitting();
    enter(one, 'one 1');
    enter(one, 'one 2');
    enter(other, 'other 1');
    expect(admitted).toEqual(['one 1', 'one 2']);
    exclusive.leave();
    expect(admitted).toEqual(['one 1', 'one 2']);
    exclusive.leave();
    expect(admitted).toEqual(['one 1', 'one 2', 'other 1']);
  });

  it('admits the client that waited before a later call of the first one', () => {
    const { exclusive, admitted, enter, one, other } = admitting();
    enter(one, 'one 1');
    enter(other, 'other 1');
    enter(one, 'one 2');
    exclusive.leave();
    expect(admitted).toEqual(['one 1', 'other 1']);
    exclusive.leave();
    expect(admitted).toEqual(['one 1', 'other 1', 'one 2']);
  });

  it('does not wait for a call that was withdrawn', () => {
    const { exclusive, admitted, enter, one, other } = admitting();
    enter(one, 'one 1');
    const withdrawn = enter(other, 'other 1');
    enter(one, 'one 2');
    exclusive.withdraw(withdrawn);
    expect(admitted).toEqual(['one 1', 'one 2']);
    exclusive.withdraw(withdrawn);
    exclusive.leave();
    exclusive.leave();
    enter(other, 'other 2');
    expect(admitted).toEqual(['one 1', 'one 2', 'other 2']);
  });
});
