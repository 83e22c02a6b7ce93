// A server whose tool returns a long text about the `nonce` of the call.
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

/** A text of about `bytes` bytes whose every line names the nonce, and has characters of one to four bytes. */
export function largeText(nonce, bytes) {
  const line = `${nonce} a\u00e9\u20ac\u{1f600} "\\"\n`;
  return line.repeat(Math.ceil(bytes / Buffer.byteLength(line)));
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  for await (const line of createInterface({ input: process.stdin })) {
    const { id, method, params } = JSON.parse(line);
    if (id !== undefined)
      process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, result: resultOf(method, params) })}\n`);
  }
}

function resultOf(method, params) {
  if (method === 'tools/list') return { tools: [{ name: 'text', inputSchema: { type: 'object' } }] };
  if (method === 'initialize') {
    const serverInfo = { name: 'large-texts', version: '1' };
    return { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo };
  }
  if (method !== 'tools/call') return {};
  const { nonce, bytes, isBinary } = params.arguments;
  const text = largeText(nonce, bytes);
  if (!isBinary) return { content: [{ type: 'text', text }] };
  return { content: [{ type: 'image', mimeType: 'image/png', data: Buffer.from(text).toString('base64') }] };
}
