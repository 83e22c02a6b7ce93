// What a flooder writes, as data. `out` and `err` are the unit that it repeats on stdout and on stderr: a text, bytes,
// or a function that makes the unit with a number. `first` is written once before. `byteEveryMs` makes it slow.

const KIB = 1024;
const MIB = 1024 * KIB;

/** A kind of flood is its name and what is written. */
export const FLOODS = {
  // Output that is not a message.
  'empty lines': { out: '\n' },
  'empty CRLF lines': { out: '\r\n' },
  'carriage returns without an end': { out: '\r' },
  'blanks and tabs': { out: ' \t \t\n' },
  'x lines': { out: 'x\n' },
  'lines of 80 letters': { out: `${'log line '.repeat(9)}\n` },
  'a line of 300 letters, then 500 x lines': { out: `${'y'.repeat(300)}\n${'x\n'.repeat(500)}` },
  'lines of 8 KiB': { out: `${'y'.repeat(8 * KIB - 1)}\n` },
  'lines of 1 MiB': { out: `${'z'.repeat(MIB)}\n` },
  numbers: { out: (n) => `${n}\n` },
  'empty objects': { out: '{}\n' },
  'empty arrays': { out: '[]\n' },
  'null, true, a string': { out: 'null\ntrue\n"x"\n' },
  'invalid UTF-8 lines': { out: Buffer.from([0xff, 0xfe, 0xc0, 0x0a]) },
  'NUL lines': { out: '\0\0\n' },
  'byte order marks': { out: '\ufeff\n' },
  'ANSI lines': { out: '\u001b[31mred\u001b[0m\u001b]0;title\u0007\n' },
  'hidden and bidirectional characters': { out: '\u202e\u200b\u2066text\u{e0041}\n' },
  'half JSON lines': { out: '{"jsonrpc":"2.0",\n' },
  'lines of 2,000 open brackets': { out: `${'['.repeat(2_000)}\n` },
  'lone surrogates': { out: '{"jsonrpc":"2.0","method":"notifications/x","params":{"a":"\\ud800"}}\n' },

  // Messages.
  'notifications of 29 bytes': { out: '{"jsonrpc":"2.0","method":""}\n' },
  'unknown notifications': { out: notification('notifications/unheard-of', {}) },
  'notifications of 64 KiB': { out: notification('notifications/unheard-of', { text: 'n'.repeat(64 * KIB) }) },
  'notifications of 1 MiB': { out: notification('notifications/unheard-of', { text: 'n'.repeat(MIB) }) },
  'tools/list_changed': { out: notification('notifications/tools/list_changed') },
  'list_changed of everything': {
    out: ['tools', 'prompts', 'resources'].map((list) => notification(`notifications/${list}/list_changed`)).join(''),
  },
  'progress for unknown tokens': {
    out: (n) => notification('notifications/progress', { progressToken: n, progress: n, total: 1e9 }),
  },
  'progress for text tokens': {
    out: (n) => notification('notifications/progress', { progressToken: `token-${n}`, progress: n }),
  },
  'log messages': { out: (n) => notification('notifications/message', { level: 'info', data: `line ${n}` }) },
  'log messages of 16 KiB': {
    out: notification('notifications/message', { level: 'emergency', data: 'l'.repeat(16 * KIB) }),
  },
  'stray answers': { out: (n) => line({ id: 1e6 + n, result: {} }) },
  'stray errors': { out: (n) => line({ id: `e${n}`, error: { code: -32603, message: 'stray' } }) },
  'answers to null': { out: line({ id: null, error: { code: -32700, message: 'null' } }) },
  'resources/updated': { out: (n) => notification('notifications/resources/updated', { uri: `file:///${n}` }) },
  'cancelled requests': { out: (n) => notification('notifications/cancelled', { requestId: n }) },
  'task states': {
    out: (n) => notification('notifications/tasks/status', { taskId: `t${n}`, status: 'working', createdAt: 'now' }),
  },
  'ping requests': { out: (n) => line({ id: n, method: 'ping' }) },
  'roots/list requests': { out: (n) => line({ id: n, method: 'roots/list' }) },
  'sampling requests': {
    out: (n) => line({ id: n, method: 'sampling/createMessage', params: { messages: [], maxTokens: 1 } }),
  },
  'elicitation requests': {
    out: (n) =>
      line({
        id: n,
        method: 'elicitation/create',
        params: { message: 'm', requestedSchema: { type: 'object', properties: {} } },
      }),
  },
  'unknown requests': { out: (n) => line({ id: `u${n}`, method: 'unheard/of', params: { n } }) },
  'batches of requests': {
    out: (n) => `[${Array.from({ length: 20 }, (_, i) => `{"jsonrpc":"2.0","id":${20 * n + i},"method":"ping"}`)}]\n`,
  },
  'batches of notifications': { out: `[${Array.from({ length: 50 }, () => '{"jsonrpc":"2.0","method":"x"}')}]\n` },

  // Lines without an end.
  'a line without an end': { out: 'x'.repeat(64 * KIB) },
  'a JSON text without an end': { first: '{"jsonrpc":"2.0","method":"x","params":{"a":"', out: 'x'.repeat(64 * KIB) },
  'a batch without an end': { first: '[', out: '{"jsonrpc":"2.0","method":"x"},'.repeat(2_000) },
  'half of a 60 MiB line, then slow bytes': {
    first: `{"jsonrpc":"2.0","method":"x","params":{"a":"${'x'.repeat(30 * MIB)}`,
    out: 'x',
    byteEveryMs: 1,
  },
  'x lines, a write for each byte': { out: 'x\n', blockBytes: 1 },

  // The other stream, and both.
  'stderr: empty lines': { err: '\n' },
  'stderr: x lines': { err: 'x\n' },
  'stderr: lines of 64 KiB': { err: `${'e'.repeat(64 * KIB)}\n` },
  'stderr: no line end': { err: 'e'.repeat(64 * KIB) },
  'stderr: binary': { err: Buffer.from(Array.from({ length: 4_099 }, (_, i) => (i * 167 + (i >> 3)) % 256)) },
  'stderr: ANSI lines': { err: '\u001b[2J\u001b[31mred\u001b[0m\n' },
  'stderr: lines with secrets': { err: (n) => `password=hunter${n} Authorization: Bearer ${'A1b2'.repeat(8)}${n}\n` },
  'both: empty lines': { out: '\n', err: '\n' },
  'both: x lines': { out: 'x\n', err: 'x\n' },
  'both: log messages and error lines': {
    out: (n) => notification('notifications/message', { level: 'error', data: n }),
    err: (n) => `Error: no such thing ${n}\n`,
  },
};

function notification(method, params) {
  return line({ method, params });
}

function line(message) {
  return `${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`;
}
