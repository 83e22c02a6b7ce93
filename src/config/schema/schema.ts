import * as z from 'zod/mini';
import { isProtected } from '../../host/http/addresses.js';
import { RULED } from '../rules/rule.js';
import { AddressFault, hostAndPort, reachableAddress, storeLocation } from './cluster-address.js';
import {
  SERVER_KEY_MAX_LENGTH,
  SERVER_KEY_PATTERN,
  sameButForCase,
  serverKeyFault,
  TOOL_NAME,
  VIEW_NAME,
} from './server-key.js';
import {
  type Count,
  DEFAULT_REDIRECTS,
  flag,
  GATEWAY_SETTINGS,
  HTTP_SETTINGS,
  loopbackOf,
  MODE,
  NOTATIONS,
  nameInProgram,
  type Quantity,
  SERVER_SETTINGS,
  type Setting,
  type SettingTable,
  SHARED_SETTINGS,
  type WrittenOf,
} from './settings.js';

// Compiling the schema to functions would take longer than it saves, because a file is parsed once.
z.config({ jitless: true });

const string = z.string(expects('a string; put it in quotes'));

const variables = z.record(
  z.string().check(
    z.regex(/^[^=\0]+$/, {
      error: 'this is not a valid variable name; expected a name that is not empty and has no `=`',
    }),
  ),
  string.check(withoutNul()),
  expects('a map of environment variables'),
);

const envFile = text(
  `A file with lines NAME=VALUE, for secrets. Relative to the folder of this file. \${NAME} in an entry stands for the value in the file or, if the file has none, in the environment.`,
  'the path of a file',
);

/** The names that HTTP allows for a header. */
export const HEADER_NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

const header = z.string().check(
  z.regex(HEADER_NAME, { error: 'this is not a valid name of an HTTP header' }),
  z.refine((name) => !TRANSPORT_HEADERS.has(name.toLowerCase()), {
    error: 'Trunkline sets this header itself; remove it',
  }),
);

const headers = z.record(header, string, expects('a map of headers'));

/** Headers that the transport sets for each request. */
export const TRANSPORT_HEADERS: ReadonlySet<string> = new Set([
  ...['accept', 'connection', 'content-length', 'content-type', 'cookie', 'host', 'last-event-id', 'mcp-method'],
  ...['mcp-name', 'mcp-protocol-version', 'mcp-session-id', 'transfer-encoding'],
]);

/** Returns the name of a header for comparisons, because some programs read `_` and `-` as the same (CGI, WSGI). */
const asCompared = (name: string) => name.toLowerCase().replaceAll('_', '-');

/**
 * Headers of a client that no server gets: credentials, those of one connection, those with which the transport or a proxy says what
 * a request is and where it comes from, and those that change its meaning.
 */
const NEVER_PASSED = new RegExp(
  `^(?:${[
    ...['authorization', 'cookie2?', 'set-cookie', 'dpop', 'host', 'connection', 'keep-alive', 'te', 'trailer'],
    ...['transfer-encoding', 'upgrade', 'expect', 'origin', 'referer', 'accept', 'accept-encoding', 'accept-charset'],
    ...['last-event-id', 'range', 'if-.*', 'via', 'x-http-method.*'],
    // The many names under which proxies tell the address of a client.
    ...['(?:.*-)?forward(?:ed)?(?:-.*)?', '(?:.*-)?(?:client|socket)?ip(?:v[46])?'],
    ...['(?:.*-)?(?:client|external|peer|remote|source|user|viewer)-addr(?:ess)?'],
    ...['x-method-override', 'x-original-.*', 'x-rewrite-url', 'content-.*', 'mcp-.*', 'proxy-.*', 'sec-.*'],
    ...['access-control-.*', 'www-authenticate', 'trunkline-.*'],
  ].join('|')})$`,
);

const passedHeader = text('The name of a header.', 'the name of a header').check(
  z.regex(HEADER_NAME, { error: 'this is not a valid name of an HTTP header' }),
  z.refine((name) => !NEVER_PASSED.test(asCompared(name)), {
    error:
      'this header of a client reaches no server, because it is a credential or belongs to the connection; remove it',
  }),
);

const newName = z.string(expects('the new name of the tool')).check(
  z.regex(TOOL_NAME, {
    error: 'this name cannot be used; expected up to 64 letters, digits, `_` and `-`',
  }),
);

const description = z.union(
  [
    text('The new description.'),
    z.strictObject(
      { append: text("A text that follows the server's description, after an empty line.") },
      expects('a map with `append`'),
    ),
  ],
  expects('a text, or a map with `append`'),
);

const values = z.record(z.string(), z.unknown(), expects('a map of parameters with their values'));

const params = map(
  {
    hide: list(text('The name of a parameter.'), 'Parameters that clients do not see.'),
    set: described(values, 'Values of parameters, which replace those of a client. Texts may contain variables.'),
    default: described(values, 'Values for parameters that a client leaves out. Texts may contain variables.'),
    describe: described(
      z.record(z.string(), text('The new description.'), expects('a map of parameters with their descriptions')),
      'Descriptions of parameters, which replace those of the server.',
    ),
  },
  'a map with `hide`, `set`, `default` or `describe`',
);

const hint = (description: string) =>
  z.boolean(expects('true or false', { quote: true })).register(z.globalRegistry, { description });

const annotations = map(
  {
    title: text('The name for people, in place of the title of the tool and of its annotations.'),
    readOnlyHint: hint('Whether the tool changes nothing.'),
    destructiveHint: hint('Whether the tool may overwrite or delete something.'),
    idempotentHint: hint('Whether a second call with the same arguments has no further effect.'),
    openWorldHint: hint('Whether the tool reaches things outside of the server, such as the web.'),
  },
  'a map with `title`, `readOnlyHint`, `destructiveHint`, `idempotentHint` or `openWorldHint`',
);

const byTool = <Value extends z.ZodMiniType>(value: Value, description: string) =>
  described(z.record(z.string(), value, expects('a map of tools, by their original names')), description);

