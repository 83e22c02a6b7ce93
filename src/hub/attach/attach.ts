import { spawn } from 'node:child_process';
import { accessSync, closeSync, constants, openSync } from 'node:fs';
import type { Server } from 'node:net';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { Duplex } from 'node:stream';
import { ConfigLocation, readConfigText } from '../../config/file/find-config.js';
import { EXIT } from '../../errors/usage-error.js';
import { type ByteReader, copyInto } from '../../io/byte-reader.js';
import { FAMILY_PREFIX, isInherited } from '../../process/environment.js';
import { userDataFolder, userHubsFolder } from '../../state/user-files.js';
import { VERSION } from '../../version.js';
import { type Claim, hubFiles, hubFolder, hubLog, note } from '../hub-folder.js';
import type { Hello } from '../wire.js';
import { attachClient, type HubEnd } from './attach-client.js';
import { findHub } from './find-hub.js';

/** The options of the command line that concern a hub. */
export interface AttachOptions {
  readonly config: string | undefined;
  readonly view?: string | undefined;
  /** Number of `-v` options. */
  readonly verbosity: number;
  readonly logFile: string | undefined;
}

/** Loads the code of a hub. The returned function serves the client in this process, at the other end of `stream`. */
type LoadHub = () => Promise<(hello: Omit<Hello, 'wire' | 'token'>, because: string, stream: Duplex) => Promise<void>>;

/** `undefined` if the client was served; otherwise why it was not. Nothing was read from stdin then. */
export type NotAttached = { readonly because: string | undefined } | undefined;

/**
 * Joins the client on stdin and stdout to the hub of its configuration, which is started if it does not run. Loads as
 * little as possible: this process runs once for each client, for as long as the client does.
 */
export async function attach(options: AttachOptions, loadHub: LoadHub): Promise<NotAttached> {
  let configFile: string;
  try {
    configFile = new ConfigLocation(options).file;
    if (!isHubWanted(configFile)) return { because: undefined };
  } catch {
    // The process that serves the client reads the file again, and says what is wrong with it.
    return { because: undefined };
  }
  let folder: string;
  try {
    folder = folderOfHub(configFile);
  } catch (error) {
    return { because: error instanceof Error ? error.message : String(error) };
  }
  const start = hubStarter(options, { configFile, folder });
  const find = (resumed: number) => findHub({ folder, hello: helloOf(configFile, resumed, options.view), start });
  const finding = find(0);
  // Node makes these when they are asked for, which takes about as long as the hub needs to answer.
  const { stdin: input, stdout: output } = process;
  const found = await finding;
  if (found.kind === 'none') return { because: found.because };
  const { connection } = found;
  // Of another version, which happens once for each update.
  if (connection.version !== VERSION)
    void import('./control-client.js').then(({ succeedOlder }) => succeedOlder(folder, connection, start), goOn);
  const leave = () => process.exit(0);
  for (const signal of SIGNALS) process.once(signal, leave);
  await attachClient({
    input,
    output,
    first: { stream: connection.socket, readInto: (reader) => connection.readInto(reader) },
    find,
    serveAlone: (because, resumed) => {
      // Servers run in this process from now on, which ends them after a signal.
      for (const signal of SIGNALS) process.off(signal, leave);
      return serveInside(loadHub, helloOf(configFile, resumed, options.view), because);
    },
    // `performance` would have to be loaded.
    now: () => process.uptime() * 1_000,
  });
  return undefined;
}

const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;

/** The folder of the hub of this configuration file. Throws if no folder can be used; the message is a phrase. */
export function folderOfHub(configFile: string): string {
  return hubFolder({ configFile, dataFolder: userDataFolder(), hubsFolder: userHubsFolder() });
}

interface HubSite {
  readonly configFile: string;
  readonly folder: string;
}

/**
 * Returns a function that starts a hub that outlives this process, and hands it the listening socket. Clients can connect at
 * once: they wait in the queue of the socket until the hub accepts them. It throws if no process can be started, as when Node
 * itself was updated since this process began. The message is a phrase.
 */
export function hubStarter(options: AttachOptions, site: HubSite): (claim: Claim) => void {
  return (claim) => startHub(claim, options, site);
}

function startHub({ number, listener }: Claim, options: AttachOptions, { configFile, folder }: HubSite): void {
  const program = [...process.execArgv, process.argv[1] ?? ''];
  const hubFolder = ['--place', join(folder, String(number))];
  const log = openLog(hubLog(folder));
  const { pid, ended } = hubFiles(folder, number);
  let isStarted = false;
  try {
    const args = [...program, 'hub', 'serve', ...hubFolder, '--config', configFile, ...loggingArgs(options)];
    const child = spawn(process.execPath, args, {
      cwd: homeOr(folder),
      env: hubEnvironment(namesIn(configFile)),
      detached: true,
      windowsHide: true,
      stdio: ['ignore', 'ignore', log ?? 'ignore', descriptorOf(listener)],
    });
    // Without a process, there is no id; the error comes later.
    child.on('error', () => {});
    if (child.pid === undefined) throw new Error(`${process.execPath} cannot be run`);
    isStarted = true;
    // So that a person can find a hub that does not answer.
    note(pid, String(child.pid));
    child.unref();
  } finally {
    // The socket is closed, so that the next client looks for another hub. No hub has failed: that client may start one.
    if (!isStarted) note(ended);
    listener.close();
    if (log !== undefined) closeSync(log);
  }
}

