import { fileURLToPath } from 'node:url';
import { tinyServer, trunkline, writeConfig } from './ways.mjs';

const SILENT = node(import.meta.resolve('./silent-server.mjs'));
const RELAY = [...node(import.meta.resolve('./byte-relay.mjs')), ...tinyServer()];

/** What is started to see how soon it answers `initialize`. */
export function startPaths(folder) {
  const one = writeConfig(folder, 'one.json', { tiny: tinyServer() });
  const silent = writeConfig(folder, 'silent.json', { first: SILENT, second: SILENT, third: SILENT });
  return [
    { name: 'direct', command: tinyServer() },
    { name: 'byte relay', command: RELAY },
    { name: 'Trunkline, one server', command: [...trunkline.start, one] },
    { name: 'Trunkline, three servers that never answer', command: [...trunkline.start, silent] },
  ];
}

function node(url) {
  return [process.execPath, fileURLToPath(url)];
}