/** The key `tools` of a server. Tools have their original names here. */
const toolSettings = map(
  {
    allow: list(text('The name of a tool. `*` matches any characters.'), 'The only tools to show. Default: all tools.'),
    deny: list(text('The name of a tool. `*` matches any characters.'), 'Tools to hide, even if `allow` names them.'),
    rename: byTool(newName, 'New names of tools, without the prefix.'),
    describe: byTool(description, 'Descriptions of tools, which replace or follow those of the server.'),
    params: byTool(params, 'How parameters of tools are shown, and their values.'),
    annotate: described(
      z.record(z.string(), annotations, expects('a map of tools, by their original names or globs')),
      "Annotations of tools, which replace those of the server. `*` in a name matches any characters; a tool's own name decides before globs, and a later glob before an earlier one.",
    ),
    pin: list(
      text('The name of a tool. `*` matches any characters.'),
      'Tools that are in the list also in search mode.',
    ),
    keywords: byTool(
      list(text('A word or a phrase.'), 'Words and phrases for the tool.'),
      'Words with which people ask for tools, for search mode.',
    ),
  },
  'a map with `allow`, `deny`, `rename`, `describe`, `params`, `annotate`, `pin` or `keywords`',
);

const RULE_VALUE = 'a text in which `*` matches any characters, a number, true, false or null';

/** A path of names into arguments, such as `files[].path`. */
const argumentPath = z.string().check(
  z.regex(/^[^.[\]]+(?:\[\])*(?:\.[^.[\]]+(?:\[\])*)*$/, {
    error: 'this is not the path of an argument; expected names with dots between them, and `[]` after a list',
  }),
);

const rule = map(
  {
    tools: ruleNames('Tools of the server by their own names; in a view, as KEY__TOOL.'),
    uris: ruleNames('URIs of resources.'),
    prompts: ruleNames('Prompts of the server by their own names; in a view, as KEY__PROMPT.'),
    args: described(
      z
        .record(
          argumentPath,
          z
            .array(
              z.union([z.string(), z.number(), z.boolean(), z.null()], expects(RULE_VALUE)),
              expects('a list of values'),
            )
            .check(z.minLength(1, expects('a list with at least one value'))),
          expects('a map of arguments, each with a list of values'),
        )
        .check(z.refine((values) => Object.keys(values).length > 0, expects('a map with at least one argument'))),
      'Values of arguments, by paths such as `files[].path`. All must match. `!` before a value negates it, and null stands for a missing argument.',
    ),
    // biome-ignore lint/suspicious/noThenProperty: a key of the file, whose value is no function
    then: word(
      ['allow', 'ask', 'deny'],
      'What happens to a request that the rule matches. With ask, it waits for the yes of a person.',
      'allow, ask or deny',
    ),
    say: text('The reason that the client gets when the rule denies, and that the person reads who is asked.'),
  },
  'a map with `tools`, `uris` or `prompts`, and `then`',
).check(
  z.superRefine((values, { addIssue }) => {
    const [kind, second] = RULED.filter((name) => values[name] !== undefined);
    if (kind === undefined)
      addIssue(aboutKey('found nothing that the rule is about; add `tools`, `uris` or `prompts`'));
    if (second !== undefined)
      addIssue(aboutKey(`found both \`${kind}\` and \`${second}\`; make a rule of each`, second));
    if (kind === 'uris' && values.args !== undefined)
      addIssue(aboutKey('found `args` with `uris`, but resources have no arguments; remove `args`', 'args'));
    if (values.then === undefined)
      addIssue(aboutKey('found no `then`; add `then: allow`, `then: ask` or `then: deny`'));
  }),
);

function ruleNames(about: string) {
  return list(
    text('A name or a URI. `*` matches any characters, and `!` before it negates it.'),
    `${about} \`*\` matches any characters.`,
  ).check(z.minLength(1, expects('a list with at least one name')));
}

/** Rules on calls. The first one that matches decides. */
const rules = z.array(rule, expects('a list of rules'));

function interceptors(about: string) {
  return list(text('The key of a server with interceptors.'), `${about} See docs/interceptors.md.`);
}

const NAME_FORM =
  'a name such as api.github.com or *.github.com, an address, or one of them with a port, such as db.example.com:5432';

/** A name or an address that a confined server may connect to. */
const networkName = z.string(expects(NAME_FORM)).check(z.refine(isNetworkName, expects(NAME_FORM, { quote: true })));

