// Builds `dist`. What is loaded between the spawn and the first answers decides how long a client waits, and a few
// large files load several times faster than many small ones, so our files are bundled, and the packages that they
// import, too. What the first answers do not need stays in files of its own, behind an `import()`. `tsc` checks the types.
import { chmodSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'rolldown';

const path = (file) => fileURLToPath(new URL(`../${file}`, import.meta.url));

/**
 * The two stages of a start, each in one file with all that it needs: what answers `initialize`, and what serves. The file
 * before them attaches to a hub; every client of a hub has a process with it. Other files follow from the `import()`s.
 */
const STAGES = [
  // Two small files of `src/json` are there for the commands, which need nothing else of what serves.
  {
    name: 'main',
    test: /src\/(hub|cli|errors|json)\/(attach\/|commands\/serve\/)?(main|attach|usage-error|serve-options|printable|suggest)\.ts$/,
  },
  { name: 'serve', test: path('src/app/serve.ts') },
  { name: 'serve-clients', test: path('src/app/serve-clients.ts') },
];

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
  return `${name} ${version} (${license})\n\n${texts.join('\n\n')}\n\n`;
}

/** For a package that names the MIT license in its package.json, and has no file with the text. */
function declaredLicense(name, license, author) {
  const holder = author?.name ?? author;
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
  },
  // The first two stages and these are two files, since other files may use what stands there.
  preserveEntrySignatures: 'allow-extension',
  platform: 'node',
  external: /^node:/,
  logLevel: 'warn',
  resolve: {
    extensionAlias: { '.js': ['.ts', '.js'] },
    // Their ES modules. For Node they offer CommonJS only, which a bundler cannot shake.
    alias: {
      yaml: path('node_modules/yaml/browser/index.js'),
      'jsonc-parser': path('node_modules/jsonc-parser/lib/esm/main.js'),
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
// Two folders can have the same version of a package.
const texts = new Set([...bundledFolders].map(licenseOf));
writeFileSync(path('dist/THIRD-PARTY-LICENSES.txt'), [...texts].sort().join('\n'));
chmodSync(path('dist/cli.js'), 0o755);
