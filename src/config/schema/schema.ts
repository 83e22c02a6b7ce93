import * as z from 'zod/mini';
import { bytes, count, described, duration, expects, flag, list, oneOf, text } from './fields.js';
import { gatewaySection } from './gateway-settings.js';
import { limits } from './limit-settings.js';
import { secretCommand } from './secret-settings.js';
import { SERVER_KEY_MAX_LENGTH, SERVER_KEY_PATTERN, sameButForCase, serverKeyFault } from './server-key.js';
import { RESTART_SETTINGS, SERVER_SETTINGS, SWITCHES } from './settings.js';
import { toolSettings } from './tool-settings.js';
import { clients, views } from './view-settings.js';

const settings = z.strictObject({
  timeout: duration(
    SERVER_SETTINGS.timeout,
    'How long a call may go without an answer or progress; progress restarts the timer.',
  ),
  maxTimeout: duration(
    SERVER_SETTINGS.maxTimeout,
    'Longest duration of a call, with or without progress, and longest wait for the result of a task.',
  ),
  startTimeout: duration(SERVER_SETTINGS.startTimeout, 'How long the server may take to answer initialize.'),
  installTimeout: duration(
    SERVER_SETTINGS.installTimeout,
    'How long the installation of the package may take. The wait for other installations does not count.',
  ),
  listTimeout: duration(SERVER_SETTINGS.listTimeout, 'How long listing tools, resources or prompts may take.'),
  concurrency: count(SERVER_SETTINGS.concurrency, 'Concurrency limit: calls that the server may work on at once.'),
  maxQueued: count(
    SERVER_SETTINGS.maxQueued,
    'Calls that may wait in the queue of this server. Further calls are refused at once.',
  ),
  maxWait: duration(SERVER_SETTINGS.maxWait, 'Longest wait of a call in the queue.'),
  stopGrace: duration(
    SERVER_SETTINGS.stopGrace,
    'Time between closing stdin and SIGTERM when the server is stopped. SIGKILL follows 3s later.',
  ),
  sharing: oneOf(
    SERVER_SETTINGS.sharing,
    'Which clients share a process of the server: clients that look identical to the server (profile), those of them that run in the same folder (folder), no clients (isolated), or all clients (all).',
  ),
  start: oneOf(
    SERVER_SETTINGS.start,
    'When the server starts: together with Trunkline (eager) or at its first call (lazy).',
  ),
  idleStop: duration(
    SERVER_SETTINGS.idleStop,
    'Stops the server after this long without a call; the next call starts it again. 0s disables this.',
  ),
  era: oneOf(
    SERVER_SETTINGS.era,
    'Which revisions of MCP the server speaks: those up to 2025-11-25, which begin with a handshake (legacy), those from 2026-07-28 on (modern), or whichever Trunkline finds out by asking it once (auto).',
  ),
  approval: oneOf(
    SERVER_SETTINGS.approval,
    'Whether new and changed tools are withheld until you approve them with `trunkline approve` (required) or not (off).',
  ),
  maxFrame: bytes(
    SERVER_SETTINGS.maxFrame,
    'Largest single message that the server may send. A larger one is dropped.',
  ),
  maxUnwritten: bytes(
    SERVER_SETTINGS.maxUnwritten,
    'How much data may wait for a server that does not read its stdin.',
  ),
});

const restartSettings = z.strictObject(
  {
    firstDelay: duration(RESTART_SETTINGS.firstDelay, 'Delay before the first restart. Doubles with each failure.'),
    maxDelay: duration(RESTART_SETTINGS.maxDelay, 'Longest delay before a restart.'),
    budget: count(RESTART_SETTINGS.budget, 'Consecutive failures after which the server is parked.'),
    stableAfter: duration(
      RESTART_SETTINGS.stableAfter,
      'Time without a failure after which the count of failures starts at zero again.',
    ),
    parkedProbe: duration(
      RESTART_SETTINGS.parkedProbe,
      'Delay before the first retry of a parked server. Doubles with each retry.',
    ),
    parkedProbeMax: duration(RESTART_SETTINGS.parkedProbeMax, 'Longest delay between two retries of a parked server.'),
  },
  expects('a map of restart settings'),
);

const restart = described(z.exactPartial(restartSettings), 'When a failed server is restarted.');

const tunables = z.exactPartial(
  z.strictObject(
    {
      ...settings.shape,
      restart,
      limits,
    },
    expects('a map of settings'),
  ),
);

const variables = z.record(
  z.string().check(
    z.regex(/^[^=\0]+$/, {
      error: 'this is not a valid variable name; expected a name that is not empty and has no `=`',
    }),
  ),
  z.string(expects('a string; put it in quotes')),
  expects('a map of environment variables'),
);

const envFile = text(
  `A file with lines NAME=VALUE, relative to the folder of this file. \${NAME} in an entry stands for the value in that file, or else for the one in the environment. Keep secrets there.`,
  'the path of a file',
);