function isNetworkName(text: string): boolean {
  const name = /^(?:\*|(?:\*\.)?[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?|\[[0-9A-Fa-f:.]+\])(?::([1-9]\d*))?$/;
  const [, port] = name.exec(text) ?? [undefined, '65536'];
  return port === undefined || Number(port) <= 65_535;
}

const requestParams = z.record(z.string(), string, expects('a map of parameters'));

const METADATA_FORM = 'a string, true, false, or a list of strings';

const SANDBOX_FORM = 'true, false, or a map with `read`, `write`, `network` or `unixSockets`';

const oauth = map(
  {
    clientId: text('The id of an OAuth app that you have registered.', 'the id of an OAuth app'),
    clientSecret: text(`Its secret. Keep it out of the file: \`\${secret:NAME}\`.`, 'the secret of an OAuth app'),
    clientMetadataUrl: text(
      'The URL of a document that describes the client, for authorization servers that accept one instead of a registration.',
      'the URL of a document',
    ),
    scopes: list(text('The name of a scope.'), 'The scopes to ask for. Default: those that the server names.'),
    grant: word(
      ['authorization_code', 'client_credentials'],
      'Whether a person logs in (authorization_code, the default), or the client itself (client_credentials).',
      'authorization_code or client_credentials',
    ),
    privateKeyFile: text(
      'A file with the private key (PEM) with which the client authenticates, relative to the folder of this file.',
      'the path of a file',
    ),
    issuer: text(
      'The URL of the authorization server. Default: the one that the server names. A new login with a secret needs it, or a yes on the terminal.',
      'the URL of an authorization server',
    ),
    resource: z
      .union(
        [z.literal(false), text('The `resource` of requests for tokens.')],
        expects('false, or the URL of the server'),
      )
      .register(z.globalRegistry, {
        description:
          'The `resource` of requests for tokens. `false` sends none, for authorization servers that refuse it.',
      }),
    authorizationParams: described(
      requestParams,
      'Further parameters of the page for logins, such as `access_type: offline`. They replace those of the same name.',
    ),
    tokenParams: described(
      requestParams,
      'Further parameters of requests for tokens, such as `audience`. They replace those of the same name.',
    ),
    headers: described(
      headers,
      'Headers of requests for metadata, registrations and tokens, such as those that a firewall wants. They go to the server and to the authorization server that it names.',
    ),
    metadata: described(
      z.record(
        z.string(),
        z.union([z.string(), z.boolean(), z.array(z.string())], expects(METADATA_FORM)),
        expects('a map with members of the metadata'),
      ),
      'Members that replace those of the metadata of the authorization server, such as `token_endpoint`.',
    ),
    redirectUri: text(
      'The redirect URI of a registered app, if it is not `http://127.0.0.1:PORT/callback`. Its port must be free on this machine; otherwise the address of the last page has to be pasted.',
      'a URL',
    ),
    callbackPort: z
      .number(expects('a port'))
      .check(
        z.minimum(1024, expects('a port from 1024 to 65535')),
        z.maximum(65_535, expects('a port from 1024 to 65535')),
      )
      .register(z.globalRegistry, {
        description:
          'The port of `http://127.0.0.1:PORT/callback`, the redirect URI of a registered app. Default: a free one of 27890 to 27894.',
      }),
  },
  'a map with settings of the login',
).check(
  z.refine(({ grant, clientId }) => grant !== 'client_credentials' || clientId !== undefined, {
    error: 'found `grant: client_credentials` without `clientId`; add `clientId`',
  }),
);

const HTTPS_URL = 'a URL that begins with https://, or with http:// and a loopback address';

/** An authorization server that gives tokens, and the client with which it is asked. */
const exchangeParty = {
  issuer: secureUrl(
    'The issuer of the provider, whose metadata name its token endpoint. Default: `jwt.issuer` of `gateway.http.auth`.',
  ),
  tokenEndpoint: secureUrl('The URL of the token endpoint, in place of the one in the metadata of the `issuer`.'),
  clientId: text('The id of the client of this gateway at the provider.', 'the id of a client'),
  clientSecret: text(
    `The secret of the client. Keep it out of the file: \`\${secret:NAME}\`.`,
    'the secret of a client',
  ),
  parameters: described(requestParams, 'Further parameters of requests for tokens.'),
};

const authorizationServer = map(
  {
    ...exchangeParty,
    issuer: secureUrl('The issuer of the authorization server, which the identity provider gets as the audience.'),
  },
  'a map with `issuer` and `clientId`',
);

/** The key `auth.exchange` of a server behind a URL. */
const exchange = map(
  {
    ...exchangeParty,
    grant: word(
      ['token-exchange', 'on-behalf-of', 'id-jag', 'jwt-bearer'],
      'How the token is exchanged: RFC 8693 (token-exchange, the default), the form of Entra (on-behalf-of), an ID-JAG of the provider that the authorization server of the server takes (id-jag), or as an assertion of RFC 7523 (jwt-bearer).',
      'token-exchange, on-behalf-of, id-jag or jwt-bearer',
    ),
    audience: text(
      'The `audience` of the token, such as the client id of the server at the provider. With `id-jag`, default: the issuer of `authorizationServer`.',
    ),
    resource: text('The `resource` of the token. With `id-jag` and `jwt-bearer`, default: the `url` of the server.'),
    scopes: list(text('The name of a scope.'), 'The scopes of the token. Default: those that the provider chooses.'),
    subjectTokenType: word(
      ['access_token', 'id_token', 'refresh_token', 'jwt'],
      'The kind of the token that is exchanged. Default: access_token.',
      'access_token, id_token, refresh_token or jwt',
    ),
    subjectTokenFile: text(
      'A file with the token that is exchanged, in place of the token of a user: the identity of this workload, such as a token of a Kubernetes service account. It is read before each exchange. Relative to the folder of this file.',
      'the path of a file',
    ),
    authorizationServer: described(
      authorizationServer,
      'With `id-jag`: the authorization server of the server, and the client there.',
    ),
  },
  'a map with settings of the exchange',
).check(
  z.superRefine(({ grant, authorizationServer: own, scopes: wanted, ...party }, { addIssue }) => {
    const report = (message: string, ...path: string[]) => addIssue(aboutKey(message, ...path));
    if (grant === 'id-jag' && own?.issuer === undefined)
      report('found `grant: id-jag` without `authorizationServer.issuer`, which takes the ID-JAG; add it', 'grant');
    if (grant !== 'id-jag' && own !== undefined)
      report('found `authorizationServer` without `grant: id-jag`; remove one of them', 'authorizationServer');
    if (grant === 'on-behalf-of' && (party.clientId === undefined || wanted === undefined))
      report('found `grant: on-behalf-of` without `clientId` or `scopes`; add them', 'grant');
    if (party.clientSecret !== undefined && party.clientId === undefined)
      report('found `clientSecret` without `clientId`; add `clientId`', 'clientSecret');
    for (const name of [...OWN_PARAMETERS])
      if (Object.hasOwn(party.parameters ?? {}, name))
        report(`found \`${name}\`, which Trunkline sets itself; remove it`, 'parameters', name);
  }),
);

const server = mapWith(
  SERVER_SETTINGS,
  {
    package: text(
      'An npm package, as `name`, `name@1.2.3`, `name@^1.2` or `name@latest`. It runs with the Node that runs Trunkline and is installed if it is missing. The exact version is recorded in trunkline.lock.',
      'the name of an npm package',
    ),
    command: text('The program to run, instead of a package.', 'the program to run, as a string'),
    url: text(
      'The URL of a remote server, instead of a package or a command. Plain `http:` is accepted for this machine only, unless the server is `insecure`.',
      'the URL of a server',
    ),
    transport: word(
      ['auto', 'http', 'sse'],
      'The transport of a `url`: Streamable HTTP (http), the older HTTP with SSE of revision 2024-11-05 (sse), or whichever the server has (auto).',
      'auto, http or sse',
    ),
    headers: described(
      headers,
      `Headers of every request to the \`url\`. Keep secrets out of the file: \`Bearer \${secret:NAME}\`.`,
    ),
    auth: described(
      map(
        { exchange: described(exchange, 'Exchanges the token of the user for one of this server.') },
        'a map with `exchange`',
      ),
      'How requests to the `url` are authorized, in place of a login.',
    ),
    passHeaders: list(
      passedHeader,
      'Names of headers that are taken from the HTTP request of a client and sent to the `url` with its call. A client can write anything into them.',
    ),
    headersCommand: text(
      'A command that prints further headers as a JSON object. It runs in a shell before the first request, and again when the server answers 401. Values reach it as variables of `env`.',
      'a command',
    ),
    oauth: described(
      oauth,
      'How to log in at the `url`. Without it, everything is found out at the first `trunkline login`.',
    ),
    login: word(
      ['user'],
      'Whose login it is: with `user`, each user over HTTP (`gateway.http.auth.jwt`) logs in with an account of their own. Without it, and without users, there is one login of this machine.',
      'user',
    ),
    insecure: z.boolean(expects('true or false')).register(z.globalRegistry, {
      description:
        'Accepts plain `http:` to another machine, such as one of the own network. Others on the way can read and change everything, credentials included.',
    }),
    proxy: text(
      'The URL of the proxy for the `url`. Without it, HTTPS_PROXY, HTTP_PROXY and NO_PROXY of the environment decide.',
      'the URL of a proxy',
    ),
    caFile: text(
      'A file with certificates (PEM) of authorities to trust besides the usual ones, relative to the folder of this file.',
      'the path of a file',
    ),
    bin: text('Which program of the package to run, if the package has several.', 'the name of a program'),
    args: list(string.check(withoutNul()), 'Arguments, passed without a shell. Relative paths are relative to `cwd`.'),
    cwd: text(
      'Working directory, relative to the folder of this file. Default: the folder of this file or, with `sharing: folder`, the working folder of the client.',
      'the path of a folder',
    ),
    env: described(
      variables,
      'Environment variables of the server. It gets no others, except for harmless ones, such as PATH and HOME, and those of certificates and proxies. For a `url`: variables of `headersCommand`.',
    ),
    envFile,
    prefix: z
      .literal('', expects('"", which means no prefix; leave it out to use the key as the prefix', { quote: true }))
      .register(z.globalRegistry, {
        description: '"" shows the tools under their original names, without the key as a prefix.',
      }),
    methods: list(
      text('The name of a method. `*` matches any characters.'),
      'Methods outside of MCP that this server answers, such as the methods of an extension.',
    ),
    tools: described(toolSettings, 'Which tools of this server to show, and in which form.'),
    rules: described(
      rules,
      'Rules on calls, resources and prompts; the first one that matches decides. Those of `defaults` follow; see docs/rules.md.',
    ),
    interceptors: interceptors(
      'Servers of this file that look at the requests to this server and at its results. Those of `defaults` follow.',
    ),
    type: word(
      ['stdio', 'http', 'sse', 'streamable-http'],
      'The transport, as other programs write it. `transport` is the key for a `url`.',
      'stdio, http, sse or streamable-http',
    ),
  },
  'a map with `package`, `command` or `url`',
  (entry, report) => {
    const found = ['package', 'command', 'url'].filter((key) => entry[key] !== undefined);
    const [first, second] = found;
    if (second !== undefined) report(`found both \`${first}\` and \`${second}\`; remove one of them`, second);
    if (first === undefined) report('found nothing to run; add `package`, `command` or `url`');
    for (const key of first === 'url' ? PROGRAM_KEYS : REMOTE_KEYS) {
      if (first === undefined || entry[key] === undefined) continue;
      if (key === 'env' && entry.headersCommand !== undefined) continue;
      report(`found \`${key}\`, which a server with \`${first}\` does not have; remove it`, key);
    }
    const hasOwn = Object.keys(entry.headers ?? {}).some((name) => name.toLowerCase() === 'authorization');
    if (entry.oauth !== undefined && (hasOwn || entry.headersCommand !== undefined))
      report('found `oauth` beside credentials in `headers` or `headersCommand`; remove one of them', 'oauth');
    if (entry.login !== undefined && (hasOwn || entry.headersCommand !== undefined))
      report('found `login` beside credentials in `headers` or `headersCommand`; remove one of them', 'login');
    const { grant } = (entry.oauth ?? {}) as { readonly grant?: string };
    if (entry.login !== undefined && entry.auth !== undefined)
      report('found `login: user` beside `auth`, with which nobody logs in; remove one of them', 'login');
    if (entry.login !== undefined && grant === 'client_credentials')
      report('found `login: user` with `grant: client_credentials`, with which nobody logs in; remove one', 'login');
    if (entry.auth !== undefined && (hasOwn || entry.headersCommand !== undefined || entry.oauth !== undefined))
      report(
        'found `auth` beside `oauth`, or credentials in `headers` or `headersCommand`; remove one of them',
        'auth',
      );
    const fixed = new Set(Object.keys(entry.headers ?? {}).map(asCompared));
    for (const name of (entry.passHeaders ?? []) as readonly string[])
      if (fixed.has(asCompared(name)))
        report(`found \`${name}\` in both \`headers\` and \`passHeaders\`; remove it from one of them`, 'passHeaders');
    if (first === 'url' && entry.type === 'stdio') report('found `type: stdio` with `url`; remove `type`', 'type');
    if (first !== 'url' && entry.type !== undefined && entry.type !== 'stdio')
      report('found the type of a remote server without `url`; add `url` or remove `type`', 'type');
    const { placement, sharing } = entry;
    if (placement === 'one' && sharing !== undefined && sharing !== 'all')
      report(
        `found \`placement: one\`, which implies \`sharing: all\`, beside another \`sharing\`; remove \`sharing\``,
        'sharing',
      );
    if (entry.package !== undefined || first === 'url') return;
    for (const key of ['bin', 'installScripts', 'foreignDependencies']) {
      if (entry[key] !== undefined)
        report(`found \`${key}\` without \`package\`; add \`package\` or remove \`${key}\``, key);
    }
  },
).register(z.globalRegistry, {
  id: 'Server',
  oneOf: [{ required: ['package'] }, { required: ['command'] }, { required: ['url'] }],
});

/** Parameters of requests for tokens that the configuration cannot replace. */
const OWN_PARAMETERS = ['grant_type', 'subject_token', 'assertion', 'client_id', 'client_secret'] as const;

/** Keys that only a server with a program has, and those that only a server behind a URL has. */
const PROGRAM_KEYS = [
  'args',
  'cwd',
  'bin',
  'installScripts',
  'foreignDependencies',
  'env',
  'limits',
  'leaveRunning',
  'sandbox',
  'placement',
] as const;
const REMOTE_KEYS = [
  'transport',
  'insecure',
  'headers',
  'passHeaders',
  'headersCommand',
  'oauth',
  'auth',
  'login',
  'proxy',
  'caFile',
] as const;

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

const defaults = mapWith(
  SHARED_SETTINGS,
  {
    env: described(
      variables,
      'Environment variables of all servers, and of npm when it installs a package. The `env` of a server overrides them.',
    ),
    envFile,
    rules: described(rules, 'Rules that follow those of each server; see docs/rules.md.'),
    interceptors: interceptors('Servers of this file that look at the requests to all others and at their results.'),
  },
  'a map of settings',
);

const viewName = z.string(expects('the name of a view')).check(
  z.regex(VIEW_NAME, {
    error: 'this is not a valid name of a view; expected up to 64 letters, digits, `_` and `-`',
  }),
);

const view = map(
  {
    groups: list(
      text('The name of a group.'),
      'The groups of users who get the view, with `gateway.http.auth`. For other users, the view does not exist. Default: all users.',
    ),
    servers: list(text('The key of a server.'), 'The servers of the view. Default: all servers.'),
    tools: described(
      map(
        {
          allow: list(
            text('The name of a tool, as KEY__TOOL. `*` matches any characters.'),
            'The only tools of the view. Default: all tools of its servers.',
          ),
          deny: list(
            text('The name of a tool, as KEY__TOOL. `*` matches any characters.'),
            'Tools that the view hides, even if `allow` names them.',
          ),
        },
        'a map with `allow` or `deny`',
      ),
      'The tools that the view shows.',
    ),
    rules: described(
      rules,
      'Rules for clients of the view. A request must be allowed by them and by the rules of its server; see docs/rules.md.',
    ),
    interceptors: interceptors(
      'Servers of this file that look at the requests of the clients of the view and at the results, before those of the server.',
    ),
    results: described(
      fieldOf(SHARED_SETTINGS.results) as z.ZodMiniType<WrittenOf<(typeof SHARED_SETTINGS)['results']['table']>>,
      'Which results are cut for clients of the view, instead of the `results` of the servers.',
    ),
    mode: word(
      MODE.words,
      'The `mode` of the clients of the view. Default: that of `gateway`.',
      `one of ${MODE.words.join(', ')}`,
    ),
  },
  'a map with `groups`, `servers`, `tools`, `rules`, `interceptors`, `results` or `mode`',
);

const views = described(
  z.record(viewName, view, expects('a map of views')),
  'Views by name. A view shows some of the servers and tools. A client chooses a view with `--view NAME` or with the URL `/mcp/v/NAME`, or gets one through `clients`.',
);

const clients = described(
  z.record(z.string(), text('The name of a view.'), expects('a map of names of clients, each with the name of a view')),
  'Views of clients that choose no view, by the name of the client in `initialize`. `*` matches any characters; the first match counts.',
);

const LOCAL_ADDRESS =
  'a loopback address with a port, such as 127.0.0.1:9464, or the path of a unix socket; other machines get /metrics from `trunkline serve --http`, with the token';

const COMMAND = expects('a command with all quotes closed, or a list of its words');

const written = z.string(COMMAND).check(
  withoutNul(),
  z.refine((text) => (wordsOf(text) ?? []).length > 0, COMMAND),
);

/** A command, as a text or as a list of words. Parsing splits a text into words. */
const command = z.union(
  [
    z.pipe(
      written,
      z.transform((text: string) => wordsOf(text) ?? []),
    ),
    z.array(z.string(COMMAND).check(withoutNul())).check(z.minLength(1, COMMAND)),
  ],
  COMMAND,
);

const secretName = z.string().check(
  z.regex(/^[A-Za-z_][A-Za-z0-9_]*$/, {
    error: 'this is not a valid name of a secret; expected letters, digits and `_`',
  }),
);

const secretCommand = described(
  z.record(secretName, command, expects('a map of secrets, each with its command')),
  `Commands that print secrets, such as \`op read op://vault/item/field\`, by the names of the secrets. They run without a shell. \${secret:NAME} in an entry stands for a secret.`,
);

const RATIO = expects('a number from 0 to 1', { quote: true });

/** The destination of the spans of calls, or `off`. Without it, the `OTEL_*` variables of the environment decide. */
const tracing = z.union(
  [
    z.literal('off'),
    map(
      {
        endpoint: text(
          'The URL of a collector that takes OTLP over HTTP, such as `http://127.0.0.1:4318`. `/v1/traces` is appended unless the URL ends with it. It replaces the endpoint and the headers of the `OTEL_*` variables.',
          'the URL of a collector',
        ),
        headers: described(
          headers,
          `Headers of every request to the \`endpoint\`. Keep secrets out of the file: \`Bearer \${secret:NAME}\`.`,
        ),
        sample: z.number(RATIO).check(z.gte(0, RATIO), z.lte(1, RATIO)).register(z.globalRegistry, {
          description:
            'The share of calls to trace, from 0 to 1. A call that belongs to a trace of its client follows the decision of the client.',
        }),
        insert: fieldOf(
          flag(
            false,
            'Adds a `traceparent` to the `_meta` of traced calls without one, so that the server can continue the trace.',
          ),
        ) as z.ZodMiniType<boolean>,
        content: fieldOf(
          flag(false, 'Adds arguments, results and URIs of resources to the spans, without known secrets, and cut.'),
        ) as z.ZodMiniType<boolean>,
      },
      'a map with settings of traces',
    ),
  ],
  expects('off, or a map with settings of traces'),
);

/** A URL whose host can prove its identity, or is this machine. */
function secureUrl(description: string, expected = HTTPS_URL, allows: (url: URL) => boolean = () => true) {
  return text(description, expected).check(
    z.refine((value) => isSecureUrl(value) && allows(new URL(value)), expects(expected, { quote: true })),
  );
}

function isSecureUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const url = new URL(text);
  return isProtected(url) && url.username === '' && url.password === '' && url.hash === '';
}

