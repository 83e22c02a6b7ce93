import type { Script, WayName } from '../../support/differential/fleet.js';
import type { Peer } from '../../support/differential/peer.js';

/** A script that says something only on some of the ways, and why. */
export interface Restricted {
  readonly on: readonly WayName[];
  readonly because: string;
  readonly play: Script;
}

/** By a sentence that says what is done. */
export type Scripts = Readonly<Record<string, Script | Restricted>>;

/** A step that a request tells the odd server to take; see `test/fixtures/servers/odd/steps.mjs`. */
export type Step = readonly [kind: string, ...operands: unknown[]];

/** The server says this line. `@id@` and `@token@` stand for those of the request. */
export function say(line: string): Step {
  return ['say', line];
}

/** The server's answer, with this result. */
export function answer(result: string): Step {
  return say(`{"jsonrpc":"2.0","id":@id@,"result":${result}}`);
}

/** The server's answer, with this error. */
export function fail(error: string): Step {
  return say(`{"jsonrpc":"2.0","id":@id@,"error":${error}}`);
}

/** The server waits for this notification of the client's. */
export function hear(method: string): Step {
  return ['hear', method];
}

/** The server asks and waits for the answer. `id` is the token. */
export function input(id: string, rest: string): Step[] {
  return [say(`{"jsonrpc":"2.0","id":${id},${rest}}`), ['hear', `answer ${id}`]];
}

/** The member of a request's `params` that tells the server what to do. */
export function meta(steps: readonly Step[], more = ''): string {
  return `"_meta":{"odd/steps":${JSON.stringify(steps)}${more}}`;
}

/** A request; `params` are the members, without braces. */
export function request(method: string, params: string, id = '1'): string {
  return `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":{${params}}}`;
}

/** A call of the tool that does nothing but what it is told. */
export function call(client: Peer, steps: readonly Step[], id = '1'): string {
  return request('tools/call', `"name":"${client.name('play')}",${meta(steps)}`, id);
}

/** Calls it and waits for the answer. */
export function calling(...steps: readonly Step[]): Script {
  return async (client) => {
    await client.ask(call(client, steps));
  };
}

/** A call that wants progress. */
export function callWithProgress(client: Peer, token: string, steps: readonly Step[], id = '1'): string {
  return request('tools/call', `"name":"${client.name('play')}",${meta(steps, `,"progressToken":${token}`)}`, id);
}
