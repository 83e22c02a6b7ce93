import { z } from 'zod';
import { APPROVAL_MODES, SHARING_MODES, START_MODES } from './config.js';
import { DEFAULTS, GATEWAY_DEFAULTS } from './defaults.js';
import { bytes, count, duration, flag, list, oneOf, text } from './fields.js';
import { expects } from './found.js';
import { httpSection } from './http-settings.js';
import { SERVER_KEY_MAX_LENGTH, SERVER_KEY_PATTERN, sameButForCase, serverKeyFault } from './server-key.js';

const SIZE_RANGE = { min: '1KiB', max: '256MiB' };

const settings = z.strictObject({
  timeout: duration(DEFAULTS.timeout, 'Longest silence of a call; progress starts it anew.'),
  maxTimeout: duration(DEFAULTS.maxTimeout, 'Longest call, whatever its progress.'),
  startTimeout: duration(DEFAULTS.startTimeout, 'How long a server may take to start.', { min: '1ms', max: '300s' }),
  installTimeout: duration(
    DEFAULTS.installTimeout,
    'How long installing the package of a server may take, not counting the wait for others.',
    { min: '1s', max: '24h' },
  ),
  listTimeout: duration(DEFAULTS.listTimeout, 'How long listing tools, resources or prompts may take.'),
  concurrency: count(DEFAULTS.concurrency, 'Calls that may run at once.', { min: 1, max: 1024 }),
  maxQueued: count(DEFAULTS.maxQueued, 'Calls that may wait for their turn.', { min: 0, max: 1024 }),
  maxWait: duration(DEFAULTS.maxWait, 'Longest wait of a call for its turn.', { min: '0s', max: '24h' }),
  stopGrace: duration(DEFAULTS.stopGrace, 'From closing stdin to SIGTERM when the server is stopped.', {
    min: '0s',
    max: '10s',
  }),
  sharing: oneOf(
    SHARING_MODES,
    DEFAULTS.sharing,
    'Which clients share a process: those that look alike to the server (profile), none (isolated), or every one (all).',
  ),
  start: oneOf(
    START_MODES,
    DEFAULTS.start,
    'Whether the server is started at once (eager) or by its first call (lazy).',
  ),
  idleStop: duration(
    DEFAULTS.idleStop,
    'Stops the server when it had no call for this long, until the next one; 0s never does.',
    { min: '0s', max: '24h' },
  ),
  approval: oneOf(
    APPROVAL_MODES,
    DEFAULTS.approval,
    'Whether tools that are new or have changed are withheld until `trunkline approve` was run (required), or not (off).',
  ),
  maxFrame: bytes(DEFAULTS.maxFrame, 'Largest single message, in either direction.', SIZE_RANGE),
  maxUnwritten: bytes(DEFAULTS.maxUnwritten, 'How much may wait for a server that does not read.', SIZE_RANGE),
});

const restartSettings = z.strictObject(
  {
    firstDelay: duration(DEFAULTS.restart.firstDelay, 'Delay of the first restart; doubles with every failure.'),
    maxDelay: duration(DEFAULTS.restart.maxDelay, 'Longest delay of a restart.'),
    budget: count(DEFAULTS.restart.budget, 'Failures in a row after which the server is parked.', {
      min: 1,
      max: 1000,
    }),
    stableAfter: duration(
      DEFAULTS.restart.stableAfter,
      'Time without a failure after which earlier ones are forgotten.',
    ),
    parkedProbe: duration(DEFAULTS.restart.parkedProbe, 'First retry of a parked server; doubles each time.'),
    parkedProbeMax: duration(DEFAULTS.restart.parkedProbeMax, 'Longest time between two retries of a parked server.'),
  },
  expects('a map of restart settings'),
);

const tunables = z.strictObject(
  {
    ...settings.exactPartial().shape,
    restart: restartSettings
      .exactPartial()
      .meta({ description: 'When a failed server is started again.' })
      .exactOptional(),
  },
  expects('a map of settings'),
);

const toolFilter = z.strictObject(
  {
    allow: list(
      text('A tool name, `*` for any characters.'),
      'The only tools to show; all when absent.',
    ).exactOptional(),
    deny: list(text('A tool name, `*` for any characters.'), 'Tools to hide, even when allowed.').exactOptional(),
  },
  expects('a map with allow or deny'),
);