/** Signatures that anyone can check and only the issuer can make. A shared key (HS256) is not among them. */
const ALGORITHMS = [
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'],
] as const;

const jwt = z.strictObject(
  {
    issuer: secureUrl('The issuer of the tokens, exactly as its tokens name it in `iss`.'),
    audience: list(
      text('A value of `aud`.'),
      'The values of `aud` that tokens for this gateway have, such as `https://mcp.example.com/mcp`. A token for anything else is refused.',
    ).check(z.minLength(1, expects('a list with at least one audience'))),
    ...z.exactPartial(
      z.strictObject({
        algorithms: z
          .array(
            z.enum(ALGORITHMS, expects(`one of ${ALGORITHMS.join(', ')}`, { quote: true })),
            expects('a list of algorithms'),
          )
          .check(z.minLength(1, expects('a list with at least one algorithm')))
          .register(z.globalRegistry, {
            description: 'The accepted signatures. Default: RS256, PS256, ES256, EdDSA and Ed25519.',
          }),
        jwksUri: secureUrl('The URL of the keys. Default: the one that the metadata of the issuer names.'),
        userClaim: text('The claim that identifies the user. Default: `sub`.', 'the name of a claim'),
        groupsClaim: text(
          'The claim with the groups of the user. Dots lead into maps, as in `realm_access.roles`. Default: `groups`.',
          'the name of a claim',
        ),
        scopes: list(text('The name of a scope.'), 'Scopes that every token must have. Default: none.'),
        clients: list(
          text('The id of an app, or `any`.'),
          'The apps to which the identity provider may have issued a token (`azp`, `cid`, `client_id` or `appid`). Default: with `front`, its own ids, and `any` without it.',
        ),
      }),
    ).shape,
  },
  expects('a map with `issuer` and `audience`'),
);