const serverFields = z.strictObject(
  {
    package: text(
      'An npm package, as `name`, `name@1.2.3`, `name@^1.2` or `name@latest`. It runs with the Node that runs Trunkline and is installed if it is missing. The exact version is recorded in trunkline.lock.',
      'the name of an npm package',
    ),
    command: text('The program to run, instead of a package.', 'the program to run, as a string'),
    bin: text('Which program of the package to run, if the package has several.', 'the name of a program'),
    installScripts: flag(
      SWITCHES.installScripts,
      'Runs the install scripts of this package and of its dependencies when they are installed.',
    ),
    args: list(
      z.string(expects('a string; put it in quotes')),
      'Arguments, passed without a shell. Relative paths are relative to `cwd`.',
    ),
    cwd: text(
      'Working directory, relative to the folder of this file. Default: the folder of this file; with `sharing: folder`, the working folder of the client.',
      'the path of a folder',
    ),
    env: described(
      variables,
      'Environment variables of the server. Apart from a few harmless ones, such as PATH and HOME, and those of certificates and proxies, it gets no others.',
    ),
    envFile,
    prefix: z
      .literal('', expects('"", which means no prefix; leave it out to use the key as the prefix', { quote: true }))
      .register(z.globalRegistry, {
        description: '"" shows the tools under their original names, without the key as a prefix.',
      }),
    methods: list(
      text('The name of a method. `*` matches any characters.'),
      'Methods that this server answers although MCP does not define them, such as the methods of an extension.',
    ),
    tools: described(toolSettings, 'Which tools of this server to show, and in which form.'),
    trusted: flag(
      SWITCHES.trusted,
      'Trusts the annotations of the tools: if the server ends during a call of a tool that is marked readOnlyHint or idempotentHint, the call is sent once more.',
    ),
    leaveRunning: flag(
      SWITCHES.leaveRunning,
      'Keeps the processes that have left the process group of the server, such as daemons, when the server ends. Without it, they end with the server.',
    ),
    disabled: flag(SWITCHES.disabled, 'Ignores this server.'),
    type: z
      .literal('stdio', expects('stdio, the only supported transport', { quote: true }))
      .register(z.globalRegistry, {
        description: 'The transport. Only `stdio` is supported; accepted because other programs write it.',
      }),
    ...settings.shape,
    restart,
    limits,
  },
  expects('a map with `package` or `command`'),
);

const server = z
  .exactPartial(serverFields)
  .check(
    z.superRefine((entry, { addIssue }) => {
      if (entry.package !== undefined && entry.command !== undefined) {
        addIssue(aboutKey('found both `package` and `command`; remove one of them', 'command'));
      }
      if (entry.package === undefined && entry.command === undefined) {
        addIssue(aboutKey('found nothing to run; add `package` or `command`'));
      }
      if (entry.bin !== undefined && entry.package === undefined) {
        addIssue(aboutKey('found `bin` without `package`; add `package` or remove `bin`', 'bin'));
      }
      if (entry.installScripts !== undefined && entry.package === undefined) {
        addIssue(
          aboutKey(
            'found `installScripts` without `package`; add `package` or remove `installScripts`',
            'installScripts',
          ),
        );
      }
    }),
  )
  .register(z.globalRegistry, { id: 'Server', oneOf: [{ required: ['package'] }, { required: ['command'] }] });

const serverKey = z
  .string()
  .check(
    z.superRefine((key, context) => {
      const fault = serverKeyFault(key);
      if (fault !== undefined) context.addIssue(fault);
    }),
  )
  .register(z.globalRegistry, { pattern: SERVER_KEY_PATTERN.source, maxLength: SERVER_KEY_MAX_LENGTH });

const servers = z.record(serverKey, server, expects('a map of servers')).check(
  z.superRefine((entries, context) => {
    for (const [later, earlier] of sameButForCase(Object.keys(entries))) {
      context.addIssue(
        aboutKey(`this key differs from \`${earlier}\` only in upper and lower case; choose another key`, later),
      );
    }
  }),
);

const defaults = z.exactPartial(
  z.strictObject(
    {
      ...settings.shape,
      restart,
      limits,
      env: described(
        variables,
        'Environment variables of all servers, and of npm when it installs a package. The `env` of a server overrides them.',
      ),
      envFile,
    },
    expects('a map of settings'),
  ),
);

/** The shape of a configuration file. Parsing turns durations into milliseconds and sizes into bytes. */
export const fileSchema = z
  .exactPartial(
    z.strictObject(
      {
        $schema: text('The JSON Schema of this file, for editors. Trunkline ignores it.'),
        servers: described(servers, 'The servers to run, by key. The key becomes the prefix of the tool names.'),
        mcpServers: described(servers, 'Another name for `servers`, which other programs use.'),
        defaults: described(defaults, 'Default settings of all servers. An entry of a server overrides them.'),
        secretCommand,
        views,
        clients,
        gateway: described(gatewaySection, 'Settings of Trunkline itself.'),
      },
      expects('a map with `servers:`'),
    ),
  )
  .register(z.globalRegistry, { title: 'Trunkline configuration' });

/** The same without the report of unknown keys at the top level, for a file that another program shares. */
export const sharedFileSchema = z.object(fileSchema.shape, expects('a map with `servers:`'));

export type ServerEntry = z.output<typeof server>;
export type Tunables = z.output<typeof tunables>;

/** A mistake that concerns several values. It is reported at a key: the last key of `path`, or the key of the map itself. */
function aboutKey(message: string, ...path: string[]) {
  return { code: 'custom' as const, message, path, params: { aboutKey: true } };
}
