import { isIP } from 'node:net';
import { createClient, RESP_TYPES, type RedisClientType } from '@redis/client';
import type { Address, StoreLocation } from '../../config/schema/cluster-address.js';
import { ERROR_SIGNS, errorCode, errorMessage } from '../../host/errors/error-text.js';
import { UsageError } from '../../host/errors/usage-error.js';
import { readNamedFile, secretRules, unusableFile } from '../../host/files/whole-file.js';
import { printable } from '../../wire/json/printable.js';
import { type ClusterStore, StoreUnavailable } from './store.js';

export interface RedisStoreOptions {
  readonly location: StoreLocation;
  /** Name of the cluster, with which all keys begin. */
  readonly name: string;
  readonly user?: string | undefined;
  readonly passwordFile?: string | undefined;
  /** A folder in which the system puts secrets. */
  readonly secretFolder?: string | undefined;
  /** Certificates of authorities that sign the certificate of the store, in PEM, instead of those of the system. */
  readonly caFile?: string | undefined;
  /** How long a command may take. Default: 250 ms. */
  readonly commandMs?: number;
}

/** How long a connection to a server or to a Sentinel may take, in milliseconds. */
const CONNECT_MS = 1_000;
const COMMAND_MS = 250;
const MAX_PASSWORD_BYTES = 4_096;
const MAX_CA_BYTES = 1024 * 1024;
/** Limit of the claims that one command renews or releases, so that other commands do not wait long. */
const CLAIMS_AT_ONCE = 500;

/** Opens a store that is away until its first `beat`. Rejects with a `UsageError` if a file cannot be used. */
export async function openRedisStore(options: RedisStoreOptions): Promise<ClusterStore> {
  return new RedisStore(options, await readCredentials(options));
}

async function readCredentials({ passwordFile, secretFolder, caFile }: RedisStoreOptions): Promise<Credentials> {
  return {
    password: passwordFile === undefined ? undefined : await readPassword(passwordFile, secretFolder),
    ca: caFile === undefined ? undefined : await readCertificates(caFile),
  };
}

async function readPassword(file: string, secretFolder: string | undefined): Promise<string> {
  const setting = 'gateway.cluster.storePasswordFile';
  const hint = `write the password of the store to the file, and make it readable for its owner alone: chmod 600 ${file}`;
  const bytes = await readNamedFile(file, setting, secretRules(file, MAX_PASSWORD_BYTES, secretFolder), hint);
  const text = bytes.toString().replace(/\r?\n$/, '');
  if (text !== '') return text;
  throw unusableFile(file, setting, 'it is empty', hint);
}

async function readCertificates(file: string): Promise<string> {
  const setting = 'gateway.cluster.storeCaFile';
  const hint = 'correct the path, or write the certificate of the authority to the file, in PEM';
  const text = String(await readNamedFile(file, setting, { maxBytes: MAX_CA_BYTES, followsLinks: true }, hint));
  if (text.includes('-----BEGIN CERTIFICATE-----')) return text;
  throw unusableFile(file, setting, 'it has no certificate in PEM', hint);
}

interface Credentials {
  readonly password: string | undefined;
  readonly ca: string | undefined;
}

type Client = Pick<RedisClientType, 'sendCommand' | 'destroy'>;

/**
 * A store at Redis or Valkey. A connection lives until its first failure, with all commands on it. `beat` makes the next one,
 * so that the store is found again after it was stopped, emptied, or replaced by another server behind the Sentinels.
 */
class RedisStore implements ClusterStore {
  readonly #options: RedisStoreOptions;
  #credentials: Credentials;
  readonly #commandMs: number;
  #client: Client | undefined;
  /** Number of answers so far, which come in the order of the commands. */
  #answers = 0;
  /** Why there is no connection. */
  #fault = new StoreUnavailable('the store of the cluster was not asked yet');
  #isClosed = false;

  constructor(options: RedisStoreOptions, credentials: Credentials) {
    this.#options = options;
    this.#credentials = credentials;
    this.#commandMs = options.commandMs ?? COMMAND_MS;
  }

  get isUp(): boolean {
    return this.#client !== undefined;
  }

