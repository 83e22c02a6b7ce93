// Clients of both eras without a library, which call a tool until they are stopped. A client of a session never sends a second
// `initialize`: a gateway that does not know its session fails the run.
import { once } from 'node:events';
import * as http from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

const REVISION = '2025-11-25';
const MODERN = '2026-07-28';
/** Longest work of a call, and the longest pause before the next one, in milliseconds. */
const [WORK_MS, STREAMED_MS, PAUSE_MS] = [60, 400, 250];
const URI = 'jobs://state';
const UPDATED = 'notifications/resources/updated';
const RESUME_ATTEMPTS = 5;

/** The calls of all clients, each with its outcome. */
export class Tally {
  calls = [];
  /** Faults other than those of calls, such as a refused GET stream. */
  faults = [];
  sessions = 0;
  streams = 0;
  /** Waits for updates of subscriptions: their ends, and their lengths in milliseconds. */
  waits = [];

  get inFlight() {
    return this.calls.filter(({ endedAt }) => endedAt === undefined).length;
  }
}

class Client {
  #agent = new http.Agent({ keepAlive: true });
  #next = 0;
  #stopping = new AbortController();

  /**
   * With `user`, it calls the server that has a process for each user. `pauseMs` is the longest pause between calls, and
   * `workMs` the time of each, which is random otherwise. `to` is the number of a gateway, for the proxy.
   */
  constructor({
    url,
    token,
    name,
    tally,
    user,
    pauseMs = PAUSE_MS,
    workMs,
    server = user === undefined ? 'jobs' : 'own',
    to,
  }) {
    Object.assign(this, { url: new URL(url), token, name, tally, user, pauseMs, workMs, to });
    this.tool = `${server}__work`;
  }

  get isStopped() {
    return this.#stopping.signal.aborted;
  }

  /** Resolves when the last call has ended. */
  async stop() {
    this.#stopping.abort();
    await this.running;
    this.stream?.destroy();
    await this.listening;
    this.#agent.destroy();
  }

  /** Ends it without waiting for its calls. */
  abandon() {
    this.#stopping.abort();
    this.stream?.destroy();
    this.#agent.destroy();
  }

  start({ listens = false } = {}) {
    this.running = this.#run();
    if (listens) this.listening = this.#listen();
  }

  /** Calls the tool once. Resolves with the call and its outcome. */
  async callOnce(ms = 0) {
    this.#next += 1;
    const call = {
      token: `${this.name}-${this.#next}`,
      id: this.#next,
      user: this.user,
      ms,
      startedAt: performance.now(),
    };
    call.arguments = { token: call.token, ms, user: this.user };
    this.tally.calls.push(call);
    const outcome = await this.call(call).catch((error) => ({ outcome: 'failed', detail: String(error) }));
    return Object.assign(call, outcome, { endedAt: performance.now() });
  }

  async #run() {
    const { signal } = this.#stopping;
    while (!this.isStopped) {
      await sleep(Math.random() * this.pauseMs, undefined, { signal }).catch(() => {});
      if (!this.isStopped) await this.callOnce(this.workMs ?? Math.random() * this.longestWork);
    }
  }

  /** Keeps a stream open, as long as the client runs. */
  async #listen() {
    let updatedAt;
    const onMessage = ({ method }) => {
      if (method !== UPDATED) return;
      const now = performance.now();
      if (updatedAt !== undefined) this.tally.waits.push({ endedAt: now, ms: now - updatedAt });
      updatedAt = now;
    };
    while (!this.isStopped) {
      try {
        const response = await this.openStream();
        // Another connection of this client may not have been given up yet.
        if (![200, 409].includes(response.statusCode))
          this.tally.faults.push(`stream: ${response.statusCode} ${await textOf(response)}`);
        this.tally.streams += 1;
        this.stream = response;
        if (this.isStopped) response.destroy();
        const { lastEventId } = await eventsOf(response, { onMessage });
        this.lastEventId = lastEventId ?? this.lastEventId;
      } catch (error) {
        if (!this.isStopped) this.tally.faults.push(`stream: ${error}`);
      }
      await sleep(200);
    }
  }

  async request(method, headers, message) {
    const sent = http.request(this.url, {
      agent: this.#agent,
      method,
      headers: {
        authorization: `Bearer ${this.token}`,
        accept: 'application/json, text/event-stream',
        'content-type': 'application/json',
        ...(this.to && { 'x-to': this.to }),
        ...headers,
      },
    });
    // An error after the response has begun ends the reading of the response, too.
    sent.on('error', () => {});
    sent.end(message && JSON.stringify({ jsonrpc: '2.0', ...message }));
    const [response] = await once(sent, 'response');
    response.setEncoding('utf8');
    return response;
  }
}

/** A client with a session. `streams` makes its calls report progress, so that they are answered on event streams. */
export class LegacyClient extends Client {
  #session;

  constructor(options) {
    super(options);
    this.streams = options.streams;
    this.longestWork = this.streams ? STREAMED_MS : WORK_MS;
  }

  /** `subscribes` subscribes to the resource that changes. */
  async open({ listens, subscribes }) {
    await this.openOnly();
    if (subscribes) await this.subscribe();
    this.start({ listens });
  }

