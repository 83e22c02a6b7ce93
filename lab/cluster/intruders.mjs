import { once } from 'node:events';
import { connect } from 'node:net';
import { LegacyClient, Tally } from './clients.mjs';
import { target } from './load.mjs';
import { Place } from './place.mjs';
import { Store } from './store.mjs';

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.';
const AT_ONCE = 20;
const ANSWER_WITHIN_MS = 5_000;

export const intruders = {
  name: 'C12',
  about: 'ids of other users, altered and ended ids, and hops that were sent before, or that no gateway has sent',
  needs: ['redis-server'],
  run: async ({ isShort }) => {
    const mutations = isShort ? 500 : 10_000;
    const place = await Place.open({
      balance: 'none',
      users: 4,
      hasMachines: false,
      store: Store.open,
      hasLinks: true,
    });
    const { instances, tokens } = place;
    const [ann, bob] = tokens;
    /** The statuses of a request with the session at all gateways. */
    const atAll = async (token, id, headers) =>
      await Promise.all(instances.map(async ({ address }) => await statusOf(address, { token, id, headers })));
    const clients = [];
    const sessionOf = async (token, number) => {
      const url = `${instances[number - 1].address}/mcp`;
      const client = new LegacyClient({ url, token, name: `at-${number}-${clients.length}`, tally: new Tally() });
      clients.push(client);
      return { client, id: await client.openOnly() };
    };
    try {
      const { client, id } = await sessionOf(ann, 1);
      const { instance: home } = await client.callOnce();
      const own = await atAll(ann, id);
      const ofOther = await atAll(bob, id);
      let accepted = 0;
      for (let done = 0; done < mutations; done += AT_ONCE) {
        const statuses = await Promise.all(
          Array.from({ length: AT_ONCE }, async () => {
            const { address } = instances[Math.floor(Math.random() * instances.length)];
            return await statusOf(address, { token: ann, id: altered(id) });
          }),
        );
        accepted += statuses.filter((status) => status !== 404 && status !== 400).length;
      }
      // Ended at one gateway, and used at all of them.
      const { id: ended } = await sessionOf(ann, 2);
      await statusOf(instances[2].address, { token: ann, id: ended, method: 'DELETE' });
      const ofEnded = await atAll(ann, ended);

      const { peerLink } = instances[home - 1];
      peerLink.record = true;
      const sender = instances.find(({ number }) => number !== home);
      const { client: caller } = await sessionOf(ann, sender.number);
      // The connections between gateways may be older than the recording.
      await peerLink.cut();
      await peerLink.restore();
      const call = await caller.callOnce();
      const hop = peerLink.recorded.map((chunks) => Buffer.concat(chunks)).find((bytes) => bytes.includes(call.token));
      if (hop === undefined) throw new Error('The call was not forwarded');
      const replays = await Promise.all(instances.map(({ peerPort }) => answerTo(peerPort, hop)));
      const header = /^trunkline-hop: (.*)\r$/im.exec(hop.toString('latin1'))[1];
      const withHop = { 'trunkline-hop': header };
      const outside = [await atAll(undefined, id, withHop), await atAll(bob, id, withHop)].flat();
      const toPeers = await Promise.all(
        instances.map(({ peerPort }) => statusOf(`http://127.0.0.1:${peerPort}`, { token: ann, id })),
      );
      const executed = place.executions().get(call.token);
      return {
        figures: { 'altered ids': mutations, 'bytes of the hop': hop.length },
        targets: [
          all('the owner is served at all gateways', own, 200),
          all("another user's id: 404", ofOther, 404),
          target('0 altered ids are accepted', accepted, accepted === 0),
          all('an ended id: 404 at all gateways', ofEnded, 404),
          target(
            'a hop that is sent again is refused',
            replays.join(', '),
            replays.every((status) => status >= 400),
          ),
          target('the call of that hop is executed once', executed, executed === 1),
          target(
            'the header of a hop counts for nothing at the port of clients',
            outside.join(', '),
            outside.every((status) => status === 401 || status === 404),
          ),
          target(
            'a request of a client is refused at the port of gateways',
            toPeers.join(', '),
            toPeers.every((status) => status >= 400),
          ),
        ],
      };
    } finally {
      for (const client of clients) client.abandon();
      await place.close();
    }
  },
};

function all(text, statuses, expected) {
  return target(
    text,
    statuses.join(', '),
    statuses.every((status) => status === expected),
  );
}

async function statusOf(address, { token, id, method = 'POST', headers }) {
  const response = await fetch(`${address}/mcp`, {
    method,
    headers: {
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
      'mcp-session-id': id,
      ...headers,
    },
    ...(method === 'POST' && { body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' }) }),
  });
  await response.text();
  return response.status;
}

function altered(id) {
  const at = Math.floor(Math.random() * id.length);
  const others = ALPHABET.replace(id[at], '');
  return id.slice(0, at) + others[Math.floor(Math.random() * others.length)] + id.slice(at + 1);
}

/** Sends the bytes to a port of gateways. Resolves with the status of the last answer. */
async function answerTo(port, bytes) {
  const socket = connect({ port, host: '127.0.0.1' });
  socket.setTimeout(ANSWER_WITHIN_MS, () => socket.destroy());
  let text = '';
  socket
    .on('error', () => {})
    .on('data', (chunk) => {
      text += chunk;
      socket.end();
    });
  socket.write(bytes);
  await once(socket, 'close');
  // A connection that is closed without an answer is refused, too.
  return Number([...text.matchAll(/HTTP\/1\.1 (\d+)/g)].at(-1)?.[1] ?? 499);
}
