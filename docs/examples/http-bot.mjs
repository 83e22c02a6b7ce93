#!/usr/bin/env node
// The MCP side of a chat bot that serves many users over Streamable HTTP. Each user has a separate session, so no user
// receives the results of another user.
//
//   trunkline --config FILE --http 7411        in one terminal
//   node http-bot.mjs [URL]                    in another terminal; the default URL is http://localhost:7411/mcp
//
// The chat is stdin and stdout. The line `ada everything__echo {"message":"hi"}` calls a tool for the user ada, and the
// bot prints the result as `ada: Echo: hi`. The end of stdin, or Ctrl+C, ends all sessions.
import { execFileSync } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport, StreamableHTTPError } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

// Trunkline in this clone. When `trunkline` is on your PATH, use: const TRUNKLINE = ['trunkline'];
const TRUNKLINE = [process.execPath, fileURLToPath(new URL('../../dist/cli.js', import.meta.url))];

const url = new URL(process.argv[2] ?? 'http://localhost:7411/mcp');
const token = process.env.TRUNKLINE_TOKEN ?? readToken();

/** A user of the chat, with a session at Trunkline. */
class User {
  #name;
  #session; // undefined before the first call, and after Trunkline has forgotten the session
  #lastAnswer = Promise.resolve();
  #calling; // aborts the in-flight call
  #isInHurry = false;

  constructor(name) {
    this.#name = name;
  }

  /** Queues a call. The calls of one user run one after the other; users do not wait for each other. */
  ask(tool, json) {
    this.#lastAnswer = this.#lastAnswer.then(() => this.#answer(tool, json));
  }

  /** Cancels the in-flight call and drops the queued ones. */
  hurry(reason) {
    this.#isInHurry = true;
    this.#calling?.abort(reason);
  }

  /** Waits for the calls of this user, then ends the session, so that Trunkline frees its resources. */
  async leave() {
    await this.#lastAnswer;
    if (this.#session === undefined) return;
    const { client, transport } = this.#session;
    try {
      await transport.terminateSession(); // DELETE
    } catch (error) {
      if (!isSessionUnknown(error)) console.error(`Could not end the session of ${this.#name}: ${error.message}`);
    }
    await client.close();
  }

  async #answer(tool, json) {
    if (this.#isInHurry) return;
    try {
      const result = await this.#call({ name: tool, arguments: JSON.parse(json || '{}') });
      for (const block of result.content) this.#say(block.type === 'text' ? block.text : `(${block.type})`);
    } catch (error) {
      this.#say(`that did not work: ${error.message}`);
    }
  }

  async #call(call) {
    this.#calling = new AbortController(); // one per call: the SDK never removes its listener from a signal
    const options = {
      signal: this.#calling.signal,
      onprogress: ({ progress, total }) => this.#say(`${progress}${total ? ` of ${total}` : ''} …`),
      resetTimeoutOnProgress: true,
      maxTotalTimeout: 600_000,
    };
    this.#session ??= await openSession();
    try {
      return await this.#session.client.callTool(call, undefined, options);
    } catch (error) {
      if (!isSessionUnknown(error)) throw error;
    }
    // Trunkline cannot resume the session, for example because it is too old. It rejected the call before handling it, so
    // sending the call again in a new session is safe. After any other failure the call may have run.
    await this.#session.client.close();
    this.#session = undefined;
    this.#session = await openSession();
    return await this.#session.client.callTool(call, undefined, options);
  }

  /** A real bot sends this to the user's own conversation. */
  #say(text) {
    for (const line of text.split('\n')) console.log(`${this.#name}: ${line}`);
  }
}

const users = new Map();
const chat = createInterface({ input: process.stdin });
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, () => {
    chat.close();
    for (const user of users.values()) user.hurry(`stopped by ${signal}`);
  });
}

for await (const line of chat) {
  const [, name, tool, json] = /^\s*(\S+)\s+(\S+)\s*(.*)$/.exec(line) ?? [];
  if (name === undefined) continue;
  if (!users.has(name)) users.set(name, new User(name));
  users.get(name).ask(tool, json);
}
await Promise.all([...users.values()].map((user) => user.leave()));

async function openSession() {
  const client = new Client({ name: 'http-bot', version: '1.0.0' });
  const headers = { Authorization: `Bearer ${token}` };
  const transport = new StreamableHTTPClientTransport(url, { requestInit: { headers } });
  await client.connect(transport);
  return { client, transport };
}

/** Trunkline answers 404 for an unknown session. The client must then start a new session. */
function isSessionUnknown(error) {
  return error instanceof StreamableHTTPError && error.code === 404;
}

/** Works for the user that runs Trunkline, on the same machine. Elsewhere, set TRUNKLINE_TOKEN. */
function readToken() {
  const [command, ...args] = TRUNKLINE;
  return execFileSync(command, [...args, 'token'], { encoding: 'utf8' }).trim();
}
