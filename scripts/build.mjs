// Builds `dist`. What is loaded between the spawn and the first answers decides how long a client waits, and a few
// large files load several times faster than many small ones, so our files are bundled, and the packages that they
// import, too. What the first answers do not need stays in files of its own, behind an `import()`. `tsc` checks the types.
import { createHash } from 'node:crypto';
import { chmodSync, copyFileSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { build } from 'rolldown';

const path = (file) => fileURLToPath(new URL(`../${file}`, import.meta.url));

/**
 * The two stages of a start, each in one file with all that it needs: what answers `initialize`, and what serves. The file
 * before them attaches to a hub; every client of a hub has a process with it. Other files follow from the `import()`s.
 */
const STAGES = [
  // Three small files of `src/wire` are there for the commands, which need nothing else of what serves.
  {
    name: 'main',
    test: /src\/(hub|cli|host\/errors|wire\/json|wire\/mcp)\/(attach\/|commands\/serve\/)?(main|attach|usage-error|serve-options|printable|suggest|exposed-name)\.ts$/,
  },
  { name: 'serve', test: path('src/app/serve.ts') },
  { name: 'serve-clients', test: path('src/app/serve-clients.ts') },
];

/** The ES modules of OpenTelemetry, of which the traces need a fifth. */
function openTelemetry() {
  const names = readdirSync(path('node_modules/@opentelemetry')).filter((name) => name !== 'semantic-conventions');
  const modules = names.map((name) => {
    const { module } = JSON.parse(readFileSync(path(`node_modules/@opentelemetry/${name}/package.json`), 'utf8'));
    return [`@opentelemetry/${name}`, path(`node_modules/@opentelemetry/${name}/${module}`)];
  });
  const nodeHttp = path('node_modules/@opentelemetry/otlp-exporter-base/build/esm/index-node-http.js');
  return { '@opentelemetry/otlp-exporter-base/node-http': nodeHttp, ...Object.fromEntries(modules) };
}

/** The folders of the packages that are bundled. Their licenses have to be passed on with their code. */
const bundledFolders = new Set();

const bundledPackages = {
  name: 'bundled-packages',
  generateBundle(_, files) {
    for (const id of Object.values(files).flatMap(({ moduleIds = [] }) => moduleIds)) {
      const [folder] = /^.*[\\/]node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+/.exec(id) ?? [];
      if (folder !== undefined) bundledFolders.add(folder);
    }
  },
};

function licenseOf(folder) {
  const { name, version, license, author } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const files = readdirSync(folder).filter((file) => /^(?:licen[cs]e|copying|notice)/i.test(file));
  const texts = files.map((file) => readFileSync(join(folder, file), 'utf8').trim());
  if (texts.length === 0) texts.push(declaredLicense(name, license, author));
  return { name: `${name} ${version} (${license})`, text: texts.join('\n\n') };
}

/** The licenses of the packages, each text once, because packages of one author have the same. */
function licensesOf(folders) {
  const names = new Map();
  for (const { name, text } of folders.map(licenseOf)) names.set(text, (names.get(text) ?? new Set()).add(name));
  const texts = [...names].map(([text, ofText]) => `${[...ofText].sort().join('\n\n')}\n\n${text}\n\n`);
  return texts.sort().join('\n');
}

/** The holders of packages that name none, from the license files of their repositories. */
const HOLDERS = new Map([['@redis/client', '2022-2025, Redis, inc.']]);

/** For a package that names the MIT license in its package.json, and has no file with the text. */
function declaredLicense(name, license, author) {
  const holder = author?.name ?? author ?? HOLDERS.get(name);
  if (license !== 'MIT' || holder === undefined) throw new Error(`${name} is bundled, but it has no license file`);
  return readFileSync(path('LICENSE'), 'utf8')
    .trim()
    .replace(/^Copyright.*$/m, `Copyright (c) ${holder}`);
}

/** Drops the loading of helpers of which a file uses none. */
const noIdleHelpers = {
  name: 'no-idle-helpers',
  generateBundle: (_, files) => {
    for (const file of Object.values(files)) {
      if (file.type === 'chunk') file.code = file.code.replace(/^require\("\.\/rolldown-runtime\.js"\);\n/m, '');
    }
  },
};

/**
 * The proxy of the sandbox tunnels TLS and does not open it, so it needs neither certificates of its own nor the library that
 * makes them.
 */
const noInterception = {
  name: 'no-interception',
  load(id) {
    const [, name] = /sandbox-runtime[\\/]dist[\\/]sandbox[\\/](tls-terminate-proxy|mitm-ca)\.js$/.exec(id) ?? [];
    if (name === undefined) return null;
    const never = (it) => `export const ${it} = () => { throw new Error('TLS is not intercepted'); };`;
    return name === 'mitm-ca'
      ? `export const CRL_PATH = '';`
      : `${never('peekForClientHello')}${never('terminateAndForward')}`;
  },
};

/**
 * Takes the connection of the Redis client alone. Its methods for 400 commands, its pool and its clusters, which Trunkline does
 * not use, are two thirds of the package.
 */
const redisConnection = {
  name: 'redis-connection',
  load(id) {
    const [, name] = /@redis[\\/]client[\\/]dist[\\/](index|lib[\\/]commands[\\/]index)\.js$/.exec(id) ?? [];
    if (name === undefined) return null;
    const client = `exports.createClient = require('./lib/client').default.create;`;
    return name === 'index'
      ? `${client} exports.RESP_TYPES = require('./lib/RESP/decoder').RESP_TYPES;`
      : `exports.__esModule = true; exports.default = { AUTH: require('./AUTH').default };`;
  },
};

/** Says that the files are CommonJS modules, although their names end as those of ES modules do. */
const moduleType = {
  name: 'module-type',
  generateBundle() {
    this.emitFile({ type: 'asset', fileName: 'package.json', source: '{ "type": "commonjs" }\n' });
  },
};

/** A letter beyond Latin-1 makes Node keep all of a file in two bytes each. */
const ascii = {
  name: 'ascii',
  generateBundle: (_, files) => {
    for (const file of Object.values(files)) {
      if (file.type === 'chunk') file.code = file.code.replaceAll(/[^\0-\x7f]/g, escaped);
    }
  },
};

function escaped(unit) {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

await build({
  input: {
    cli: path('src/cli/entry.ts'),
    main: path('src/cli/main.ts'),
    serve: path('src/app/serve.ts'),
    embed: path('src/app/embed.ts'),
  },
  // The first two stages and these are two files, since other files may use what stands there.
  preserveEntrySignatures: 'allow-extension',
  platform: 'node',
  external: /^node:/,
  plugins: [noInterception, redisConnection],
  logLevel: 'warn',
  resolve: {
    extensionAlias: { '.js': ['.ts', '.js'] },
    // Their ES modules. For Node they offer CommonJS only, which a bundler cannot shake.
    alias: {
      yaml: path('node_modules/yaml/browser/index.js'),
      'jsonc-parser': path('node_modules/jsonc-parser/lib/esm/main.js'),
      ...openTelemetry(),
    },
  },
  output: {
    // Node reads and scans every character of a file, and keeps it for as long as it runs.
    comments: false,
    dir: path('dist'),
    cleanDir: true,
    // Node needs 3 to 4 ms less to start a CommonJS module. The package itself has ES modules.
    format: 'cjs',
    entryFileNames: '[name].js',
    chunkFileNames: '[name].js',
    plugins: [noIdleHelpers, ascii, bundledPackages, moduleType],
    codeSplitting: {
      groups: STAGES.map((stage, at) => ({ ...stage, priority: STAGES.length - at })),
    },
  },
});
await buildPage();
// For programs that import the package. The file imports nothing, so it is its own declaration.
copyFileSync(path('src/app/embed-types.ts'), path('dist/embed.d.ts'));
writeFileSync(path('dist/THIRD-PARTY-LICENSES.txt'), licensesOf([...bundledFolders]));
chmodSync(path('dist/cli.js'), 0o755);

/**
 * Builds the page of `trunkline web`: one script, one style sheet and the document that names both. Names contain a hash of the
 * content, so that a browser may keep the files for ever. Each file has a compressed copy beside it.
 */
async function buildPage() {
  const folder = path('dist/page');
  const { output } = await build({
    input: path('src/web/page/main.tsx'),
    platform: 'browser',
    logLevel: 'warn',
    tsconfig: path('src/web/page/tsconfig.json'),
    resolve: { extensionAlias: { '.js': ['.ts', '.tsx', '.js'] } },
    output: {
      dir: folder,
      cleanDir: true,
      format: 'esm',
      minify: true,
      comments: false,
      entryFileNames: 'page-[hash].js',
      plugins: [bundledPackages],
    },
  });
  const style = minifiedStyle(readFileSync(path('src/web/page/page.css'), 'utf8'));
  const styleName = `page-${createHash('sha256').update(style).digest('base64url').slice(0, 8)}.css`;
  const files = new Map(output.map(({ fileName, code }) => [fileName, code]));
  files.set(styleName, style);
  files.set('index.html', pageDocument(output[0].fileName, styleName));
  for (const [name, text] of files) {
    writeFileSync(join(folder, name), text);
    writeFileSync(join(folder, `${name}.gz`), gzipSync(text, { level: 9 }));
  }
}

/** Removes comments, and white space that no selector or value needs. The style sheet contains no strings with either. */
function minifiedStyle(text) {
  return text
    .replace(/\/\*[\s\S]*?\*\//g, '')
    .replace(/\s+/g, ' ')
    .replace(/ ?([{};,>]) ?/g, '$1')
    .replace(/: /g, ':')
    .replaceAll(';}', '}')
    .trim();
}

/** The icon is part of the document, because a browser asks for one otherwise. */
function pageDocument(script, style) {
  const icon = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><path fill="none" stroke="#3b6fe0" stroke-width="2.4" stroke-linecap="round" d="M2 4h12M8 4v9M4.5 13h7"/></svg>`;
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Trunkline</title><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark"><link rel="icon" href="data:image/svg+xml,${encodeURIComponent(icon)}"><link rel="stylesheet" href="/${style}"><script type="module" src="/${script}"></script></head><body><noscript>This page needs JavaScript. The command trunkline status shows the same.</noscript></body></html>
`;
}
