import { spawn } from 'node:child_process';
import { accessSync, closeSync, constants, openSync } from 'node:fs';
import type { Server } from 'node:net';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { Duplex } from 'node:stream';
import { ConfigLocation, readConfigText } from '../../config/file/find-config.js';
import { END_SIGNALS, EXIT } from '../../host/errors/usage-error.js';
import { FAMILY_PREFIX, isInherited, spellingsOf } from '../../servers/process/environment.js';
import { trustedTextAround } from '../../state/trusted-projects.js';
import { userDataFolder, userHubsFolder } from '../../state/user-files.js';
import { VERSION } from '../../version.js';
import { type ByteReader, copyInto } from '../../wire/io/byte-reader.js';
import { passClaim } from '../endpoint.js';
import { type Claim, hubFiles, hubFolder, hubLog, writeMarker } from '../hub-folder.js';
import type { ClientHello } from '../wire.js';
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
type LoadHub = () => Promise<(hello: ClientHello, because: string, stream: Duplex) => Promise<void>>;

/** `undefined` if the client was served. Otherwise nothing was read from stdin; `because` is absent if no hub is wanted. */
export type NotAttached = { readonly because: string | undefined } | undefined;

/**
 * Connects the client on stdin and stdout to the hub of its configuration. Starts a hub if none runs. Loads as little code
 * as possible, because each client has a process of this kind for as long as it runs.
 */
