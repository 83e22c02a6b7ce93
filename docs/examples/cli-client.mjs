#!/usr/bin/env node
// A command-line client over stdio. It starts Trunkline, lists or calls tools, and ends all processes again.
//
//   node cli-client.mjs --config FILE                list all tools, prompts and resources
//   node cli-client.mjs --config FILE TOOL [JSON]    call a tool; JSON is the object of its arguments
//
// `--root DIR` names a folder that servers may work in; it can be repeated. The result goes to stdout, everything else
// to stderr. Exit codes: 0 success, 1 the tool or Trunkline failed, 2 wrong usage.
import { basename, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { ElicitRequestSchema, ListRootsRequestSchema } from '@modelcontextprotocol/sdk/types.js';

// Trunkline in this clone. When `trunkline` is on your PATH, use: const TRUNKLINE = ['trunkline'];
const TRUNKLINE = [process.execPath, fileURLToPath(new URL('../../dist/cli.js', import.meta.url))];

const { config, roots, tool, args } = readCommandLine();

// Capabilities of this client. Trunkline declares them to the servers, which send only requests that they allow.
const client = new Client(
  { name: 'cli-client', version: '1.0.0' },
  { capabilities: { elicitation: { form: {} }, ...(roots.length > 0 ? { roots: {} } : {}) } },
);
let asking = Promise.resolve();
client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
  const fillInNow = () => fillIn(params);
  asking = asking.then(fillInNow, fillInNow); // one form at a time, even when several servers send one
  return asking;
});
if (roots.length > 0) client.setRequestHandler(ListRootsRequestSchema, () => ({ roots }));

// Ctrl+C closes the connection, and the in-flight call fails. A second Ctrl+C exits at once.
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => client.close());

// stdin and an iterator over its lines. Both are created for the first question.
let input;
let lines;
try {
  const [command, ...commandArgs] = TRUNKLINE;
  const transport = new StdioClientTransport({
    command,
    args: [...commandArgs, '--no-hub', '--config', config], // no servers shared with other clients, so that all of them end
    env: process.env, // lets Trunkline read the variables that the configuration refers to
  });
  await client.connect(transport);
  if (tool === undefined) await list();
  else await call();
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
} finally {
  input?.close();
  // Closes Trunkline's stdin. Trunkline then ends its servers and exits, within three seconds.
  await client.close();
}

async function list() {
  const kinds = [
    ['tools', (page) => client.listTools(page)],
    ['prompts', (page) => client.listPrompts(page)],
    ['resources', (page) => client.listResources(page)],
  ];
  for (const [kind, listPage] of kinds) {
    console.log(`${kind}:`);
    let cursor;
    do {
      const page = await listPage({ cursor });
      for (const { uri, name, title, description = title } of page[kind]) {
        console.log(`  ${uri ?? name}${description ? `  ${description.split('\n')[0]}` : ''}`);
      }
      cursor = page.nextCursor; // a long list has several pages
    } while (cursor !== undefined);
  }
}

async function call() {
  const result = await client.callTool({ name: tool, arguments: args }, undefined, {
    onprogress: ({ progress, total, message }) => {
      console.error(`${progress}${total ? ` of ${total}` : ''}${message ? `: ${message}` : ''}`);
    },
    // Each progress notification restarts the SDK's timeout of 60 s.
    resetTimeoutOnProgress: true,
    maxTotalTimeout: 600_000,
  });
  for (const block of result.content) console.log(block.type === 'text' ? block.text : JSON.stringify(block));
  if (result.isError) process.exitCode = 1;
}

/** Handles `elicitation/create`: asks the person at the terminal to fill in a server's form. */
async function fillIn({ message, requestedSchema: { properties, required = [] } }) {
  console.error(message);
  const consent = await ask('Fill in this form? [y/N] ');
  if (consent === undefined) return { action: 'cancel' }; // stdin has ended, so no person can answer
  if (!isYes(consent)) return { action: 'decline' };

  const content = {};
  for (const [key, field] of Object.entries(properties)) {
    const choices = choicesOf(field);
    const hints = [choices?.join(' | '), field.default === undefined ? '' : `default ${field.default}`].filter(Boolean);
    const question = `${field.description ?? field.title ?? key}${hints.length > 0 ? ` (${hints.join('; ')})` : ''}: `;
    for (;;) {
      const text = await ask(question);
      if (text === undefined) return { action: 'cancel' };
      const value = text === '' ? field.default : toValue(text, field.type);
      const isChoice = choices === undefined || [value].flat().every((each) => choices.includes(each));
      if (value === undefined && !required.includes(key)) break; // optional field without a value
      if (value === undefined || !isChoice || Number.isNaN(value)) continue; // invalid value: ask again
      content[key] = value;
      break;
    }
  }
  return { action: 'accept', content };
}

/** Prints the question and resolves with the next line of stdin, or with `undefined` at the end of stdin. */
async function ask(question) {
  process.stderr.write(question);
  input ??= createInterface({ input: process.stdin });
  lines ??= input[Symbol.asyncIterator]();
  const { value } = await lines.next();
  return value?.trim();
}

/** Converts the typed text to the type of the form field. */
function toValue(text, type) {
  if (type === 'boolean') return isYes(text);
  if (type === 'integer' || type === 'number') return Number(text);
  if (type === 'array') return text.split(',').map((part) => part.trim());
  return text;
}

/** Returns the allowed values of an enum field, single-select or multi-select, with or without titles. */
function choicesOf({ enum: plain, oneOf: titled, items }) {
  if (items) return choicesOf({ enum: items.enum, oneOf: items.anyOf });
  return plain ?? titled?.map((choice) => choice.const);
}

function isYes(text) {
  return /^(y|yes|true)$/i.test(text);
}

function readCommandLine() {
  try {
    const { values, positionals } = parseArgs({
      options: { config: { type: 'string' }, root: { type: 'string', multiple: true, default: [] } },
      allowPositionals: true,
    });
    const [name, json = '{}', ...tooMany] = positionals;
    if (values.config === undefined || tooMany.length > 0) throw new Error('wrong usage');
    const folders = values.root.map((folder) => resolve(folder));
    return {
      config: values.config,
      roots: folders.map((folder) => ({ uri: pathToFileURL(folder).href, name: basename(folder) })),
      tool: name,
      args: JSON.parse(json),
    };
  } catch (error) {
    console.error(`${error.message}\nUsage: cli-client.mjs --config FILE [--root DIR]... [TOOL [JSON]]`);
    process.exit(2);
  }
}
