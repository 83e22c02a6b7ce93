// Clients of both eras without a library, which call a tool until they are stopped. A client of a session never sends a second
// `initialize`: a gateway that does not know its session fails the run.
import { once } from 'node:events';
import * as http from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

const REVISION = '2025-11-25';
const MODERN = '2026-07-28';
/** Longest work of a call, and the longest pause before the next one, in milliseconds. */
const [WORK_MS, STREAMED_MS, PAUSE_MS] = [60, 400, 250];
const RESUME_ATTEMPTS = 5;

/** The calls of all clients, each with its outcome. */
export class Tally {
  calls = [];
  /** Faults other than those of calls, such as a refused GET stream. */
  faults = [];
  sessions = 0;
  streams = 0;

  get inFlight() {
    return this.calls.filter(({ endedAt }) => endedAt === undefined).length;
  }
}

class Client {
  #agent = new http.Agent({ keepAlive: true });
  #next = 0;
  #isStopped = false;

  constructor({ url, token, name, tally }) {
    Object.assign(this, { url: new URL(url), token, name, tally });
  }

  get isStopped() {
    return this.#isStopped;
  }

  /** Resolves when the last call has ended. */
  async stop() {
    this.#isStopped = true;
    await this.running;
    this.#agent.destroy();
  }

  start() {
    this.running = this.#run();
  }

  async #run() {
    while (!this.#isStopped) {
      await sleep(Math.random() * PAUSE_MS);
      this.#next += 1;
      const call = { token: `${this.name}-${this.#next}`, id: this.#next, startedAt: performance.now() };
      this.tally.calls.push(call);
      const outcome = await this.call(call).catch((error) => ({ outcome: 'failed', detail: String(error) }));
      Object.assign(call, outcome, { endedAt: performance.now() });
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
        ...headers,
      },
    });
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
  }

  async open({ listens }) {
    await this.openOnly();
    this.start();
    if (listens) this.listening = this.#listen();
  }

  /** Opens the session, and calls nothing. Resolves with its id. */
  async openOnly() {
    const clientInfo = { name: this.streams ? 'streams' : 'plain', version: '1' };
    const params = { protocolVersion: REVISION, capabilities: {}, clientInfo };
    const response = await this.request('POST', {}, { id: 0, method: 'initialize', params });
    const text = await textOf(response);
    if (response.statusCode !== 200) throw new Error(`initialize: ${response.statusCode} ${text}`);
    this.#session = { 'mcp-session-id': response.headers['mcp-session-id'] };
    await textOf(await this.request('POST', this.#session, { method: 'notifications/initialized' }));
    this.tally.sessions += 1;
    return this.#session['mcp-session-id'];
  }

  async stop() {
    await super.stop();
    this.stream?.destroy();
    await this.listening;
  }

  async call({ id, token }) {
    const ms = Math.random() * (this.streams ? STREAMED_MS : WORK_MS);
    const params = {
      name: 'jobs__work',
      arguments: { token, ms },
      ...(this.streams && { _meta: { progressToken: id } }),
    };
    const response = await this.request('POST', this.#session, { id, method: 'tools/call', params });
    if (!isStream(response)) return outcomeOf(response.statusCode, await textOf(response), token);
    let events = await eventsOf(response, id);
    let resumedAt;
    for (let attempt = 0; events.answer === undefined && attempt < RESUME_ATTEMPTS; attempt += 1) {
      resumedAt ??= performance.now();
      const again = await this.request('GET', { ...this.#session, 'last-event-id': events.lastEventId });
      if (!isStream(again)) return outcomeOf(again.statusCode, await textOf(again), token);
      const { lastEventId } = events;
      events = { lastEventId, ...(await eventsOf(again, id)) };
    }
    return { ...outcomeOf(200, events.answer ?? '{}', token), resumedAt };
  }

  /** Keeps a GET stream open, as long as the client runs. */
  async #listen() {
    let lastEventId;
    while (!this.isStopped) {
      try {
        const headers = { ...this.#session, ...(lastEventId && { 'last-event-id': lastEventId }) };
        const response = await this.request('GET', headers);
        // Another connection of this client may not have been given up yet.
        if (![200, 409].includes(response.statusCode))
          this.tally.faults.push(`GET: ${response.statusCode} ${await textOf(response)}`);
        this.tally.streams += 1;
        this.stream = response;
        if (this.isStopped) response.destroy();
        const events = await eventsOf(response);
        lastEventId = events.lastEventId ?? lastEventId;
      } catch (error) {
        if (!this.isStopped) this.tally.faults.push(`GET: ${error}`);
      }
      await sleep(200);
    }
  }
}

/** A client of the revision without sessions. */
export class ModernClient extends Client {
  async open() {
    this.start();
  }

  async call({ id, token }) {
    const _meta = {
      'io.modelcontextprotocol/protocolVersion': MODERN,
      'io.modelcontextprotocol/clientInfo': { name: 'modern', version: '1' },
      'io.modelcontextprotocol/clientCapabilities': {},
    };
    const params = { name: 'jobs__work', arguments: { token, ms: Math.random() * WORK_MS }, _meta };
    const headers = { 'mcp-protocol-version': MODERN, 'mcp-method': 'tools/call', 'mcp-name': 'jobs__work' };
    const response = await this.request('POST', headers, { id, method: 'tools/call', params });
    return outcomeOf(response.statusCode, await textOf(response), token);
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

/** Reads events until the answer to the request comes, or until the stream ends or breaks. */
async function eventsOf(response, id) {
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
        if (data && id !== undefined && JSON.parse(data).id === id) return { lastEventId, answer: data };
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
  if (result?.content?.[0]?.text === token) return { outcome: 'answered' };
  return { outcome: 'failed', detail: text.slice(0, 300) };
}
