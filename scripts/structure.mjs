// Counts the size of the program and compares it with its bounds: `npm run structure`. Exits with 1 beyond a bound.
import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const PROBE = new URL('structure-probe.mjs', import.meta.url);
const SERVER = join(ROOT, 'lab/bench/tiny-server.mjs');
/** A file of at most so many lines counts as tiny. */
const TINY_LINES = 25;

/** Bounds are lowered when the program becomes smaller, and raised only with a reason in the commit. */
const BOUNDS = {
  sourceLines: 96_700,
  sourceFiles: 530,
  tinyFiles: 11,
  testLines: 97_100,
  rooms: 16,
  floors: 11,
  upwardImports: 0,
  gatewayDoors: 8,
  callFiles: 43,
  listFiles: 206,
};

const source = filesOf('src');
const house = houseOf(source.map((file) => relative(join(ROOT, 'src'), file)));
const unmarked = unmarkedFiles();
const folder = mkdtempSync(join(tmpdir(), 'trunkline-structure-'));
try {
  writeFileSync(
    join(folder, 'trunkline.yaml'),
    JSON.stringify({ servers: { tiny: { command: process.execPath, args: [SERVER] } } }),
  );
  // The first run fills the caches, as on every machine that has used Trunkline before.
  await observe();
  // A busy machine loads what comes later before it answers, so the smallest of three counts.
  const observed = [await observe(), await observe(), await observe()];
  const [list, call] = ['list', 'call'].map(
    (name) => observed.map((each) => each[name]).sort((a, b) => a.length - b.length)[0],
  );
  const measured = {
    sourceLines: linesOf(source),
    sourceFiles: source.length,
    tinyFiles: source.filter((file) => linesOf([file]) <= TINY_LINES).length,
    testLines: linesOf(filesOf('test')),
    rooms: house.rooms.size,
    floors: Math.max(...house.floors.values()),
    upwardImports: house.upward.length,
    gatewayDoors: house.doors.get('gateway').size,
    callFiles: call.length,
    listFiles: list.length,
  };
  const texts = {
    sourceLines: 'lines of src',
    sourceFiles: 'files of src',
    tinyFiles: `files of src with at most ${TINY_LINES} lines`,
    testLines: 'lines of test',
    rooms: 'rooms, the folders at the top of src',
    floors: 'floors of rooms, each above all that it imports',
    upwardImports: 'imports of a room that imports the room, too',
    gatewayDoors: 'files of gateway that other rooms import',
    callFiles: 'files that a tools/call and its answer meet',
    listFiles: 'files loaded when the first list is answered',
  };
  for (const [name, bound] of Object.entries(BOUNDS)) {
    const verdict = measured[name] <= bound ? '' : '  TOO MANY';
    process.stdout.write(`${String(measured[name]).padStart(7)}  ${texts[name]} (at most ${bound})${verdict}\n`);
    if (verdict !== '') process.exitCode = 1;
  }
  for (const [room, lines] of [...house.rooms].sort()) {
    const doors = house.doors.get(room)?.size ?? 0;
    process.stdout.write(`${String(lines).padStart(7)}  ${room}: floor ${house.floors.get(room)}, ${doors} doors\n`);
  }
  for (const [file, imported] of house.upward) process.stdout.write(`${file} imports ${imported}\n`);
  if (process.argv.includes('--files')) {
    process.stdout.write(`\nA call:\n${call.join('\n')}\n\nThe first list:\n${list.join('\n')}\n`);
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}

function filesOf(root) {
  return readdirSync(join(ROOT, root), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name));
}

/** The rooms with their lines, their floors, their doors, and the imports of rooms that lead back to the room itself. */
function houseOf(files) {
  const roomOf = (file) => (file.includes('/') ? file.slice(0, file.indexOf('/')) : undefined);
  const rooms = new Map();
  const arrows = [];
  for (const file of files) {
    const room = roomOf(file);
    if (room === undefined) continue;
    rooms.set(room, (rooms.get(room) ?? 0) + linesOf([join(ROOT, 'src', file)]));
    const text = readFileSync(join(ROOT, 'src', file), 'utf8');
    for (const [, imported] of text.matchAll(
      /(?:^import |^\} |^(?:import|export) .*|\bimport\()(?:from )?'(\.[^']+)'/gm,
    )) {
      const target = join(dirname(file), imported);
      if (![room, undefined].includes(roomOf(target))) arrows.push([file, target]);
    }
  }
  const below = (room) => new Set(arrows.filter(([file]) => roomOf(file) === room).map(([, target]) => roomOf(target)));
  const reached = (room, seen = new Set()) => {
    for (const each of below(room)) {
      if (seen.has(each)) continue;
      seen.add(each);
      reached(each, seen);
    }
    return seen;
  };
  const upward = arrows.filter(([file, target]) => reached(roomOf(target)).has(roomOf(file)));
  const floorOf = (room, above = []) =>
    1 +
    Math.max(
      0,
      ...[...below(room)].filter((each) => !above.includes(each)).map((each) => floorOf(each, [...above, room])),
    );
  const doors = new Map();
  for (const [, target] of arrows) doors.set(roomOf(target), (doors.get(roomOf(target)) ?? new Set()).add(target));
  return { rooms, upward, doors, floors: new Map([...rooms.keys()].map((room) => [room, floorOf(room)])) };
}

