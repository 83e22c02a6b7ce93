#!/usr/bin/env node
// An interceptor that finds secrets in results, so that no model reads them. Name it in the configuration:
//
//   defaults: { interceptors: [secrets] }
//   servers: { secrets: { command: node, args: [secret-guard.mjs] } }
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import * as z from 'zod';

const SECRETS = {
  'a key of AWS': /\bAKIA[0-9A-Z]{16}\b/,
  'a token of GitHub': /\bgh[opsu]_\w{20,}|\bgithub_pat_\w{20,}/,
  'a key of Stripe': /\b[rs]k_live_\w{16,}/,
  'a private key': /-----BEGIN [A-Z ]*PRIVATE KEY-----/,
};
const NAME = 'secrets-in-results';
const hooks = [{ events: ['tools/call', 'resources/read', 'prompts/get'], phase: 'response' }];
const request = (method) => z.object({ method: z.literal(method), params: z.any() });

const server = new Server({ name: 'secret-guard', version: '1.0.0' }, { capabilities: {} });
server.setRequestHandler(request('interceptors/list'), () => ({
  interceptors: [{ name: NAME, type: 'validation', description: 'Finds secrets in results', hooks }],
}));
server.setRequestHandler(request('interceptor/invoke'), ({ params: { phase, payload } }) => {
  const text = JSON.stringify(payload);
  const found = Object.keys(SECRETS).filter((kind) => SECRETS[kind].test(text));
  const messages = found.map((kind) => ({ message: `The result has ${kind}`, severity: 'error' }));
  return { interceptor: NAME, type: 'validation', phase, valid: found.length === 0, severity: 'error', messages };
});
await server.connect(new StdioServerTransport());