/** A process cannot be started in a folder that does not exist, such as the home folder of a user without one. */
function homeOr(folder: string): string {
  const home = homedir();
  try {
    accessSync(home, constants.X_OK);
    return home;
  } catch {
    return folder;
  }
}

const { O_WRONLY, O_APPEND, O_CREAT, O_NONBLOCK = 0, O_NOFOLLOW = 0 } = constants;

/** A hub runs without a log, too: the disk may be full. */
function openLog(file: string): number | undefined {
  try {
    return openSync(file, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_NOFOLLOW, 0o600);
  } catch {
    return undefined;
  }
}

/** Node documents no way to pass a listening socket on to a program, but `spawn` takes any descriptor. */
function descriptorOf(listener: Server): number {
  const { _handle: handle } = listener as unknown as { _handle: { readonly fd: number } };
  return handle.fd;
}

/** Whether clients of this configuration share a hub. Throws if the file cannot be read. */
export function isHubWanted(configFile: string): boolean {
  return process.env.TRUNKLINE_HUB === 'auto' || SAYS_AUTO.test(readConfigText(configFile));
}

/** A line such as `hub: auto`. The hub reads the file properly, and refuses clients if the file does not mean that. */
const SAYS_AUTO = /(?:^|[\s{,])["']?hub["']?\s*:\s*["']?auto\b/;

/** The names of all variables that the configuration refers to now. */
function namesIn(configFile: string): string[] {
  let text: string;
  try {
    text = readConfigText(configFile);
  } catch {
    // The hub says what is wrong with the file.
    return [];
  }
  return [...new Set([...text.matchAll(/\$\{(?!secret:)([A-Za-z_][A-Za-z0-9_]*)/g)].map(([, name = '']) => name))];
}

export function helloOf(configFile: string, resumed: number, view?: string): Omit<Hello, 'wire' | 'token'> {
  const { env } = process;
  const environment = Object.fromEntries(
    namesIn(configFile).flatMap((name) => {
      const value = env[name];
      return value === undefined ? [] : [[name, value]];
    }),
  );
  const own = { version: VERSION, pid: process.pid, folder: workingFolder(), environment, path: env.PATH ?? '' };
  return { role: 'client', ...own, ...(view !== undefined && { view }), resumed };
}

/** The working folder may have been removed; a server that runs there cannot start then. */
function workingFolder(): string {
  try {
    return process.cwd();
  } catch {
    return process.env.PWD ?? '';
  }
}

/**
 * Environment of the hub: that of the client that starts it, because npm may need it. It lacks the variables that the
 * configuration names, because each client has its own values, and the marks of an outer Trunkline, which would end the hub
 * with itself. Variables of every server and those that lead to Trunkline's data stay, even if the configuration names them.
 */
function hubEnvironment(names: readonly string[]): Record<string, string> {
  const own = names.filter((name) => name !== 'XDG_DATA_HOME' && !isInherited(name, process.platform));
  const left = new Set([...own, 'TRUNKLINE_CONFIG']);
  const kept = Object.entries(process.env).filter(([name]) => !left.has(name) && !name.startsWith(FAMILY_PREFIX));
  return Object.fromEntries(kept.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])));
}

function loggingArgs({ verbosity, logFile }: AttachOptions): string[] {
  return [...Array<string>(verbosity).fill('-v'), ...(logFile === undefined ? [] : ['--log-file', logFile])];
}

/** The older hub serves on. */
const goOn = (): void => {};

/** After an update, or when npx has emptied its cache, this process is all that is left of the program. */
function leaveUnserved(error: unknown): void {
  const program = process.argv[1] ?? '';
  process.stderr.write(
    `trunkline: the hub has ended, and ${program} cannot be loaded any more, as after an update; start the client again (${String(error)})\n`,
  );
  process.exit(EXIT.failed);
}

/** Starts a hub in this process, and returns the client's end of the connection to it. */
function serveInside(loadHub: LoadHub, hello: Omit<Hello, 'wire' | 'token'>, because: string): HubEnd {
  const [here, there] = memoryPair();
  void loadHub().then((serve) => serve(hello, because, there), leaveUnserved);
  return {
    stream: here,
    readInto: (reader: ByteReader) => {
      here.on('data', (chunk: Uint8Array) => copyInto(reader, chunk));
    },
  };
}

/** Two streams in this process: what is written to one is read from the other, as with the two ends of a socket. */
export function memoryPair(): [Duplex, Duplex] {
  const one = new MemoryEnd();
  const other = new MemoryEnd();
  one.peer = other;
  other.peer = one;
  return [one, other];
}

class MemoryEnd extends Duplex {
  peer: MemoryEnd | undefined;
  #onRead: (() => void) | undefined;

  constructor() {
    super({ allowHalfOpen: true });
  }

  override _read(): void {
    const onRead = this.#onRead;
    this.#onRead = undefined;
    onRead?.();
  }

  override _write(chunk: Uint8Array, _encoding: string, callback: () => void): void {
    if (this.peer === undefined || this.peer.destroyed || this.peer.#take(chunk)) callback();
    else this.peer.#onRead = callback;
  }

  override _final(callback: () => void): void {
    this.peer?.push(null);
    callback();
  }

  override _destroy(error: Error | null, callback: (error: Error | null) => void): void {
    const { peer } = this;
    this.peer = undefined;
    // As a socket, which is closed at both ends.
    if (peer !== undefined && !peer.destroyed) queueMicrotask(() => peer.destroy());
    callback(error);
  }

  /** The reader may keep the bytes, and the writer may use their memory again. */
  #take(chunk: Uint8Array): boolean {
    return this.push(Buffer.from(chunk));
  }
}