const REDIRECT = expects(
  '`loopback`, a URL that begins with https://, or the whole URI of an app such as `cursor://x/y`',
  {
    quote: true,
  },
);

/** Schemes that belong to no app, because a browser runs or shows the content of such an address. */
const NO_APP = /^(?:https?|wss?|ftp|file|data|blob|javascript|vbscript|about|filesystem|view-source|mailto|tel|sms):$/;

function isRedirectRule(rule: string): boolean {
  if (rule === 'loopback') return true;
  if (rule.startsWith('https://')) return isSecureUrl(rule);
  // The scheme alone would allow every link of the app, such as one that installs something.
  return (
    /^[a-z][a-z0-9+.-]*:[!-~]+$/.test(rule) &&
    URL.canParse(rule) &&
    !NO_APP.test(new URL(rule).protocol) &&
    !rule.includes('#')
  );
}

/** Logins for clients that the identity provider does not register. */
const front = z.strictObject(
  {
    clientId: text(
      'The id of the public client that is registered at the identity provider. All clients log in with it.',
      'the id of a client',
    ),
    ...z.exactPartial(
      z.strictObject({
        clientIds: z
          .record(
            z.string(),
            text('The id of a client.', 'the id of a client'),
            expects('a map of ids by the hosts of redirect URIs'),
          )
          .register(z.globalRegistry, {
            description:
              'Other ids by the host of the redirect URIs of a client, such as `claude.ai` or `localhost`. For the URI of an app, its scheme, such as `cursor:`. A client whose redirect URIs have different ids gets `clientId`.',
          }),
        scopes: list(
          text('The name of a scope.'),
          'The scopes that the identity provider is asked for, whatever a client asks for. Default: those of `jwt`.',
        ),
        resource: text(
          'The `resource` that the identity provider is asked for instead of the one of the client. Default: none, because some providers refuse it.',
          'the identifier of a resource',
        ),
        parameters: z
          .record(z.string(), text('The value of a parameter.'), expects('a map of parameters'))
          .register(z.globalRegistry, {
            description:
              'More parameters of the address of the login page, such as `audience`, `prompt` or `access_type`.',
          }),
        redirects: z
          .array(
            z.string(REDIRECT).check(z.refine(isRedirectRule, REDIRECT)),
            expects('a list of places to which a login may return'),
          )
          .register(z.globalRegistry, {
            description:
              'Where a login may return to: `loopback` for programs of the machine of the person, with any port; a whole URL that begins with https://; the whole URI of an app. Everything else is refused.',
            default: [...DEFAULT_REDIRECTS],
          }),
      }),
    ).shape,
  },
  expects('a map with `clientId`'),
);

