/** A file that a program writes into the folder of its package, unless a variable names another. */
export interface OwnFile {
  readonly variable: string;
  /** An option that names the file, too. */
  readonly option?: string;
  /** Paths from the folder of the package. The first is written; others were written by earlier versions. */
  readonly files: readonly [usual: string, ...earlier: string[]];
  /** Whether a relative value of the variable is relative to the folder of the usual file, and not to the working folder. */
  readonly isRelativeToProgram?: boolean;
}

/** Needs of a well-known package, in a sandbox and elsewhere. */
export interface KnownNeeds {
  readonly network?: readonly string[];
  /** Whether it uses local sockets, as a browser does. */
  readonly unixSockets?: boolean;
  /** Whether it writes to the paths in its arguments. */
  readonly writesArguments?: boolean;
  readonly ownFile?: OwnFile;
  /** The reason, as a clause with the package as its subject. */
  readonly because: string;
  /** The version whose source was read. */
  readonly version: string;
}

/** The needs of a package; `undefined` if nothing is known. */
export function needsOf(name: string): KnownNeeds | undefined {
  return KNOWN.get(name);
}

/** An entry `sandbox` for a server: with the known needs of its package and further paths, or `true`. */
export function suggestedEntry(
  name: string,
  args: readonly string[],
  opened: readonly { readonly path: string; readonly access: 'read' | 'write' }[] = [],
): true | Readonly<Record<string, unknown>> {
  const { network, unixSockets, writesArguments = false } = KNOWN.get(name) ?? {};
  // A path with a variable cannot be opened.
  const named = writesArguments ? args.filter((arg) => /^(?:~?\/|\.)/.test(arg) && !arg.includes('$')) : [];
  const openedFor = (access: 'read' | 'write') => opened.flatMap((each) => (each.access === access ? each.path : []));
  const write = [...new Set([...named, ...openedFor('write')])];
  const read = openedFor('read').filter((path) => !write.includes(path));
  const entry = {
    ...(read.length > 0 && { read }),
    ...(write.length > 0 && { write }),
    ...(network && { network }),
    ...(unixSockets === true && { unixSockets }),
  };
  return Object.keys(entry).length === 0 ? true : entry;
}

const BROWSER = { network: ['*'], unixSockets: true, because: 'opens any page in a browser' };

const WEATHER = [
  ...['air-quality-api', 'api', 'archive-api', 'flood-api', 'geocoding-api', 'marine-api'].map(
    (name) => `${name}.open-meteo.com`,
  ),
  ...['api.water.noaa.gov', 'api.weather.gc.ca', 'api.weather.gov', 'aviationweather.gov', 'data.rcc-acis.org'],
  ...['feeds.meteoalarm.org', 'geocoding.geo.census.gov', 'nominatim.openstreetmap.org', 'waterservices.usgs.gov'],
  'www.ncei.noaa.gov',
];

/**
 * Needs by package, as the source of the named version shows them. `npm run -w lab sandbox-needs` starts these packages confined, and
 * others that need nothing.
 */
const KNOWN: ReadonlyMap<string, KnownNeeds> = new Map<string, KnownNeeds>([
  [
    '@modelcontextprotocol/server-filesystem',
    { writesArguments: true, because: 'works on the folders of its arguments', version: '2026.8.31' },
  ],
  [
    '@modelcontextprotocol/server-memory',
    {
      ownFile: {
        variable: 'MEMORY_FILE_PATH',
        files: ['dist/memory.jsonl', 'dist/memory.json'],
        isRelativeToProgram: true,
      },
      because: 'writes beside its program unless MEMORY_FILE_PATH names another file',
      version: '2026.8.31',
    },
  ],
  [
    '@itseasy21/mcp-knowledge-graph',
    {
      ownFile: { variable: 'MEMORY_FILE_PATH', option: '--memory-path', files: ['dist/memory.jsonl'] },
      because: 'writes beside its program unless MEMORY_FILE_PATH or `--memory-path` names another file',
      version: '1.0.7',
    },
  ],
  [
    '@modelcontextprotocol/server-gdrive',
    {
      network: ['oauth2.googleapis.com', 'www.googleapis.com'],
      ownFile: { variable: 'GDRIVE_CREDENTIALS_PATH', files: ['../../.gdrive-server-credentials.json'] },
      because: 'keeps its login beside its package unless GDRIVE_CREDENTIALS_PATH names another file',
      version: '2025.1.14',
    },
  ],
  [
    '@modelcontextprotocol/server-github',
    { network: ['api.github.com'], because: 'sends each call to GitHub', version: '2025.4.8' },
  ],
  [
    '@modelcontextprotocol/server-gitlab',
    { network: ['gitlab.com'], because: 'sends each call to GitLab', version: '2025.4.25' },
  ],
  ['@playwright/mcp', { ...BROWSER, version: '0.0.83' }],
  ['chrome-devtools-mcp', { ...BROWSER, version: '1.11.0' }],
  ['firefox-devtools-mcp', { ...BROWSER, version: '0.9.2' }],
  ['fetcher-mcp', { ...BROWSER, version: '0.3.9' }],
  ['mcp-fetch-server', { network: ['*'], because: 'fetches the page that a call names', version: '1.1.2' }],
  [
    '@antv/mcp-server-chart',
    { network: ['antv-studio.alipay.com'], because: 'draws charts at a service', version: '0.9.10' },
  ],
  ['@mui/mcp', { network: ['mui.com'], because: 'reads documentation', version: '0.1.6' }],
  ['@heroui/react-mcp', { network: ['mcp-api.heroui.com'], because: 'reads documentation', version: '1.1.2' }],
  [
    '@jpisnice/shadcn-ui-mcp-server',
    { network: ['api.github.com', 'raw.githubusercontent.com'], because: 'reads files on GitHub', version: '2.0.0' },
  ],
  [
    '@kimsungwhee/apple-docs-mcp',
    { network: ['developer.apple.com'], because: 'reads documentation', version: '1.0.26' },
  ],
  ['@dangahagan/weather-mcp', { network: WEATHER, because: 'asks services about the weather', version: '1.23.0' }],
  [
    'mcp-deepwiki',
    { network: ['deepwiki.com', 'api.github.com'], because: 'fetches each page anew', version: '0.0.10' },
  ],
]);