const server = z
  .strictObject(
    {
      package: text(
        'An npm package, as `name` or `name@1.2.3`, run with the Node that runs Trunkline; installed if it is not there.',
        'the name of an npm package',
      ).exactOptional(),
      command: text('A program to run instead of a package.', 'the program to run, as a text').exactOptional(),
      bin: text('Which program of the package to run, when it has several.', 'the name of a program').exactOptional(),
      installScripts: flag(
        false,
        'Lets this package and those it needs run programs of their own while they are installed.',
      ).exactOptional(),
      args: list(
        z.string(expects('a text; put it in quotes')),
        'Arguments. Relative paths in them are relative to `cwd`.',
      ).exactOptional(),
      cwd: text("Folder to run in, relative to this file; this file's folder by default.", 'a folder').exactOptional(),
      env: z
        .record(
          z.string().regex(/^[^=\0]+$/, { error: 'this cannot name a variable; expected a name without =' }),
          z.string(expects('a text; put it in quotes')),
          expects('a map of variables'),
        )
        .meta({ description: 'Variables of the environment, added to a small safe set.' })
        .exactOptional(),
      prefix: z
        .literal(
          '',
          expects('"" to drop the prefix; otherwise leave it out, as the key is the prefix', { quote: true }),
        )
        .meta({ description: '"" shows the tools under their own names, without the key before them.' })
        .exactOptional(),
      methods: list(
        text('A method, `*` for any characters.'),
        'Methods that MCP does not define and this server answers, such as those of an extension.',
      ).exactOptional(),
      tools: toolFilter.meta({ description: 'Which tools of this server to show.' }).exactOptional(),
      trusted: flag(
        false,
        'Believes what its tools say of themselves: one that only reads, or may be repeated, is called once more when the server ends during the call.',
      ).exactOptional(),
      disabled: flag(false, 'Leaves this server out.').exactOptional(),
      type: z
        .literal('stdio', expects('stdio', { quote: true }))
        .meta({ description: 'The only transport so far; for files of other programs.' })
        .exactOptional(),
      ...tunables.shape,
    },
    expects('a map that says what to run'),
  )
  .superRefine((entry, { addIssue }) => {
    if (entry.package !== undefined && entry.command !== undefined) {
      addIssue(aboutKey('found package and command; expected one of them', 'command'));
    }
    if (entry.package === undefined && entry.command === undefined) {
      addIssue(aboutKey('found nothing to run; expected package or command'));
    }
    if (entry.bin !== undefined && entry.package === undefined) {
      addIssue(aboutKey('found bin without package; expected both or neither', 'bin'));
    }
    if (entry.installScripts !== undefined && entry.package === undefined) {
      addIssue(aboutKey('found installScripts without package; expected both or neither', 'installScripts'));
    }
  })
  .meta({ id: 'Server', oneOf: [{ required: ['package'] }, { required: ['command'] }] });

const serverKey = z
  .string()
  .superRefine((key, context) => {
    const fault = serverKeyFault(key);
    if (fault !== undefined) context.addIssue(fault);
  })
  .meta({ pattern: SERVER_KEY_PATTERN.source, maxLength: SERVER_KEY_MAX_LENGTH });

const servers = z.record(serverKey, server, expects('a map of servers')).superRefine((entries, context) => {
  for (const [later, earlier] of sameButForCase(Object.keys(entries))) {
    context.addIssue(aboutKey(`this key differs from ${earlier} only in case; expected another one`, later));
  }
});

const gateway = z.strictObject(
  {
    startupWait: duration(
      GATEWAY_DEFAULTS.startupWait,
      'How long the first listing, or a request for what nobody lists yet, waits for servers that are starting.',
      { min: '0s', max: '300s' },
    ).exactOptional(),
    idleStop: duration(
      GATEWAY_DEFAULTS.idleStop,
      'How long a process that no client uses any more is kept for the next one.',
      { min: '0s', max: '24h' },
    ).exactOptional(),
    restartTool: flag(GATEWAY_DEFAULTS.restartTool, 'Offers the tool trunkline__restart.').exactOptional(),
    watch: flag(GATEWAY_DEFAULTS.watch, 'Follows changes of this file while Trunkline runs.').exactOptional(),
    startLimit: count(undefined, 'Servers that may be starting at once; the number of cores, 4 at least, by default.', {
      min: 1,
      max: 1024,
    }).exactOptional(),
    maxQueued: count(GATEWAY_DEFAULTS.maxQueued, 'Calls that may wait for their turn, of all servers together.', {
      min: 0,
      max: 65536,
    }).exactOptional(),
    maxPartial: bytes(
      GATEWAY_DEFAULTS.maxPartial,
      'How much may be held of messages that have not arrived whole, of all servers and clients together.',
      { min: '1MiB', max: '16GiB' },
    ).exactOptional(),
    http: httpSection
      .meta({ description: 'Limits of HTTP, for `serve --http`. What is left out keeps its default.' })
      .exactOptional(),
  },
  expects('a map of settings'),
);

/** The shape of a configuration file. Parsing turns durations into milliseconds and sizes into bytes. */
export const fileSchema = z
  .strictObject(
    {
      $schema: text('The JSON Schema of this file, for editors.').exactOptional(),
      servers: servers
        .meta({ description: 'The servers to run, by the key that their tools will carry.' })
        .exactOptional(),
      mcpServers: servers.meta({ description: 'The same as `servers`, as other programs call it.' }).exactOptional(),
      defaults: tunables.meta({ description: 'Settings of every server that does not say otherwise.' }).exactOptional(),
      gateway: gateway.meta({ description: 'Settings of Trunkline itself.' }).exactOptional(),
    },
    expects('a map with `servers:`'),
  )
  .meta({ title: 'Trunkline configuration' });

export type ServerEntry = z.output<typeof server>;
export type Tunables = z.output<typeof tunables>;

/** What holds for a server when the file says nothing, read by the same rules as the file. */
export const BUILT_IN = settings.extend({ restart: restartSettings }).parse(DEFAULTS);
export type ServerSettings = typeof BUILT_IN;
export const GATEWAY_BUILT_IN = gateway
  .required({ startupWait: true, idleStop: true, restartTool: true, maxQueued: true, maxPartial: true, watch: true })
  .parse(GATEWAY_DEFAULTS);

/** The entry's own settings, then those of `defaults:`, then the built-in ones. */
export function withDefaults(entry: Tunables, defaults: Tunables): ServerSettings {
  return {
    ...BUILT_IN,
    ...defaults,
    ...entry,
    restart: { ...BUILT_IN.restart, ...defaults.restart, ...entry.restart },
  };
}

/** A mistake that no single value has, so that it is shown at a key: the last of `path`, or the map's own. */
function aboutKey(message: string, ...path: string[]) {
  return { code: 'custom' as const, message, path, params: { aboutKey: true } };
}