function linesOf(files) {
  return files.reduce((sum, file) => sum + readFileSync(file, 'utf8').split('\n').length - 1, 0);
}

/** Files of src that were loaded when the first list was answered, and those that ran for one call, each sorted. */
async function observe() {
  const log = join(folder, 'coverage.json');
  const child = spawn(
    process.execPath,
    ['--import', PROBE.href, join(ROOT, 'dist/cli.js'), '--config', join(folder, 'trunkline.yaml')],
    {
      stdio: ['pipe', 'pipe', 'ignore'],
      env: { ...process.env, TRUNKLINE_HUB: 'off', TRUNKLINE_HOME: folder, XDG_DATA_HOME: folder, STRUCTURE_LOG: log },
    },
  );
  const ended = new Promise((resolve) => child.once('exit', resolve));
  let unread = '';
  const answers = new Map();
  child.stdout.setEncoding('utf8').on('data', (text) => {
    const lines = (unread + text).split('\n');
    unread = lines.pop();
    for (const { id, result, error } of lines.map((line) => JSON.parse(line))) {
      if (error !== undefined) throw new Error(`Request ${id} failed: ${error.message}`);
      answers.get(id)?.(result);
    }
  });
  const send = (message) => child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  const request = (id, method, params) =>
    new Promise((resolve) => {
      answers.set(id, resolve);
      send({ id, method, params });
    });
  const clientInfo = { name: 'structure', version: '1.0.0' };
  await request('initialize', 'initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo });
  send({ method: 'notifications/initialized' });
  await request('list', 'tools/list', {});
  // The first calls load and compile what later ones have.
  for (const id of ['warm-1', 'warm-2', 'warm-3', 'before', 'call', 'after']) {
    await request(id, 'tools/call', { name: 'tiny__echo', arguments: { text: 'hello' } });
  }
  child.stdin.end();
  await ended;
  const { list, call, after } = JSON.parse(readFileSync(log, 'utf8'));
  return {
    list: [...sourcesOf(list), ...unmarked].sort(),
    call: [...new Set([...sourcesOf(call), ...sourcesOf(after)])].sort(),
  };
}

/**
 * Files with code whose beginning the bundler marks in none of its files, which happens to a few. They count as loaded. A call
 * meets two of them, the scanners of JSON, and does not count them. The page is loaded by a browser.
 */
function unmarkedFiles() {
  const marked = new Set();
  for (const file of readdirSync(join(ROOT, 'dist')).filter((name) => name.endsWith('.js')))
    for (const { name } of regionsIn(readFileSync(join(ROOT, 'dist', file), 'utf8'))) marked.add(name);
  const hasCode = (file) => /^export (?:const|function|class|async|abstract)/m.test(readFileSync(file, 'utf8'));
  const ours = source
    .map((file) => relative(ROOT, file))
    .filter((file) => !file.startsWith(join('src', 'web', 'page')));
  return ours.filter((file) => !marked.has(file) && hasCode(join(ROOT, file)));
}

function regionsIn(text) {
  return [...text.matchAll(/^\/\/(?:#region)? ((?:src|node_modules)\/\S+)$/gm)].map((match) => ({
    at: match.index,
    name: match[1],
  }));
}

/** Files of src in which one of these functions stands. The bundle marks where each of them begins. */
function sourcesOf(functions) {
  const found = new Set();
  for (const [url, offsets] of Object.entries(functions)) {
    const path = url.startsWith('file:') ? fileURLToPath(url) : url;
    if (!path.startsWith(join(ROOT, 'dist/'))) continue;
    const regions = regionsIn(readFileSync(path, 'utf8'));
    for (const { from, to, isModule } of offsets) {
      const within = isModule
        ? regions
        : regions.filter(({ at }, index) => at <= from && from < (regions[index + 1]?.at ?? to));
      for (const { name } of within) if (name.startsWith('src/')) found.add(name);
    }
  }
  return [...found].sort();
}
