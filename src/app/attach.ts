import { readConfigText } from '../config/find-config.js';
import { attachClient, type Upstream } from '../hub/attach/attach-client.js';
import { findHub } from '../hub/attach/find-hub.js';
import { startHub } from '../hub/attach/start-hub.js';
import { isNewer } from '../hub/attach/version-order.js';
import { type Claim, claimSuccessor } from '../hub/claim.js';
import { memoryPair } from '../hub/memory-pair.js';
import { hubFolder } from '../hub/place.js';
import type { Hello } from '../hub/wire.js';
import { type ByteReader, copyInto } from '../io/byte-reader.js';
import { FAMILY_PREFIX } from '../process/family-prefix.js';
import { VERSION } from '../version.js';
import { ConfigPlace } from './config-place.js';
import type { GlobalOptions } from './global-options.js';
import { userDataFolder } from './user-files.js';

/** `undefined` if the client was served; otherwise why it was not. Nothing was read from stdin then. */
export type NotAttached = { readonly because: string | undefined } | undefined;

/**
 * Joins the client on stdin and stdout to the hub of its configuration, which is started if it does not run. Loads as
 * little as possible: this process runs once for each client, for as long as the client does.
 */
export async function attach(options: GlobalOptions): Promise<NotAttached> {
  let configFile: string;
  let names: string[];
  let folder: string;
  try {
    configFile = new ConfigPlace(options).file;
    const text = readConfigText(configFile);
    if (SAYS_OFF.test(text)) return { because: undefined };
    names = namesIn(text);
  } catch {
    // Whoever serves the client finds out again, and says so.
    return { because: undefined };
  }
  try {
    const hubsFolder = process.env.TRUNKLINE_HUB_DIR;
    folder = hubFolder({ configFile, dataFolder: userDataFolder(), hubsFolder });
  } catch (error) {
    return { because: error instanceof Error ? error.message : String(error) };
  }
  const start = (claim: Claim) =>
    startHub(claim, {
      folder,
      program: [process.execPath, ...process.execArgv, process.argv[1] ?? ''],
      args: ['--config', configFile, ...loggingArgs(options)],
      environment: hubEnvironment(names),
    });
  const find = (resumed: number) => findHub({ folder, hello: helloOf(names, resumed), start });
  const finding = find(0);
  // Node makes these when they are asked for, which takes about as long as the hub needs to answer.
  const { stdin: input, stdout: output } = process;
  const found = await finding;
  if (found.kind === 'none') return { because: found.because };
  if (isNewer(VERSION, found.connection.version)) void startSuccessor(folder, found.connection.number, start);
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.once(signal, () => process.exit(0));
  const { connection } = found;
  await attachClient({
    input,
    output,
    first: { stream: connection.socket, readInto: (reader) => connection.readInto(reader) },
    find,
    serveAlone: (because, resumed) => serveInside(options, helloOf(names, resumed), because),
    now: () => performance.now(),
  });
  return undefined;
}

/**
 * Starts a hub of this version beside an older one, whose clients move to it when they have nothing in flight. The older
 * one serves on if that fails.
 */
async function startSuccessor(folder: string, number: number, start: (claim: Claim) => void): Promise<void> {
  const claim = await claimSuccessor(folder, number).catch(() => undefined);
  if (claim !== undefined) start(claim);
}

/** A line such as `hub: off`. The hub reads the file properly, and refuses clients if it means that. */
const SAYS_OFF = /(?:^|[\s{,])["']?hub["']?\s*:\s*["']?off\b/;

/** The names of all variables that the text refers to. */
function namesIn(text: string): string[] {
  return [...new Set([...text.matchAll(/\$\{([A-Za-z_][A-Za-z0-9_]*)/g)].map(([, name = '']) => name))];
}

function helloOf(names: readonly string[], resumed: number): Omit<Hello, 'wire' | 'token'> {
  const { env } = process;
  const environment = Object.fromEntries(
    names.flatMap((name) => {
      const value = env[name];
      return value === undefined ? [] : [[name, value]];
    }),
  );
  return { role: 'client', version: VERSION, pid: process.pid, folder: process.cwd(), environment, resumed };
}

/**
 * The environment of the hub: that of the client that starts it, which npm may need, without what the configuration names,
 * since each client has values of its own, and without the marks of an outer Trunkline, which would end the hub with itself.
 */
function hubEnvironment(names: readonly string[]): Record<string, string> {
  const left = new Set([...names, 'TRUNKLINE_CONFIG']);
  const kept = Object.entries(process.env).filter(([name]) => !left.has(name) && !name.startsWith(FAMILY_PREFIX));
  return Object.fromEntries(kept.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])));
}

function loggingArgs({ verbosity, logFile }: GlobalOptions): string[] {
  return [...Array<string>(verbosity).fill('-v'), ...(logFile === undefined ? [] : ['--log-file', logFile])];
}

/** Serves the client by a hub in this process. */
function serveInside(options: GlobalOptions, hello: Omit<Hello, 'wire' | 'token'>, because: string): Upstream {
  const [here, there] = memoryPair();
  void import('./serve-inside.js').then(({ serveInside: serve }) => serve(options, hello, because, there));
  return {
    stream: here,
    readInto: (reader: ByteReader) => {
      here.on('data', (chunk: Uint8Array) => copyInto(reader, chunk));
    },
  };
}
