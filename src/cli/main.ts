import { parseArgs } from 'node:util';
import { attach } from '../app/attach.js';
import { endProcess } from '../app/end-process.js';
import type { GlobalOptions } from '../app/global-options.js';
import type { Transports } from '../app/serve.js';
import { VERSION } from '../version.js';
import { HTTP_OPTIONS, readTransports } from './http-options.js';

// A client waits while this loads, so only the way to the hub is imported statically; the rest is loaded on demand.

const OPTIONS = {
  config: { type: 'string', short: 'c' },
  verbose: { type: 'boolean', short: 'v', multiple: true },
  'log-file': { type: 'string' },
  json: { type: 'boolean' },
  yes: { type: 'boolean', short: 'y' },
  'no-hub': { type: 'boolean' },
  alone: { type: 'boolean' },
  all: { type: 'boolean' },
  watch: { type: 'boolean' },
  follow: { type: 'boolean', short: 'f' },
  view: { type: 'string' },
  place: { type: 'string' },
  out: { type: 'string' },
  ...HTTP_OPTIONS,
  version: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const;

/** The options that only these commands take. */
const ONLY_FOR: Readonly<Partial<Record<keyof typeof OPTIONS, readonly string[]>>> = {
  yes: ['approve'],
  out: ['schema'],
  'no-hub': ['serve'],
  view: ['serve', 'call', 'tools'],
  alone: ['call', 'tools'],
  all: ['stop', 'hub'],
  watch: ['status'],
  follow: ['logs'],
};

/** Runs the command of the command line, and ends the process. */
export async function main(): Promise<never> {
  try {
    return await endProcess(await run(process.argv.slice(2)));
  } catch (error) {
    const { reportFault } = await import('./report-fault.js');
    return await endProcess(reportFault(error));
  }
}

async function run(args: string[]): Promise<number> {
  const { values, positionals } = await parse(args);
  const [command = 'serve', ...rest] = positionals;
  if (values.version) return await print(VERSION);
  if (values.help || command === 'help') return await printHelp(command === 'help' ? rest : positionals);

  const settings: GlobalOptions = {
    config: values.config,
    verbosity: values.verbose?.length ?? 0,
    logFile: values['log-file'],
    view: values.view,
  };
  const isJson = values.json === true;
  const isHttp = Object.keys(HTTP_OPTIONS).some((option) => Object.hasOwn(values, option));
  if (isHttp && command !== 'serve') throw (await usage()).notFor(command, 'HTTP options');
  for (const [option, commands] of Object.entries(ONLY_FOR)) {
    if (Object.hasOwn(values, option) && !commands.includes(command))
      throw (await usage()).notFor(command, `\`--${option}\``);
  }
  const isAlone = values.alone === true;
  switch (command) {
    case 'serve': {
      if (rest.length > 0) throw (await usage()).notFor(command, 'arguments');
      if (isJson) throw (await usage()).notFor(command, '`--json`');
      return await serveOrAttach(settings, readTransports(values), values['no-hub'] === true);
    }
    case 'hub': {
      if (rest[0] === 'serve' && values.place !== undefined) {
        const { serveAsHub } = await import('./hub.js');
        return await serveAsHub(settings, values.place);
      }
      const { hubCommand } = await import('./hub-commands.js');
      return await hubCommand(settings, rest, { isJson, isAll: values.all === true });
    }
    case 'stop': {
      if (rest.length > 0) throw (await usage()).notFor(command, 'arguments');
      if (isJson) throw (await usage()).notFor(command, '`--json`');
      const { hubCommand } = await import('./hub-commands.js');
      return await hubCommand(settings, [command], { isJson, isAll: values.all === true });
    }
    case 'ps': {
      if (rest.length > 0) throw (await usage()).notFor(command, 'arguments');
      const { ps } = await import('./hub-commands.js');
      return await ps(settings, isJson);
    }
    case 'status': {
      if (rest.length > 0) throw (await usage()).notFor(command, 'arguments');
      const { status } = await import('./status.js');
      return await status(settings, { isJson, isWatched: values.watch === true });
    }
    case 'logs': {
      const [server, ...excess] = rest;
      if (excess.length > 0) throw (await usage()).notFor(command, 'more than one server');
      if (isJson) throw (await usage()).notFor(command, '`--json`');
      const { logs } = await import('./logs.js');
      return await logs(settings, { server, isFollowed: values.follow === true });
    }
    case 'restart': {
      const [server, ...excess] = rest;
      if (excess.length > 0) throw (await usage()).notFor(command, 'more than one server');
      if (isJson) throw (await usage()).notFor(command, '`--json`');
      const { restartServer } = await import('./hub-commands.js');
      return await restartServer(settings, server);
    }
    case 'check': {
      if (isJson) throw (await usage()).notFor(command, '`--json`');
      const { check } = await import('./check.js');
      return await check(settings, rest);
    }
    case 'tools': {
      const { tools } = await import('./tools.js');
      return await tools(settings, rest, { isJson, isAlone });
    }
    case 'call': {
      const [name, json, ...excess] = rest;
      if (name === undefined) throw (await usage()).missingName();
      if (excess.length > 0) throw (await usage()).splitArguments();
      const { call } = await import('./call.js');
      return await call(settings, { name, args: json, isJson, isAlone });
    }
    case 'approve': {
      if (isJson) throw (await usage()).notFor(command, '`--json`');
      const [server, ...names] = rest;
      const { approve } = await import('./approve.js');
      return await approve(settings, { server, tools: names, isYes: values.yes === true });
    }
    case 'install': {
      if (isJson) throw (await usage()).notFor(command, '`--json`');
      const { install } = await import('./install.js');
      return await install(settings, rest);
    }
    case 'update': {
      if (isJson) throw (await usage()).notFor(command, '`--json`');
      const [name, ...excess] = rest;
      if (excess.length > 0) throw (await usage()).notFor(command, 'more than one name');
      const { update } = await import('./update.js');
      return await update(settings, name);
    }
    case 'outdated': {
      if (rest.length > 0) throw (await usage()).notFor(command, 'arguments');
      if (isJson) throw (await usage()).notFor(command, '`--json`');
      const { outdated } = await import('./outdated.js');
      return await outdated(settings);
    }
    case 'schema': {
      if (rest.length > 0) throw (await usage()).notFor(command, 'arguments');
      if (isJson) throw (await usage()).notFor(command, '`--json`');
      const { schema } = await import('./schema.js');
      const text = await schema(values.out);
      return text === undefined ? 0 : await print(text);
    }
    case 'secret': {
      if (isJson) throw (await usage()).notFor(command, '`--json`');
      const { secret } = await import('./secret.js');
      return await secret(rest);
    }
    case 'token': {
      if (rest.length > 0) throw (await usage()).notFor(command, 'arguments');
      const { token } = await import('./token.js');
      return await token();
    }
    default:
      throw (await usage()).unknownCommand(command);
  }
}

/** A client on stdin shares the hub of its configuration. At a terminal or over HTTP, there is nothing to share. */
async function serveOrAttach(settings: GlobalOptions, transports: Transports, isAlone: boolean): Promise<number> {
  const canShare =
    !isAlone && process.env.TRUNKLINE_HUB !== 'off' && transports.http === undefined && !process.stdin.isTTY;
  const failed = canShare ? await attach(settings) : { because: undefined };
  if (failed === undefined) return 0;
  const { serve } = await import('../app/serve.js');
  return await serve(settings, transports, failed.because);
}

async function parse(args: string[]) {
  try {
    return parseArgs({ args, options: OPTIONS, allowPositionals: true });
  } catch {
    throw (await usage()).mistakeIn(args, OPTIONS);
  }
}

function usage() {
  return import('./usage-errors.js');
}

async function printHelp([word]: readonly string[]): Promise<number> {
  const { helpText, isCommand } = await import('./help.js');
  if (word !== undefined && word !== 'help' && !isCommand(word)) throw (await usage()).unknownCommand(word);
  return await print(helpText(word !== undefined && isCommand(word) ? word : undefined));
}

/** Resolves when stdout is flushed: an exit before that would cut off the output. A reader may close its end early. */
function print(text: string): Promise<number> {
  return new Promise((resolve) => {
    process.stdout.on('error', () => resolve(0));
    process.stdout.write(`${text}\n`, () => resolve(0));
  });
}
