import { connect } from 'node:net';

const HEAD_END = '\r\n\r\n';
const REVISION = '2025-06-18';

/**
 * One connection that is kept open, with one request at a time on it. It knows of HTTP what the answers of a gateway
 * need: the client must cost less than what it measures.
 */
class Connection {
  #socket;
  #received = '';
  #take = () => {};

  constructor(port, onFailed) {
    this.#socket = connect({ port, host: '127.0.0.1', noDelay: true });
    this.#socket.setEncoding('latin1');
    this.#socket.once('error', onFailed);
    this.#socket.once('end', () => onFailed(new Error('The gateway closed a connection')));
    this.#socket.on('data', (text) => this.#receive(text));
  }

  /** `take` is called with the status, the head and the body of the answer. */
  send(text, take) {
    this.#take = take;
    this.#socket.write(text);
  }

  /** Reads on, and looks at nothing of it. */
  ignore() {
    this.#socket.removeAllListeners('data').resume();
  }

  close() {
    this.#socket.removeAllListeners('end');
    this.#socket.removeAllListeners('error');
    this.#socket.on('error', () => {});
    this.#socket.destroy();
  }

  #receive(text) {
    this.#received = this.#received === '' ? text : this.#received + text;
    const end = this.#received.indexOf(HEAD_END);
    if (end < 0) return;
    const head = this.#received.slice(0, end);
    const length = Number(/^content-length: (\d+)/im.exec(head)?.[1] ?? 0);
    if (this.#received.length < end + HEAD_END.length + length) return;
    const body = this.#received.slice(end + HEAD_END.length, end + HEAD_END.length + length);
    this.#received = '';
    this.#take(Number(head.slice(9, 12)), head, body);
  }
}

/** One client's session, with one connection for its requests or more, and one to listen on if it does. */
export class HttpSession {
  #server;
  #id;
  #postHead = '';
  #connections = [];
  #stream;
  #fail;

  /** `server` has a port and a token. */
  constructor(server, onFailed) {
    this.#server = server;
    this.#fail = onFailed;
  }

  /** What calls can be made on: each call takes one of them until it is answered. */
  get connections() {
    return this.#connections.map((connection) => ({ session: this, connection }));
  }

  async open(connections) {
    for (let count = 0; count < connections; count += 1) {
      this.#connections.push(new Connection(this.#server.port, this.#fail));
    }
    const params = { protocolVersion: REVISION, capabilities: {}, clientInfo: { name: 'bench', version: '1.0.0' } };
    this.#setHead();
    const { head } = await this.#post({ jsonrpc: '2.0', id: 0, method: 'initialize', params }, 200);
    this.#id = /^mcp-session-id: (\S+)/im.exec(head)?.[1];
    this.#setHead();
    await this.#post({ jsonrpc: '2.0', method: 'notifications/initialized' }, 202);
    // A gateway closes connections on which nobody asks, and calls may come much later.
    const ping = { jsonrpc: '2.0', id: 1, method: 'ping' };
    for (const connection of this.#connections.slice(1)) await this.#post(ping, 200, connection);
  }

  /** Opens the stream of what no request asks for, and lets pass what comes on it. */
  async listen() {
    this.#stream = new Connection(this.#server.port, this.#fail);
    await expectStatus(this.#stream, `${this.#head('GET', 'text/event-stream')}\r\n`, 200);
    this.#stream.ignore();
  }

  /** Calls the tool with a text of its own; `done` is called once that text has come back. */
  call({ connection, tool, id, text, done }) {
    const body = `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"${tool}","arguments":{"text":"${text}"}}}`;
    connection.send(`${this.#postHead}${body.length}\r\n\r\n${body}`, (status, _head, answer) => {
      const message = status === 200 ? JSON.parse(answer) : undefined;
      if (message?.id === id && message.result?.content?.[0]?.text === text) done();
      else this.#fail(new Error(`An answer is not the echo of its call: ${status} ${answer}`));
    });
  }

  async end() {
    await expectStatus(this.#connections[0], `${this.#head('DELETE', '*/*')}\r\n`, 204);
    this.close();
  }

  close() {
    for (const connection of this.#connections) connection.close();
    this.#stream?.close();
  }

  #post(message, status, connection = this.#connections[0]) {
    const body = JSON.stringify(message);
    return expectStatus(connection, `${this.#postHead}${body.length}\r\n\r\n${body}`, status);
  }

  /** The head of a request, up to the headers that differ from one to the next. */
  #head(method, accept) {
    const lines = [
      `${method} /mcp HTTP/1.1`,
      `Host: 127.0.0.1:${this.#server.port}`,
      `Authorization: Bearer ${this.#server.token}`,
      `Accept: ${accept}`,
    ];
    if (this.#id !== undefined) lines.push(`Mcp-Session-Id: ${this.#id}`, `MCP-Protocol-Version: ${REVISION}`);
    return `${lines.join('\r\n')}\r\n`;
  }

  #setHead() {
    const head = this.#head('POST', 'application/json, text/event-stream');
    this.#postHead = `${head}Content-Type: application/json\r\nContent-Length: `;
  }
}

function expectStatus(connection, text, expected) {
  return new Promise((resolve, reject) => {
    connection.send(text, (status, head, body) => {
      if (status === expected) resolve({ head, body });
      else reject(new Error(`Status ${status} instead of ${expected}: ${body}`));
    });
  });
}
