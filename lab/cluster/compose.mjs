// Runs the services of deploy/compose/compose.yaml without Docker, behind nginx and then behind HAProxy. Clients of the official
// SDK in both eras call through the proxy, while gateways are killed and stopped, and while the store is killed, emptied and
// suspended. Prints `not run` for a proxy that is not installed. Exits with 1 if a client loses more than the call that was in
// flight on a killed gateway, or is not told that this call is lost. Run it with `npm run -w lab compose:check`.
import { spawnSync } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client as ModernClient, StreamableHTTPClientTransport as ModernTransport } from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { Stack, say } from './stack.mjs';

const LONG = 'everything__trigger-long-running-operation';
const LONG_CALL_S = 8;
const SHORT_CALL_S = 3;
const WITHIN_MS = 10_000;

const proxies = ['nginx', 'haproxy'].filter((name) => {
  const isThere = spawnSync(name, ['-v']).error === undefined;
  if (!isThere) say(`not run: ${name} is not installed`);
  return isThere;
});
// The listeners of `exit` end the processes.
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1));
if (process.platform !== 'linux') say('not run: only Linux has a loopback address for each service');
else for (const proxy of proxies) process.exitCode = Math.max(process.exitCode ?? 0, await tryProxy(proxy));

async function tryProxy(proxy) {
  const stack = new Stack(proxy);
  let failures = 0;
  const check = (text, isRight, seen) => {
    if (!isRight) failures += 1;
    say(`${proxy}  ${text}: ${isRight ? 'ok' : `FAILED, ${seen}`}`);
  };
  const clients = [];
  try {
    await stack.open();
    check('all services are healthy', true);
    const tokens = ['ada', 'grace'].map((name) => stack.addUser(name));
    clients.push(await connectLegacy(stack, tokens[0]), await connectModern(stack, tokens[1]));
    for (const client of clients) await survive(client, { stack, proxy, check });
    await surviveStore(clients, { stack, check, addClient: (client) => clients.push(client) });
    clients.push(await connectLegacy(stack, tokens[0], inTurns(stack)));
    await roam(clients.at(-1), { stack, check });
  } catch (error) {
    check('the run', false, `${error.stack}\n${stack.lastWords()}`);
  } finally {
    await Promise.allSettled(clients.map(({ close }) => close()));
    if (failures > 0) say(stack.lastWords());
    const disorder = await stack.close();
    check('everything ends in an orderly way', disorder.length === 0, disorder.join('; '));
  }
  return failures === 0 ? 0 : 1;
}

/** Kills the gateway of a client during a call, and stops the next gateway of the client during another call. */
async function survive(client, { stack, proxy, check }) {
  const { era } = client;
  const about = (text) => `${era} client: ${text}`;
  check(about('a list'), (await client.tools()).includes(LONG), 'the tool is missing');
  const echo = async (when, word) => {
    const answer = await client.call('everything__echo', { message: word });
    check(about(`calls ${when}`), answer.result?.content?.[0]?.text.includes(word), JSON.stringify(answer));
  };
  await echo('at the start', 'one');

  const lost = client.call(LONG, { duration: LONG_CALL_S, steps: 1 });
  const killed = await gatewayOf(client, stack);
  const killedAt = performance.now();
  await stack.kill(killed);
  const end = await lost;
  const tookMs = Math.round(performance.now() - killedAt);
  // nginx sends the call to another gateway, which answers it. HAProxy answers with an error of its own, unless another gateway
  // had passed the call on.
  const isAnswered = end.result?.isError === true && /unknown/.test(JSON.stringify(end.result));
  const isTold = isAnswered || (proxy === 'haproxy' && end.error !== undefined);
  check(
    about(`the call on the killed gateway ends at once, and is said to be lost`),
    isTold && tookMs < LONG_CALL_S * 500,
    `${tookMs} ms, ${JSON.stringify(end)}`,
  );
  await echo('after the kill', 'two');
  await stack.start(killed);

  const running = client.call(LONG, { duration: SHORT_CALL_S, steps: 1 });
  const stopped = await gatewayOf(client, stack);
  const stopping = stack.stop(stopped);
  const { result, error } = await running;
  check(
    about('a call on a stopped gateway is finished'),
    result?.isError !== true && error === undefined,
    JSON.stringify(result ?? error?.message),
  );
  const code = await stopping;
  check(about('the stopped gateway ends with 0'), code === 0, code);
  await echo('after the stop', 'three');
  await stack.start(stopped);
  check(about('one `initialize` at most'), client.handshakes() <= 1, client.handshakes());
}

/** Calls with a client whose requests come to all gateways in turns, as with a balancer that knows nothing of sessions. */
async function roam(client, { stack, check }) {
  const passedSoFar = () =>
    Promise.all(
      stack.gateways.map(async (name) => {
        const text = await metricsOf(stack, name, client.token);
        return Number(valueIn(text, 'trunkline_cluster_hops_total{direction="out",outcome="answered"}'));
      }),
    );
  const before = await passedSoFar();
  const answers = [];
  for (let count = 0; count < 2 * stack.gateways.length; count += 1)
    answers.push(await client.call('everything__echo', { message: String(count) }));
  const isRight = answers.every(({ result }, count) => result?.content?.[0]?.text.includes(String(count)) === true);
  check('a client calls at all gateways in turns', isRight, JSON.stringify(answers));
  const passed = (await passedSoFar()).map((count, at) => count - before[at]);
  // The session is at one gateway, and the two others pass on what comes to them.
  check('two gateways pass its requests on', passed.filter((count) => count >= 2).length === 2, passed.join(', '));
}

