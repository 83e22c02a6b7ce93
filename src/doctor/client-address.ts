import { connect } from 'node:net';
import type { FoundRemote } from '../clients/files/found-server.js';
import { isRecord } from '../json/is-record.js';
import { parseJson } from '../json/parse-json.js';
import { type Finding, finding } from './finding.js';

const WITHIN_MS = 1_000;

/** Whether Trunkline answers at the address that a client uses, with the headers that the client sends. */
export async function checkAddress(run: FoundRemote, title: string, file: string): Promise<Finding[]> {
  const { hostname, port, protocol } = new URL(run.url);
  const number = port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port);
  const place = `${hostname}:${number}`;
  const evidence = [file];
  if (!(await listens(hostname.replace(/^\[|\]$/g, ''), number)))
    return [finding('TL-CLIENT-UNREACHED', `${title} uses ${place}, where nothing listens`, { evidence })];
  switch (await whoAnswers(run)) {
    case 'trunkline':
    // A certificate that only the client trusts, for example.
    case 'unknown':
      return [];
    case 'refused':
      return [finding('TL-CLIENT-TOKEN', `${title} uses ${place}, which refuses its token`, { evidence })];
    case 'other':
      return [finding('TL-CLIENT-FOREIGN', `${title} uses ${place}, where another program answers`, { evidence })];
  }
}

async function listens(host: string, port: number): Promise<boolean> {
  return await new Promise((resolve) => {
    const socket = connect({ host, port, timeout: WITHIN_MS });
    const done = (isListening: boolean) => {
      socket.destroy();
      resolve(isListening);
    };
    socket.once('connect', () => done(true));
    socket.once('timeout', () => done(false));
    socket.once('error', () => done(false));
  });
}

/** Introduces a client, and ends its session at once. */
async function whoAnswers({ url, headers }: FoundRemote): Promise<'trunkline' | 'refused' | 'other' | 'unknown'> {
  // Only the client knows the values of its variables.
  if (Object.values(headers).some((value) => value.includes('${'))) return 'unknown';
  const sent = { ...headers, 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  const clientInfo = { name: 'trunkline-doctor', version: '1' };
  const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params });
  try {
    const signal = AbortSignal.timeout(WITHIN_MS);
    const response = await fetch(url, { method: 'POST', headers: sent, body, signal, redirect: 'manual' });
    const isRefused = response.status === 401;
    if (isRefused) return response.headers.get('www-authenticate')?.includes('trunkline') ? 'refused' : 'other';
    const session = response.headers.get('mcp-session-id');
    const text = await response.text();
    if (session !== null)
      await fetch(url, { method: 'DELETE', headers: { ...headers, 'mcp-session-id': session }, signal });
    return isTrunkline(text) ? 'trunkline' : 'other';
  } catch {
    return 'unknown';
  }
}

/** The answer is JSON, or an event that has it. */
function isTrunkline(text: string): boolean {
  const lines = [text, ...text.split('\n').map((line) => line.replace(/^data:\s*/, ''))];
  return lines.some((line) => {
    const message = parseJson(line);
    const result = isRecord(message) ? message.result : undefined;
    return isRecord(result) && isRecord(result.serverInfo) && result.serverInfo.name === 'trunkline';
  });
}
