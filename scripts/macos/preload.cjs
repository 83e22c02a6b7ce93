// Makes a Node on Linux one of macOS, as far as Trunkline can tell: the name of the platform, programs at their paths, no /proc, paths of
// sockets of at most 103 bytes, and the codes of macOS for a full queue of connections and a group of zombies. `run.mjs` copies this file
// into a folder of its own, with `stand-ins`. Each attempt to read /proc is noted there, in `proc-reads`, and fails the run.
const childProcess = require('node:child_process');
const fs = require('node:fs');
const Module = require('node:module');
const net = require('node:net');
const { basename, join } = require('node:path');

/** Whether this file reads /proc for the system that it stands for. `fs` calls its own functions by their names. */
let isSystem = false;

// The runner itself loads libraries that were built for Linux, as Vitest does in the process that transforms the files.
if (!/[\\/]vitest\.mjs$/.test(process.argv[1] ?? '')) {
  const system = { ...fs };
  Object.defineProperty(process, 'platform', { value: 'darwin', enumerable: true });
  hideProc(system);
  useStandIns();
  useSockets();
  signalAsMacOs(system);
  useLibrariesOfLinux();
  Module.syncBuiltinESMExports();
}

/** macOS has no /proc. */
function hideProc(system) {
  const isHidden = (path) => {
    if (typeof path !== 'string' && !Buffer.isBuffer(path) && !(path instanceof URL)) return false;
    const text = path instanceof URL ? path.pathname : String(path);
    if (isSystem || !/^\/proc(?:\/|$)/.test(text)) return false;
    const callers = new Error().stack.split('\n').filter((line) => /[\\/]/.test(line) && !line.includes('node:'));
    const caller = callers.find((line) => !line.includes(__filename)) ?? '';
    // A test that reads it fails by itself.
    if (!/[\\/]test[\\/]/.test(caller)) system.appendFileSync(join(__dirname, 'proc-reads'), `${text}${caller}\n`);
    return true;
  };
  const missing = (path, syscall) =>
    Object.assign(new Error(`ENOENT: no such file or directory, ${syscall} '${path}'`), {
      ...{ errno: -2, code: 'ENOENT', syscall, path: String(path) },
    });
  const names = [
    'access',
    'appendFile',
    'copyFile',
    'lstat',
    'open',
    'opendir',
    'readFile',
    'readdir',
    'readlink',
    'stat',
    'statfs',
  ];
  for (const name of names) {
    const { [name]: callback, [`${name}Sync`]: sync } = fs;
    const { [name]: promise } = fs.promises;
    fs[name] = Object.assign((path, ...rest) => {
      if (!isHidden(path)) return callback.call(fs, path, ...rest);
      process.nextTick(rest.at(-1), missing(path, name));
    }, callback);
    fs[`${name}Sync`] = (path, ...rest) => {
      if (!isHidden(path)) return sync.call(fs, path, ...rest);
      if (rest[0]?.throwIfNoEntry === false) return undefined;
      throw missing(path, name);
    };
    fs.promises[name] = async (path, ...rest) => {
      if (isHidden(path)) throw missing(path, name);
      return await promise.call(fs.promises, path, ...rest);
    };
  }
  const { existsSync, createReadStream, realpathSync } = fs;
  // Trunkline looks for paths among the words of command lines, also of programs that are on Linux.
  fs.existsSync = (path) => !/^\/proc(?:\/|$)/.test(path) && existsSync(path);
  fs.createReadStream = (path, ...rest) => createReadStream(isHidden(path) ? '/nonexistent' : path, ...rest);
  fs.realpathSync = Object.assign((path, ...rest) => {
    if (isHidden(path)) throw missing(path, 'realpath');
    return realpathSync(path, ...rest);
  }, realpathSync);
}