  async beat(member: string, text: string, ms: number): Promise<ReadonlyMap<string, string>> {
    await this.connect();
    const flat = await this.#eval<string[]>(BEAT, [this.#members], [member, text, String(ms)]);
    return new Map(flat.flatMap((name, at) => (at % 2 === 0 ? [[name, flat[at + 1] ?? '']] : [])));
  }

  async leave(member: string): Promise<void> {
    await this.#send(['HDEL', this.#members, member]);
  }

  async claim(name: string, holder: string, ms: number, instead = ''): Promise<string> {
    return await this.#eval<string>(CLAIM, [this.#claim(name)], [holder, String(ms), instead]);
  }

  async holderOf(name: string): Promise<string | undefined> {
    return (await this.#send<string | null>(['GET', this.#claim(name)])) ?? undefined;
  }

  async renew(names: readonly string[], holder: string, ms: number): Promise<readonly string[]> {
    const lost: string[] = [];
    for (const some of chunks(names)) {
      const places = await this.#eval<number[]>(RENEW, some.map(this.#claim), [holder, String(ms)]);
      lost.push(...places.flatMap((place) => some[place - 1] ?? []));
    }
    return lost;
  }

  async release(names: readonly string[], holder: string): Promise<void> {
    for (const some of chunks(names)) await this.#eval(RELEASE, some.map(this.#claim), [holder]);
  }

  async read(name: string): Promise<Uint8Array | undefined> {
    return (await this.#send<Buffer | null>(['GET', this.#record(name)], BYTES)) ?? undefined;
  }

  async write(name: string, value: Uint8Array, ms?: number): Promise<void> {
    await this.#send(['SET', this.#record(name), bufferOf(value), ...(ms === undefined ? [] : ['PX', String(ms)])]);
  }

  async replace(name: string, before: Uint8Array | undefined, value: Uint8Array): Promise<boolean> {
    const content = before === undefined ? [] : [bufferOf(before)];
    return (await this.#eval<number>(REPLACE, [this.#record(name)], [bufferOf(value), ...content])) === 1;
  }

  async remove(name: string): Promise<void> {
    await this.#send(['DEL', this.#record(name)]);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#fault = new StoreUnavailable('the store of the cluster was closed');
    this.#client?.destroy();
    this.#client = undefined;
  }

  /** All keys have one hash tag, so that they are in one slot of a Redis Cluster. */
  get #members(): string {
    return `{${this.#options.name}}:members`;
  }

  readonly #claim = (name: string) => `{${this.#options.name}}:claim:${name}`;
  readonly #record = (name: string) => `{${this.#options.name}}:record:${name}`;

  #eval<Reply>(script: string, keys: readonly string[], values: readonly (string | Buffer)[]): Promise<Reply> {
    return this.#send<Reply>(['EVAL', script, String(keys.length), ...keys, ...values]);
  }

  async #send<Reply>(args: readonly (string | Buffer)[], options?: typeof BYTES): Promise<Reply> {
    const client = this.#client;
    if (client === undefined) throw this.#fault;
    try {
      const reply = await within(this.#commandMs, client.sendCommand([...args], options), () => this.#answers);
      this.#answers += 1;
      return reply as Reply;
    } catch (error) {
      throw this.#lost(client, error);
    }
  }

  /** Ends a connection, with all commands on it, after its first failure. Returns why there is none. */
  #lost(client: Client, error: unknown): StoreUnavailable {
    if (this.#client !== client) return this.#fault;
    this.#client = undefined;
    this.#fault = unavailable(error);
    client.destroy();
    return this.#fault;
  }

  async connect(): Promise<void> {
    if (this.#client !== undefined) return;
    if (this.#isClosed) throw this.#fault;
    try {
      // Reads the files again, because they may have changed.
      this.#credentials = await readCredentials(this.#options);
      const client = await this.#openServer(await this.#serverAddress());
      if (!this.#isClosed && this.#client === undefined) this.#client = client;
      else client.destroy();
    } catch (error) {
      if (!this.#isClosed) this.#fault = unavailable(error);
      throw this.#fault;
    }
  }

  /** Connects to a server that has the keys: the one at the address, or another one of the same Redis Cluster to which it redirects. */
  async #openServer(address: Address): Promise<Client> {
    const { user } = this.#options;
    const { password } = this.#credentials;
    const client = await this.#open(address, user, password);
    try {
      await within(this.#commandMs, client.sendCommand(['GET', this.#record('')]));
      return client;
    } catch (error) {
      client.destroy();
      const [, host, port] = /^MOVED \d+ (.*):(\d+)$/.exec(errorMessage(error)) ?? [];
      if (port === undefined) throw error;
      return await this.#open({ host: host || address.host, port: Number(port) }, user, password);
    }
  }

  async #serverAddress(): Promise<Address> {
    const { addresses, sentinelMaster } = this.#options.location;
    if (sentinelMaster === undefined) return addresses[0];
    const asked = await Promise.allSettled(addresses.map((address) => this.#askSentinel(address, sentinelMaster)));
    const answers = asked.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value] : []));
    const named = answers.flatMap((address) => address ?? []);
    // A Sentinel that was cut off from the others can still name the old server, so most votes decide.
    const votes = ({ host, port }: Address) => named.filter((it) => it.host === host && it.port === port).length;
    const [first] = named.toSorted((a, b) => votes(b) - votes(a));
    if (first !== undefined) return first;
    if (answers.length > 0) throw new Error(`no Sentinel knows a server with the name ${sentinelMaster}`);
    throw asked.find((answer) => answer.status === 'rejected')?.reason;
  }

  /** Asks for the address of the server; `undefined` if the name is unknown. A Sentinel has no password, or that of the server. */
  async #askSentinel(address: Address, master: string, password?: string): Promise<Address | undefined> {
    const client = await this.#open(address, undefined, password, 0);
    try {
      const found = await within(this.#commandMs, client.sendCommand(['SENTINEL', 'GET-MASTER-ADDR-BY-NAME', master]));
      const [host, port] = (found ?? []) as unknown as string[];
      return host === undefined ? undefined : { host, port: Number(port) };
    } catch (error) {
      const own = this.#credentials.password;
      if (password !== undefined || own === undefined || !/^NOAUTH/.test(errorMessage(error))) throw error;
      return await this.#askSentinel(address, master, own);
    } finally {
      client.destroy();
    }
  }

  /** Connects to a server or a Sentinel. The connection ends with its first failure. */
  async #open(
    { host, port }: Address,
    username: string | undefined,
    password: string | undefined,
    database = this.#options.location.database,
  ): Promise<Client> {
    const { ca } = this.#credentials;
    const client = createClient({
      socket: {
        host,
        port,
        connectTimeout: CONNECT_MS,
        reconnectStrategy: false,
        ...(this.#options.location.isTls && {
          tls: true as const,
          ...(ca !== undefined && { ca }),
          ...(isIP(host) === 0 && { servername: host }),
        }),
      },
      ...(username !== undefined && { username }),
      ...(password !== undefined && { password }),
      database,
      RESP: 2,
      disableOfflineQueue: true,
      disableClientInfo: true,
      maintNotifications: 'disabled',
      // The timeout of the library ends when the command is written, so `within` has another one.
      commandOptions: { timeout: 0 },
    });
    client.on('error', (error) => this.#lost(client, error));
    const connected = client.connect();
    try {
      await within(CONNECT_MS, connected);
      return client;
    } catch (error) {
      client.destroy();
      // Destroys the client again, because one that was destroyed during its DNS lookup would connect and stay connected.
      connected.then(
        () => client.destroy(),
        () => {},
      );
      throw error;
    }
  }
}

const BYTES = { typeMapping: { [RESP_TYPES.BLOB_STRING]: Buffer } };

function bufferOf({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}

function chunks(names: readonly string[]): string[][] {
  const count = Math.ceil(names.length / CLAIMS_AT_ONCE);
  return Array.from({ length: count }, (_, at) => names.slice(at * CLAIMS_AT_ONCE, (at + 1) * CLAIMS_AT_ONCE));
}

/** Parts of a deadline. A part that ends late, because this process was held up, counts as one part. */
const PARTS = 5;

/**
 * Rejects if the promise takes longer and no other answer comes meanwhile, because a thousand commands at once are answered one
 * after another. `answers` returns the number of answers. Those that have arrived are read first, and the time in which this
 * process did not run does not count, because a store that answers must not seem to be away.
 */
async function within<T>(ms: number, promise: Promise<T>, answers = () => 0): Promise<T> {
  let isOver = false;
  const late = async () => {
    let before = answers();
    for (let parts = PARTS; parts > 0 && !isOver; parts -= 1) {
      // An event loop that was held up by other work runs its timers before it reads its sockets.
      await new Promise((resolve) => setTimeout(() => setImmediate(resolve), ms / PARTS));
      if (answers() !== before) [parts, before] = [PARTS + 1, answers()];
    }
    if (!isOver) throw new Error(`no answer within ${ms} ms`);
    return await promise;
  };
  return await Promise.race([promise, late()]).finally(() => {
    isOver = true;
  });
}

/** Clauses about refusals that a setting can mend, by the beginnings of the errors of Redis and Valkey. */
const REFUSALS: readonly (readonly [RegExp, string])[] = [
  [
    /^WRONGPASS|^ERR invalid password/,
    'refuses the password of gateway.cluster.storePasswordFile, or the user of gateway.cluster.storeUser',
  ],
  [/^NOAUTH/, 'wants a password; write it to a file, and set gateway.cluster.storePasswordFile to its path'],
  [
    /^ERR (?:Client sent AUTH, but no password|AUTH .*without any password)/,
    'has no password; remove gateway.cluster.storePasswordFile',
  ],
  [
    /^NOPERM/,
    'does not permit a command to the user of gateway.cluster.storeUser; docs/configuration.md lists the commands',
  ],
];

function unavailable(error: unknown): StoreUnavailable {
  if (error instanceof UsageError) return new StoreUnavailable(`${error.message}; ${error.hint}`, { cause: error });
  const message = printable(errorMessage(error)).slice(0, 200);
  const refusal = REFUSALS.find(([sign]) => sign.test(message))?.[1];
  if (refusal !== undefined) return new StoreUnavailable(`the store of the cluster ${refusal}`, { cause: error });
  const isCertificate = ERROR_SIGNS.certificate.npmCode.test(errorCode(error) ?? '');
  const hint = isCertificate ? '; set gateway.cluster.storeCaFile to the certificate of its authority' : '';
  return new StoreUnavailable(`the store of the cluster is not reachable: ${message}${hint}`, { cause: error });
}

/** KEYS: members. ARGV: member, text, milliseconds. */
const BEAT = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f ', now + ARGV[3]) .. ARGV[2])
local all, live, last = redis.call('HGETALL', KEYS[1]), {}, now
for at = 1, #all, 2 do
  local ends, text = string.match(all[at + 1], '^(%d+) (.*)$')
  ends = tonumber(ends or 0)
  if ends > now then
    live[#live + 1] = all[at]
    live[#live + 1] = text
    last = math.max(last, ends)
  else
    redis.call('HDEL', KEYS[1], all[at])
  end
end
redis.call('PEXPIREAT', KEYS[1], string.format('%.0f', last))
return live`;

/** KEYS: claim. ARGV: holder, milliseconds, the holder that may be replaced. */
const CLAIM = `
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] and holder ~= ARGV[3] then return holder end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return ARGV[1]`;

/** KEYS: claims. ARGV: holder, milliseconds. Returns the places of the claims that others have. */
const RENEW = `
local lost = {}
for at, key in ipairs(KEYS) do
  local holder = redis.call('GET', key)
  if holder and holder ~= ARGV[1] then lost[#lost + 1] = at
  else redis.call('SET', key, ARGV[1], 'PX', ARGV[2]) end
end
return lost`;

/** KEYS: claims. ARGV: holder. */
const RELEASE = `
for _, key in ipairs(KEYS) do
  if redis.call('GET', key) == ARGV[1] then redis.call('DEL', key) end
end`;

/** KEYS: record. ARGV: new content, content before, if there was any. */
const REPLACE = `
if redis.call('GET', KEYS[1]) ~= (ARGV[2] or false) then return 0 end
redis.call('SET', KEYS[1], ARGV[1])
return 1`;
