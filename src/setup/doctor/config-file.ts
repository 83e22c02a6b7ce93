import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { disabledByInit } from '../../config/edit/edit-config.js';
import { type ConfigError, type ConfigErrorCode, formatProblem } from '../../config/file/config-error.js';
import { candidateFiles } from '../../config/file/find-config.js';
import { type Config, isPerUser } from '../../config/resolve/config.js';
import type { Code } from '../../host/errors/codes.js';
import { realPath } from '../../host/files/whole-file.js';
import { trustedTextAround } from '../../state/trusted-projects.js';
import { plural, sentence } from '../../wire/json/printable.js';
import { type Finding, finding } from './finding.js';
import type { Machine } from './machine.js';

const CODE_OF_ERROR: Readonly<Record<ConfigErrorCode, Code>> = {
  'config-not-found': 'TL-CONFIG-NOT-FOUND',
  'config-unreadable': 'TL-CONFIG-UNREADABLE',
  // No check writes a file, so this cannot come up.
  'config-changed': 'TL-CONFIG-UNREADABLE',
  'config-syntax': 'TL-CONFIG-SYNTAX',
  'config-invalid': 'TL-CONFIG-INVALID',
};

/** Turns each mistake of an unusable configuration into a finding. */
export function checkBrokenConfig({ code, file, problems }: ConfigError): Finding[] {
  return problems.map((problem) => {
    const { hint, ...located } = problem;
    const [first = '', ...looked] = formatProblem(file, located).split('\n');
    const evidence = looked.map((line) => line.trim());
    return finding(CODE_OF_ERROR[code], first, evidence, { remedy: hint && sentence(hint) });
  });
}

export type ConfigSource = '--config' | 'TRUNKLINE_CONFIG' | 'the usual places';

/** Checks a usable configuration: its file, its warnings, and its servers that cannot run. */
export function checkConfig(config: Config, source: ConfigSource, machine: Machine): Finding[] {
  const { file, servers, disabled, warnings } = config;
  const found = [...checkShadowed(file, source, machine), ...checkModes(file, machine)];
  for (const warning of warnings) {
    const [text = '', ...hint] = warning.split('\n');
    found.push(finding('TL-CONFIG-WARNING', text, [], { remedy: sentence(hint.join(' ').trim()) || undefined }));
  }
  for (const { key, problem } of servers.filter((server) => !isPerUser(config, server))) {
    if (problem === undefined) continue;
    const { hint, message, line, column } = problem;
    const unset = /environment variable \S+ is not set$/.test(message);
    const code = unset ? 'TL-VAR-UNSET' : 'TL-SERVER-MISCONFIGURED';
    const evidence = [`${file}:${line}:${column}`];
    found.push(finding(code, `server \`${key}\` cannot run: ${message}`, evidence, { remedy: sentence(hint) }));
  }
  for (const { key, spec } of servers) {
    const { issuer, confidential } = (spec?.kind === 'remote' && spec.login) || {};
    if (confidential === undefined || issuer !== undefined) continue;
    const keys = confidential.map((name) => `\`oauth.${name}\``).join(' and ');
    found.push(finding('TL-LOGIN-ISSUER', `server \`${key}\` has ${keys}, and no \`oauth.issuer\``, [file]));
  }
  found.push(...checkDisabled(config));
  const off = disabled.length === 0 ? '' : `, and ${disabled.length} disabled: ${disabled.join(', ')}`;
  const ofUsers = servers.filter((server) => isPerUser(config, server)).map(({ key }) => key);
  const tried =
    ofUsers.length === 0 ? '' : `; \`trunkline check --user NAME\` starts those of users: ${ofUsers.join(', ')}`;
  const text = `the configuration comes from ${source} and has ${plural(servers.length, 'server')}${off}${tried}`;
  const ok = finding('TL-CONFIG-OK', text, [file]);
  return found.some(({ level }) => level === 'fail') ? found : [ok, ...found];
}

/** Finds servers that `trunkline init` has disabled. A server that the user has disabled is no fault, unless no other is left. */
function checkDisabled({ file, servers, disabled }: Config): Finding[] {
  const byInit = disabled.length === 0 ? new Map<string, string>() : disabledByInit(readFileSync(file, 'utf8'));
  if (byInit.size > 0) {
    const reasons = [...byInit].map(([key, reason]) => `${key}: ${reason}`);
    const text = `\`trunkline init\` has disabled ${plural(byInit.size, 'server')} that did not start`;
    return [finding('TL-CONFIG-DISABLED', text, reasons)];
  }
  if (servers.length > 0 || disabled.length === 0) return [];
  return [finding('TL-CONFIG-DISABLED', `all servers are disabled: ${disabled.join(', ')}`, [file])];
}

/** Finds configurations that are not used because another comes first. The user has chosen a file deliberately only with `--config`. */
function checkShadowed(file: string, source: ConfigSource, machine: Machine): Finding[] {
  if (source === '--config') return [];
  const { cwd, env, home, platform } = machine;
  // The file of a trusted project stands beside the one of the user.
  const isProject = trustedTextAround(cwd) !== '';
  const others = candidateFiles({ cwd: isProject ? '' : cwd, env, home, platform }).filter((each) => {
    return existsSync(each) && realPath(each) !== realPath(file);
  });
  return others.map((other) =>
    finding('TL-CONFIG-SHADOWED', `${other} is not used, because ${file} comes first (${source})`, [file, other]),
  );
}

function checkModes(file: string, { uid }: Machine): Finding[] {
  if (uid === undefined) return [];
  return [file, dirname(resolve(file))].flatMap((path) => {
    const { mode } = statSync(path);
    // In a folder with the sticky bit, only its owner can replace a file.
    const isOpen = (mode & 0o022) !== 0 && (mode & 0o1000) === 0;
    // Write permission for the group alone is harmless, because most users on Linux have a group of their own.
    if (!isOpen || (mode & 0o002) === 0) return [];
    return [finding('TL-CONFIG-WRITABLE', `other users can write ${path}`, [], { remedy: `chmod go-w ${path}` })];
  });
}