/** Programs of macOS that code names by their paths. Others come first in PATH. */
function useStandIns() {
  const PROGRAMS = /^(?:\/bin\/(?:launchctl|ps)|\/usr\/bin\/(?:open|osascript|security)|\/usr\/sbin\/ioreg)$/;
  const real = (file) => (PROGRAMS.test(file) ? join(__dirname, 'stand-ins', basename(file)) : file);
  // Trunkline is on macOS, too, where a test gives it an environment of its own. Its servers get no such variable.
  const isTrunkline = (args) =>
    args.some((arg) => /(?:^|\/)(?:dist\/[\w-]+\.js|module\.mjs|bin\/trunkline)$/.test(arg));
  const withPreload = (given = '') => (given.includes(__filename) ? given : `--require=${__filename} ${given}`.trim());
  const { spawn } = childProcess.ChildProcess.prototype;
  childProcess.ChildProcess.prototype.spawn = function onMacOs(options) {
    const { file, args = [], envPairs = [] } = options;
    const given = envPairs.find((pair) => pair.startsWith('NODE_OPTIONS='));
    const others = envPairs.filter((pair) => pair !== given);
    const ours = isTrunkline(args)
      ? [...others, `NODE_OPTIONS=${withPreload(given?.slice('NODE_OPTIONS='.length))}`]
      : envPairs;
    return spawn.call(this, { ...options, file: real(file), envPairs: ours });
  };
  for (const name of ['execFileSync', 'spawnSync']) {
    const { [name]: run } = childProcess;
    childProcess[name] = (file, args = [], options = {}) => {
      const list = Array.isArray(args) ? args : [];
      const given = Array.isArray(args) ? options : args;
      const env = { ...(given.env ?? process.env) };
      if (isTrunkline(list)) env.NODE_OPTIONS = withPreload(env.NODE_OPTIONS);
      return run(real(file), list, { ...given, env });
    };
  }
}

/** `sun_path` of macOS has 104 bytes with the null byte, and a full queue of connections refuses more of them. */
function useSockets() {
  const MAX_PATH = 103;
  const { connect, destroy } = net.Socket.prototype;
  const tooLong = (path, syscall) =>
    Object.assign(new Error(`${syscall} EINVAL ${path}`), { errno: -22, code: 'EINVAL', syscall, address: path });
  const pathOf = ([first]) => {
    const [options] = Array.isArray(first) ? first : [first];
    return typeof options === 'string' && !/^\d+$/.test(options) ? options : options?.path;
  };
  const isTooLong = (path) => typeof path === 'string' && Buffer.byteLength(path) > MAX_PATH;
  net.Socket.prototype.connect = function onMacOs(...args) {
    const path = pathOf(args);
    if (isTooLong(path)) return this.destroy(tooLong(path, 'connect'));
    return connect.apply(this, args);
  };
  net.Socket.prototype.destroy = function onMacOs(error, ...rest) {
    if (error?.code === 'EAGAIN' && error.syscall === 'connect') {
      error.message = error.message.replace('EAGAIN', 'ECONNREFUSED');
      Object.assign(error, { code: 'ECONNREFUSED', errno: -111 });
    }
    return destroy.call(this, error, ...rest);
  };
  const { listen } = net.Server.prototype;
  net.Server.prototype.listen = function onMacOs(...args) {
    const path = pathOf(args);
    if (!isTooLong(path)) return listen.apply(this, args);
    process.nextTick(() => this.emit('error', tooLong(path, 'listen')));
    return this;
  };
}

/** A group whose processes are all zombies refuses signals, with the code for the processes of another user. */
function signalAsMacOs({ readFileSync, readdirSync }) {
  const { kill } = process;
  const isLiving = (name, pgid) => {
    try {
      isSystem = true;
      const stat = readFileSync(`/proc/${name}/stat`, 'latin1');
      const [state, , group] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      return Number(group) === pgid && state !== 'Z' && state !== 'X';
    } catch {
      return false;
    } finally {
      isSystem = false;
    }
  };
  process.kill = (pid, signal) => {
    const sent = kill.call(process, pid, signal);
    if (
      pid < -1 &&
      (signal === 0 || signal === '0') &&
      !readdirSync('/proc').some((name) => /^\d/.test(name) && isLiving(name, -pid))
    )
      throw Object.assign(new Error('kill EPERM'), { errno: -1, code: 'EPERM', syscall: 'kill' });
    return sent;
  };
}

/** The compiled part of Rolldown, which tests use to build modules. */
function useLibrariesOfLinux() {
  const { _resolveFilename: resolveFilename } = Module;
  Module._resolveFilename = (request, ...rest) =>
    resolveFilename(request.replace(/^(@rolldown\/binding-)darwin-(x64|arm64)(?=\/|$)/, '$1linux-$2-gnu'), ...rest);
}