/** Users of the HTTP server. Without it, all clients have one token. */
const auth = map(
  {
    jwt: described(jwt, 'Users who log in at an identity provider, whose access tokens are JWTs.'),
    front: described(
      front,
      'Logins through Trunkline, for clients that the identity provider of `jwt` does not register, and for providers that refuse what clients send. Tokens are still those of the provider.',
    ),
    tokens: text(
      'A file with a line `NAME SHA256 GROUPS` for each machine that has a token of its own. Relative to the folder of this file.',
      'the path of a file',
    ),
    variables: text(
      `A folder with the files \`users/USER/NAME\` and \`machines/MACHINE/NAME\`, whose contents are the values of \${user:NAME} in an entry. Relative to the folder of this file.`,
      'the path of a folder',
    ),
  },
  'a map with `jwt` or `tokens`',
).check(
  z.superRefine((values, { addIssue }) => {
    if (values.jwt === undefined && values.tokens === undefined)
      addIssue(aboutKey('found neither `jwt` nor `tokens`, so nobody could log in; add one of them'));
    if (values.front !== undefined && values.jwt === undefined)
      addIssue(aboutKey('found `front` without `jwt`, the identity provider to which it leads; add `jwt`', 'front'));
    const own = ['response_type', 'client_id', 'redirect_uri', 'state', 'code_challenge', 'code_challenge_method'];
    for (const name of [...own, 'scope', 'resource'])
      if (Object.hasOwn(values.front?.parameters ?? {}, name))
        addIssue(aboutKey(`found \`${name}\`, which Trunkline sets itself; remove it`, 'front', 'parameters', name));
  }),
);

const http = described(
  mapWith(
    HTTP_SETTINGS,
    {
      publicUrl: secureUrl(
        'The URL that clients use, without a path, such as https://mcp.example.com. Its host is an allowed host.',
        'a URL without a path that begins with https://, or with http:// and a loopback address',
        ({ pathname, search }) => pathname === '/' && search === '',
      ),
      auth: described(
        auth,
        'The users of `serve --http`: each has servers, sessions and tasks of his own. The token of `trunkline token` is no longer valid.',
      ),
    },
    'a map of settings',
    (values, report) => {
      const { publicUrl, auth: users } = values as { readonly publicUrl?: string; readonly auth?: { jwt?: unknown } };
      if (users?.jwt !== undefined && publicUrl === undefined)
        report('found `auth.jwt` without `publicUrl`, which tells clients where to log in; add `publicUrl`', 'auth');
    },
  ),
  GATEWAY_SETTINGS.http.about,
);

/** A text that `parse` accepts once its variables are replaced. A text without variables is checked at once. */
function parsedText(description: string, expected: string, parse: (text: string) => unknown) {
  return text(description, expected).check(
    z.superRefine((value, { addIssue }) => {
      if (value === '' || value.includes('${')) return;
      try {
        parse(value);
      } catch (error) {
        if (!(error instanceof AddressFault)) throw error;
        addIssue({ code: 'custom', message: error.message });
      }
    }),
  );
}

const CLUSTER_NAME = expects('a name of up to 64 letters, digits, `_`, `.` and `-`', { quote: true });

