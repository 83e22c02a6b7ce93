// Packs Trunkline as npm publishes it, and uses the tarball as users do: installed globally, and with `npx`, on Node 20, 22
// and 24 from npm. Each prints the version and the schema, and serves the configuration of the demo to the client of the
// official SDK, also from a program that imports it. Prints how much an installation takes on disk, and how long `--version` takes in comparison with a Node
// that does nothing. Exits with 1 when something fails, or when an installation takes more than 15 MB. Run it with
// `npm run -w lab package`.
import { execFile } from 'node:child_process';
import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { installPackage } from '../../scripts/packages.mjs';
import { registryNameFault } from '../../scripts/registry-name.mjs';

const NODES = ['20.20.2', '22.22.0', '24.21.0'];
const MAX_MB = 15;
const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const DEMO = join(ROOT, 'config', 'demo.yaml');
const USUAL = ['--no-audit', '--no-fund', '--loglevel=error'];
/** A program that imports Trunkline, and makes one list and one call. */
const PROGRAM = `
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { openTrunkline } from 'trunkline';
const trunkline = await openTrunkline(process.argv[2]);
const client = new Client({ name: 'program', version: '1' });
await client.connect(trunkline.transport());
const { tools } = await client.listTools();
const { content } = await client.callTool({ name: 'everything__echo', arguments: { message: 'hello' } });
if (!content[0].text.includes('hello')) throw new Error(JSON.stringify(content));
await trunkline.close();
console.log(tools.length + ' tools, and a call in the process of the program');
`;

const { values } = parseArgs({ options: { short: { type: 'boolean' }, rounds: { type: 'string' } } });
const rounds = Number(values.rounds ?? (values.short ? 5 : 15));
const run = promisify(execFile);
const place = mkdtempSync(join(tmpdir(), 'trunkline-package-'));
let failures = 0;
try {
  await run('npm', ['pack', '--silent', '--pack-destination', place], { cwd: ROOT });
  const tarball = join(
    place,
    readdirSync(place).find((file) => file.endsWith('.tgz')),
  );
  say(`${tarball.slice(place.length + 1)}: ${toMb(lstatSync(tarball).size)} MB`);
  for (const version of values.short ? NODES.slice(0, 1) : NODES) await tryOn(version, tarball);
} finally {
  rmSync(place, { recursive: true, force: true });
}
say(failures === 0 ? 'The package works.' : `${failures} steps went wrong.`);
process.exitCode = failures === 0 ? 0 : 1;
const read = (file) => JSON.parse(readFileSync(join(ROOT, file), 'utf8'));
const nameFault = registryNameFault(read('package.json'), read('server.json'));
if (nameFault !== undefined) say(`It cannot be published yet: ${nameFault}`);

async function tryOn(version, tarball) {
  const node = join(await installPackage('node', version), 'bin', 'node');
  const home = mkdtempSync(join(place, 'home-'));
  const prefix = join(home, 'prefix');
  const env = {
    ...process.env,
    PATH: [dirname(node), process.env.PATH].join(delimiter),
    HOME: home,
    XDG_DATA_HOME: join(home, 'data'),
    npm_config_cache: join(home, 'npm-cache'),
    TRUNKLINE_HUB: 'off',
  };
  const program = join(prefix, 'bin', 'trunkline');
  const output = async (command, args) => (await run(command, args, { cwd: home, env, maxBuffer: 1e8 })).stdout;
  const step = async (name, work) => {
    try {
      say(`Node ${version}  ${name}: ${await work()}`);
    } catch (error) {
      failures += 1;
      say(`Node ${version}  ${name}: FAILED\n${error.stderr ?? error.stack}`);
    }
  };
  await step('npm install -g', async () => {
    await output('npm', ['install', '--global', '--prefix', prefix, ...USUAL, tarball]);
    const mb = toMb(sizeOf(prefix));
    if (mb > MAX_MB) throw new Error(`${mb} MB are installed, more than ${MAX_MB} MB`);
    return `${mb} MB in ${packagesIn(join(prefix, 'lib', 'node_modules'))} package`;
  });
  await step('trunkline --version', async () => (await output(program, ['--version'])).trim());
  await step('trunkline schema', async () => JSON.parse(await output(program, ['schema'])).title ?? 'a JSON Schema');
  await step('trunkline', () => serve(program, env));
  await step('npx trunkline --version', async () => {
    return (await output('npx', ['--yes', '--package', tarball, '--', 'trunkline', '--version'])).trim();
  });
  await step("import 'trunkline'", async () => {
    const folder = join(home, 'program');
    mkdirSync(folder);
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
    writeFileSync(join(folder, 'program.js'), PROGRAM);
    await run('npm', ['install', ...USUAL, tarball], { cwd: folder, env });
    const sdk = join('node_modules', '@modelcontextprotocol');
    symlinkSync(join(ROOT, sdk), join(folder, sdk));
    return (await output(node, [join(folder, 'program.js'), DEMO])).trim();
  });
  await step('start-up', () => startUp(node, program, env));
}

/** One list and one call, as a client that starts the installed program. */
async function serve(program, env) {
  const args = ['--config', DEMO];
  const client = new Client({ name: 'trunkline-conformance', version: '1' });
  try {
    await client.connect(new StdioClientTransport({ command: program, args, env, stderr: 'ignore' }));
    const { tools } = await client.listTools();
    const { content, isError } = await client.callTool({ name: 'everything__echo', arguments: { message: 'hello' } });
    if (isError || !content[0].text.includes('hello')) throw new Error(JSON.stringify(content));
    return `${tools.length} tools, and a call`;
  } finally {
    await client.close();
  }
}

/** Both in turn, so that a busy machine slows both. */
async function startUp(node, program, env) {
  const times = { bare: [], version: [] };
  for (let round = 0; round < rounds; round += 1) {
    times.bare.push(await msOf(() => run(node, ['-e', '0'], { env })));
    times.version.push(await msOf(() => run(node, [program, '--version'], { env })));
  }
  const [bare, version] = [times.bare, times.version].map(medianOf);
  return `--version ${version} ms, Node alone ${bare} ms (medians of ${rounds})`;
}

async function msOf(work) {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
}

function medianOf(numbers) {
  return Math.round(numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)]);
}

/** The bytes of all files, in blocks of 4 KiB as most disks store them. */
function sizeOf(path) {
  const stats = lstatSync(path);
  if (!stats.isDirectory()) return Math.ceil(stats.size / 4096) * 4096;
  return readdirSync(path).reduce((sum, name) => sum + sizeOf(join(path, name)), 4096);
}

function packagesIn(folder) {
  const own = readdirSync(folder).filter((name) => !name.startsWith('.'));
  return own.reduce((sum, name) => {
    const inner = join(folder, name, 'node_modules');
    return sum + 1 + (lstatSync(inner, { throwIfNoEntry: false }) === undefined ? 0 : packagesIn(inner));
  }, 0);
}

function toMb(bytes) {
  return Math.round(bytes / 1e5) / 10;
}

function say(line) {
  process.stdout.write(`${line}\n`);
}