export async function attach(options: AttachOptions, loadHub: LoadHub): Promise<NotAttached> {
  let configFile: string;
  try {
    configFile = new ConfigLocation(options).file;
    if (!isHubWanted(configFile)) return { because: undefined };
  } catch {
    // The process that serves the client reads the file again, and reports the mistakes.
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
  // Node creates these streams at the first access, which takes about as long as the hub needs to answer.
  const { stdin: input, stdout: output } = process;
  const found = await finding;
  if (found.kind === 'none') return { because: found.because };
  const { connection } = found;
  // The hub has another version, as after an update.
  if (connection.version !== VERSION)
    void import('./control-client.js').then(
      ({ succeedOlder }) => succeedOlder(folder, connection, start),
      // The older hub serves on.
      () => {},
    );
  const leave = () => process.exit(0);
  for (const signal of END_SIGNALS) process.once(signal, leave);
  await attachClient({
    input,
    output,
    first: { stream: connection.socket, readInto: (reader) => connection.readInto(reader) },
    find,
    serveAlone: (because, resumed) => {
      // Servers run in this process from now on, and it has to end them at a signal.
      for (const signal of END_SIGNALS) process.off(signal, leave);
      return serveInside(loadHub, helloOf(configFile, resumed, options.view), because);
    },
    // `performance` would have to be loaded by Node.
    now: () => process.uptime() * 1_000,
  });
  return undefined;
}

/** The folder of the hub of this configuration file. Throws if no folder can be used; the message is a phrase. */
export function folderOfHub(configFile: string): string {
  return hubFolder({ configFile, dataFolder: userDataFolder(), hubsFolder: userHubsFolder() });
}

interface StartPlace {
  readonly configFile: string;
  readonly folder: string;
}

/**
 * Returns a function that starts a hub and hands it the listening socket, if there is one. The hub outlives this process. Clients can
 * connect at once, because they wait in the queue of the socket until the hub accepts them; or they wait until the hub listens itself.
 * The function throws if no process can be started, for example after an update of Node. The message is a phrase.
 */
export function hubStarter(options: AttachOptions, site: StartPlace): (claim: Claim) => void {
  return (claim) => startHub(claim, options, site);
}

function startHub({ number, listener }: Claim, options: AttachOptions, { configFile, folder }: StartPlace): void {
  const program = [...process.execArgv, process.argv[1] ?? ''];
  const hubFolder = ['--place', join(folder, String(number))];
  const log = openLog(hubLog(folder));
  const { folder: own, pid, ended } = hubFiles(folder, number);
  let isStarted = false;
  try {
    const args = [...program, 'hub', 'serve', ...hubFolder, '--config', configFile, ...loggingArgs(options)];
    const child = spawn(process.execPath, args, {
      cwd: homeOr(folder),
      env: hubEnvironment(namesIn(configFile)),
      detached: true,
      windowsHide: true,
      stdio: ['ignore', 'ignore', log ?? 'ignore', ...(listener === undefined ? [] : [descriptorOf(listener)])],
    });
    // Without a process, the pid is absent, and the error event comes later.
    child.on('error', () => {});
    if (child.pid === undefined) throw new Error(`${process.execPath} cannot be run`);
    isStarted = true;
    if (listener === undefined) passClaim(own, child.pid);
    // Notes the pid for messages about a hub that does not answer.
    writeMarker(pid, String(child.pid));
    child.unref();
  } finally {
    // Marks the hub as ended, and not as failed, so that the next client may start one. That client finds the socket closed.
    if (!isStarted) writeMarker(ended);
    listener?.close();
    if (log !== undefined) closeSync(log);
  }
}

/** The home folder, or `folder` if there is no home folder, because a process cannot be started in a missing folder. */
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

/** Opens the log. Returns `undefined` if it cannot be opened, such as on a full disk, because a hub also runs without a log. */
function openLog(file: string): number | undefined {
  try {
    return openSync(file, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_NOFOLLOW, 0o600);
  } catch {
    return undefined;
  }
}

/** Descriptor of a listening socket, which `spawn` can pass on. Node has no documented way to pass on the socket itself. */
function descriptorOf(listener: Server): number {
  const { _handle: handle } = listener as unknown as { _handle: { readonly fd: number } };
  return handle.fd;
}

/** Whether clients of this configuration share a hub. Throws if the file cannot be read. */
export function isHubWanted(configFile: string): boolean {
  if (process.env.TRUNKLINE_HUB === 'auto') return true;
  const [, says = 'auto'] = SETTING.exec(readConfigText(configFile)) ?? [];
  return says === 'auto';
}

/** Matches a line such as `hub: off`, also before a comment. The hub parses the file, and refuses clients if it is off there. */
const SETTING = /^(?:[^#\n]*[\s{,])?["']?hub["']?\s*:\s*["']?(auto|off)\b/m;

/** Names of all variables to which the configuration file refers now, and the file of a trusted project around the working folder. */
function namesIn(configFile: string): string[] {
  let text = trustedTextAround(workingFolder());
  try {
    text += readConfigText(configFile);
  } catch {
    // The hub reports what is wrong with the file.
  }
  return [...new Set([...text.matchAll(/\$\{(?!secret:)([A-Za-z_][A-Za-z0-9_]*)/g)].map(([, name = '']) => name))];
}

/** The hello of this process, with its values of the variables that the configuration names. `resumed` is that of `Hello`. */
export function helloOf(configFile: string, resumed: number, view?: string): ClientHello {
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

/** The working folder, or its former path if it was removed. A server cannot start in a removed folder. */
function workingFolder(): string {
  try {
    return process.cwd();
  } catch {
    return process.env.PWD ?? '';
  }
}

/**
 * Environment of the hub: the environment of the client that starts the hub, because npm may need it. It lacks the variables
 * that the configuration names, because each client has its own values. It lacks the marks of an outer Trunkline, because
 * that Trunkline would end the hub with itself. It has `XDG_DATA_HOME`, the `OTEL_*` variables, which say where the hub sends
 * traces, and the variables that every server gets, even if the configuration names them.
 */
function hubEnvironment(names: readonly string[]): Record<string, string> {
  const isOfHub = (name: string) => name === 'XDG_DATA_HOME' || name.startsWith('OTEL_');
  const own = names.filter((name) => !isOfHub(name) && !isInherited(name, process.platform));
  const env = { ...process.env };
  const all = Object.keys(env);
  for (const name of [...own, 'TRUNKLINE_CONFIG']) for (const same of spellingsOf(name, all)) delete env[same];
  const kept = Object.entries(env).filter(([name]) => !name.startsWith(FAMILY_PREFIX));
  return Object.fromEntries(kept.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])));
}

function loggingArgs({ verbosity, logFile }: AttachOptions): string[] {
  return [...Array<string>(verbosity).fill('-v'), ...(logFile === undefined ? [] : ['--log-file', logFile])];
}

/** Ends this process, because an update or npx has removed the code that would serve the client. */
function leaveUnserved(error: unknown): void {
  const program = process.argv[1] ?? '';
  process.stderr.write(
    `trunkline: the hub has ended, and ${program} cannot be loaded any more, as after an update; start the client again (${String(error)})\n`,
  );
  process.exit(EXIT.failed);
}

/** Starts a hub in this process, and returns the client's end of the connection to that hub. */
function serveInside(loadHub: LoadHub, hello: ClientHello, because: string): HubEnd {
  const [here, there] = memoryPair();
  void loadHub().then((serve) => serve(hello, because, there), leaveUnserved);
  return {
    stream: here,
    readInto: (reader: ByteReader) => void here.on('data', (chunk: Uint8Array) => copyInto(reader, chunk)),
  };
}

/** Two connected streams in this process, as the two ends of a socket: bytes written to one are read from the other. */
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
    // Closes both ends, as a socket does.
    if (peer !== undefined && !peer.destroyed) queueMicrotask(() => peer.destroy());
    callback(error);
  }

  /** Copies the bytes, because the writer may use their memory again while the reader still needs them. */
  #take(chunk: Uint8Array): boolean {
    return this.push(Buffer.from(chunk));
  }
}