/** Gateways that share their users. */
const cluster = z.strictObject(
  {
    store: parsedText(
      'The URL of Redis or Valkey: `redis://HOST:6379`, `valkey://`, with TLS `rediss://` or `valkeys://`, or Sentinels as `redis-sentinel://HOST:26379,HOST:26379/NAME`. May contain variables, but no password.',
      'the URL of a store',
      storeLocation,
    ),
    advertise: parsedText(
      `The address at which the other gateways reach this one, as HOST:PORT, such as \${POD_IP}:7412.`,
      'the HOST:PORT at which other gateways reach this one',
      reachableAddress,
    ),
    ...z.exactPartial(
      z.strictObject({
        listen: parsedText(
          'Where this gateway listens for the others, as HOST:PORT. Default: the port of `advertise`, at all addresses of this machine.',
          'HOST:PORT',
          hostAndPort,
        ),
        storeUser: text('The user of the store (ACL).', 'the name of a user'),
        storePasswordFile: text(
          'A file with the password of the store. Only its owner may have access, or it is in `secretFolder`. Relative to the folder of this file.',
          'the path of a file',
        ),
        storeCaFile: text(
          'A file with certificates (PEM) of authorities that sign the certificate of the store, instead of those of the system. Relative to the folder of this file.',
          'the path of a file',
        ),
        name: z
          .string(CLUSTER_NAME)
          .check(z.regex(/^[\w.-]{1,64}$/, CLUSTER_NAME))
          .register(z.globalRegistry, {
            description: 'The name of the cluster, for several clusters with one store.',
            default: 'trunkline',
          }),
      }),
    ).shape,
  },
  expects('a map with `store` and `advertise`'),
);

/** The shape of a configuration file. Parsing turns durations into milliseconds and sizes into bytes. */
export const fileSchema = map(
  {
    $schema: text('The JSON Schema of this file, for editors. Trunkline ignores it.'),
    servers: described(servers, 'The servers to run, by key. The key becomes the prefix of the tool names.'),
    mcpServers: described(servers, 'Another name for `servers`, which other programs use.'),
    defaults: described(defaults, 'Default settings of all servers. An entry of a server overrides them.'),
    secretCommand,
    views,
    clients,
    gateway: described(
      mapWith(
        GATEWAY_SETTINGS,
        {
          http,
          tracing: described(tracing, 'Traces of calls with OpenTelemetry; see docs/metrics.md.'),
          cluster: described(
            cluster,
            'Several gateways that serve each user at one of them, for `serve --http`; see docs/cluster.md. Needs `sealKeyFile`.',
          ),
        },
        'a map of settings',
        (values, report) => {
          if (values.cluster !== undefined && values.sealKeyFile === undefined)
            report(
              'found `cluster` without `sealKeyFile`, the key that its gateways share; add `sealKeyFile`',
              'cluster',
            );
        },
      ),
      'Settings of Trunkline itself.',
    ),
  },
  'a map with `servers:`',
).register(z.globalRegistry, { title: 'Trunkline configuration' });

/** The schema of a file that another program may share. Unknown keys at the top level are not mistakes. */
export const sharedFileSchema = z.object(fileSchema.shape, expects('a map with `servers:`'));

export type ServerEntry = z.output<typeof server>;

/** The content of a file after the check. */
export type FileData = z.output<typeof fileSchema>;

/** The text of `config/trunkline.schema.json`, with which editors complete and check a configuration. */
export function jsonSchemaText(): string {
  const schema = z.toJSONSchema(fileSchema, {
    target: 'draft-7',
    io: 'input',
    // zod omits the defaults of converted values, so they are added, in the notation of the file.
    override: ({ zodSchema, jsonSchema }) => {
      const standard = z.globalRegistry.get(zodSchema)?.default;
      if (standard !== undefined) jsonSchema.default = standard;
    },
  });
  return `${JSON.stringify(schema, null, 2)}\n`;
}

/**
 * A map with the settings of a table and with other fields, which may replace settings. Parsing moves the settings below
 * `settings`, under their names in the program. `check` reports mistakes that concern several values: at a key of the map or, without a path, at the map's key.
 */
function mapWith<T extends SettingTable, Fields extends Readonly<Record<string, z.ZodMiniType>>>(
  table: T,
  fields: Fields,
  expected: string,
  check: (values: Values, report: (message: string, ...path: string[]) => void) => void = () => {},
) {
  // A field that replaces a setting keeps the place of the setting.
  const others = Object.entries(fields).filter(([key]) => !Object.hasOwn(table, key));
  const shape: Record<string, z.ZodMiniType> = { ...Object.fromEntries(others), ...fieldsOf(table), ...fields };
  const checked = map(shape, expected).check(
    z.superRefine((values, { addIssue }) => check(values, (...issue) => addIssue(aboutKey(...issue)))),
  );
  const parse = (values: Values) => {
    const found = Object.entries(values).filter(([key]) => Object.hasOwn(fields, key));
    return { ...Object.fromEntries(found), settings: renamed(values, table) };
  };
  return z.pipe(checked, z.transform(parse)) as z.ZodMiniType as z.ZodMiniType<MapWith<T, Fields>>;
}

type Values = Readonly<Record<string, unknown>>;

type MapWith<T extends SettingTable, Fields extends Readonly<Record<string, z.ZodMiniType>>> = {
  readonly [K in keyof Fields]?: z.output<Fields[K]>;
} & { readonly settings: WrittenOf<T> };

function fieldsOf(table: SettingTable): Record<string, z.ZodMiniType> {
  return Object.fromEntries(Object.entries(table).map(([key, setting]) => [key, fieldOf(setting)]));
}

function fieldOf(setting: Setting): z.ZodMiniType {
  switch (setting.kind) {
    case 'duration':
    case 'bytes':
      return quantity(setting);
    case 'count':
      return count(setting);
    case 'choice': {
      const { words, standard, about } = setting;
      const expected = expects(`one of ${words.join(', ')}`, { quote: true });
      return z.enum(words, expected).register(z.globalRegistry, { description: about, default: standard });
    }
    case 'flag': {
      const { standard, about } = setting;
      const field = z.boolean(expects('true or false', { quote: true }));
      return field.register(z.globalRegistry, { description: about, default: standard });
    }
    case 'names':
      return list(text('A name.'), setting.about);
    case 'path':
      return text(setting.about, 'the path of a file');
    case 'address':
      return text(setting.about, LOCAL_ADDRESS).check(
        z.refine((value) => loopbackOf(value) !== undefined || isPath(value), expects(LOCAL_ADDRESS, { quote: true })),
      );
    case 'sandbox':
      return sandbox(setting);
    case 'section': {
      const { table, expected, about } = setting;
      return described(
        z.pipe(
          map(fieldsOf(table), expected),
          z.transform((values: Values) => renamed(values, table)),
        ),
        about,
      );
    }
  }
}

