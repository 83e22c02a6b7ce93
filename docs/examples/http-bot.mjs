#!/usr/bin/env node
// The MCP side of a chat bot that serves many people over Streamable HTTP. Every person has a session of their own, so
// that nobody gets what belongs to another one.
//
//   trunkline --config FILE --http 7411        in one terminal
//   node http-bot.mjs [URL]                    in another; URL is http://localhost:7411/mcp unless given
//
// The chat is stdin and stdout. `ada everything__echo {"message":"hi"}` is ada asking for a tool; what comes back to her
// is written as `ada: hi`. The end of stdin, or Ctrl+C, ends all sessions.
import { execFileSync } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport, StreamableHTTPError } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

// Trunkline in this clone. Once it is on your PATH: const TRUNKLINE = ['trunkline'];
const TRUNKLINE = [process.execPath, fileURLToPath(new URL('../../dist/cli.js', import.meta.url))];

const url = new URL(process.argv[2] ?? 'http://localhost:7411/mcp');
const token = process.env.TRUNKLINE_TOKEN ?? readToken();

/** One person in the chat, and their session. */
class User {
  #name;
  #session; // undefined before the first question, and when Trunkline does not know it any more
  #lastAnswer = Promise.resolve();
  #calling; // cancels the call that is under way
  #isInHurry = false;

  constructor(name) {
    this.#name = name;
  }

  /** Answers one question after the other. Other people do not wait for it. */
  ask(tool, json) {
    this.#lastAnswer = this.#lastAnswer.then(() => this.#answer(tool, json));
  }

  /** Cancels the call that is under way, and drops what was asked after it. */
  hurry(reason) {
    this.#isInHurry = true;
    this.#calling?.abort(reason);
  }

  /** Waits for what was asked, and ends the session, so that Trunkline need not keep it. */
  async leave() {
    await this.#lastAnswer;
    if (this.#session === undefined) return;
    const { client, transport } = this.#session;
    try {
      await transport.terminateSession(); // DELETE
    } catch (error) {
      if (!isSessionUnknown(error)) console.error(`The session of ${this.#name} was not ended: ${error.message}`);
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
    this.#calling = new AbortController(); // one for each call, as the SDK never lets go of a signal
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
    // Trunkline was started anew, or the session was idle for too long. The call was not looked at, so that sending it
    // again in a new session cannot do anything twice. After any other failure it could.
    await this.#session.client.close();
    this.#session = undefined;
    this.#session = await openSession();
    return await this.#session.client.callTool(call, undefined, options);
  }

  /** A real bot would send this to the person's own conversation. */
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

/** Trunkline answers 404 for a session that it does not know, and then the client has to begin a new one. */
function isSessionUnknown(error) {
  return error instanceof StreamableHTTPError && error.code === 404;
}

/** Works on the machine that Trunkline runs on. Elsewhere, TRUNKLINE_TOKEN has to be set. */
function readToken() {
  const [command, ...args] = TRUNKLINE;
  return execFileSync(command, [...args, 'token'], { encoding: 'utf8' }).trim();
}