  /** Opens the session, and calls nothing. Resolves with its id. */
  async openOnly() {
    const clientInfo = { name: this.streams ? 'streams' : 'plain', version: '1' };
    const params = { protocolVersion: REVISION, capabilities: {}, clientInfo };
    const response = await this.request('POST', {}, { id: 0, method: 'initialize', params });
    const text = await textOf(response);
    if (response.statusCode !== 200) throw new Error(`initialize: ${response.statusCode} ${text}`);
    this.#session = { 'mcp-session-id': response.headers['mcp-session-id'] };
    await this.send({ method: 'notifications/initialized' });
    this.tally.sessions += 1;
    return this.#session['mcp-session-id'];
  }

  async subscribe() {
    await this.send({ id: -1, method: 'resources/subscribe', params: { uri: URI } });
  }

  /** Sends a message of the session. Resolves with the text of the answer. */
  async send(message) {
    const response = await this.request('POST', this.#session, message);
    const text = await textOf(response);
    if (response.statusCode >= 300) throw new Error(`${message.method}: ${response.statusCode} ${text}`);
    return text;
  }

  async call({ id, token, arguments: args }) {
    const params = { name: this.tool, arguments: args, ...(this.streams && { _meta: { progressToken: id } }) };
    const response = await this.request('POST', this.#session, { id, method: 'tools/call', params });
    if (!isStream(response)) return outcomeOf(response.statusCode, await textOf(response), token);
    let events = await eventsOf(response, { id });
    let resumedAt;
    for (let attempt = 0; events.answer === undefined && attempt < RESUME_ATTEMPTS; attempt += 1) {
      resumedAt ??= performance.now();
      const again = await this.request('GET', { ...this.#session, 'last-event-id': events.lastEventId });
      if (!isStream(again)) return outcomeOf(again.statusCode, await textOf(again), token);
      const { lastEventId } = events;
      events = { lastEventId, ...(await eventsOf(again, { id })) };
    }
    return { ...outcomeOf(200, events.answer ?? '{}', token), resumedAt };
  }

  async openStream() {
    const { lastEventId } = this;
    return await this.request('GET', { ...this.#session, ...(lastEventId && { 'last-event-id': lastEventId }) });
  }
}

/** A client of the revision without sessions. */
export class ModernClient extends Client {
  longestWork = WORK_MS;

  async open({ listens }) {
    this.start({ listens });
  }

  async call({ id, token, arguments: args }) {
    const response = await this.#post(
      id,
      'tools/call',
      { name: this.tool, arguments: args },
      { 'mcp-name': this.tool },
    );
    return outcomeOf(response.statusCode, await textOf(response), token);
  }

  async openStream() {
    return await this.#post(0, 'subscriptions/listen', { notifications: { resourceSubscriptions: [URI] } });
  }

  async #post(id, method, params, headers) {
    const _meta = {
      'io.modelcontextprotocol/protocolVersion': MODERN,
      'io.modelcontextprotocol/clientInfo': { name: 'modern', version: '1' },
      'io.modelcontextprotocol/clientCapabilities': {},
    };
    const own = { 'mcp-protocol-version': MODERN, 'mcp-method': method, ...headers };
    return await this.request('POST', own, { id, method, params: { ...params, _meta } });
  }
}

function isStream(response) {
  return response.statusCode === 200 && /^text\/event-stream/.test(response.headers['content-type']);
}

async function textOf(response) {
  let text = '';
  for await (const chunk of response) text += chunk;
  return text;
}

/** Reads events until the answer to the request `id` comes, or until the stream ends or breaks. */
async function eventsOf(response, { id, onMessage = () => {} }) {
  let rest = '';
  let lastEventId;
  try {
    for await (const chunk of response) {
      const blocks = (rest + chunk).split('\n\n');
      rest = blocks.pop();
      for (const block of blocks) {
        const field = (name) => new RegExp(`^${name}: (.*)$`, 'm').exec(block)?.[1];
        lastEventId = field('id') ?? lastEventId;
        const data = field('data');
        if (!data) continue;
        const message = JSON.parse(data);
        if (id !== undefined && message.id === id) return { lastEventId, answer: data };
        onMessage(message);
      }
    }
  } catch {
    // The connection broke. The caller resumes the stream.
  }
  return lastEventId === undefined ? {} : { lastEventId };
}

/** The outcome of a call: `answered`, `unknown`, `not_sent` or `failed`. */
function outcomeOf(status, text, token) {
  if (status !== 200) return { outcome: 'failed', detail: `${status} ${text.slice(0, 300)}` };
  const { result, error } = JSON.parse(text);
  const failure = result?._meta?.['trunkline/failure'] ?? error?.data;
  if (failure?.outcome === 'unknown' || failure?.outcome === 'not_sent')
    return { outcome: failure.outcome, reason: failure.reason };
  if (result?.content?.[0]?.text === token) {
    const [instance, pid] = result.content[1].text.split(' ').map(Number);
    return { outcome: 'answered', instance, pid };
  }
  return { outcome: 'failed', detail: text.slice(0, 300) };
}