function isPath(value: string): boolean {
  return /[\\/]/.test(value) && !/^[\w.[\]:-]*:[\d/]/.test(value);
}

/** The settings among the values of a map, by their names in the program. */
function renamed(values: Values, table: SettingTable): Record<string, unknown> {
  const known = Object.entries(values).flatMap(([key, value]) => {
    const setting = Object.hasOwn(table, key) ? table[key] : undefined;
    return setting === undefined ? [] : [[nameInProgram(key, setting), value]];
  });
  return Object.fromEntries(known);
}

/** A mistake that concerns several values, reported at the last key of `path` or, without a path, at the key of the map. */
function aboutKey(message: string, ...path: string[]) {
  return { code: 'custom' as const, message, path, params: { aboutKey: true } };
}

/** Splits a command at spaces, except within quotes. `undefined` if a quote is not closed. */
function wordsOf(command: string): string[] | undefined {
  const words = command.trim().match(/(?:[^\s"']|"[^"]*"|'[^']*')+|\S/g) ?? [];
  const isOpen = words.some((word) => /["']/.test(word.replace(/"[^"]*"|'[^']*'/g, '')));
  if (isOpen) return undefined;
  return words.map((word) => word.replace(/"([^"]*)"|'([^']*)'/g, (_, double, single) => double ?? single ?? ''));
}

function count({ standard, min, max, about }: Count) {
  const expected = expects(`a whole number from ${min} to ${max}`, { quote: true });
  return z
    .int(expected)
    .check(z.gte(min, expected), z.lte(max, expected))
    .register(z.globalRegistry, { description: about, ...(standard !== undefined && { default: standard }) });
}

function sandbox({ about, standard }: Extract<Setting, { readonly kind: 'sandbox' }>) {
  const path = text('The path of a file or a folder, relative to the folder of this file. `~` is the home folder.');
  const openings = map(
    {
      read: list(path, 'Files and folders that the server may read.'),
      write: list(path, 'Files and folders that the server may read and write.'),
      network: list(
        networkName,
        'Names that the server may connect to, through a proxy. `*.example.com` stands for all names below it, `*` for all public names. A name without a port means the ports 80 and 443.',
      ),
      unixSockets: fieldOf(
        flag(false, 'Lets the server use unix sockets, such as those of a browser, in the folders that it sees.'),
      ) as z.ZodMiniType<boolean>,
    },
    SANDBOX_FORM,
  );
  return z
    .union([z.boolean(), openings], expects(SANDBOX_FORM))
    .register(z.globalRegistry, { description: about, default: standard });
}

/** Refuses a NUL character, because Node starts no program and opens no file with it. */
function withoutNul() {
  return z.refine<string>((value) => !value.includes('\0'), { error: 'found a NUL character (\\0); remove it' });
}

/** A map with known keys, of which none is required. */
function map<Shape extends Readonly<Record<string, z.ZodMiniType>>>(shape: Shape, expected: string) {
  return z.exactPartial(z.strictObject(shape, expects(expected)));
}

function word<const Word extends string>(words: readonly Word[], description: string, expected: string) {
  return z.enum(words, expects(expected, { quote: true })).register(z.globalRegistry, { description });
}

/** A non-empty string. Error messages never quote its value, because it may be a secret. */
function text(description: string, expected = 'a string that is not empty; put numbers, true and false in quotes') {
  return z
    .string(expects(expected))
    .check(z.minLength(1, expects(expected)), withoutNul())
    .register(z.globalRegistry, { description });
}

function list(item: z.ZodMiniString, description: string) {
  return z.array(item, expects('a list of strings')).register(z.globalRegistry, { description });
}

/** A copy of the schema with a description of its own, because a schema may be used at several places. */
function described<Schema extends z.ZodMiniType>(schema: Schema, description: string): Schema {
  const copy = schema.clone();
  z.globalRegistry.add(copy, { description });
  return copy;
}

/** A text such as `60s` or `64MiB`, parsed to milliseconds or bytes. */
function quantity({ kind, standard, min, max, about }: Quantity) {
  const { noun, form, pattern, parse } = NOTATIONS[kind];
  const inRange = (value: string) => parse(value) >= parse(min) && parse(value) <= parse(max);
  // A number without a unit is an error, because some programs mean seconds by it, others milliseconds.
  const error = ({ input }: { input?: unknown }) =>
    `found ${describeFound(input)}${isBareNumber(input) ? ' without a unit' : ''}; expected ${form}`;
  const written = z
    .string({ error })
    .check(
      z.regex(pattern, { error, abort: true }),
      z.refine(inRange, expects(`${noun} from ${min} to ${max}`, { quote: true })),
    );
  return z.pipe(written, z.transform(parse)).register(z.globalRegistry, {
    description: `${about} From ${min} to ${max}.`,
    ...(standard !== undefined && { default: standard }),
  });
}

function isBareNumber(input: unknown): boolean {
  return typeof input === 'number' || (typeof input === 'string' && /^\d+$/.test(input));
}

const LONGEST_QUOTE = 40;

/** Describes a value of the file in words. With `secret` it names only the type of the value, never its content. */
function describeFound(value: unknown, { secret = false } = {}): string {
  if (value === null || value === undefined) return 'no value';
  if (Array.isArray(value)) return 'a list';
  switch (typeof value) {
    case 'object':
      return 'a map';
    case 'string':
      if (secret) return 'a string';
      return value.length > LONGEST_QUOTE ? 'a long string' : `the string ${JSON.stringify(value)}`;
    case 'number':
    case 'bigint':
      return secret ? 'a number' : `the number ${value}`;
    case 'boolean':
      return secret ? 'true or false' : `${value}`;
    default:
      return 'a value of another type';
  }
}

/**
 * The zod parameters that make the error of a wrong value read `found X; expected Y`.
 *
 * The error quotes the value only if `quote` is set, because command lines and variables may contain secrets.
 */
function expects(expected: string, { quote = false } = {}) {
  return {
    error: ({ code, input }: { code?: string | undefined; input?: unknown }): string | undefined =>
      // These two issues concern keys; `toProblems` writes their messages.
      code === 'unrecognized_keys' || code === 'invalid_key'
        ? undefined
        : `found ${describeFound(input, { secret: !quote })}; expected ${expected}`,
  };
}