/** A `fetch` that sends each request to the next gateway. */
function inTurns(stack) {
  let count = 0;
  return (url, init) => {
    count += 1;
    const gateway = stack.gateways[count % stack.gateways.length];
    return fetch(`http://${stack.addressOf(gateway)}:7411${new URL(url).pathname}`, init);
  };
}

/** Kills, empties and suspends the store while old and new clients call. */
async function surviveStore(clients, { stack, check, addClient }) {
  const [{ token }] = clients;
  const serves = async (when) => {
    const opened = await connectLegacy(stack, token);
    addClient(opened);
    for (const client of [...clients.slice(0, 2), opened]) {
      const answer = await client.call('everything__echo', { message: when });
      const isAnswered = answer.result?.content?.[0]?.text.includes(when) === true;
      const kind = client === opened ? 'a new' : `the ${client.era}`;
      check(`${kind} client calls ${when}`, isAnswered, JSON.stringify(answer));
    }
  };
  const knowsAll = async (when, isStoreUp) =>
    check(`the gateways know each other and the store ${when}`, ...(await clusterIs(stack, token, isStoreUp)));
  await knowsAll('at the start', true);
  await stack.kill('valkey');
  await serves('without the store');
  await knowsAll('without the store', false);
  stack.empty('store');
  await stack.start('valkey');
  await serves('with an empty store');
  await knowsAll('with an empty store', true);
  stack.suspend('valkey', true);
  await serves('with a suspended store');
  stack.suspend('valkey', false);
  await knowsAll('at the end', true);
  check(
    'one `initialize` for each session',
    clients.every(({ handshakes }) => handshakes() <= 1),
    'more than one',
  );
}

/** Whether each gateway knows all gateways, and whether the store is there, by their metrics; and what they say instead. */
async function clusterIs(stack, token, isStoreUp) {
  const wanted = `${stack.gateways.length} ready, store ${isStoreUp ? 1 : 0}`;
  let seen = [];
  for (const deadline = performance.now() + WITHIN_MS; performance.now() < deadline; await sleep(200)) {
    const texts = await Promise.all(stack.gateways.map((name) => metricsOf(stack, name, token)));
    seen = texts.map((text) => {
      const ready = valueIn(text, 'trunkline_cluster_members{state="ready"}');
      return `${ready} ready, store ${valueIn(text, 'trunkline_cluster_store_up')}`;
    });
    if (seen.every((each) => each === wanted)) return [true];
  }
  return [false, seen.join('; ')];
}

async function connectLegacy(stack, token, send = fetch) {
  const handshakes = countHandshakes(send);
  const transport = new StreamableHTTPClientTransport(new URL('/mcp', stack.url), {
    requestInit: withToken(token),
    fetch: handshakes.fetch,
  });
  const client = new Client({ name: 'trunkline-compose', version: '1' });
  await client.connect(transport);
  return uses('legacy', token, client, handshakes);
}

async function connectModern(stack, token) {
  const handshakes = countHandshakes();
  const transport = new ModernTransport(new URL('/mcp', stack.url), {
    requestInit: withToken(token),
    fetch: handshakes.fetch,
  });
  const versionNegotiation = { mode: { pin: '2026-07-28' } };
  const client = new ModernClient({ name: 'trunkline-compose', version: '1' }, { versionNegotiation });
  await client.connect(transport);
  return uses('modern', token, client, handshakes);
}

function withToken(token) {
  return { headers: { authorization: `Bearer ${token}` } };
}

/** What both kinds of clients are used for. A call resolves with its result or its error. */
function uses(era, token, client, { count }) {
  const call = (name, args) =>
    client.callTool({ name, arguments: args }).then(
      (result) => ({ result }),
      (error) => ({ error }),
    );
  return {
    era,
    token,
    call,
    handshakes: count,
    tools: async () => (await client.listTools()).tools.map(({ name }) => name),
    close: () => client.close(),
  };
}

/** A `fetch` that counts the requests which open a session, and sends them with `send`. */
function countHandshakes(send = fetch) {
  let count = 0;
  const counting = (url, init) => {
    if (typeof init?.body === 'string' && init.body.includes('"initialize"')) count += 1;
    return send(url, init);
  };
  return { fetch: counting, count: () => count };
}

/** The gateway on which a call of the client is in flight, by its metrics. */
async function gatewayOf({ token }, stack) {
  for (const deadline = performance.now() + WITHIN_MS; performance.now() < deadline; await sleep(50)) {
    for (const name of stack.gateways) {
      if (/^trunkline_in_flight\{[^}]*\} [1-9]/m.test(await metricsOf(stack, name, token))) return name;
    }
  }
  throw new Error('The call is in flight on no gateway');
}

/** The value of a series; `undefined` if it is missing. */
function valueIn(text, series) {
  const line = text.split('\n').find((each) => each.startsWith(`${series} `));
  return line?.slice(series.length + 1);
}

async function metricsOf(stack, name, token) {
  const response = await fetch(`http://${stack.addressOf(name)}:7411/metrics`, withToken(token));
  return await response.text();
}
