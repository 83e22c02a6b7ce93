#!/usr/bin/env node
// A command-line client over stdio: it starts Trunkline, does one thing, and leaves no process behind.
//
//   node cli-client.mjs --config FILE                list all tools, prompts and resources
//   node cli-client.mjs --config FILE TOOL [JSON]    call a tool; JSON holds its arguments
//
// `--root DIR` names a folder that servers may work in, and may be given several times. The answer goes to stdout,
// everything else to stderr. Exits with 0, with 1 when the tool or Trunkline failed, with 2 after wrong usage.
import { basename, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { ElicitRequestSchema, ListRootsRequestSchema } from '@modelcontextprotocol/sdk/types.js';

// Trunkline in this clone. Once it is on your PATH: const TRUNKLINE = ['trunkline'];
const TRUNKLINE = [process.execPath, fileURLToPath(new URL('../../dist/cli.js', import.meta.url))];

const { config, roots, tool, args } = readCommandLine();

// Servers are told what the client declares here, and ask for nothing else.
const client = new Client(
  { name: 'cli-client', version: '1.0.0' },
  { capabilities: { elicitation: { form: {} }, ...(roots.length > 0 ? { roots: {} } : {}) } },
);
let asking = Promise.resolve();
client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
  const fillInNow = () => fillIn(params);
  asking = asking.then(fillInNow, fillInNow); // one form at a time, should several servers ask at once
  return asking;
});
if (roots.length > 0) client.setRequestHandler(ListRootsRequestSchema, () => ({ roots }));

// Ctrl+C closes everything as the end does, and what is under way fails. A second one ends us at once.
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => client.close());

// Stdin and its lines, from the first question on.
let input;
let lines;
try {
  const [command, ...commandArgs] = TRUNKLINE;
  const transport = new StdioClientTransport({
    command,
    args: [...commandArgs, '--config', config],
    env: process.env, // otherwise Trunkline would not see the variables that the configuration names
  });
  await client.connect(transport);
  if (tool === undefined) await list();
  else await call();
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
} finally {
  input?.close();
  // Closes Trunkline's stdin; it then ends its servers and itself, within three seconds.
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
      cursor = page.nextCursor; // a long list comes in several pages
    } while (cursor !== undefined);
  }
}

async function call() {
  const result = await client.callTool({ name: tool, arguments: args }, undefined, {
    onprogress: ({ progress, total, message }) => {
      console.error(`${progress}${total ? ` of ${total}` : ''}${message ? `: ${message}` : ''}`);
    },
    // A call that reports progress may take longer than the 60 s that the SDK allows for silence.
    resetTimeoutOnProgress: true,
    maxTotalTimeout: 600_000,
  });
  for (const block of result.content) console.log(block.type === 'text' ? block.text : JSON.stringify(block));
  if (result.isError) process.exitCode = 1;
}

/** A server asks the person at the terminal to fill in a form. */
async function fillIn({ message, requestedSchema: { properties, required = [] } }) {
  console.error(message);
  const consent = await ask('Answer this? [y/N] ');
  if (consent === undefined) return { action: 'cancel' }; // stdin has ended, nobody is there
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
      if (value === undefined && !required.includes(key)) break; // left out
      if (value === undefined || !isChoice || Number.isNaN(value)) continue; // asked again
      content[key] = value;
      break;
    }
  }
  return { action: 'accept', content };
}

/** Resolves with the next line of stdin, or with `undefined` once it has ended. */
async function ask(question) {
  process.stderr.write(question);
  input ??= createInterface({ input: process.stdin });
  lines ??= input[Symbol.asyncIterator]();
  const { value } = await lines.next();
  return value?.trim();
}

/** What was typed, as the kind of value that the form wants. */
function toValue(text, type) {
  if (type === 'boolean') return isYes(text);
  if (type === 'integer' || type === 'number') return Number(text);
  if (type === 'array') return text.split(',').map((part) => part.trim());
  return text;
}

/** The values to choose from: plain ones, or ones with titles, for one or for several. */
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
