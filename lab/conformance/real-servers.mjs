// The servers that clients are tried with: thirty packages that other people wrote. All start without an account and
// without a network, except the two that are broken on purpose.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { installTogether } from '../../scripts/packages.mjs';

/** Dependencies of the servers are no newer than this day, so that every run installs the same. */
const DAY = '2026-11-22';

/** Keys as people choose them. `isQuick` servers are the ones of the short form. */
const GOOD = {
  files: { package: '@modelcontextprotocol/server-filesystem@2026.8.31', args: ['.'], isQuick: true },
  memory: { package: '@modelcontextprotocol/server-memory@2026.8.31', isQuick: true },
  thinking: { package: '@modelcontextprotocol/server-sequential-thinking@2026.8.31', isQuick: true },
  everything: { package: '@modelcontextprotocol/server-everything@2026.8.31', isQuick: true },
  github: { package: '@modelcontextprotocol/server-github@2025.4.8', isQuick: true },
  calc: { package: '@coo-quack/calc-mcp@2.1.1', isQuick: true },
  time: { package: 'time-mcp@1.0.6', isQuick: true },
  firefox: { package: 'firefox-devtools-mcp@0.9.2', isQuick: true },
  pdf: { package: '@modelcontextprotocol/server-pdf@2.0.4', args: ['--stdio'] },
  playwright: { package: '@playwright/mcp@0.0.83' },
  chrome: { package: 'chrome-devtools-mcp@1.11.0', args: ['--no-usage-statistics'] },
  eslint: { package: '@eslint/mcp@0.3.13' },
  chart: { package: '@antv/mcp-server-chart@0.9.10' },
  mui: { package: '@mui/mcp@0.1.6' },
  mermaid: { package: 'mcp-mermaid@0.4.1' },
  git: { package: '@cyanheads/git-mcp-server@2.15.3' },
  drawio: { package: '@drawio/mcp@1.6.1' },
  fetcher: { package: 'fetcher-mcp@0.3.9' },
  primeng: { package: '@primeng/mcp@22.1.1' },
  shadcn: { package: '@jpisnice/shadcn-ui-mcp-server@2.0.0' },
  apple: { package: '@kimsungwhee/apple-docs-mcp@1.0.26' },
  fetch: { package: 'mcp-fetch-server@1.1.2', bin: 'mcp-fetch-server' },
  weather: { package: '@dangahagan/weather-mcp@1.23.0' },
  deepwiki: { package: 'mcp-deepwiki@0.0.10' },
  bank: { package: '@allpepper/memory-bank-mcp@0.2.2', env: { MEMORY_BANK_ROOT: '.' } },
  vitest: { package: '@djankies/vitest-mcp@0.5.1' },
  heroui: { package: '@heroui/react-mcp@1.1.2' },
  a11y: { package: '@accesslint/mcp@0.11.1' },
};

/**
 * Mistakes that people make. The first has no access token and exits at once. The second lacks the argument `--stdio`, so
 * it listens on a port and never answers on stdout.
 */
const BROKEN = {
  gitlab: { package: '@modelcontextprotocol/server-gitlab@2025.4.25' },
  lucide: { package: 'lucide-icons-mcp@0.1.67' },
};

/**
 * Installs the servers. Returns their `folder`, which has them in `node_modules`; the keys of those that are expected to
 * start; `entries` for a Trunkline configuration; and `commands` that start the same programs without Trunkline.
 */
export async function prepareServers({ isShort }) {
  const good = Object.entries(GOOD).filter(([, { isQuick }]) => isQuick || !isShort);
  const chosen = [...good, ...Object.entries(BROKEN)];
  const specs = chosen.map(([, server]) => server.package);
  const folder = await installTogether(isShort ? 'ten-servers' : 'thirty-servers', specs, { before: DAY });
  const port = String(await freePort());
  const servers = chosen.map(([key, { isQuick, ...entry }]) => [
    key,
    key === 'lucide' ? { ...entry, env: { PORT: port } } : entry,
  ]);
  return {
    folder,
    goodKeys: good.map(([key]) => key),
    entries: Object.fromEntries(servers),
    commands: servers.map(([key, entry]) => toCommand(key, entry, folder)),
  };
}

function toCommand(key, { package: spec, bin, args = [], env = {} }, folder) {
  const name = spec.slice(0, spec.lastIndexOf('@'));
  const home = join(folder, 'node_modules', name);
  const manifest = JSON.parse(readFileSync(join(home, 'package.json'), 'utf8'));
  const programs = typeof manifest.bin === 'string' ? { [name]: manifest.bin } : manifest.bin;
  const unscoped = name.replace(/^.*\//, '');
  const program = programs[bin ?? unscoped] ?? Object.values(programs)[0];
  return { name: key, command: process.execPath, args: [join(home, program), ...args], env };
}

function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer().once('error', reject);
    server.listen(0, () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}
