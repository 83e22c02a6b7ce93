// The services of deploy/compose/compose.yaml as processes of this machine, without Docker: with the commands, configuration
// files, variables, health checks and signals of the Compose file and of the Dockerfile. Paths of the containers become paths
// within a temporary folder, and each service has a loopback address of its own in place of a name. Needs Linux.
import { execFile, spawn, spawnSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import {
  appendFileSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { parse } from 'yaml';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const COMPOSE_FOLDER = join(ROOT, 'deploy/compose');
const run = promisify(execFile);

/** The services of the Compose file, by their names. */
export function readCompose() {
  return parse(readFileSync(join(COMPOSE_FOLDER, 'compose.yaml'), 'utf8'), { merge: true }).services;
}

/** The facts of the Dockerfile about the image that runs. */
export function readImage() {
  const text = readFileSync(join(ROOT, 'deploy/Dockerfile'), 'utf8').replaceAll(/\\\n\s*/g, '');
  const lines = text.slice(text.lastIndexOf('\nFROM ')).split('\n');
  const last = (word) => lines.findLast((line) => line.startsWith(`${word} `)).slice(word.length + 1);
  const [user, group] = last('USER').split(':').map(Number);
  return {
    user,
    group,
    env: Object.fromEntries([...last('ENV').matchAll(/(\w+)=(\S+)/g)].map(([, name, value]) => [name, value])),
    links: [...text.matchAll(/ln -s (\S+) (\S+)/g)].map(([, target, link]) => ({ target, link })),
    entrypoint: JSON.parse(last('ENTRYPOINT')),
  };
}

/** The programs of Valkey, and those of Redis, which take their place where Valkey is not installed. */
const STORE_PROGRAMS = { 'valkey-server': 'redis-server', 'valkey-cli': 'redis-cli' };
/** Docker's time between SIGTERM and SIGKILL. */
const STANDARD_GRACE = '10s';
const HEALTHY_WITHIN_MS = 60_000;
const POLL_MS = 100;

/** The stack of one run, with this proxy in front. HAProxy is no service of the Compose file and takes the place of nginx. */
export class Stack {
  /** Part of the environment of each process, so that processes that are left can be found. */
  #folder = mkdtempSync(join(tmpdir(), 'trunkline-compose-'));
  #image = readImage();
  #services = readCompose();
  #proxy;
  #addresses;
  /** Paths of this machine by those within all containers. */
  #paths = new Map();
  /** The user of the processes: that of the image, if this process may become another user. */
  #user = {};
  #running = new Map();

  constructor(proxy) {
    this.#proxy = proxy;
    const net = `127.74.${Math.floor(Math.random() * 256)}`;
    const names = [...Object.keys(this.#services), 'haproxy'];
    this.#addresses = new Map(names.map((name, index) => [name, `${net}.${index + 10}`]));
  }

  /** The names of the services that run Trunkline. */
  get gateways() {
    const entries = Object.entries(this.#services);
    return entries.filter(([, { image, restart }]) => image === 'trunkline' && restart !== 'no').map(([name]) => name);
  }

  /** The URL at which the proxy serves. */
  get url() {
    const [port] = this.#services.nginx.ports[0].split(':').slice(-1);
    return `http://${this.addressOf()}:${port}`;
  }

  /** The address of a service; without a name, that of the proxy. */
  addressOf(name = this.#proxy) {
    return this.#addresses.get(name);
  }

  /** Makes the files of the image, and starts all services. */
  async open() {
    this.#chooseUser();
    await this.#makeImage();
    for (const name of this.gateways) await this.start(name);
    await (this.#proxy === 'nginx' ? this.start('nginx') : this.#startHaproxy());
    await this.#until(this.#proxy, () => fetch(`${this.url}/livez`).then(({ ok }) => ok));
  }

  /** Adds a user to the file of tokens, while the gateways run. Returns the token. */
  addUser(name) {
    const token = randomBytes(32).toString('hex');
    const hash = createHash('sha256').update(token).digest('hex');
    appendFileSync(join(this.#paths.get('/etc/trunkline'), 'tokens'), `${name} ${hash}\n`);
    return token;
  }

  /** Starts a service when those are there on which it depends. Resolves when it is healthy. */
  async start(name) {
    const service = this.#services[name];
    for (const [needed, { condition }] of Object.entries(service.depends_on ?? {})) {
      if (!this.#running.has(needed)) await this.start(needed);
      if (condition === 'service_completed_successfully') await this.#completed(needed);
    }
    const own = this.#mount(name, service);
    const argv = name === 'nginx' ? this.#nginx(own) : this.#argvOf(name, service, own);
    this.#spawn(name, argv, own, service.stop_grace_period);
    if (service.healthcheck?.test !== undefined) await this.#healthy(name, service.healthcheck.test);
  }

  /** Removes all files of a volume. */
  empty(volume) {
    rmSync(join(this.#folder, 'volumes', volume), { recursive: true });
    this.#make('volumes', volume);
  }

  /** Suspends a service, or continues it, as `docker pause` and `docker unpause` do. */
  suspend(name, isSuspended) {
    for (const pid of this.#pidsOf(name)) signal(pid, isSuspended ? 'SIGSTOP' : 'SIGCONT');
  }

  /** Ends a service as `docker kill` does. Resolves when its processes have closed their connections. */
  async kill(name) {
    const pids = this.#killAll(name);
    await this.#running.get(name).exited;
    while (!pids.every(hasEnded)) await sleep(POLL_MS);
    this.#running.delete(name);
  }

  /** Ends a service as `docker stop` does. Resolves with its exit code, `null` if it had to be killed. */
  async stop(name) {
    const { child, exited, graceMs } = this.#running.get(name);
    child.kill('SIGTERM');
    const isInTime = await Promise.race([exited.then(() => true), sleep(graceMs, false, { ref: false })]);
    if (!isInTime) this.#killAll(name);
    await exited;
    this.#running.delete(name);
    return child.exitCode;
  }

  /** Ends everything, the proxy first. Resolves with what did not end in an orderly way, one line each. */
  async close() {
    if (this.#running.has(this.#proxy)) await this.stop(this.#proxy);
    const codes = await Promise.all([...this.#running.keys()].map(async (name) => [name, await this.stop(name)]));
    const left = await leftovers(this.#folder);
    rmSync(this.#folder, { recursive: true, force: true });
    return [...codes.filter(([, code]) => code !== 0).map(([name, code]) => `${name} ended with ${code}`), ...left];
  }

  /** The end of the output of each service. */
  lastWords() {
    const files = Object.entries({ ...this.#services, haproxy: {} }).map(([name]) => [
      name,
      join(this.#folder, 'services', name, 'output'),
    ]);
    const started = files.filter(([, file]) => existsSync(file));
    return started.map(([name, file]) => `${name}:\n${readFileSync(file, 'utf8').slice(-4_000)}`).join('\n');
  }

  #chooseUser() {
    if (process.getuid() !== 0) return;
    const { user: uid, group: gid } = this.#image;
    const canRead = spawnSync(process.execPath, [join(ROOT, 'dist/cli.js'), '--version'], { uid, gid }).status === 0;
    if (!canRead) return say(`The processes run as root, because user ${uid} cannot read ${ROOT}`);
    this.#user = { uid, gid };
    this.#give(this.#folder);
  }

  /** Makes the folders and links of the image. Its programs are this Node and the built CLI. */
  async #makeImage() {
    const configFolder = dirname(this.#image.env.TRUNKLINE_CONFIG);
    this.#paths.set('/app/dist', join(ROOT, 'dist'));
    for (const path of ['/usr/local/bin', configFolder]) this.#paths.set(path, this.#make('image', path));
    for (const [source, path] of Object.values(this.#services).flatMap(({ volumes }) => mountsOf(volumes)))
      if (isPath(source)) this.#paths.set(path, join(this.#folder, 'mounts', path));
    for (const { target, link } of this.#image.links) symlinkSync(this.#mapped(target), this.#mapped(link));
    symlinkSync(process.execPath, this.#mapped('/usr/local/bin/node'));
    for (const [name, other] of Object.entries(STORE_PROGRAMS)) {
      const program = pathOf(name) ?? pathOf(other);
      if (program === undefined) throw new Error(`Neither ${name} nor ${other} is installed`);
      symlinkSync(program, join(this.#mapped('/usr/local/bin'), name));
    }
    symlinkSync(await installServers(), join(this.#mapped(configFolder), 'node_modules'));
  }

  /** Makes the folders and mounts of a service. Mounted files have the paths and addresses of this machine in them. */
  #mount(name, { volumes, environment = {} }) {
    const folder = this.#make('services', name);
    const { XDG_DATA_HOME, HOME } = this.#image.env;
    const paths = new Map([XDG_DATA_HOME, HOME, '/tmp'].map((path) => [path, this.#make('services', name, path)]));
    const mounts = mountsOf(volumes);
    const named = mounts.filter(([source]) => !isPath(source));
    for (const [volume, path] of named) paths.set(path, this.#make('volumes', volume));
    for (const [source, path] of mounts.filter(([source]) => isPath(source))) {
      const target = this.#paths.get(path);
      if (!existsSync(target)) this.#copy(resolve(COMPOSE_FOLDER, source), target, { name, paths });
    }
    const env = Object.entries(environment).map(([variable, value]) => [variable, this.#hosted(name, value)]);
    return { folder, paths, env: Object.fromEntries(env) };
  }

  /** The command of a service; without tini where it is not installed. */
  #argvOf(name, { image, entrypoint = image === 'trunkline' ? this.#image.entrypoint : [], command }, { paths }) {
    const argv = [...entrypoint, ...command].map((arg) => this.#hosted(name, this.#mapped(arg, paths)));
    const hasTini = spawnSync('tini', ['--version']).error === undefined;
    return argv[0] === 'tini' && !hasTini ? argv.slice(2) : argv;
  }

  #copy(source, target, service) {
    if (statSync(source).isDirectory()) {
      mkdirSync(target, { recursive: true });
      for (const entry of readdirSync(source)) this.#copy(join(source, entry), join(target, entry), service);
      return;
    }
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(target, this.#hosted(service.name, this.#mapped(readFileSync(source, 'utf8'), service.paths)));
  }

  /** As the image of nginx starts it, but with folders of its own for temporary files. */
  #nginx({ folder }) {
    const file = this.#paths.get('/etc/nginx/nginx.conf');
    const kinds = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
    const temporary = kinds.map((kind) => `${kind}_temp_path ${this.#make('services', 'nginx', kind)};`).join('\n');
    writeFileSync(file, readFileSync(file, 'utf8').replace('http {', `http {\n${temporary}`));
    return ['nginx', '-p', folder, '-e', 'stderr', '-c', file, '-g', `daemon off; pid ${join(folder, 'pid')};`];
  }

  async #startHaproxy() {
    const own = this.#mount('haproxy', {});
    const file = join(own.folder, 'haproxy.cfg');
    writeFileSync(file, this.#hosted('haproxy', readFileSync(join(ROOT, 'deploy/haproxy/haproxy.cfg'), 'utf8')));
    await run('haproxy', ['-c', '-f', file]);
    this.#spawn('haproxy', ['haproxy', '-W', '-f', file], own);
  }

  /** Starts a process of its own group. */
  #spawn(name, [program, ...args], own, grace = STANDARD_GRACE) {
    const output = openSync(join(own.folder, 'output'), 'a');
    this.#give(join(own.folder, 'output'));
    const child = spawn(program, args, { ...this.#options(own), detached: true, stdio: ['ignore', output, output] });
    const kill = () => this.#killAll(name);
    process.once('exit', kill);
    const exited = new Promise((done) => child.once('exit', done)).then(() => process.off('exit', kill));
    this.#running.set(name, { child, exited, own, graceMs: Number(/^(\d+)s$/.exec(grace)[1]) * 1_000 });
  }

  #options({ folder, paths, env: own }) {
    const env = Object.entries(this.#image.env).map(([name, value]) => [name, this.#mapped(value, paths)]);
    const path = `${this.#paths.get('/usr/local/bin')}:${process.env.PATH}`;
    // tini has children of ended processes only as process 1, or with this variable.
    const usual = { PATH: path, TMPDIR: paths.get('/tmp'), TINI_SUBREAPER: '' };
    return { ...this.#user, cwd: folder, env: { ...usual, ...Object.fromEntries(env), ...own } };
  }

  async #completed(name) {
    const { child, exited } = this.#running.get(name);
    await exited;
    if (child.exitCode !== 0) throw new Error(`${name} ended with ${child.exitCode}`);
    this.#running.delete(name);
  }

  async #healthy(name, [, program, ...args]) {
    const hosted = args.map((arg) => this.#hosted(name, arg));
    const { own } = this.#running.get(name);
    await this.#until(name, () => run(program, hosted, this.#options(own)).then(() => true));
  }

  async #until(name, isHealthy) {
    const { child } = this.#running.get(name);
    for (const deadline = performance.now() + HEALTHY_WITHIN_MS; performance.now() < deadline; await sleep(POLL_MS)) {
      if (child.exitCode !== null) throw new Error(`${name} ended with ${child.exitCode}`);
      if (await isHealthy().catch(() => false)) return;
    }
    throw new Error(`${name} is not healthy`);
  }

  /** Kills the processes of a service, each alone, because Trunkline, its servers and its guardian have their own process groups. */
  #killAll(name) {
    const pids = this.#pidsOf(name);
    for (const pid of pids) signal(pid, 'SIGKILL');
    return pids;
  }

  /** The processes of a service. Its first process may have written its title over its environment, as Redis does. */
  #pidsOf(name) {
    const { child } = this.#running.get(name);
    const first = child.exitCode === null && child.signalCode === null ? [child.pid] : [];
    return [...new Set([...first, ...processesOf(join(this.#folder, 'services', name, '/'))])];
  }

  /** Replaces paths of containers by paths of this machine. */
  #mapped(text, own = new Map()) {
    const paths = new Map([...this.#paths, ...own]);
    const longestFirst = [...paths.keys()].sort((one, other) => other.length - one.length);
    const found = new RegExp(`(?<![\\w./-])(?:${longestFirst.join('|')})(?![\\w-])`, 'g');
    return text.replaceAll(found, (path) => paths.get(path));
  }

  /** Replaces the names of services, the published address, and the addresses at which this service listens. Two dollars are one. */
  #hosted(name, text) {
    const [own, proxy] = [this.addressOf(name), this.addressOf()];
    const published = text.replaceAll('$$', () => '$').replaceAll(/\blocalhost(?=:\d)/g, proxy);
    const listening = published
      .replaceAll(/\b(?:0\.0\.0\.0|127\.0\.0\.1)(?=:\d| )/g, own)
      .replaceAll(/(?<=^ *listen )(?=\d+;)/gm, `${own}:`)
      .replaceAll(/(?<=^ *bind )(?=:\d)/gm, own)
      .replaceAll(/^port \d+$/gm, `$&\nbind ${own}`)
      // The address of the gateway, because all gateways of this machine have the other addresses in common.
      .replaceAll(/^( *)advertise: (.*)$/gm, '$&\n$1listen: $2');
    const names = new RegExp(`\\b(?:${[...this.#addresses.keys()].join('|')})(?=:\\d)`, 'g');
    return listening.replaceAll(names, (each) => this.addressOf(each));
  }

  /** Makes a folder of the run that the user of the processes may write. */
  #make(...path) {
    const folder = join(this.#folder, ...path);
    const first = mkdirSync(folder, { recursive: true });
    if (first === undefined) return folder;
    for (let made = folder; made.length >= first.length; made = dirname(made)) this.#give(made);
    return folder;
  }

  #give(path) {
    const { uid, gid } = this.#user;
    if (uid !== undefined) chownSync(path, uid, gid);
  }
}

function isPath(source) {
  return source.startsWith('.');
}

/** The path of a program; `undefined` if it is not installed. */
function pathOf(name) {
  return (process.env.PATH ?? '')
    .split(':')
    .map((folder) => join(folder, name))
    .find(existsSync);
}

/** Sources and paths of mounts in the short notation, such as `./config:/etc/trunkline:ro`. */
function mountsOf(volumes = []) {
  return volumes.map((volume) => volume.split(':'));
}

/** Installs the packages of deploy/servers as the Dockerfile does. Resolves with their `node_modules`. */
async function installServers() {
  const folder = join(ROOT, 'node_modules/.cache/trunkline-servers');
  const files = ['package.json', 'package-lock.json'];
  const contentOf = (path) => (existsSync(path) ? readFileSync(path, 'utf8') : undefined);
  const isSame = files.every((file) => contentOf(join(folder, file)) === contentOf(join(ROOT, 'deploy/servers', file)));
  const modules = join(folder, 'node_modules');
  // npm writes this list when all else is in place.
  if (isSame && existsSync(join(modules, '.package-lock.json'))) return modules;
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const file of files) cpSync(join(ROOT, 'deploy/servers', file), join(folder, file));
  await run('npm', ['ci', '--prefix', folder, '--omit=dev', '--ignore-scripts', '--no-audit', '--no-fund']);
  return modules;
}

/** The processes whose environment names the folder, one line each, if some still run after five seconds. */
async function leftovers(folder) {
  let left = processesOf(folder);
  for (let tries = 0; tries < 50 && left.length > 0; tries += 1) {
    await sleep(POLL_MS);
    left = processesOf(folder);
  }
  return left.map((pid) => `still running: ${pid} ${readProc(pid, 'cmdline').slice(0, 200).replaceAll('\0', ' ')}`);
}

/** The pids of processes whose environment names the folder. */
function processesOf(folder) {
  const pids = readdirSync('/proc').filter((entry) => /^\d+$/.test(entry) && Number(entry) !== process.pid);
  return pids.filter((pid) => readProc(pid, 'environ').includes(folder)).map(Number);
}

/** Whether all threads of the process have ended, so that its connections are closed. The process may wait for its parent. */
function hasEnded(pid) {
  try {
    const threads = readdirSync(`/proc/${pid}/task`);
    return threads.every((thread) => /^$|\) [ZX] /.test(readProc(`${pid}/task/${thread}`, 'stat')));
  } catch {
    // The process is gone.
    return true;
  }
}

/** Empty when the process has ended, or belongs to another user. */
function readProc(pid, file) {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'latin1');
  } catch {
    return '';
  }
}

function signal(pid, name) {
  try {
    process.kill(pid, name);
  } catch (error) {
    if (error.code !== 'ESRCH') throw error;
  }
}

export function say(line) {
  process.stdout.write(`${line}\n`);
}
